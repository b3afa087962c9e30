"""KEEPALIVE: says at intervals that this side lives, and notices a dead peer.

Rules of this file:

* A client sends one at each interval, because its server may count on them. A server sends one to a
  client that is silent for an interval.
* Any byte shows that the peer lives, and not its KEEPALIVE alone: a slow answer ends nothing while
  other frames come.
"""

from collections.abc import Callable
from math import inf

from penstock.api import ConnectionLost, Role
from penstock.session import DialectHost, explain_own

JITTER = 0.15
"""Clients that connected together must not send together."""


class KeepaliveWatch:
    """The KEEPALIVE frames of one connection, from the time on at which it is open."""

    # The session asks whether something notices a dead peer, and compares this with extensions.
    def __init__(self, session: DialectHost, encode: Callable[[], bytes]) -> None:
        """`encode` returns a KEEPALIVE that the peer must answer."""
        limits = session.channel.limits
        self._session = session
        self._encode = encode
        self._channel = session.channel
        self._interval = limits.keepalive * (1 + JITTER * (2 * session.channel.random() - 1))
        self._timeout = limits.keepalive_timeout
        # The first look: a server that accepts a client sends nothing for it.
        self._started_at: float | None = None
        self._sent_at = 0.0
        self.due: float = inf
        session.channel.deadlines.add(self)
        session.streams.use.keepalive = self

    def look(self, now: float, /) -> float | None:
        """Send a KEEPALIVE, or end the connection to a silent peer. Return when to call again."""
        if self._started_at is None:
            self._started_at = self._sent_at = now
        heard_at = max(self._channel.last_input_at, self._started_at)
        if now >= heard_at + self._interval + self._timeout:
            self._session.close(
                "keepalive",
                ConnectionLost(f"this side ended the connection: {explain_own('keepalive')}"),
            )
            # If the connection goes on over another transport, so does this.
            return None if self._channel.state.is_closing else now + self._interval
        quiet_since = self._sent_at
        if self._channel.role is Role.SERVER:
            quiet_since = max(quiet_since, self._channel.last_input_at)
        if now >= quiet_since + self._interval:
            self._sent_at = quiet_since = now
            self._channel.send(self._encode())
        return min(quiet_since + self._interval, heard_at + self._interval + self._timeout)

    def restart(self) -> None:
        """Begin anew: the connection goes on over another transport."""
        self._started_at = None
        self._channel.deadlines.hasten(self, self._channel.now)

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # as an `ActiveExtension`
        """Do nothing: a KEEPALIVE is a frame, and no message of an extension."""
