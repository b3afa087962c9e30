"""The publisher of a URL as a source: each subscription makes a connection, and the connection ends
with it.

Rules of this file:

* A source is a blueprint: it checks its arguments,
  and makes a `RemoteSubscription` for each subscriber.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, Unpack, overload

import attrs

from penstock.api import (
    PlaceInStream,
    PositionedName,
    Subscriber,
    UsageError,
    shown,
)
from penstock.client import (
    ClientSettings,
    Reconnector,
    StreamOptions,
    TrioOptions,
    check_transport,
    check_window,
    client_settings,
    refuse_unknown,
    registry_of,
)
from penstock.core import CLEANUP_SECONDS, Report, Scope, Stream, log_violation
from penstock.logs import Log
from penstock.reader import DEFAULT_DEMAND
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._options import RemoteOptions
from penstock.runtime.client._remote_subscription import RemoteSubscription
from penstock.runtime.client._url_sources import source_of_scheme
from penstock.runtime.connection import Peer, RemoteStream
from penstock.runtime.service import Service
from penstock.spi import (
    Registry,
    Serializer,
    Url,
    build_registry,
    check_permitted,
    parse_url,
    resolve_serializer,
)
from penstock.streams import Source, Streamable, open_into
from penstock.streams import subscribe as subscribe_here

T = TypeVar("T")


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
def remote(
    url: str,
    *,
    type: Any = None,
    **options: Unpack[RemoteOptions],
) -> Source[Any]:
    """Return the publisher at `url` as a source, for `pipe`, sinks and `subscribe`; each
    subscription makes its own connection.

    The publisher's name follows the authority, or a ``#`` if the path has another meaning; or give
    it as `publisher`.
    `type` is the type of the elements: with a dataclass they arrive as JSON and are objects of it.
    `serializer` must be the publisher's. Without both they are read as the publisher announces, and
    are bytes if it announces nothing. If elements are large, fewer are asked for than the demand
    allows: as many as fit into `window_bytes` (`Limits.window_bytes` without it). `setup`,
    `credentials`, `authenticate`, `transports`, `encoding` and `resume` are as for `connect`. A
    scheme that a plugin reads without a connection, ``http://`` for example, has its own options.
    `start` and `stop` choose elements of a publisher with a log, as for `Peer.subscribe`. With
    `reconnect` a subscription whose connection is lost goes on at the position of its next element,
    or anew if the publisher has no positions.
    Raises UsageError for a malformed URL, for one that names no publisher,
    and for an unknown option.
    """
    refuse_unknown("remote()", options, {"type", *RemoteOptions.__annotations__})
    # All of these checks are made at the call:
    # a `retry` behind the source would repeat a mistake again and again.
    parsed = parse_url(url)
    check_permitted(parsed, options.get("transports"))
    publisher = options.pop("publisher", None)
    options["registry"] = registry = registry_of(options.get("registry"), build_registry)
    scheme = registry.sources.get(parsed.transport)
    if scheme is not None:
        return source_of_scheme(scheme, url, publisher, type, registry, options)
    check_transport(registry, parsed)
    of_stream: StreamOptions = {}
    of_connection: TrioOptions = {}
    for name, value in options.items():
        group = of_stream if name in StreamOptions.__annotations__ else of_connection
        group[name] = value  # type: ignore[literal-required]  # a name of that group
    placed, typed = _names(parsed, publisher, of_stream.get("start"), of_stream.get("stop"))
    # Looked up here, so that a missing serializer is an error of this call,
    # and not of each subscription.
    reading = _reading(registry, of_stream.get("serializer"), type)
    # Failures go to the log: a source has no `on_violation`.
    # Each of its subscriptions has one, and none exists yet.
    settings = client_settings(parsed.address, on_violation=log_violation, **of_connection)
    window_bytes = check_window(of_stream.get("window_bytes"), settings.limits)
    return _RemoteUrl(parsed, placed, typed, reading, settings, window_bytes)


def _reading(
    registry: Registry, serializer: str | Serializer | None, type: Any
) -> str | Serializer | None:
    """Return the serializer for elements, ``bytes`` if the program wants them unchanged, or None to
    read them as announced.
    """
    loader = resolve_serializer(registry, serializer, type)
    # The program has asked for bytes: no announcement of the publisher may change that.
    if loader is None and not serializer is type is None:
        return "bytes"
    return loader or serializer


def _names(
    url: Url, publisher: str | None, start: PlaceInStream | None, stop: PlaceInStream | None
) -> tuple[PositionedName, str | None]:
    """Return the name with its places, and the typed name if no places were given beside it. Raises
    UsageError.
    """
    # `publisher=` wins over the URL: it may hold characters that a URL would have to escape.
    name = url.publisher if publisher is None else publisher
    if not name:
        found = f"{str(url)!r} names no publisher"
        raise UsageError(
            f"{found}; write it behind the authority (tcp://host:port/name), behind '#', or as "
            "publisher="
        )
    if type(name) is not str:
        raise UsageError(f"{shown(name)} cannot be a publisher's name: give a str")
    if start is stop is None:
        return PositionedName.parse(name), name
    return PositionedName(name, start, stop), None


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
    source: Log,
    *,
    partition: str = ...,
    start: PlaceInStream = ...,
    stop: PlaceInStream | None = ...,
    demand: int | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> AbstractAsyncContextManager[Stream[bytes]]: ...
@overload
def subscribe(
    source: Streamable[T],
    *,
    demand: int | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
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

    `source` is a publisher, a source or pipe, an async iterable, an iterable, a function that
    returns one (an async generator function, for example), a `Log`, or a URL like
    ``tcp://127.0.0.1:7000/ticks/EURUSD``; with a URL, the options of `remote` may be given as well:
    with ``type=Quote`` the elements are objects of the class Quote. A log takes `partition`,
    `start` and `stop`, which are those of `Log.source`, and a URL of a publisher with a log takes
    `start` and `stop`. Then ``stream.position`` is that of the next element.

    With ``demand=n`` at most n elements are under way or buffered, renewed in halves while the loop
    takes them, and fewer over a network if they are large (`window_bytes`); with ``demand=0`` you
    call `Stream.request` yourself. Without `demand` it is 256, and behind `latest` or `drop` in
    this process each element is requested when the loop asks for it.

    When the block has been left, everything behind the stream has stopped here,
    and the peer was told.
    Raises UsageError for anything that cannot be streamed, and for an unknown option.
    Entering and leaving checkpoint.
    """
    if isinstance(source, Log):
        refuse_unknown(
            "subscribe(log)",
            remotely,
            ("partition", "start", "stop", "demand", "on_violation", "cleanup_timeout"),
        )
        # With a position: `stream.position` is that of the next element of the log.
        positioned: Stream[bytes] = Stream(demand=DEFAULT_DEMAND if demand is None else demand)
        return open_into(
            positioned,
            source.source(**remotely),
            on_violation=on_violation,
            cleanup_timeout=cleanup_timeout,
        )
    if remotely:
        own = ("demand", "on_violation", "cleanup_timeout", "type")
        refuse_unknown("subscribe()", remotely, {*own, *RemoteOptions.__annotations__})
    if isinstance(source, str):
        # The stream is made here: its class is public, and offers what elements of fixed size need.
        stream: RemoteStream[Any] = RemoteStream(
            demand=DEFAULT_DEMAND if demand is None else demand
        )
        return open_into(
            stream,
            remote(source, **remotely),
            on_violation=on_violation,
            cleanup_timeout=cleanup_timeout,
        )
    # A misspelt option would be ignored without a word otherwise.
    if remotely:
        raise UsageError(
            f"{', '.join(remotely)}: only a URL takes these; this stream does not leave the process"
        )
    # None lets the source say how much to request ahead: behind latest() a buffer of 256 would hold
    # old elements, and once gave a slow reader element 8 when the newest was 129.
    return subscribe_here(
        source, demand=demand, on_violation=on_violation, cleanup_timeout=cleanup_timeout
    )


