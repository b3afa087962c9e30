"""The example: its service, and its query, which prints what is stored beside it."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.heavy
def test_the_example_prints_its_stored_output(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run reads all orders, and the second one nothing:
    it goes on from the checkpoint of the first.
    """
    spec = importlib.util.spec_from_file_location("read_orders", EXAMPLES / "read_orders.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    command = [sys.executable, str(EXAMPLES / "orders_service.py"), "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            uri = service.stdout.readline().strip()
            example.main(uri, str(tmp_path))
            assert capsys.readouterr().out == (EXAMPLES / "read_orders.out").read_text(
                encoding="utf-8"
            )
            example.main(uri, str(tmp_path))
            assert capsys.readouterr().out.startswith("0 new orders\n")
        finally:
            service.kill()
