"""The publisher of a URL whose scheme a plugin reads without a connection
(`penstock.spi.UrlSource`), as a source.

Rules of this file:

* One task in the scope of the subscription runs the plugin's `read`. Its return is the completion,
  and its exception the failure.
* A plugin that delivers more than was requested ends the stream with a PluginError.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Limits,
    PenstockError,
    PluginError,
    PositionedName,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    on_next_many_of,
    shown,
)
from penstock.client import LONGEST_NAME, OpenStream, check_window, read_subscriber
from penstock.core import Scope
from penstock.runtime.client._options import RemoteOptions
from penstock.runtime.connection import clients, decoded
from penstock.session import OldestStream, StreamLook
from penstock.spi import (
    ElementSink,
    PeerIdentity,
    Registry,
    Serializer,
    SourceOptions,
    Standing,
    TransportOptions,
    Url,
    UrlSource,
    parse_url,
    resolve_serializer,
    waits_for,
)
from penstock.streams import Source

UNUSED: Final = ("reconnect", "setup", "extensions", "encoding", "authenticate")
"""Options of `remote` that only a connection has."""


def check_connectable(registry: Registry, url: Url) -> None:
    """Raise UsageError if `url` leads to streams only, and not to a connection."""
    scheme = registry.sources.get(url.transport)
    if scheme is not None:
        raise UsageError(f"{str(url)!r} cannot be connected to: {scheme.why_no_connection}")


def source_of_scheme(
    scheme: UrlSource,
    url: str,
    publisher: str | None,
    kind: Any,
    registry: Registry,
    options: RemoteOptions,
) -> "SourceAtUrl":
    """Return the stream at `url`. Raises UsageError for a URL and for options that it cannot
    have.
    """
    places = PositionedName("", options.get("start"), options.get("stop"))
    unused = {name: options.get(name) for name in UNUSED}
    _check_plain(url, publisher=publisher, **unused)
    # A log on a broker has its places in its URL.
    words = str(places)
    url += words if "?" not in url else words.replace("?", "&", 1)
    limits = options.get("limits") or Limits()
    given = SourceOptions(
        limits=limits,
        transport=(options.get("options") or TransportOptions()).within(limits),
        credentials=options.get("credentials"),
    )
    scheme.check(url, given)
    serializer = resolve_serializer(registry, options.get("serializer"), kind)
    window_bytes = check_window(options.get("window_bytes"), limits)
    return SourceAtUrl(scheme, url, given, serializer, window_bytes)


def _check_plain(text: str, **given: object) -> None:
    """Raise UsageError for a dialect in the URL, and for options of `remote` that only a
    connection has: those of `given` that are set.
    """
    url = parse_url(text)
    if url.dialect is not None:
        raise UsageError(
            f"{text!r} names the protocol {url.dialect!r}, and {url.transport}:// has its own; "
            "leave it out"
        )
    for name, value in given.items():
        if value:
            raise UsageError(
                f"{name}={shown(value)}: {url.transport}:// is read without a connection, and has "
                "no such option"
            )


class SourceAtUrl(Source[Any]):
    """The stream at a URL; each subscription reads it anew."""

    __slots__ = ("_options", "_scheme", "_serializer", "_text", "_window_bytes")

    def __init__(
        self,
        scheme: UrlSource,
        text: str,
        options: SourceOptions,
        serializer: Serializer | None,
        window_bytes: int,
    ) -> None:
        self._scheme = scheme
        self._text = text
        self._options = options
        self._serializer = serializer
        self._window_bytes = window_bytes

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        # Before on_subscribe, in which the stream requests its first elements:
        # it asks for a few while it knows no size.
        window = None
        if scope.reader is not None:
            window = scope.reader.count_bytes(self._window_bytes, self._options.limits.max_element)
        decoding = subscriber if self._serializer is None else decoded(subscriber, self._serializer)
        _Sink(decoding, scope, window, self._text).start(self._scheme, self._options)

    def __repr__(self) -> str:
        return f"<source {self._text}>"


class _Sink(ElementSink, Subscription):
    """One subscription: the demand of its subscriber, and the task that reads."""

    def __init__(self, subscriber: Subscriber[Any], scope: Scope, window: Any, text: str) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._text = text
        self._delivered = 0
        self._oldest: OldestStream | None = None  # made by the first look
        # A version, a trace, a span, and "not sampled": no tracer has to keep it.
        self._trace = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
        self._scope = scope
        self._window = window
        self._task: trio.CancelScope | None = None
        self._requested = trio.Event()
        self.demand = 0

    def start(self, scheme: UrlSource, options: SourceOptions) -> None:
        """Call on_subscribe, and start to read."""
        subscriber = self._subscriber
        if subscriber is not None:
            subscriber.on_subscribe(self)
        if self._subscriber is None:
            return  # it has cancelled inside on_subscribe
        try:
            # Behind on_subscribe: a subscriber that cancels in there needs no task.
            self._task = self._scope.spawn(
                lambda: self._read(scheme, options), name=f"penstock source {self._text}"
            )
        # The scope has closed meanwhile: its nursery is over and takes no task.
        except UsageError as closed:
            self._fail(closed)

    # --- the subscription

    def request(self, n: int, /) -> None:
        self.demand = add_demand(self.demand, n)
        self._requested.set()

    def cancel(self, /) -> None:
        # Forgotten first: elements that the plugin delivers from now on are dropped.
        self._subscriber = None
        if self._task is not None:
            self._task.cancel()

    # --- for the plugin

    async def wait_demand(self) -> int:
        # Always: a plugin whose subscriber requests all the time must let other tasks run.
        await trio.lowlevel.checkpoint()
        while not self.demand:
            # A new one for each wait, because an event of trio stays set.
            self._requested = trio.Event()
            await self._requested.wait()
        return self.demand

    def put(self, elements: Sequence[bytes], /) -> None:
        subscriber = self._subscriber
        if subscriber is None or not elements:
            return
        if len(elements) > self.demand:
            raise PluginError(
                f"a source delivered {len(elements):,} elements where {self.demand:,} were "
                "requested"
            )
        # Demand without bound is not counted down (rule 3.17).
        if self.demand < UNBOUNDED:
            self.demand -= len(elements)
        self._delivered += len(elements)
        # Before the elements: the subscriber requests more inside its call, by the bytes
        # that have come.
        if self._window is not None:
            self._window.received += sum(map(len, elements))
        many = on_next_many_of(subscriber)
        if many is not None:
            many(elements)
            return
        for element in elements:
            # The subscriber may have cancelled at the element before.
            if self._subscriber is not None:
                subscriber.on_next(element)

    # --- for those who look at it

    def open_streams(self) -> Iterable[OpenStream]:
        """Look at the stream. It is in the set of the clients while its task runs."""
        if self._oldest is None:
            self._oldest = OldestStream()
        now, url = trio.current_time(), parse_url(self._text)
        look = StreamLook(id(self), self.demand, self._delivered, None)
        self._oldest.look(now, [look])
        standing = Standing(outbound=False, demand=self.demand)
        opened = OpenStream(
            self,
            {
                "key": f"u{id(self):x}",
                "name": (url.publisher or "").removeprefix("p/")[:LONGEST_NAME],
                "outbound": False,
                "peer": PeerIdentity(address=str(url.address).partition("://")[2]),
                "local": "",
                "protocol": url.transport,
                "transport": url.transport,
                "stream": 0,
                "trace": self._trace,
                "state": "live",
                "demand": self.demand,
                "held": 0,
                "serializer": "",
                "still": self._oldest.seconds(id(self), now),
                "waits_for": waits_for(standing),
                "limit": "",
                "lag": None,
                "parts": (),
            },
        )
        read_subscriber(opened, self._subscriber)
        return (opened,)

    # --- the task

    async def _read(self, scheme: UrlSource, options: SourceOptions) -> None:
        text, known = self._text, clients()
        known.add(self)
        try:
            await scheme.read(text, self, attrs.evolve(options, traceparent=self._trace))
        except PenstockError as error:
            self._fail(error)
        except Exception as error:  # boundary: a plugin
            failure = PluginError(
                f"the source {scheme!r} raised, where a PenstockError is due: {error!r}"
            )
            failure.__cause__ = error
            self._fail(failure)
        else:
            subscriber, self._subscriber = self._subscriber, None
            if subscriber is not None:
                subscriber.on_complete()
        # A cancel from outside: the subscriber gets a terminal signal (rule 1.4). `_fail` does
        # nothing after the first one.
        finally:
            known.discard(self)
            self._fail(
                ConnectionLost(f"{text} was stopped: the nursery that read it was cancelled")
            )

    def _fail(self, error: BaseException) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)
