"""The answer to one request, as a version of HTTP writes it, and bytes that a client must read."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, Final

import trio

from penstock.api import ConnectionLost
from penstock_http._messages import Outcome, Response

PIECE: Final = 64 << 10
"""Bytes of an answer that are written at a time: each has its own deadline."""

GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionLost)
"""The exceptions of a write after the client has gone."""


class Outlet(ABC):
    """The answer to one request, as a version of HTTP writes it. The writes raise one of `GONE`."""

    bodies: AbstractAsyncContextManager[Any] = nullcontext()
    """Entered while the elements of an answer are in memory: bounds them, if several answers of
    a connection are written at a time.
    """

    outcome: Outcome | None = None
    """Learns that the answer was written."""

    is_written: bool = False
    """The system has taken the whole answer."""

    def on_written(self) -> None:
        """Note that the system has taken the whole answer. It may be called again.

        Called before the write returns, if other requests of the client are served meanwhile: the
        next one may come, or the client may end the connection, before the task of this one runs
        again.
        """
        if not self.is_written:
            self.is_written = True
            if self.outcome is not None:
                self.outcome.on_written()
                self.note_written(self.outcome)

    @abstractmethod
    async def write(self, response: Response) -> None:
        """Write a whole answer."""

    @abstractmethod
    async def begin(self, response: Response, *, length: int | None = None) -> None:
        """Write the head of an answer whose body comes in parts. `length` is the number of its
        bytes, if that is known.
        """

    @abstractmethod
    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        """Write a part of such a body, which is not empty; and its end, if it is the last one."""

    @abstractmethod
    async def end(self) -> None:
        """End such a body after its last part, or without one."""

    def promise(self, path: str) -> AbstractContextManager["Outlet"]:
        """Promise the answer to a GET of `path`, behind `begin`, and return its outlet.
        The push ends with the block.

        Called only if the request accepts pushes, which HTTP/2 alone has.
        """
        raise AssertionError(f"this version of HTTP cannot push {path}")

    @abstractmethod
    def note_written(self, outcome: Outcome) -> None:
        """Remember elements that were written to their end:
        if the connection breaks soon, they are lost.
        """

    def acknowledged(self) -> bool | None:
        """Return whether the client's system has acknowledged all that was written so far; None if
        unknown.
        """
        return None

    @abstractmethod
    async def wait_gone(self) -> None:
        """Return when the client has gone. Called while the request waits, and cancelled at its
        end: it may read what the client sends.
        """


Write = Callable[[memoryview], Awaitable[None]]


async def write_in_pieces(
    data: bytes, write: Write, stall: float, *, write_last: Write | None = None
) -> None:
    """Write `data`, the last piece with `write_last` if that is given. Raises ConnectionLost if
    a piece takes more than `stall` seconds.
    """
    view = memoryview(data)
    for start in range(0, len(data), PIECE):
        with trio.move_on_after(stall) as scope:
            is_last = start + PIECE >= len(data)
            await (write_last if write_last and is_last else write)(view[start : start + PIECE])
        if scope.cancelled_caught:
            raise stalled(stall)


def stalled(stall: float) -> ConnectionLost:
    """Return the exception of a write that took more than `stall` seconds."""
    return ConnectionLost(f"the client has read nothing for {stall:g} s (Limits.write_stall)")
