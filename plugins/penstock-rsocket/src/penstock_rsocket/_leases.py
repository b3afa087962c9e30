"""Leases: a requester sends no request without one, and a responder grants them from its limits.

Rules of this file:

* The last LEASE counts, until its time is over or its number is used up.
* `channel.now` may be old when the program asks. So a lease ends, and a wait begins, when the
  watcher is called.
* A request of this side that has no lease waits, with a bound on its time and on the number of
  those that wait. Then it fails, and nothing of it was sent.
* This side grants `Limits.max_subscriptions` requests for `LEASE_SECONDS`, and again after half of
  that time. If they are used up before, it grants again a second after the last grant.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from penstock.api import Rejected
from penstock.session import DialectHost
from penstock_rsocket import _codec as codec
from penstock_rsocket import _frames as frames

LEASE_SECONDS: Final = 10.0
LEAST_PAUSE: Final = 1.0
"""Seconds between two grants, at least."""
MILLISECONDS: Final = 1000


class Leases:
    """The leases of one connection, in both directions. It is a `Watcher`."""

    def __init__(self, session: DialectHost, send: Callable[[int], None]) -> None:
        """`send` sends the request of a stream that has waited."""
        self._channel = session.channel
        self._streams = session.streams
        self._send = send
        self._left = 0  # of the lease that this side has got
        self._until = inf
        # When each request stops waiting, by its stream; inf until the watcher is called.
        self._waiting: dict[int, float] = {}
        self._granted = 0  # left of the lease that the peer has got
        self._granted_at = -inf
        self.due: float = inf
        session.channel.deadlines.add(self)

    # --- requests of this side

    def take(self) -> bool:
        """Take a request from the lease. Return False without one."""
        # In their order: a later request does not overtake those that wait.
        if self._waiting or not self._left:
            return False
        self._left -= 1
        return True

    def wait(self, stream_id: int) -> None:
        """Let the request of a stream wait for a lease."""
        limits = self._channel.limits
        if len(self._waiting) >= limits.max_subscriptions:
            self._fail(
                stream_id, f"{len(self._waiting)} requests wait for one (Limits.max_subscriptions)"
            )
            return
        self._waiting[stream_id] = inf
        self._channel.deadlines.hasten(self, self._channel.now)

    def forget(self, stream_id: int) -> None:
        """Let a request wait no more: it was cancelled."""
        self._waiting.pop(stream_id, None)

    def receive(self, ttl: int, requests: int) -> None:
        """Note a lease, and send what waits for it."""
        self._left = requests
        self._until = self._channel.now + ttl / MILLISECONDS
        self._channel.deadlines.hasten(self, self._until)
        while self._waiting and self._left:
            stream_id = next(iter(self._waiting))
            del self._waiting[stream_id]
            self._left -= 1
            self._send(stream_id)

    def restart(self) -> None:
        """Begin anew: the connection goes on over another transport, and its leases do not."""
        self._left, self._until = 0, inf
        self._granted, self._granted_at = 0, -inf
        self._channel.deadlines.hasten(self, self._channel.now)

    def _fail(self, stream_id: int, why: str) -> None:
        self.forget(stream_id)
        if stream_id in self._streams.opened:
            text = (
                f"the peer has granted no lease for this request: {why}. Nothing of it was sent; "
                "ask later, or let the peer grant more"
            )
            self._streams.receive_end(stream_id, Rejected(text, processed=False, temporary=True))

    # --- requests of the peer

    def admit(self) -> bool:
        """Count a request of the peer. Return False for one above its lease."""
        is_valid = self._channel.now < self._granted_at + LEASE_SECONDS
        if not self._granted or not is_valid:
            return False
        self._granted -= 1
        if not self._granted:
            self._channel.deadlines.hasten(self, self._granted_at + LEAST_PAUSE)
        return True

    def look(self, now: float, /) -> float | None:
        """Grant, and give up what has waited for too long. Return when to call again."""
        if now >= self._granted_at + self._pause():
            self._granted, self._granted_at = self._channel.limits.max_subscriptions, now
            lease = frames.Lease(ttl=int(LEASE_SECONDS * MILLISECONDS), requests=self._granted)
            self._channel.send(codec.encode(lease))
        if now >= self._until:
            self._left, self._until = 0, inf
        seconds = self._channel.limits.handshake_timeout
        for stream_id, due in tuple(self._waiting.items()):
            if due == inf:
                self._waiting[stream_id] = now + seconds
            elif now >= due:
                self._fail(stream_id, f"it has waited for {seconds:g} s (Limits.handshake_timeout)")
        return min(self._granted_at + self._pause(), self._until, *self._waiting.values())

    def _pause(self) -> float:
        """Return the seconds from one grant to the next."""
        return LEASE_SECONDS / 2 if self._granted else LEAST_PAUSE
