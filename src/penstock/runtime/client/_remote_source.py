"""The publisher of a URL as a source: each subscription makes a connection, and the connection ends
with it.

Rules of this file:

* All arguments are checked at the call: a `retry` behind the source would repeat a mistake again
  and again.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, Unpack, overload

from penstock.api import PlaceInStream, Time, UsageError, shown
from penstock.client import (
    StreamOptions,
    TrioOptions,
    check_transport,
    client_settings,
    position_in,
    position_question,
    refuse_unknown,
    registry_of,
    stream_opening,
)
from penstock.core import CLEANUP_SECONDS, Report, Stream, log_violation
from penstock.logs import Log
from penstock.reader import DEFAULT_DEMAND
from penstock.runtime.client._options import RemoteOptions
from penstock.runtime.client._remote_subscription import RemoteUrl
from penstock.runtime.client._url_sources import source_of_scheme
from penstock.runtime.connection import RemoteStream
from penstock.spi import Url, build_registry, check_permitted, parse_url
from penstock.streams import Source, Streamable, first, open_into
from penstock.streams import subscribe as subscribe_here

T = TypeVar("T")


@overload
def remote(
    url: str | Url,
    *,
    type: type[T],
    **options: Unpack[RemoteOptions],
) -> Source[T]: ...
@overload
def remote(
    url: str | Url,
    *,
    type: object = ...,
    **options: Unpack[RemoteOptions],
) -> Source[Any]: ...
def remote(
    url: str | Url,
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
    parsed = parse_url(url)
    check_permitted(parsed, options.get("transports"))
    publisher = options.pop("publisher", None)
    options["registry"] = registry = registry_of(options.get("registry"), build_registry)
    scheme = registry.sources.get(parsed.transport)
    if scheme is not None:
        return source_of_scheme(scheme, str(url), publisher, type, registry, options)
    check_transport(registry, parsed)
    of_stream: StreamOptions = {}
    of_connection: TrioOptions = {}
    for name, value in options.items():
        group = of_stream if name in StreamOptions.__annotations__ else of_connection
        group[name] = value  # type: ignore[literal-required]  # a name of that group
    # Failures go to the log: a source has no `on_violation`.
    # Each of its subscriptions has one, and none exists yet.
    settings = client_settings(parsed.address, on_violation=log_violation, **of_connection)
    opening = stream_opening(
        settings,
        _name_in(parsed, publisher),
        kind=type,
        demand=DEFAULT_DEMAND,
        **of_stream,
    )
    # The program has asked for bytes: no announcement of the publisher may change that.
    asked_for_bytes = opening.loader is None and not of_stream.get("serializer") is type is None
    return RemoteUrl(parsed, opening, "bytes" if asked_for_bytes else opening.loader, settings)


async def position_at(url: str | Url, time: Time, **options: Unpack[RemoteOptions]) -> int:
    """Return the position of the first element that was appended to the log at `url` at `time` or
    later, for ``subscribe(url, start=position)``: that of the oldest element if older ones were
    dropped, and that of the next one if none is as late.

    `time` is a datetime with a time zone, its text, or seconds since 1970. A log with several
    partitions needs one: ``tcp://127.0.0.1:7000/orders?partition=east``. The options are those of
    `remote`. Raises UsageError without a partition and for a value that is no time, and what a
    stream from `url` raises. Checkpoints.
    """
    publisher, name = options.get("publisher"), str(url)
    if publisher is not None:
        name = publisher
        options["publisher"] = position_question(name, time)
    question = url if publisher is not None else position_question(name, time)
    return position_in(await first(remote(question, type=bytes, **options)), name)


def _name_in(url: Url, publisher: str | None) -> str:
    """Return the name of the publisher. Raises UsageError if there is none."""
    # `publisher=` wins over the URL: it may hold characters that a URL would have to escape.
    name = url.publisher if publisher is None else publisher
    if name:
        return name
    raise UsageError(
        f"{str(url)!r} names no publisher; write it after the authority (tcp://host:port/name), "
        "after '#', or as publisher="
    )


@overload
def subscribe(
    source: str | Url,
    *,
    type: type[T],
    demand: int | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
    **remotely: Unpack[RemoteOptions],
) -> AbstractAsyncContextManager[RemoteStream[T]]: ...
@overload
def subscribe(
    source: str | Url,
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
    if isinstance(source, str | Url):
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
        of_logs = {"partition", "start", "stop"} & remotely.keys()
        raise UsageError(
            f"{', '.join(remotely)}: only a URL takes these; this stream does not leave the process"
            if not of_logs
            else f"{', '.join(remotely)}: a log takes partition, start and stop, and a URL all of "
            f"these; {shown(source)} is neither"
        )
    # None lets the source say how much to request ahead: behind latest() a buffer of 256 would hold
    # old elements, and once gave a slow reader element 8 when the newest was 129.
    return subscribe_here(
        source, demand=demand, on_violation=on_violation, cleanup_timeout=cleanup_timeout
    )
