"""The prelude of a connection: until both have said hello, the peer has so many bytes and so much time, and may choose the dialect."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.api import ProtocolError
from penstock.session._dialect import Dialect
from penstock.session._states import ConnectionState

if TYPE_CHECKING:
    from penstock.session._session import Session

Choose = Callable[["Session", bytes], Dialect | None]
"""Gets what the peer has said so far, until it returns a dialect, or raises."""

BEFORE: Final = (ConnectionState.FRESH, ConnectionState.GREETING)


class HandshakeGuard:
    """Watches one session until it is open."""

    __slots__ = ("_choose", "_first", "_session", "_size", "_until")

    def __init__(self, session: "Session", choose: Choose | None) -> None:
        self._session = session
        self._choose = choose
        self._first = b""
        self._size = 0
        self._until = 0.0

    def start(self, now: float) -> None:
        """Begin: with the dialect that there is, or with the peer's first bytes."""
        self._until = now + self._session.limits.handshake_timeout
        if self._choose is None:
            self._session.dialect.start(now)

    def heard(self, data: bytes) -> bytes:
        """Count what has arrived, and let it choose; return what is for the dialect, so far nothing perhaps."""
        self._size += len(data)
        if self._choose is None:
            return data
        session = self._session
        self._first += data
        dialect = self._choose(session, self._first)
        if dialect is None:
            return b""
        session.dialect, session.max_unsplit, self._choose = dialect, dialect.max_unsplit, None
        dialect.start(session.now)
        first, self._first = self._first, b""
        return first

    def is_too_long(self) -> bool:
        """Whether the peer says too much before its hello is complete: then it is over."""
        session = self._session
        if self._size <= session.dialect.preauth_bytes or session.state not in BEFORE:
            return False
        session.close_protocol_error(ProtocolError("the peer sent too much before its hello was complete", reason="limit:hello"))
        return True

    def tick(self, now: float) -> float | None:
        """End it when it takes too long, and return when to look again."""
        if now < self._until:
            return self._until
        self._session.dialect.overdue()
        return self._session.tick(now)
