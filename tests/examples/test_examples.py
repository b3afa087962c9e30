"""Each example prints the text of its .out file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests._real_time import HANGS_AFTER

ROOT = Path(__file__).parents[2]
# The demo prints measurements, and judges them itself: `nox -s demo` runs it.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")
# These wait for other programs, threads and sockets. Virtual time would not wait for them.
ON_A_REAL_CLOCK = {"exec_pipe.py", "mutual_tls.py", "unix_socket.py"}
STORED_OUTPUTS_ARE_REWRITTEN = "PENSTOCK_WRITE_OUT" in os.environ


def _run(example: Path) -> "subprocess.CompletedProcess[str]":
    runner = [] if example.name in ON_A_REAL_CLOCK else [str(Path(__file__).with_name("_on_virtual_time.py"))]
    command = [sys.executable, "-W", "error", "-X", "utf8", *runner, str(example)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=HANGS_AFTER, check=False, cwd=ROOT)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_the_text_of_its_out_file(example: Path) -> None:
    """The example runs without a warning, ends by itself, and prints exactly the text that the documentation shows.

    Set PENSTOCK_WRITE_OUT to store the output of this run. Read the difference before you commit it.
    """
    done = _run(example)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if STORED_OUTPUTS_ARE_REWRITTEN:
        example.with_suffix(".out").write_text(done.stdout, encoding="utf-8")
    assert done.stdout == example.with_suffix(".out").read_text(encoding="utf-8")


def test_there_are_examples_to_run() -> None:
    """The folder is not empty, and each name in ON_A_REAL_CLOCK is an example."""
    assert EXAMPLES
    assert {path.name for path in EXAMPLES} >= ON_A_REAL_CLOCK
