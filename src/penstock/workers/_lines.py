"""What the workers print and log, on one stream: whole lines, never mixed.

Rules of this file:

* A worker writes to a pipe of its own, and the parent writes what comes, line by line. So a line of
  one worker is never inside that of another one, however long it is.
* A line without an end is written when it has `LONGEST` bytes: the parent must not keep it.
* The parent waits while nobody reads its own output, and then the workers wait, as any program does
  whose output is not read.
"""

import os
from contextlib import suppress
from typing import Final

import trio

LONGEST: Final = 64 << 10
_CHUNK: Final = 64 << 10


async def pass_lines(source: trio.abc.ReceiveStream | None, target: int) -> None:
    """Write the lines that come from `source` to the file `target`, until the worker has ended.
    Checkpoints.
    """
    assert source is not None  # noqa: S101 (the process was started with pipes)
    rest = b""
    async with source:
        while data := await source.receive_some(_CHUNK):
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if newline:
                await _write(target, whole + newline)
            if len(rest) >= LONGEST:
                await _write(target, rest + b"\n")
                rest = b""
        if rest:
            await _write(target, rest + b"\n")


async def _write(target: int, data: bytes) -> None:
    with suppress(OSError):  # nobody reads the output of the parent any more
        while data:
            # A file is always ready, and cannot be waited for.
            with suppress(OSError):
                await trio.lowlevel.wait_writable(target)
            try:
                data = data[os.write(target, data) :]
            except BlockingIOError:
                continue
