"""A raw connection to a target: bytes out, bytes in, each with a deadline, and how it ended.

Rules of this file:

* Nothing is read but while somebody waits: there is no task behind it.
* An end is an end: closed in good order or reset, what counts is that nothing more comes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import trio

from penstock.plugins import Connection
from penstock_tck.wire._verdict import fail, verify

MAX_RECEIVED: Final = 64 << 20
"""Bytes that are taken in on one connection: no check needs more, and a target that does not stop is told so."""


class RawConnection(ABC):
    """A connection, read by one task. What arrives is handed to `arrived`, which a protocol's peer defines."""

    def __init__(self, connection: Connection, *, quiet: float, patience: float) -> None:
        self.connection = connection
        self.quiet = quiet
        self.patience = patience
        self._taken = 0
        self.ending: str | None = None
        """How the target ended its half, once it has."""

    async def send(self, *data: bytes) -> None:
        """Send bytes. A target that has closed does not hear them, and that is told where something is expected of it."""
        with trio.move_on_after(self.patience) as waiting:
            try:
                for message in [b"".join(data)] if not self.connection.framed else data:
                    await self.connection.send(message)
            except trio.BrokenResourceError:
                return  # what it has said before may still be read
        if waiting.cancelled_caught:
            fail(f"the target did not read what it was sent for {self.patience} s")

    async def end(self) -> None:
        """Close in good order."""
        await self.connection.aclose()

    @abstractmethod
    def on_data(self, data: bytes) -> None:
        """Take in what came."""

    @abstractmethod
    def describe_received(self) -> str:
        """What has arrived, for people."""

    async def read(self, seconds: float) -> bool:
        """Take in what arrives next; say whether anything did, the end included, within so many seconds."""
        if self.ending is not None:
            return False
        with trio.move_on_after(seconds):
            try:
                data = await self.connection.receive()
            except trio.BrokenResourceError:
                self.ending = "reset"
                return True
            if data is None:
                self.ending = "closed"
            else:
                self._taken += len(data)
                verify(self._taken <= MAX_RECEIVED, f"the target sent more than {MAX_RECEIVED >> 20} MiB, and did not stop")
                self.on_data(bytes(data))
            return True
        return False

    async def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Take in what arrives until `condition` holds. `what` says what is waited for."""
        with trio.move_on_after(self.patience):
            while not condition():
                if self.ending is not None:
                    fail(f"the connection ended instead of {what}; {self.describe_received()}")
                await self.read(self.patience)
        verify(condition(), f"{what} did not come within {self.patience} s; {self.describe_received()}")

    async def settle(self) -> None:
        """Take in everything, until it has been silent for a while or has ended."""
        with trio.move_on_after(self.patience):
            while await self.read(self.quiet):
                pass
            return
        fail(f"the target did not fall silent within {self.patience} s; {self.describe_received()}")

    async def settle_after(self, seconds: float) -> None:
        """Take in whatever comes for so long, and then until it is silent."""
        with trio.move_on_after(seconds):
            while self.ending is None:
                await self.read(seconds)
        await self.settle()

    async def wait_closed(self, why: str) -> None:
        """Wait until the target has ended the connection. `why` says what it should have ended it for."""
        with trio.move_on_after(self.patience):
            while self.ending is None:
                await self.read(self.patience)
        if self.ending is None:
            fail(f"{why}, and the target kept the connection open for {self.patience} s; {self.describe_received()}")
