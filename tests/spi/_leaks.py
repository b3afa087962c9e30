"""A fixture that fails a test which leaves a file or a child process behind."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

OPEN_FILES = Path("/proc/self/fd")


def _open_files() -> dict[str, str]:
    found = {}
    for entry in OPEN_FILES.iterdir():
        with suppress(FileNotFoundError):  # the descriptor that listed the folder
            found[entry.name] = str(entry.readlink())
    return found


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """After each test: no more open files than before it, and no child process."""
    if not OPEN_FILES.is_dir():
        yield  # only Linux lists the open files; elsewhere only the children are checked
    else:
        before = _open_files()
        yield
        after = _open_files()
        if len(after) > len(before):
            gc.collect()  # the traceback of an exception may still hold a file
            after = _open_files()
        assert len(after) <= len(before), {
            number: target for number, target in after.items() if before.get(number) != target
        }
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
