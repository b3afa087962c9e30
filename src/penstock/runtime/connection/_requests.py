"""What this side asks its peer for: streams, single values, and what has no answer, as far as there is room for it."""

from collections.abc import Callable
from typing import Any

import trio

from penstock.api import Subscriber, Subscription
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._send_batcher import SendBatcher
from penstock.session import Session


class OutgoingRequests:
    """The asking side of a connection."""

    __slots__ = ("_roomy", "_session", "_watch", "company", "is_speaking")

    def __init__(self, session: Session, watch: ConnectionEvents, send: Callable[[], None], rouse: Callable[[], None]) -> None:
        self.is_speaking: bool = False
        """Something is being said, which will be sent from here: the writer need not come for it."""
        self.company: SendBatcher = SendBatcher(send, rouse)
        self._session = session
        self._watch = watch
        self._roomy: trio.Event | None = None  # made when somebody waits

    def subscribe(self, target: Any, subscriber: Subscriber[Any]) -> None:
        """Open a stream to a publisher of the peer's."""
        self.is_speaking = True
        try:
            if self._watch.wants_streams:
                subscribed = self._watch.subscribing(subscriber)
                subscribed.began(self._session.subscribe(target, subscribed).id, str(target))
            else:
                self._session.subscribe(target, subscriber)
        finally:
            self.is_speaking = False
            self.company.say()

    @property
    def is_plain(self) -> bool:
        """Nobody is told of streams: `ask` will do."""
        return not self._watch.wants_streams

    def ask(self, target: Any, subscriber: Subscriber[Any]) -> Subscription:
        """Open a stream for one element, and return its subscription: the subscriber is told of what comes, and nothing else."""
        self.is_speaking = True
        try:
            return self._session.ask(target, subscriber)
        finally:
            self.is_speaking = False
            self.company.say()

    @property
    def has_room(self) -> bool:
        """A request of any size may be sent: what is asked for is bounded by who takes it. Where nothing can be sent, that is told."""
        return self._session.outbox.room() > 0 or self._session.is_closing

    async def wait_room(self) -> None:
        """Return when there is. May not checkpoint."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self.has_room:
            if self._roomy is None:
                self._roomy = trio.Event()
            await self._roomy.wait()

    def roomy(self) -> None:
        """What waited has been taken by the writer, or never will be."""
        if self._roomy is not None:
            self._roomy.set()
            self._roomy = None
