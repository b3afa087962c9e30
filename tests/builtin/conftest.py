"""Fixtures of the builtin transports' tests."""

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
        with suppress(FileNotFoundError):  # the one that listed the folder
            found[entry.name] = str(entry.readlink())
    return found


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After each test: as many open files as before, and no child process."""
    if not OPEN_FILES.is_dir():
        yield  # no system file lists what is open: elsewhere than on Linux only the children are counted
    else:
        before = _open_files()
        yield
        after = _open_files()
        if len(after) > len(before):
            gc.collect()  # what an exception's traceback still holds is not left behind
            after = _open_files()
        assert len(after) <= len(before), {number: what for number, what in after.items() if before.get(number) != what}
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
