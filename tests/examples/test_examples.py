"""Each example prints the text of its .out file.
It runs alone, without the other files of the repository.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.examples._scripts import Done, ScriptForks, run_alone

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


def _run(example: Path, folder: Path, forks: ScriptForks) -> Done:
    """Run a copy in an empty folder, as a reader does who copies the example from a page."""
    program = Path(shutil.copy(example, folder))
    return run_alone(program) if example.name in ON_A_REAL_CLOCK else forks.run(program)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_prints_its_out_file(example: Path, tmp_path: Path, forks: ScriptForks) -> None:
    """The example runs without a warning, ends by itself with status 0, and prints exactly its .out
    file, which the documentation shows.

    Set PENSTOCK_WRITE_OUT to store the present output;
    then read the difference before you commit it.
    """
    done = _run(example, tmp_path, forks)
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
