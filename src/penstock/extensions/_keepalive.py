"""The keepalive extension (id 1): ping a silent peer, and end the connection if it does not answer.

Ping is message type ``40`` and pong is ``41`` (hexadecimal). The body of both has up to 125 bytes,
and a pong repeats the body of its ping. Every message shows that the peer is alive, so a busy
connection sends no pings. Intervals vary by 15 %, so that a thousand connections that were opened
together do not all ping at the same time.
"""

from math import inf

from penstock.api import ActiveExtension, ExtensionLink

PING = 0x40
PONG = 0x41
MAX_BODY = 125
JITTER = 0.15


class Keepalive:
    """Detects dead peers. Both sides must have the extension; a peer without it gets no pings."""

    id: int = 1
    name: str = "keepalive"
    codes: frozenset[int] = frozenset({PING, PONG})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection."""
        return _ActiveKeepalive(link, now)


class _ActiveKeepalive:
    """Keepalive on one connection."""

    def __init__(self, link: ExtensionLink, now: float) -> None:
        self._link = link
        self._began_at = now
        self._pinged_at = -inf  # a ping is unanswered if nothing has come since then
        self._pings_sent = 0
        self._has_pong = True  # the last ping was answered
        self._last_ping_received: float | None = None
        self._early_pings = 0
        self._interval = self._next_interval()

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Answer a ping, or note a pong. Any other byte is as good a sign of life as that."""
        if len(body) > MAX_BODY:
            self._link.break_off("protocol:ping")
        elif type == PING:
            self._check_rate(now)
            self._link.send(PONG, body)
        else:
            self._has_pong = True

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse a ping for its length, before its body is there: 256 half pings of 1 MiB once
        filled a server's memory budget.
        """
        if length > MAX_BODY:
            self._link.break_off("protocol:ping")

    def _check_rate(self, now: float) -> None:
        """Count pings that come too early; one ping in time resets the count.

        The jitter is subtracted: a peer whose interval is the smallest allowed one may be early by
        15 %.
        """
        limits, last = self._link.limits, self._last_ping_received
        self._last_ping_received = now
        if last is None or now - last >= limits.keepalive_least * (1 - JITTER):
            self._early_pings = 0
            return
        self._early_pings += 1
        # A peer that alternates early and timely pings spends its budget for oddities.
        self._link.glitch()
        if self._early_pings > limits.keepalive_strikes:
            self._link.break_off("limit:pings")

    def tick(self, now: float, /) -> float | None:
        """Ping after an interval of silence, and end the connection if `Limits.keepalive_timeout`
        passes without a byte. A byte before that moves no deadline: it is seen here, in time.
        """
        timeout, heard_at = (
            self._link.limits.keepalive_timeout,
            max(self._link.heard_at, self._began_at),
        )
        if heard_at < self._pinged_at:
            due = self._pinged_at + timeout
            if now < due:
                return due
            self._link.break_off("keepalive")
            # If the connection goes on over another transport, so does this.
            return now + self._interval
        due = heard_at + self._interval
        if now < due:
            return due
        self._pinged_at = now
        self._interval = self._next_interval()
        # A ping without its pong is still under way: after other bytes, or to be sent again over
        # the next transport (resume). Further ones would arrive together with it, as a flood; so it
        # is the question this time as well.
        if self._has_pong:
            self._has_pong = False
            self._pings_sent += 1
            self._link.send(PING, self._pings_sent.to_bytes(8, "big"))
        return now + timeout

    def _next_interval(self) -> float:
        return self._link.limits.keepalive * (1 + JITTER * (2 * self._link.chance() - 1))
