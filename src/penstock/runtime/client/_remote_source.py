"""A publisher behind a URL as a source: each subscription makes a connection, and the connection ends with it.

Rules of this file:

* One task in the scope of the subscription makes the connection, keeps it, and says goodbye.
* Demand that is requested before the connection is made is kept. After a reconnect the outstanding demand is requested again, no more.
"""

import logging
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, TypeVar, Unpack, overload

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Credentials,
    Extension,
    Limits,
    PenstockError,
    Rejected,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    held_of,
    on_element_size_of,
    on_next_many_of,
    on_next_packed_of,
    split_packed,
)
from penstock.core import CLEANUP_SECONDS, DEFAULT_DEMAND, Report, Scope, Source, Stream, Streamable, log_violation, open_into
from penstock.core import subscribe as subscribe_here
from penstock.plugins import (
    Registry,
    Serializer,
    TransportOptions,
    Url,
    build_registry,
    check_permitted,
    parse_url,
    resolve_serializer,
)
from penstock.runtime.client._connect import check_setup, with_credentials
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._options import RemoteOptions
from penstock.runtime.client._reconnect import Attempts, Reconnect, may_reconnect
from penstock.runtime.client._url_sources import SourceAtUrl, check_plain, source_options
from penstock.runtime.connection import (
    ConnectionSettings,
    MemoryBudget,
    NegotiableExtensions,
    NoOptions,
    Peer,
    RemoteStream,
    check_transport,
    check_window,
    dialect_at,
    encoding_asked,
    extensions_for,
    refuse_unknown,
)
from penstock.runtime.service import Service

T = TypeVar("T")

_log: Final = logging.getLogger("penstock")


@overload
def remote(
    url: str,
    *,
    type: type[T],
    **options: Unpack[RemoteOptions],
) -> Source[T]: ...
@overload
def remote(
    url: str,
    *,
    type: object = ...,
    **options: Unpack[RemoteOptions],
) -> Source[Any]: ...
def remote(  # noqa: PLR0913  # the options of a connection, each with a default
    url: str,
    *,
    publisher: str | None = None,
    type: Any = None,
    serializer: str | Serializer | None = None,
    reconnect: Reconnect | None = None,
    window_bytes: int | None = None,
    setup: bytes = b"",
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    transports: Collection[str] | None = None,
    encoding: str | None = None,
    **unknown: Unpack[NoOptions],
) -> Source[Any]:
    """Return the publisher at `url` as a source, for `pipe`, sinks and `subscribe`; each subscription makes its own connection.

    The publisher's name stands behind the authority, or behind a ``#`` if the path has another meaning; or give it as `publisher`.
    `type` is the type of the elements: with a dataclass they arrive as JSON and are objects of it. `serializer` must be the publisher's.
    Without both they are read as the publisher announces, and are bytes if it announces nothing. If elements are large, fewer are asked for
    than the demand allows: as many as fit into `window_bytes` (`Limits.window_bytes` without it). `setup`, `credentials`, `transports` and
    `encoding` are as for `connect`. A scheme that a plugin reads without a connection, ``http://`` for example, has its own options.
    Raises UsageError for a malformed URL, for one that names no publisher, and for an unknown option.
    """
    refuse_unknown("remote()", unknown, {"type", *RemoteOptions.__annotations__})
    # All of these checks are made at the call: a `retry` behind the source would repeat a mistake again and again.
    parsed = parse_url(url)
    check_permitted(parsed, transports)
    registry = build_registry() if registry is None else registry
    scheme = registry.sources.get(parsed.transport)
    if scheme is not None:
        check_plain(url, parsed, publisher=publisher, reconnect=reconnect, setup=setup, extensions=extensions, encoding=encoding)
        reading = source_options(limits, options, credentials)
        scheme.check(url, reading)
        window = check_window(window_bytes, reading.limits)
        return SourceAtUrl(scheme, url, reading, resolve_serializer(registry, serializer, type), window)
    check_transport(registry, parsed)
    # `publisher=` wins over the URL: it may hold characters that a URL would have to escape.
    name = parsed.publisher if publisher is None else publisher
    if not name:
        raise UsageError(f"{url!r} names no publisher; write it behind the authority (tcp://host:port/name), behind '#', or as publisher=")
    # Looked up here, so that a missing serializer is an error of this call, and not of each subscription.
    loader = resolve_serializer(registry, serializer, type)
    if loader is None and not serializer is type is None:
        serializer = "bytes"  # the program wants them as they are, whatever is announced
    dialect = dialect_at(registry, parsed)
    limits = limits or Limits()
    check_setup(parsed, setup, limits)
    # To the log: a source has no `on_violation`. Each of its subscriptions has one, and there is none yet.
    negotiable = extensions_for(registry, extensions, log_violation, encodings=encoding_asked(registry, encoding, dialect))
    negotiable = with_credentials(negotiable, parsed, credentials, registry, limits, setup)
    chosen = (options or TransportOptions()).within(limits)
    opening = _Opening(url=parsed.address, registry=registry, limits=limits, setup=bytes(setup), extensions=negotiable, options=chosen)
    return _RemoteUrl(parsed, name, loader or serializer, reconnect, opening, check_window(window_bytes, limits))


