"""The publisher of a URL as a source, and each subscription to it, over one connection after
another.

Rules of this file:

* One task in the scope of the subscription makes the connection, keeps it, and says goodbye.
* Demand that is requested before the connection is made is kept. After a reconnect the outstanding
  demand is requested again, no more.
* If the publisher has positions, the elements are counted, and the next connection begins at the
  position of the next element. So no element is missing, and none comes twice. Without positions it
  begins anew, and the stream and the log say so.
"""

import logging
from contextlib import suppress
from typing import Any, Final

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    PenstockError,
    PipePart,
    PlaceInStream,
    PositionedName,
    Positions,
    Rejected,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
)
from penstock.client import (
    ClientSettings,
    Reconnector,
    StreamOpening,
    StreamPlace,
    TryAfter,
    may_reconnect,
)
from penstock.core import CountingRelay, Report, Scope
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.connection import Peer, RemoteStream
from penstock.runtime.service import Service
from penstock.spi import Serializer, Url
from penstock.streams import Source

_log: Final = logging.getLogger("penstock")


class RemoteUrl(Source[Any]):
    """The publisher of a URL; each subscription has its own connection."""

    __slots__ = ("_opening", "_serializer", "_settings", "_url")

    def __init__(
        self,
        url: Url,
        opening: StreamOpening,
        serializer: str | Serializer | None,
        settings: ClientSettings,
    ) -> None:
        """`serializer` is that of the elements, ``"bytes"`` if the program wants them unchanged, or
        None to read them as the publisher announces.
        """
        self._url = url
        self._opening = opening
        self._serializer = serializer
        self._settings = settings

    @property
    def name(self) -> str:
        """The name of the publisher, with the places that the program has given."""
        return self._opening.name

    def starting_at(self, start: PlaceInStream) -> "RemoteUrl":
        """Return the same publisher from another place on."""
        name = self.name
        placed = name if isinstance(name, PositionedName) else PositionedName.parse(name)
        opening = attrs.evolve(self._opening, name=placed.at(start, placed.stop))
        return RemoteUrl(self._url, opening, self._serializer, self._settings)

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        if scope.reader is not None:
            self._opening.bound_bytes(scope.reader)
        # A source is a blueprint. What changes belongs to the subscription.
        RemoteSubscription(self, subscriber, scope).start()

    # --- for its subscriptions

    def reconnector(self) -> Reconnector:
        """Return what decides on the connections of a new subscription."""
        settings = self._settings
        return Reconnector(settings.reconnect, settings.registry.events, str(settings.url))

    def open_connection(self, on_violation: Report) -> OpenConnection:
        """Return the block of a new connection."""
        # Without the policy: the subscription itself connects again.
        settings = attrs.evolve(self._settings, on_violation=on_violation, reconnect=None)
        # An empty service: the peer of such a connection can subscribe to nothing here.
        return OpenConnection(settings, Service())

    def subscribe_at(
        self, name: str, peer: Peer, subscriber: Subscriber[Any], scope: Scope
    ) -> None:
        """Subscribe over a connection that was made."""
        # The serializer as an object: the registry was asked when the source was made,
        # and its error reached the caller. The bytes of the reader are bounded already.
        peer.source(name, serializer=self._serializer).attach(subscriber, scope)

    def __repr__(self) -> str:
        return f"<source {self._url}>"


