"""Bounds what the peer may send, and how long it may take, until both hellos are exchanged; and
lets its first bytes choose the dialect.
"""

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from penstock.api import Limits
from penstock.session._dialect import Dialect

H = TypeVar("H")

ChooseDialect: TypeAlias = Callable[[H, bytes], Dialect | None]
"""Called with the session and all bytes received so far, until it returns a dialect. Raises
ProtocolError for a client of no known protocol."""


class HandshakeGuard(Generic[H]):
    """Watch one session until it is open. `H` is the session as its dialect sees it."""

    __slots__ = ("_choose", "_deadline", "_first_bytes", "_limits", "_received")

    def __init__(self, limits: Limits, choose: ChooseDialect[H] | None) -> None:
        self._limits = limits
        # None from the beginning for a client, and for a server once the choice is made.
        self._choose = choose
        self._first_bytes = b""
        self._received = 0
        self._deadline = 0.0

    @property
    def awaits_choice(self) -> bool:
        """The peer's first bytes still have to choose the dialect."""
        return self._choose is not None

    def start(self, now: float) -> None:
        """Start the time that the handshake may take."""
        # The session starts the time, and not the constructor:
        # a server counts from the accept, before TLS.
        self._deadline = now + self._limits.handshake_timeout

    def count(self, data: bytes) -> None:
        """Count received bytes."""
        self._received += len(data)

    def choose(self, session: H, data: bytes) -> tuple[Dialect, bytes] | None:
        """Return the dialect that the first bytes choose, with all of these bytes,
        or None while there are too few of them.
        """
        # All bytes again on each call: a protocol is recognised by its beginning,
        # and the chunks may be single bytes.
        self._first_bytes += data
        dialect = None if self._choose is None else self._choose(session, self._first_bytes)
        if dialect is None:
            return None
        self._choose = None
        first_bytes, self._first_bytes = self._first_bytes, b""
        return dialect, first_bytes

    def is_too_long(self, preauth_bytes: int) -> bool:
        """Return whether more than `preauth_bytes` have come."""
        # Counted in received bytes, not in decoded ones: a hello that never ends is never decoded.
        return self._received > preauth_bytes

    def tick(self, now: float) -> tuple[float, bool]:
        """Return the deadline of the handshake, and whether it has passed."""
        return self._deadline, now >= self._deadline
