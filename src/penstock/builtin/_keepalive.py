"""The keepalive extension (id 1): a silent peer is asked for a sign of life, and one that gives none has gone.

On the wire: ping is type ``40``, pong ``41``; the body of both is up to 125 bytes, and a pong repeats its ping's. Any message counts as a
sign of life, so a busy connection is never asked. Intervals vary by 15 %, so that a thousand connections do not ask at once.
"""

from penstock.api import ActiveExtension, ExtensionLink

PING = 0x40
PONG = 0x41
LONGEST = 125
JITTER = 0.15


class Keepalive:
    """Finds peers that are gone. Both sides must have it; a peer that has not is simply not asked."""

    id: int = 1
    name: str = "keepalive"
    codes: frozenset[int] = frozenset({PING, PONG})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Begin to watch a connection."""
        return _Watch(link, now)


class _Watch:
    """Keepalive at work on one connection."""

    def __init__(self, link: ExtensionLink, now: float) -> None:
        self._link = link
        self._heard = now
        self._asked: float | None = None
        self._number = 0
        self._last_ping: float | None = None
        self._strikes = 0
        self._interval = self._next_interval()

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        """Answer a ping; a pong was heard already, as anything is."""
        if len(body) > LONGEST:
            self._link.break_off("protocol:ping")
        elif type == PING:
            self._judge(now)
            self._link.send(PONG, body)

    def _judge(self, now: float) -> None:
        """Count pings that come too soon; a ping in good time forgives all that came before it."""
        limits, last = self._link.limits, self._last_ping
        self._last_ping = now
        if last is None or now - last >= limits.keepalive_least * (1 - JITTER):
            self._strikes = 0
            return
        self._strikes += 1
        self._link.glitch()
        if self._strikes > limits.keepalive_strikes:
            self._link.break_off("limit:pings")

    def heard(self, now: float, /) -> None:
        """The peer lives."""
        self._heard = now
        self._asked = None

    def tick(self, now: float, /) -> float | None:
        """Ask when it has been silent for too long; break off when it does not answer."""
        limits = self._link.limits
        if self._asked is not None:
            due = self._asked + limits.keepalive_timeout
            if now < due:
                return due
            self._link.break_off("keepalive")
            return None
        due = self._heard + self._interval
        if now < due:
            return due
        self._asked = now
        self._interval = self._next_interval()
        self._number += 1
        self._link.send(PING, self._number.to_bytes(8, "big"))
        return now + limits.keepalive_timeout

    def _next_interval(self) -> float:
        return self._link.limits.keepalive * (1 + JITTER * (2 * self._link.chance() - 1))
