"""The drain of one connection: this side takes no new streams any more, or the peer does not."""

from collections.abc import Callable

from penstock.session._channel import Channel


class DrainState:
    """Whether each side still takes new streams.
    An extension tells one side of the other (`AnnouncesDrain`).
    """

    __slots__ = ("_channel", "announcers", "is_peer_draining", "on_peer_draining", "until")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.until: float | None = None
        """When this side leaves; from now on new streams of the peer are refused.
        None if this side does not drain.
        """
        # Not among the observers of streams:
        # those are called for each stream, and this concerns none.
        self.announcers: tuple[Callable[[float], None], ...] = ()
        """Each tells the peer that this side takes no new streams,
        and in how many seconds it leaves.
        """
        self.is_peer_draining: bool = False
        """The peer takes no new streams, and has said so."""
        # An attribute and not a call of the delegate:
        # only a client that makes its connection again needs it.
        self.on_peer_draining: Callable[[], None] | None = None
        """Called once, when the peer says that it takes no new streams."""

    def begin(self, now: float, until: float) -> None:
        """Refuse new streams of the peer from now on, and tell it.
        This side leaves at the time `until`.
        """
        if self._channel.state.is_closing:
            return
        self._channel.now = now
        # An earlier end holds: the peer may be told of one at any time, and of a later one never.
        self.until = until if self.until is None else min(until, self.until)
        for announce in self.announcers:
            announce(max(0.0, self.until - now))

    def add(self, announce: Callable[[float], None]) -> None:
        """Tell the peer with `announce`; at once if this side drains already."""
        self.announcers += (announce,)
        if self.until is not None:
            announce(max(0.0, self.until - self._channel.now))

    def note_peer(self) -> None:
        """Note that the peer takes no new streams."""
        if not self.is_peer_draining:
            self.is_peer_draining = True
            if self.on_peer_draining is not None:
                self.on_peer_draining()

    def release(self) -> None:
        """Drop what refers to other objects: the connection is over."""
        self.announcers, self.on_peer_draining = (), None
