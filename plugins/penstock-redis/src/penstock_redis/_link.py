"""One connection to a server of Redis: commands go out in order, and replies come in that order.

Rules of this file:

* One task writes, one reads. A task that was cancelled leaves its place in the order, and its reply
  is dropped.
* What waits to be written is bounded by the callers: a log has a bound for the elements under way,
  and a reader has one read.
* hiredis parses the replies, in C. A connection of redis-py needs asyncio, or a thread for each
  call.
"""

from collections import deque
from typing import Any, Final, TypeAlias

import hiredis
import trio

from penstock.api import ConnectionLost

READ_BYTES: Final = 1 << 18
"""Bytes that are received at once: a fetch of 1 MiB comes in few steps."""

Word: TypeAlias = str | int | float | bytes | memoryview
"""A part of a command: what hiredis takes."""

MORE: Final = object()
"""What hiredis returns while a reply is not whole."""


class Refused(Exception):
    """The server refused a command. `code` is the first word of its text, as in NOPERM."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code: str = text.partition(" ")[0]


class _Reply:
    __slots__ = ("done", "value")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.value: Any = None


class Link:
    """A connection over `stream` to the server at `place`. `run` moves the bytes."""

    def __init__(self, stream: trio.abc.Stream, place: str) -> None:
        self._stream = stream
        self._ended = (
            f"{place} has closed the connection: look whether it is Redis, whether it wants TLS "
            "(rediss://), and at its log"
        )
        self._parser = hiredis.Reader(notEnoughData=MORE)
        self._waiting: deque[_Reply] = deque()
        self._out: list[bytes] = []
        self._has_work = trio.Event()
        self._is_lost = False
        self._scope = trio.CancelScope()

    async def call(self, *words: Word) -> Any:
        """Return the reply to a command. Raises Refused, and ConnectionLost."""
        if self._is_lost:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(self._ended)
        reply = _Reply()
        # Both at once, so that the orders are the same.
        self._waiting.append(reply)
        self._out.append(hiredis.pack_command(words))  # type: ignore[arg-type]  # its types say a tuple of one
        self._has_work.set()
        await reply.done.wait()
        if isinstance(reply.value, hiredis.HiredisError):
            raise Refused(str(reply.value))
        if reply.value is MORE:
            raise ConnectionLost(self._ended)
        return reply.value

    def close(self) -> None:
        """End the connection. Calls that wait raise ConnectionLost(self._ended)."""
        self._is_lost = True
        self._scope.cancel()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move bytes until the connection ends, or the task is cancelled."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    task_status.started()
                    await self._read()
                    nursery.cancel_scope.cancel()
        finally:
            self._is_lost = True
            for reply in self._waiting:
                reply.value = MORE
                reply.done.set()
            self._waiting.clear()
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _write(self) -> None:
        try:
            while True:
                await self._has_work.wait()
                self._has_work = trio.Event()
                out, self._out = self._out, []
                # One call for all that has come: its cost does not grow with the commands.
                await self._stream.send_all(b"".join(out))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The reader finds the end as well, after the replies that came before it.
            return

    async def _read(self) -> None:
        try:
            while data := await self._stream.receive_some(READ_BYTES):
                self._parser.feed(bytes(data))
                while (value := self._parser.gets()) is not MORE:
                    reply = self._waiting.popleft()
                    reply.value = value
                    reply.done.set()
        except (trio.BrokenResourceError, hiredis.ProtocolError, IndexError):
            return  # IndexError: a reply that nothing asked for, so this is no Redis