@overload
def subscribe(
    source: str,
    *,
    type: type[T],
    demand: int | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
    **remotely: Unpack[RemoteOptions],
) -> AbstractAsyncContextManager[RemoteStream[T]]: ...
@overload
def subscribe(
    source: str,
    *,
    type: object = ...,
    demand: int | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
    **remotely: Unpack[RemoteOptions],
) -> AbstractAsyncContextManager[RemoteStream[Any]]: ...
@overload
def subscribe(
    source: Streamable[T], *, demand: int | None = ..., on_violation: Report = ..., cleanup_timeout: float = ...
) -> AbstractAsyncContextManager[Stream[T]]: ...
def subscribe(
    source: Any,
    *,
    demand: int | None = None,
    on_violation: Report = log_violation,
    cleanup_timeout: float = CLEANUP_SECONDS,
    **remotely: Any,
) -> AbstractAsyncContextManager[Stream[Any]]:
    """Open `source` as a stream for the length of an ``async with`` block.

    `source` is a publisher, a source or pipe, an async iterable, an iterable, a function that returns one (an async generator function,
    for example), or a URL like ``tcp://127.0.0.1:7000/ticks/EURUSD``; with a URL, the options of `remote` may be given as well:
    with ``type=Quote`` the elements are objects of the class Quote.

    With ``demand=n`` at most n elements are under way or buffered, renewed in halves as they are taken, and fewer over a network if they
    are large (`window_bytes`); with ``demand=0`` you call `Stream.request` yourself. Without `demand` it is 256, and behind `latest` or
    `drop` in this process each element is requested when the loop asks for it.

    When the block has been left, everything behind the stream has stopped here, and the peer was told.
    Raises UsageError for anything that cannot be streamed, and for an unknown option. Entering and leaving checkpoint.
    """
    if remotely:
        own = ("demand", "on_violation", "cleanup_timeout", "type")
        refuse_unknown("subscribe()", remotely, {*own, *RemoteOptions.__annotations__})
    if isinstance(source, str):
        # The stream is made here: its class is public, and offers what elements of fixed size need.
        stream: RemoteStream[Any] = RemoteStream(demand=DEFAULT_DEMAND if demand is None else demand)
        return open_into(stream, remote(source, **remotely), on_violation=on_violation, cleanup_timeout=cleanup_timeout)
    # A misspelt option would be ignored without a word otherwise.
    if remotely:
        raise UsageError(f"{', '.join(remotely)}: only a URL takes these; this stream does not leave the process")
    return subscribe_here(source, demand=demand, on_violation=on_violation, cleanup_timeout=cleanup_timeout)