class _RemoteUrl(Source[Any]):
    """The publisher of a URL; each subscription has its own connection."""

    __slots__ = ("_name", "_serializer", "_settings", "_typed", "_url", "_window_bytes")

    def __init__(
        self,
        url: Url,
        name: PositionedName,
        typed: str | None,
        serializer: str | Serializer | None,
        settings: ClientSettings,
        window_bytes: int,
    ) -> None:
        self._url = url
        self._name = name
        self._typed = typed
        self._serializer = serializer
        self._settings = settings
        self._window_bytes = window_bytes

    def open_connection(self, on_violation: Report) -> OpenConnection:
        """Return the block of a new connection."""
        # Without the policy: the subscription itself connects again.
        settings = attrs.evolve(self._settings, on_violation=on_violation, reconnect=None)
        # An empty service: the peer of such a connection can subscribe to nothing here.
        return OpenConnection(settings, Service())

    @property
    def name(self) -> PositionedName:
        """The name of the publisher, with the places that the program has given."""
        return self._name

    @property
    def first_name(self) -> str:
        """The name for the first connection. A typed one is sent unchanged: its words may be those
        of a function, and not those of a log.
        """
        return self._name if self._typed is None else self._typed

    def starting_at(self, start: PlaceInStream) -> "_RemoteUrl":
        """Return the same publisher from another place on."""
        # Another place than the typed name has, so the typed name is not sent any more.
        name = self._name.at(start, self._name.stop)
        return _RemoteUrl(
            self._url, name, None, self._serializer, self._settings, self._window_bytes
        )

    def subscribe_at(
        self, name: str, peer: Peer, subscriber: Subscriber[Any], scope: Scope
    ) -> None:
        """Subscribe over a connection that was made."""
        # By the object: the registry was asked when the source was made,
        # and its error reached the caller.
        peer.source(name, serializer=self._serializer, window_bytes=self._window_bytes).attach(
            subscriber, scope
        )

    def reconnector(self) -> Reconnector:
        """Return what decides on the connections of a new subscription."""
        settings = self._settings
        return Reconnector(settings.reconnect, settings.registry.events, str(settings.url))

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        # Before on_subscribe, in which the stream requests its first elements:
        # it asks for a few while it knows no size.
        if scope.reader is not None:
            scope.reader.count_bytes(self._window_bytes, self._settings.limits.max_element)
        # A source is a blueprint. What changes belongs to the subscription.
        RemoteSubscription(self, subscriber, scope).start()

    def __repr__(self) -> str:
        return f"<source {self._url}>"
