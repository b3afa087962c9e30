"""Tells whether a connection without a stream is in use: by its traffic since the last look, or
because a side of it publishes.

Requests and short streams begin and end between two looks at the clock, so a look at the tables
alone takes a busy connection for an idle one. The numbers here only grow, and each costs an
addition for a request.
"""

from collections.abc import Callable

from penstock.api import ActiveExtension, Role
from penstock.session._request_ratio import RequestRatio


class ConnectionUse:
    """Counts what the two programs of a connection do on it. Pings are not counted: they show
    that a peer lives, not that it is needed.
    """

    __slots__ = ("_requests", "_role", "asked", "keepalive", "messages", "publishes")

    def __init__(self, role: Role, requests: RequestRatio) -> None:
        self._role = role
        # Streams of the peer are counted there already:
        # a second counter would cost each request one more addition.
        self._requests = requests
        self.asked: int = 0
        """Streams and requests that this side has begun."""
        self.messages: int = 0
        """The peer's requests without an answer, and messages of extensions in both directions,
        without those of the keepalive.
        """
        self.keepalive: ActiveExtension | None = None
        """The extension that notices a dead peer, if both sides have it."""
        # A call and not a value: a service may get its first publisher while the connection is
        # open. The runtime replaces it.
        self.publishes: Callable[[], bool] = bool  # False
        """Returns whether this side offers anything to the peer."""

    @property
    def traffic(self) -> int:
        """A number that has grown if the application has used the connection since the last
        look.
        """
        return self.asked + self.messages + self._requests.streams

    @property
    def keeps_open(self) -> bool:
        """Whether the connection is kept without any traffic:
        a side of it publishes, and a stream may begin at any time.

        This side publishes; or the peer does, which is a server or was asked before. Without a
        keepalive this is not enough: the connection of a dead peer would never be closed.
        """
        return self.keepalive is not None and (
            self._role is Role.CLIENT or self.asked > 0 or self.publishes()
        )