@attrs.frozen(kw_only=True)
class _Opening:
    """How to open the connection of a subscription."""

    url: Url
    registry: Registry
    limits: Limits
    setup: bytes
    extensions: NegotiableExtensions
    options: TransportOptions

    def open(self, on_violation: Report) -> OpenConnection:
        """Return the block of a new connection."""
        # An empty service: the peer of such a connection can subscribe to nothing here.
        settings = ConnectionSettings(
            service=Service(),
            registry=self.registry,
            limits=self.limits,
            on_violation=on_violation,
            budget=MemoryBudget(self.limits.memory_budget),
        )
        return OpenConnection(self.url, settings, setup=self.setup, extensions=self.extensions, options=self.options)


class _RemoteUrl(Source[Any]):
    """A publisher behind a URL; each subscription has its own connection."""

    __slots__ = ("_name", "_opening", "_reconnect", "_serializer", "_url", "_window_bytes")

    def __init__(
        self,
        url: Url,
        name: str,
        serializer: str | Serializer | None,
        reconnect: Reconnect | None,
        opening: _Opening,
        window_bytes: int,
    ) -> None:
        self._url = url
        self._name = name
        self._serializer = serializer
        self._reconnect = reconnect
        self._opening = opening
        self._window_bytes = window_bytes

    def open_connection(self, on_violation: Report) -> OpenConnection:
        """Return the block of a new connection."""
        return self._opening.open(on_violation)

    def subscribe_at(self, peer: Peer, subscriber: Subscriber[Any], scope: Scope) -> None:
        """Subscribe over a connection that was made."""
        # By the object: the registry was asked when the source was made, and its error reached the caller.
        peer.source(self._name, serializer=self._serializer, window_bytes=self._window_bytes).attach(subscriber, scope)

    def attempts(self) -> Attempts:
        """Return the count of attempts for a new subscription."""
        return Attempts(self._reconnect, self._opening.registry.events, str(self._opening.url))

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        # Before on_subscribe, in which the stream requests its first elements: it asks for a few while it knows no size.
        if scope.reader is not None:
            scope.reader.count_bytes(self._window_bytes, self._opening.limits.max_element)
        # A source is a blueprint. What changes belongs to the subscription.
        _RemoteSubscription(self, subscriber, scope).start()

    def __repr__(self) -> str:
        return f"<source {self._url}>"


