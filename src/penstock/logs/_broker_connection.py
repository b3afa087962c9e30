"""A connection to a broker that is made again when it is lost.

Rules of this file:

* A call that lost its connection is made again on the next one, until `timeout` has passed. So the
  broker must know what it has done already.
* A broker that does not answer for `timeout` seconds is given up: its connection is closed, and a
  new one is tried.
* A broker that came back with less than it had is not used any more.
"""

import errno
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import trio

from penstock.api import ConnectionLost, LogDamaged, LogError, UsageError

T = TypeVar("T")

LONGEST_PAUSE: Final = 1.0
"""Seconds between two attempts to connect, at most."""

SHORTEST_PAUSE: Final = 0.02
"""The same, at first: a server that was started again is there soon."""

_OUT_OF_FILES: Final = {
    errno.EMFILE: "Raise the limit on open files of this program (ulimit -n)",
    errno.ENFILE: "This system has no file left: raise fs.file-max",
}


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """End it. Calls that wait raise ConnectionLost."""


C = TypeVar("C", bound=Closable)


class BrokerConnection(Generic[C]):
    """Keeps a connection that `connect` makes. For a `Broker`, which begins with `open` and runs
    `run` in a task.

    `connect` raises OSError, ConnectionLost, or what a program shall see: a LogError or a
    UsageError. After the first time, LogDamaged of it says that the broker has lost elements, and
    ends the use of this object. `place` names the broker in texts. `lost` is called if there is no
    connection for `timeout` seconds, with the reason.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[C]],
        *,
        place: str,
        timeout: float,
        lost: Callable[[str | LogDamaged], None],
    ) -> None:
        self._connect = connect
        self._place = place
        self._timeout = timeout
        self._lost = lost
        self._changed = trio.Event()  # `current` has changed
        self._reason = ""
        self._damage = ""
        self.current: C | None = None
        """The connection; None while there is none."""

    async def open(self) -> C:
        """Connect for the first time. Raises LogError and UsageError. Checkpoints."""
        try:
            with trio.fail_after(self._timeout):
                made = await self._connect()
        except (OSError, ConnectionLost) as error:
            raise LogError(self._explain(error)) from error
        except trio.TooSlowError:
            raise LogError(self._silence()) from None
        self._set(made)
        return made

    async def run(self) -> None:
        """Connect again when the connection is lost, until the broker has lost elements."""
        while True:
            while self.current is not None:
                await self._changed.wait()
            lost_at, pause = trio.current_time(), SHORTEST_PAUSE
            while self.current is None:
                try:
                    with trio.fail_after(self._timeout):
                        made = await self._connect()
                except LogDamaged as error:
                    self._damage = str(error)
                    self._lost(error)
                    self._set(None)
                    return
                except (OSError, ConnectionLost, LogError, UsageError, trio.TooSlowError) as error:
                    is_slow = isinstance(error, trio.TooSlowError)
                    self._reason = self._silence() if is_slow else self._explain(error)
                    if trio.current_time() - lost_at >= self._timeout:
                        self._lost(self._reason)
                    await trio.sleep(pause)
                    # Several attempts fit into the time of a call.
                    pause = min(2 * pause, LONGEST_PAUSE, self._timeout / 4)
                else:
                    self._reason = ""
                    self._set(made)

    async def call(self, ask: Callable[[C], Awaitable[T]], *, doubt: str = "") -> T:
        """Return what `ask` returns of the connection, or of a later one. Raises LogError after
        `timeout` seconds, with `doubt` at its end if the broker may have done it. Checkpoints.
        """
        asked: C | None = None
        with trio.move_on_after(self._timeout):
            while True:
                while self.current is None and not self._damage:
                    await self._changed.wait()
                if self._damage:
                    raise LogDamaged(self._damage)
                asked = self.current
                try:
                    return await ask(asked)  # type: ignore[arg-type]  # not None: see the loop
                except ConnectionLost:
                    self.give_up(asked)
        # It does not answer: other calls on it would wait without end.
        self.give_up(asked)
        reason = self._reason or self._silence()
        raise LogError(f"{reason}; {doubt}" if doubt and asked is not None else reason)

    def give_up(self, connection: C | None) -> None:
        """End a connection, and let `run` make another one."""
        if connection is not None and self.current is connection:
            connection.close()
            self._set(None)

    def _set(self, connection: C | None) -> None:
        self.current = connection
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def _silence(self) -> str:
        return (
            f"{self._place} has not answered for {self._timeout:g} seconds: look whether it is "
            "the right server and the right port (with TLS, or without), whether it is stopped, "
            "and whether it is busy"
        )

    def _explain(self, error: Exception) -> str:
        if isinstance(error, LogError | UsageError | ConnectionLost):
            return str(error)
        reason: BaseException = error
        # trio tries each address of a name.
        while reason.__cause__ is not None or isinstance(reason, BaseExceptionGroup):
            first = reason.exceptions[0] if isinstance(reason, BaseExceptionGroup) else reason
            reason = reason.__cause__ or first
        what = f"no connection to {self._place}: {reason}"
        number = reason.errno if isinstance(reason, OSError) else None
        advice = _OUT_OF_FILES.get(number or 0)
        return f"{what}. {advice or 'Start the server, or give the address where it listens'}"
