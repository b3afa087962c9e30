"""The requests of this side: it opens streams and asks for single values, as far as the outbox has room."""

from typing import Any

import trio

from penstock.api import Subscriber, Subscription
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._send_batcher import SendBatcher
from penstock.session import Session


class OutgoingRequests:
    """The requests of this side on one connection."""

    __slots__ = ("_events", "_session", "_streams", "batcher", "is_observed", "room")

    def __init__(self, session: Session, events: ConnectionEvents, batcher: SendBatcher) -> None:
        self.batcher: SendBatcher = batcher
        self.is_observed: bool = events.wants_streams
        """True if a plugin listens to streams: then use `subscribe`, for `ask` reports nothing."""
        self.room: trio.Event | None = None
        """Set when the outbox may have room again; None while no task waits, so that the writer need not look."""
        self._session = session
        self._streams = session.streams
        self._events = events

    def subscribe(self, target: Any, subscriber: Subscriber[Any]) -> None:
        """Open a stream to a publisher of the peer."""
        # The outbox reports the queued message at once; with this flag the writer is not woken for it.
        self.batcher.is_requesting = True
        try:
            if self.is_observed:
                observed = self._events.observe(subscriber)
                observed.on_open(self._streams.subscribe(target, observed).id, str(target))
            else:
                self._streams.subscribe(target, subscriber)
        # Also if the request raised: something else may have been queued meanwhile.
        finally:
            self.batcher.is_requesting = False
            self.batcher.message_queued()

    def ask(self, target: Any, subscriber: Subscriber[Any]) -> Subscription:
        """Open a stream for one element and return its subscription. `subscriber` gets no on_subscribe: that saves two calls a request."""
        self.batcher.is_requesting = True
        try:
            return self._streams.ask(target, subscriber)
        finally:
            self.batcher.is_requesting = False
            self.batcher.message_queued()

    @property
    def has_room(self) -> bool:
        """True if a request may be queued. Its size does not count: callers bound it. On a closing connection the request itself raises."""
        return self._session.outbox.room() > 0 or self._session.state.is_closing

    async def wait_for_room(self) -> None:
        """Wait while the outbox is full. Raises Cancelled if the task is cancelled, but may not checkpoint otherwise."""
        await trio.lowlevel.checkpoint_if_cancelled()
        # A loop: of the tasks that are woken together, the first ones may fill the outbox again.
        while not self.has_room:
            if self.room is None:
                self.room = trio.Event()
            await self.room.wait()

    def on_room(self) -> None:
        """Wake the tasks that wait for room: the writer has emptied the outbox, or the connection is over."""
        if self.room is not None:
            self.room.set()
            self.room = None
