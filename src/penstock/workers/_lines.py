"""The lines that workers print and log, on one stream: whole, never mixed.

Rules of this file:

* Each worker writes to its pipe, and the parent writes the lines from all pipes. So a line of one
  worker is never inside that of another one, however long it is.
* A line without an end is written when it has `LONGEST` bytes: the parent must not keep it.
* While the output of the parent is not read, the workers wait, as any program does whose output is
  not read. The parent goes on.
"""

import os
import select
import sys
from contextlib import suppress
from typing import Final

import trio

LONGEST: Final = 64 << 10
_CHUNK: Final = 64 << 10
_ONE_WRITE: Final = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that a pipe takes without a wait when it is ready. A write of more would stop the parent,
and a write of these is never mixed with one of another process.
"""


class LineOutput:
    """Standard output or standard error of this process, which all workers write to."""

    def __init__(self, target: int | None, lock: trio.Lock) -> None:
        """`target` is the number of the file; None if it was closed when this process began. Its
        number may be that of a socket by now. Outputs that may be the same pipe share a `lock`.
        """
        self._target = target
        # A pipe takes a part of a line, and only one task may wait for it.
        self._lock = lock

    async def pass_on(self, source: trio.abc.ReceiveStream | None) -> None:
        """Write the lines that come from `source`, until the worker has ended. Checkpoints."""
        assert source is not None  # noqa: S101 (the process was started with pipes)
        rest = b""
        async with source:
            while data := await source.receive_some(_CHUNK):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    await self._write(whole + newline)
                if len(rest) >= LONGEST:
                    await self._write(rest + b"\n")
                    rest = b""
            if rest:
                await self._write(rest + b"\n")

    async def _write(self, data: bytes) -> None:
        target = self._target
        if target is None:
            return
        async with self._lock:
            with suppress(OSError):  # nobody reads the output of the parent any more
                while data:
                    # A file is always ready, and cannot be waited for.
                    with suppress(OSError):
                        await trio.lowlevel.wait_writable(target)
                    try:
                        # Whole lines, but for one that is longer: this process writes lines too.
                        end = data.rfind(b"\n", 0, _ONE_WRITE) + 1 or _ONE_WRITE
                        data = data[os.write(target, data[:end]) :]
                    except BlockingIOError:
                        continue


def standard_outputs() -> tuple[LineOutput, LineOutput]:
    """Return standard output and standard error."""
    lock = trio.Lock()
    return (
        LineOutput(None if sys.__stdout__ is None else 1, lock),
        LineOutput(None if sys.__stderr__ is None else 2, lock),
    )