class RemoteSubscription(CountingRelay[Any]):
    """One subscription to the publisher of a URL, over one connection after another."""

    __slots__ = (
        "_outstanding",
        "_pause",
        "_peer",
        "_place",
        "_position",
        "_reconnector",
        "_scope",
        "_source",
        "_starts",
        "_stream_ended",
        "_task",
    )

    def __init__(self, source: RemoteUrl, subscriber: Subscriber[Any], scope: Scope) -> None:
        # `_upstream` is the stream of the current connection.
        super().__init__(subscriber)
        self._source = source
        self._scope = scope
        self._outstanding = 0
        self._reconnector = source.reconnector()
        self._place = StreamPlace(source.name, called=repr(source))
        self._position: int | None = None  # of the next element, if the publisher has positions
        self._starts = 0  # connections on which the publisher was subscribed to
        self._peer: Peer | None = None  # of the current connection
        self._pause = 0.0
        self._stream_ended = trio.Event()  # a new one for each connection
        self._task: trio.CancelScope | None = None

    def start(self) -> None:
        """Call on_subscribe, and start to connect."""
        subscriber = self._subscriber
        if subscriber is not None:
            subscriber.on_subscribe(self)
        if self._subscriber is not None:  # it may have cancelled inside on_subscribe
            try:
                self._task = self._scope.spawn(
                    self._run, name=f"penstock connection for {self._source!r}"
                )
            # The scope has closed meanwhile: its nursery is over and takes no task.
            except UsageError as closed:
                self._fail(closed)

    # --- the subscription

    # Counted here and passed on: after a reconnect the new stream gets the outstanding sum.
    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return
        # Rule 3.17: demand that reaches 2^63-1 is unbounded, and is not counted from then on.
        self._outstanding = add_demand(self._outstanding, n)
        super().request(n)

    def cancel(self, /) -> None:
        # Before the task: the peer gets a cancel, and not only a goodbye.
        super().cancel()
        if self._task is not None:
            self._task.cancel()

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe: without a connection it waits for one."""
        return PipePart(repr(self._source), upstream=(self._upstream,))

    # --- the subscriber of the stream of each connection

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        # Without outstanding demand the subscriber will request by itself, and 0 is not a legal
        # request.
        if self._outstanding:
            subscription.request(self._outstanding)

    def _on_elements(self, count: int) -> None:
        if self._outstanding < UNBOUNDED:
            self._outstanding -= count
        if self._position is not None:
            self._position += count

    def on_fact(self, fact: object, /) -> None:
        """Learn the position of the next element: a new connection goes on there."""
        if isinstance(fact, Positions):
            wrong = self._place.learn(fact, self._position)
            if wrong is not None:
                subscriber = self._subscriber
                # Cancelled first: no element from the wrong position may arrive.
                self.cancel()
                if subscriber is not None:
                    subscriber.on_error(wrong)
                return
            self._position = fact.first
        super().on_fact(fact)

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = None
        is_unheard = self._peer is not None and self._peer.opened_at is None
        if is_unheard or (isinstance(error, Rejected) and not error.processed):
            self._starts -= 1  # it has not begun, so the next time is not a restart
        # A lost connection may be made again; a failure of the publisher is final.
        if not isinstance(error, Exception) or not self._may_try_again(error):
            self._fail(error)
        # In each case: the block of this connection is left, and `_run` decides what follows.
        self._stream_ended.set()

    def on_complete(self, /) -> None:
        super().on_complete()
        self._stream_ended.set()

    # --- the task

    async def _run(self) -> None:
        try:
            while self._subscriber is not None:
                # Counted before the attempt: `Reconnect.wait` gets the number of failed ones,
                # this one included.
                self._reconnector.on_attempt()
                try:
                    await self._connect_once()
                except ConnectionLost as lost:
                    if not self._may_try_again(lost):
                        self._fail(lost)
                except PenstockError as error:
                    # If the stream has ended with it, `on_error` has decided.
                    # Else it is a refusal, or a URL that cannot work.
                    if not (may_reconnect(error) and self._stream_ended.is_set()):
                        self._fail(error)
                # It pauses even for 0 s: a server that accepts and closes at once must not keep
                # this task from yielding.
                if self._subscriber is not None:
                    await trio.sleep(self._pause)
        # Whatever ended the task, the subscriber gets a terminal signal (rule 1.4); `_fail` does
        # nothing after the first one.
        finally:
            self._fail(
                ConnectionLost(
                    f"{self._source!r} was stopped: the nursery that ran its connection was "
                    "cancelled"
                )
            )

    async def _connect_once(self) -> None:
        # A new event for each connection: the end of the stream before this one must not end it.
        self._stream_ended = trio.Event()
        self._peer = None  # a connection that cannot be made was not open
        async with self._source.open_connection(self._scope.report_failure) as peer:
            self._peer = peer
            if self._starts and self._position is None:
                # Before the subscribe: a reader that gets the first of the new elements finds
                # `restarts` counted.
                self._say_restarted()
            self._starts += 1
            name = self._place.name_at(self._position)
            self._source.subscribe_at(name, peer, self, self._scope)
            # Its error ends the stream as well, which is handled there.
            with suppress(PenstockError):
                await peer.wait_accepted()
                self._reconnector.on_open()
            await self._stream_ended.wait()

    def _say_restarted(self) -> None:
        """Tell the stream, and once the log, that the publisher begins anew: nothing says where
        the elements before have ended.
        """
        if self._starts == 1:
            _log.warning(
                "%s was lost and is read again from its beginning: it has no positions, so "
                "elements may be missing or come twice; stream.restarts counts how often (said "
                "once for each stream)",
                # A text: a log that keeps its records must not keep the source.
                repr(self._source),
            )
        if isinstance(self._subscriber, RemoteStream):
            self._subscriber.on_restart()

    def _may_try_again(self, error: Exception) -> bool:
        # Asked at each loss: the pause depends on the number of attempts, and so does their end.
        opened_at = None if self._peer is None else self._peer.opened_at
        decision = self._reconnector.on_lost(error, opened_at=opened_at, now=trio.current_time())
        self._pause = decision.seconds if isinstance(decision, TryAfter) else 0.0
        return isinstance(decision, TryAfter)

    def _fail(self, error: BaseException) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)