class _RemoteSubscription(Subscriber[Any], Subscription):
    """One subscription to a publisher behind a URL, over one connection after another."""

    __slots__ = (
        "_attempts",
        "_outstanding",
        "_pause",
        "_peer",
        "_scope",
        "_source",
        "_starts",
        "_stream_ended",
        "_subscriber",
        "_task",
        "_upstream",
    )

    def __init__(self, source: _RemoteUrl, subscriber: Subscriber[Any], scope: Scope) -> None:
        self._source = source
        self._subscriber: Subscriber[Any] | None = subscriber
        self._scope = scope
        self._outstanding = 0
        self._attempts = source.attempts()
        self._starts = 0  # connections on which the publisher was subscribed to
        self._peer: Peer | None = None  # of the current connection
        self._pause = 0.0
        self._upstream: Subscription | None = None  # the stream of the current connection
        self._stream_ended = trio.Event()  # a new one for each connection
        self._task: trio.CancelScope | None = None

    def start(self) -> None:
        """Call on_subscribe, and start to connect."""
        subscriber = self._subscriber
        if subscriber is not None:
            subscriber.on_subscribe(self)
        if self._subscriber is not None:  # it may have cancelled inside on_subscribe
            try:
                self._task = self._scope.spawn(self._run, name=f"penstock connection for {self._source!r}")
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
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self, /) -> None:
        self._subscriber = None
        # Before the task: the peer gets a cancel, and not only a goodbye.
        # Taken out first: a signal that comes inside the cancel must find nothing to do.
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()
        if self._task is not None:
            self._task.cancel()

    # --- the subscriber of the stream of each connection

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        # Nothing outstanding: the subscriber will request on its own, and 0 is no legal request.
        if self._outstanding:
            subscription.request(self._outstanding)

    def on_next(self, element: Any, /) -> None:
        if self._subscriber is not None:
            if self._outstanding < UNBOUNDED:
                self._outstanding -= 1
            self._subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that arrived together."""
        subscriber = self._subscriber
        # Whole runs are passed on: to take them apart here would undo the work of the decoder.
        many = on_next_many_of(subscriber)
        if many is None:
            for element in elements:
                self.on_next(element)
            return
        if self._outstanding < UNBOUNDED:
            self._outstanding -= len(elements)
        many(elements)

    def held(self) -> int:
        """Return the bytes that the subscriber keeps, if it can tell."""
        held = held_of(self._subscriber)
        return 0 if held is None else held()

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        on_element_size = on_element_size_of(self._subscriber)
        if on_element_size is not None:
            on_element_size(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""
        # The same for memory that holds many elements of fixed size.
        packed = on_next_packed_of(self._subscriber)
        if packed is None:
            self.on_next_many(split_packed(count, elements))
            return
        if self._outstanding < UNBOUNDED:
            self._outstanding -= count
        packed(count, elements)

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = None
        if isinstance(error, Rejected) and not error.processed:
            self._starts -= 1  # it has not begun, so the next time is no restart
        # A lost connection may be made again; a failure of the publisher is final.
        if not isinstance(error, Exception) or not may_reconnect(error) or not self._may_try_again(error):
            self._fail(error)
        # In each case: the block of this connection is left, and `_run` decides what follows.
        self._stream_ended.set()

    def on_complete(self, /) -> None:
        self._upstream = None
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_complete()
        self._stream_ended.set()

    # --- the task

    async def _run(self) -> None:
        try:
            while self._subscriber is not None:
                # Counted before the attempt: `Reconnect.wait` gets the number of failed ones, this one included.
                self._attempts.begin()
                try:
                    await self._connect_once()
                except ConnectionLost as lost:
                    if not self._may_try_again(lost):
                        self._fail(lost)
                except PenstockError as error:
                    # If the stream has ended with it, `on_error` has decided. Else it is a refusal, or a URL that cannot work.
                    if not (may_reconnect(error) and self._stream_ended.is_set()):
                        self._fail(error)
                # Also with a pause of 0: a server that accepts and closes at once must not keep this task from yielding.
                if self._subscriber is not None:
                    await trio.sleep(self._pause)
        # Whatever ended the task, the subscriber gets a terminal signal (rule 1.4); `_fail` does nothing after the first one.
        finally:
            self._fail(ConnectionLost(f"{self._source!r} was stopped: the nursery that ran its connection was cancelled"))

    async def _connect_once(self) -> None:
        # A new event for each connection: the end of the stream before this one must not end it.
        self._stream_ended = trio.Event()
        self._peer = None  # a connection that cannot be made was not open
        async with self._source.open_connection(self._scope.report_failure) as peer:
            self._peer = peer
            if self._starts:
                # Before the subscribe: a reader that gets the first of the new elements finds `restarts` counted.
                self._say_restarted()
            self._starts += 1
            self._source.subscribe_at(peer, self, self._scope)
            # Its error ends the stream as well, which is handled there.
            with suppress(PenstockError):
                await peer.wait_accepted()
                self._attempts.on_open()
            await self._stream_ended.wait()

    def _say_restarted(self) -> None:
        """Tell the stream, and once the log, that the publisher begins anew: nothing says where the elements before have ended."""
        if self._starts == 1:
            _log.warning(
                "%s was lost and is read again from its beginning: it has no positions, so elements may be missing or come twice; "
                "stream.restarts counts how often (said once for each stream)",
                # A text: a log that keeps its records must not keep the source.
                repr(self._source),
            )
        if isinstance(self._subscriber, RemoteStream):
            self._subscriber.on_restart()

    def _may_try_again(self, error: Exception) -> bool:
        # Asked at each loss: the pause depends on the number of attempts, and so does the end of them.
        pause = self._attempts.pause_after(error, None if self._peer is None else self._peer.opened_at)
        self._pause = pause or 0.0
        return pause is not None

    def _fail(self, error: BaseException) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)
