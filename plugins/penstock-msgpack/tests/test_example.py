"""The example runs: structs as elements."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples/quotes_as_structs.py"


async def test_the_example_reads_structs(capsys: pytest.CaptureFixture[str]) -> None:
    """As structs, as dicts, and as a class that does not fit."""
    spec = importlib.util.spec_from_file_location("quotes_as_structs", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    await example.main()
    first, _, _, plain, refused = capsys.readouterr().out.splitlines()
    assert first == "EURUSD 108 12:00:00"
    assert plain.startswith(
        "{'symbol': 'EURUSD', 'cents': 108, 'at': datetime.datetime(2026, 1, 2, 12, 0"
    )
    assert "element 0 (31 bytes): the element is not of type Trade" in refused
