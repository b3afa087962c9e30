"""Tells whether a connection without a stream is in use: something was done lately, or a side of it
publishes.

Requests and short streams begin and end between two looks at the clock, so a look at the tables
alone takes a busy connection for an idle one.
"""

from collections.abc import Callable
from typing import Final

from penstock.api import ActiveExtension, Role
from penstock.session._deadlines import Deadlines, Watcher

NOTED_WITHIN: Final = 1.0
"""Seconds after a use at which the clock is looked at, at the latest."""


class ConnectionUse:
    """What the two programs of a connection do on it. Pings are no use: they show that a peer
    lives, and not that it is needed.
    """

    __slots__ = ("_deadlines", "_role", "asked", "is_noted", "keepalive", "publishes", "watcher")

    def __init__(self, role: Role, deadlines: Deadlines) -> None:
        self._role = role
        self._deadlines = deadlines
        self.asked: int = 0
        """Streams and requests that this side has begun."""
        self.is_noted: bool = True
        """Something was done since the last look at the clock. Then `note` need not be called."""
        self.watcher: Watcher | None = None
        """Asked soon after a use."""
        self.keepalive: ActiveExtension | None = None
        """The extension that notices a dead peer, if both sides have it."""
        # A call and not a value: a service may get its first publisher while the connection is
        # open. The runtime replaces it.
        self.publishes: Callable[[], bool] = bool  # False
        """Returns whether this side offers anything to the peer."""

    def note(self, now: float) -> None:
        """Note a use: the end of a stream or a request, or a message of an extension.

        `now` is the session's time. The true time is later if nothing has arrived for a while.
        """
        self.is_noted = True
        if self.watcher is not None:
            self._deadlines.hasten(self.watcher, now + NOTED_WITHIN)

    @property
    def keeps_open(self) -> bool:
        """Whether the connection is kept without any traffic: a side of it publishes, and a stream
        may begin at any time.

        This side publishes; or the peer does, which is a server or was asked before. Without a
        keepalive this is not enough: the connection of a dead peer would never be closed.
        """
        return self.keepalive is not None and (
            self._role is Role.CLIENT or self.asked > 0 or self.publishes()
        )
