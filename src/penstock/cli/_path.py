"""Paths in arguments: the file of a log where a command takes a URL or a path, and small files."""

import errno
import os
import re
from pathlib import Path
from typing import Final

SMALL_FILE: Final = 64 << 10
"""Bytes of a file with a state, a context or a secret, at most."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Of at least two letters: C:\\logs is a path."""


def path_in(text: str) -> Path | None:
    """Return the path that a text is, None if it is a URL."""
    return None if _SCHEME.match(text) else Path(text)


def read_small(path: Path, most: int = SMALL_FILE) -> bytes:
    """Return what is in a file. Raises OSError also for one of more than `most` bytes: a device can
    have no end, and its size says nothing of a pipe.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}, more than {most:,} bytes")
    return data
