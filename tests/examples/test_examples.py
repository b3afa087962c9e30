"""Each example prints the text of its .out file.
It runs alone, without the other files of the repository.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests._real_time import HANGS_AFTER

ROOT = Path(__file__).parents[2]
# The demo measures in real time, so its output differs between runs. `nox -s demo` runs it, and the
# demo checks its own findings.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")
# These wait for other programs, threads and sockets. The autojump clock would jump ahead of those.
ON_A_REAL_CLOCK = {
    "asyncio_client.py",
    "asyncio_guest.py",
    "asyncio_serve.py",
    "authenticate.py",
    "blocking_client.py",
    "exec_pipe.py",
    "killed_orders.py",
    "mutual_tls.py",
    "typed_elements.py",
    "unix_socket.py",
    "workers.py",
}
REWRITE_STORED_OUTPUTS = "PENSTOCK_WRITE_OUT" in os.environ


def _run(example: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a copy in an empty folder, as a reader does who copies the example from a page."""
    program = shutil.copy(example, folder)
    runner = (
        []
        if example.name in ON_A_REAL_CLOCK
        else [str(Path(__file__).with_name("_on_virtual_time.py"))]
    )
    command = [sys.executable, "-W", "error", "-X", "utf8", *runner, str(program)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANGS_AFTER,
        check=False,
        cwd=folder,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_prints_its_out_file(example: Path, tmp_path: Path) -> None:
    """The example runs without a warning, ends by itself with status 0, and prints exactly its .out
    file, which the documentation shows.

    Set PENSTOCK_WRITE_OUT to store the present output;
    then read the difference before you commit it.
    """
    done = _run(example, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if REWRITE_STORED_OUTPUTS:
        example.with_suffix(".out").write_text(done.stdout, encoding="utf-8")
    assert done.stdout == example.with_suffix(".out").read_text(encoding="utf-8")


def test_examples_are_found() -> None:
    """The folder of examples is not empty, and each name in `ON_A_REAL_CLOCK` is the name of an
    example.
    """
    assert EXAMPLES
    assert {path.name for path in EXAMPLES} >= ON_A_REAL_CLOCK
