"""A raw connection to a target. It sends and receives bytes, each with a deadline,
and records how the connection ended.

Rules of this file:

* Bytes are read only while a check waits in one of the methods here, and not by a background task.
* A check does not distinguish a close from a reset: after either of them no more bytes come.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import trio

from penstock.spi import Connection
from penstock_tck.wire._verdict import fail, verify

MAX_RECEIVED: Final = 64 << 20
"""Upper bound of the bytes that are received on one connection. No check needs more; a target
that exceeds it fails the check.
"""


class RawConnection(ABC):
    """A connection that one task reads. The subclass for a protocol defines `on_data`, which
    gets the bytes that are received.
    """

    def __init__(self, connection: Connection, *, quiet: float, patience: float) -> None:
        self.connection = connection
        self.quiet = quiet
        self.patience = patience
        self._taken = 0
        self.ending: str | None = None
        """How the target ended its half: "closed" or "reset". None while it is open."""

    async def send(self, *data: bytes) -> None:
        """Send bytes. If the target has closed the connection, return normally: bytes that it sent
        before can still be read, and a check that expects an answer fails when it waits for one.
        """
        with trio.move_on_after(self.patience) as waiting:
            try:
                for message in [b"".join(data)] if not self.connection.framed else data:
                    await self.connection.send(message)
            except trio.BrokenResourceError:
                return
        if waiting.cancelled_caught:
            fail(f"the target did not read the bytes that were sent to it for {self.patience} s")

    async def close(self) -> None:
        """Close the connection in good order."""
        await self.connection.aclose()

    @abstractmethod
    def on_data(self, data: bytes) -> None:
        """Take received bytes."""

    @abstractmethod
    def describe_received(self) -> str:
        """Describe all that has been received, for the text of a failure."""

    async def read(self, seconds: float) -> bool:
        """Receive once, for at most `seconds`.
        Return whether bytes, or the end of the connection, were received.
        """
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
                verify(
                    self._taken <= MAX_RECEIVED,
                    f"the target sent more than {MAX_RECEIVED >> 20} MiB and did not stop",
                )
                self.on_data(bytes(data))
            return True
        return False

    async def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Receive until `condition` holds; fail the check after `patience` seconds. `what` names
        the expected message in the failure.
        """
        with trio.move_on_after(self.patience):
            while not condition():
                if self.ending is not None:
                    fail(f"the connection ended instead of {what}; {self.describe_received()}")
                await self.read(self.patience)
        verify(
            condition(), f"{what} did not come within {self.patience} s; {self.describe_received()}"
        )

    async def settle(self) -> None:
        """Receive until nothing comes for `quiet` seconds,
        or until the target has ended the connection.
        """
        with trio.move_on_after(self.patience):
            while await self.read(self.quiet):
                pass
            return
        fail(
            f"the target did not stop sending within {self.patience} s; {self.describe_received()}"
        )

    async def settle_after(self, seconds: float) -> None:
        """Receive for `seconds`, and then until nothing comes for `quiet` seconds."""
        with trio.move_on_after(seconds):
            while self.ending is None:
                await self.read(seconds)
        await self.settle()

    async def wait_closed(self, why: str) -> None:
        """Wait until the target has ended the connection.
        `why` is the reason for which it must end it.
        """
        with trio.move_on_after(self.patience):
            while self.ending is None:
                await self.read(self.patience)
        if self.ending is None:
            fail(
                f"{why}, and the target kept the connection open for {self.patience} s; "
                f"{self.describe_received()}"
            )
