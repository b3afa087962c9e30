"""Connects again, with the server's token, after a client's transport connection was lost, until
the resume timeout is over.

Rules of this file:

* The first attempt is made at once. Before each further one there is a random pause, whose bound
  doubles up to `LONGEST_PAUSE`.
* If the server does not know the connection, no further attempt is made: it will not know it later.
  A server that is full, or gone, is asked again.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from penstock.api import ConnectionLost, Limits, Rejected
from penstock.client import Reconnector, TryAfter
from penstock.runtime.connection import ConnectionTask, Handover, Resumption
from penstock.session import Takeover
from penstock.spi import Connection, Events, Reconnect

LONGEST_PAUSE: Final = 5.0
PAUSES: Final = Reconnect(first=0.05, most=LONGEST_PAUSE)
"""Random pauses, so that the clients of one server do not come back together. The end of the
attempts is that of the resume timeout.
"""

PASSING: Final = frozenset({"lost", "shutdown", "drain", "limit:handshake"})
"""Reasons for which an attempt fails, and a later one may succeed."""


class ClientHandover(Handover):
    """A new connection on which a client asks the server to go on with the lost one."""

    def __init__(self, token: bytes, received: int, kept: int) -> None:
        self.takeover: Takeover = Takeover(question=(token, received), kept=kept)

    @property
    def is_asked(self) -> bool:
        return self.takeover.said is not None

    async def prepare(self, _principal: object, stop_reading: Callable[[], None]) -> None:
        # Before the lost connection goes on:
        # the bytes behind the server's answer belong to the lost connection.
        stop_reading()
        await trio.lowlevel.checkpoint()


class NotNowError(ConnectionLost):
    """An attempt has failed, and a later one may succeed."""


Dial = Callable[[bytes, int, int], Awaitable[tuple[Connection, bytes, int]]]
"""Connects and asks the server, with a token, the position up to which this side has received, and
the first one that it can send again. Returns the connection, the next token, and the position up to
which the server has received.

Raises NotNowError, or ConnectionLost if no further attempt can succeed.
"""


class ClientResumption(Resumption):
    """Looks for the next link of one connection."""

    __slots__ = ("_dial", "_seconds", "_token")

    waits_for_peer = False

    def __init__(self, limits: Limits, dial: Dial) -> None:
        super().__init__(limits)
        self._dial = dial
        self._token: bytes | None = None
        self._seconds = limits.resume_timeout

    def first_token(self) -> bytes | None:
        return None

    def on_token(self, token: bytes, seconds: float) -> None:
        # The shorter time of the two sides: after that time one side has given the connection up.
        self._token, self._seconds = token, min(seconds, self._limits.resume_timeout)

    def on_confirmed(self) -> None:
        """Do nothing: a client waits for nothing."""

    async def find_link(self, lost: Exception) -> tuple[Connection, int]:
        # The connection was lost right behind the hello.
        if self._token is None:
            raise self.give_up(lost, "it was lost before the server gave it a token")
        last: Exception | None = None
        reconnector = Reconnector(PAUSES, Events(), "")
        with trio.move_on_after(self._seconds):
            while True:
                reconnector.on_attempt()
                try:
                    # The next token comes with the answer, because each has one use.
                    connection, self._token, position = await self._dial(
                        self._token, self.received, self.kept
                    )
                except NotNowError as failed:
                    last = failed
                except ConnectionLost as refused:
                    # No further attempt: each token has one use, and a server
                    # that does not know it will not know it later.
                    raise self.give_up(lost, str(refused)) from None
                else:
                    return connection, position
                decision = reconnector.on_lost(last, opened_at=None, now=trio.current_time())
                await trio.sleep(decision.seconds if isinstance(decision, TryAfter) else 0.0)
        why = "" if last is None else f"; the last attempt: {last}"
        raise self.give_up(
            lost,
            (
                f"no server answered within {self._seconds:g} s (Limits.resume_timeout of the two "
                f"sides){why}"
            ),
        )


def judge(reason: Exception | None, token: str) -> Exception:
    """Return the error for an attempt that ended with `reason`, and with the goodbye `token`."""
    if (isinstance(reason, Rejected) and reason.temporary) or token in PASSING:
        return NotNowError(str(reason))
    return ConnectionLost(str(reason))


async def run_or_cut(task: ConnectionTask) -> None:
    """Run a connection on which a client asks to go on. If this is cancelled, the connection
    ends at once, without a goodbye.
    """

    async def run() -> None:
        async with trio.open_nursery() as tasks:
            await task.run(tasks)
        over.set()

    over = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await over.wait()
        except trio.Cancelled:
            task.cut()
            raise
