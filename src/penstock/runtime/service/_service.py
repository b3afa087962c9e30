"""A service: publishers by name and handlers of requests. `serve` and `connect` offer it to peers.

Rules of this file:

* A publisher is reached by its name through every protocol. If the data of a request is a
  publisher's name, the request goes to that publisher; only other data goes to the handler of the
  request's kind.
"""

import inspect
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import attrs
import trio

from penstock.api import (
    FIRST_BYTE,
    ContentTypes,
    Model,
    Request,
    UsageError,
    decode_named_request,
    shown,
)
from penstock.logs import Log
from penstock.runtime.service._cannot_open import (
    MayOpen,
    NoSuchPublisher,
    UnfitPayload,
    UnreadablePayload,
)
from penstock.runtime.service._description import LONGEST_NAME, offer_description
from penstock.runtime.service._function_annotations import (
    called_function,
    check_function,
    check_returns,
    check_takes,
    element_type_of,
)
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._log_publication import Addresses, LogPublication
from penstock.runtime.service._named_requests import NamedCall, NamedHandler
from penstock.runtime.service._payload_parameter import (
    PAYLOAD,
    PayloadParameter,
    load_element,
    media_type_of,
)
from penstock.runtime.service._router import NoMatch, Pattern, Route, Router, canonical_name
from penstock.spi import (
    PeerIdentity,
    Registry,
    Serializer,
    check_serializer_argument,
    known_media_type,
    resolve_serializer,
    serializer_for,
)
from penstock.streams import Source, Streamable, as_source, empty, from_batches

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

GIVEN: Final = {
    "authenticate": ("the scheme", "the credentials as bytes", "a PeerIdentity"),
    "authorize": ("the principal", "the name"),
    "may_open": ("the name", "a PeerIdentity"),
}
"""The arguments of the functions that guard a service."""


@attrs.frozen
class Publication:
    """A publisher that a name led to, and how its elements become bytes."""

    source: Source[Any]
    serializer: str | Serializer | None
    """As it was given to the decorator."""
    element_size: int
    element_type: Any = None
    """The type of the elements, for `penstock.spi.resolve_serializer`; None if it is not known."""
    type_place: str = ""
    """Where the program gave that type, for messages."""
    pattern: str = ""
    """The name or pattern under which it is offered; empty for a request whose data is no name."""

    def find_serializer(
        self, registry: Registry, types: ContentTypes | None = None
    ) -> Serializer | None:
        """Return what turns the elements into bytes, or None if they are bytes. `types` are what
        the peer has named. Raises UsageError.
        """
        # The usual case: bytes, for which nothing is looked up.
        if self.serializer is None and (self.element_type is None or self.element_type is bytes):
            return None
        media_type = None if types is None else known_media_type(registry, answer_types(types))
        return resolve_serializer(registry, self.serializer, self.element_type, media_type)


class StaleElementsWarning(UserWarning):
    """A publisher of a service keeps the newest element here,
    and the buffer of its subscriber holds older ones.

    A subscriber over a connection requests 256 elements ahead of its reader. So `latest`, or a
    topic with `SlowPolicy.LATEST`, has nothing to replace until these have been sent. The
    subscriber must act: ``pipe(remote(url), ops.latest())``, or ``demand=1``. If the clients do so,
    or if only the publisher is to be spared: ``warnings.simplefilter("ignore",
    penstock.StaleElementsWarning)``.
    """


Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]
"""Opens what a service needs for as long as it is served."""


class Service:
    """Publishers by name, for `serve` and `connect`.

    Give a publisher its name with a decorator::

        service = Service()

        @service.publisher("ticks/{symbol}")
        async def ticks(symbol: str):
            async for tick in market.follow(symbol):
                yield tick
    """

    for_trio: ClassVar[bool] = True
    """Whether its functions run on trio."""

    def __init__(
        self,
        *,
        setup: Callable[..., Any] | None = None,
        authenticate: Callable[[str, bytes, PeerIdentity], Any] | None = None,
        authorize: Callable[[Any, Any], Any] | None = None,
        may_open: MayOpen | None = None,
        describe: bool = False,
        lifespan: Lifespan | None = None,
    ) -> None:
        """`setup` checks the data that a ReactiveSocket client sends when it connects;
        without it every client is accepted.

        It is called with the data and, in a parameter annotated `penstock.spi.PeerIdentity`, the
        identity of the client; it may be async. It refuses by raising `Rejected` or `PublicError`,
        whose text the client gets, or by returning False. What else it returns, but for True and
        None, is the principal of the client.

        `authenticate` examines the credentials of each client, over every protocol, before anything
        is answered. It is called with the scheme (``bearer``, ``basic``, ``mtls``, ``unix``, or
        ``""`` for a client without credentials), the credentials as bytes, and the identity of the
        client; it may be async. It returns the principal of the client, `PeerIdentity.principal`.
        None and False refuse, and so does an exception.
        All refusals are the same for the client.

        `authorize` decides what a principal may open. It is called with the principal and the name,
        and may be async. If it does not return True, or raises, the peer gets the answer to a name
        that does not exist.

        `may_open` decides what a peer may open. It is called with the name that the peer asks for
        and the identity of the peer, before any publisher or handler runs, and must be a plain
        function. If it does not return True, or raises, the peer gets the answer to a name that
        does not exist. A name is given in one spelling: ``a%62c`` as ``abc``.
        Data that is not a name is given as the `Request`.

        With `describe` peers can list what is offered: the publisher ``penstock/describe`` has an
        entry for each publisher and request that `authorize` and `may_open` grant. They get the
        pattern, ``ticks/{symbol}``, as the name. ``penstock ls URL`` prints the entries.

        `lifespan` is a function that returns an async context manager: an async generator function
        under `contextlib.asynccontextmanager`, or ``lambda: log``. Whatever serves the service
        enters it before the first client comes, and leaves it when the last stream has ended:
        `serve`, `run`, ``penstock serve``, and each worker for itself.
        """
        # Checked now: a wrong signature would otherwise refuse every client.
        self._setup = None if setup is None else Handler(self.called(setup), "the setup function")
        if setup is not None and authenticate is not None:
            raise UsageError(
                "setup= and authenticate= both examine the SETUP of a ReactiveSocket client; give "
                "one of them"
            )
        for function, what in ((authenticate, "authenticate"), (authorize, "authorize")):
            if function is not None:
                check_function(function, what)
                check_takes(function, what, GIVEN[what])
                check_returns(function, what)
        self.authenticate: Callable[[str, bytes, PeerIdentity], Any] | None = (
            None if authenticate is None else self.called(authenticate)
        )
        """Examines the credentials of clients; None if every client is let in."""
        self.authorize: Callable[[Any, Any], Any] | None = (
            None if authorize is None else self.called(authorize)
        )
        """Decides what a principal may open; None for everything."""
        if may_open is not None and inspect.iscoroutinefunction(
            called_function(check_function(may_open, "may_open"))
        ):
            raise UsageError(
                f"may_open={may_open!r}: give a plain function of a name and a PeerIdentity that "
                "returns True or False"
            )
        if may_open is not None:
            check_takes(may_open, "may_open", GIVEN["may_open"])
            check_returns(may_open, "may_open")
        self.may_open: MayOpen | None = may_open
        """Decides what a peer may open; None for everything."""
        if lifespan is not None:
            check_function(lifespan, "lifespan")
            check_takes(lifespan, "lifespan", ())
            if not self.for_trio:
                raise UsageError(
                    "lifespan= runs on trio, and the functions of this service on asyncio; open "
                    "what it needs around `async with serve(...)`, or in the lifespan of the site"
                )
        self.lifespan: Lifespan | None = lifespan
        """Opens what the service needs for as long as it is served; None for nothing."""
        self.handlers: dict[Model, Handler] = {}
        """The handlers of requests that carry data, by the kind of request."""
        self.router: Router = Router()
        """The publishers, by their names."""
        self.options: dict[Route, tuple[str | Serializer | None, int, Any, str]] = {}
        """Of each publisher the fields of its `Publication` after the source: serializer, size
        and type of the elements, and its place.
        """
        # For generator functions without parameters: made once, not for each subscribe.
        self._plain: dict[Route, Publication] = {}
        self._batched: set[Route] = set()  # of functions that yield lists of elements
        self.logs: dict[Route, LogPublication] = {}
        """The publishers with `log`."""
        self._warned: set[str] = set()  # names of which a StaleElementsWarning has told
        self.payloads: dict[Route, PayloadParameter] = {}
        """Of publishers that take a payload."""
        self.named: dict[Route, NamedHandler] = {}
        """The handlers of requests by name."""
        if describe:
            offer_description(self)

    def publisher(
        self,
        name: str,
        *,
        type: Any = None,
        serializer: str | Serializer | None = None,
        element_size: int = 0,
        batches: bool = False,
        log: Log | bool | None = None,
        addresses: Addresses = (),
    ) -> Callable[[F], F]:
        """Offer the decorated function under `name`.

        The function is called for each subscription and returns a publisher, a source or an
        iterable; most are async generator functions.
        A segment of `name` like ``{symbol}`` becomes the parameter of that name, converted to its
        annotation; parameters may also follow a ``?``, as in a URL. A parameter annotated
        `penstock.spi.PeerIdentity` gets the identity of the peer that subscribes, one annotated
        `penstock.api.Request` the request, with its metadata. A parameter called ``payload``, if
        the name has none of that name, gets what was sent with the name, as for `request`; and one
        annotated ``Source[T]`` the elements of a channel.

        The return annotation gives the type of the elements: those of ``AsyncIterator[Quote]`` are
        sent as JSON, those of ``AsyncIterator[str]`` as text, and bytes unchanged. `type` says it
        for a function without an annotation. `serializer` is a name like ``"json"`` or an object,
        and is used in place of the annotation.
        With `element_size` every element has that number of bytes; the function may then yield
        several elements as one piece of memory. With ``batches=True`` the function yields lists of
        elements (``AsyncIterator[list[Quote]]``), and subscribers get the elements, as with
        `penstock.from_batches`.
        With `log` the elements are those of a log, and each subscriber chooses where it starts and
        stops. The function then returns None, the name of a partition, or with ``log=True`` a
        `Log`. Its bytes are sent unchanged; `type` and `serializer` tell subscribers what they are.
        `addresses` are the URLs of the log in the answer to ``?positions``, or a dict with the URLs
        of each partition.
        Raises UsageError for a name that is taken or malformed, and for a parameter
        that no text can become.
        """
        pattern = Pattern.parse(name)
        # All of this is checked before the decorator is applied,
        # so the traceback ends at the line of the decorator.
        _check_element_size(name, element_size, batches=batches)
        check_serializer_argument(serializer)
        published = (
            None if log is None else LogPublication(name, log, addresses, [element_size, batches])
        )

        def add(function: F) -> F:
            # A parameter of the name stays one: its text cannot be the payload as well.
            has_payload = published is None and PAYLOAD not in pattern.parameters
            route = Route(
                pattern,
                function,
                peer_type=PeerIdentity,
                payload=PAYLOAD if has_payload else "",
            )
            if published is not None:
                published.check(pattern, function)
                self.router.add(route)
                self.logs[route] = published
                # The log has bytes: this only tells peers what they are.
                if type is not None or serializer is not None:
                    self.options[route] = serializer, 0, type, f"the type= of {name!r}"
                return function
            # Checked here: otherwise the first subscription of a peer would find out.
            if inspect.iscoroutinefunction(called_function(function)):
                raise UsageError(
                    f"{name!r}: its function is a coroutine function, it returns one value; to "
                    "stream, `yield` the elements instead"
                )
            taken = PayloadParameter(name, function, f"{name!r}", serializer)
            if has_payload and taken.is_taken and route.elements:
                raise UsageError(
                    f"{name!r}: its function takes a payload and the elements of a channel, and no "
                    "request has both; the first element of a channel is in its request"
                )
            # A named serializer is taken unchanged; the annotation counts without one.
            kind, place = type, "" if type is None else f"the type= of {name!r}"
            if type is serializer is None and not element_size:
                kind, place = (
                    element_type_of(function, f"{name!r}", in_batches=batches),
                    f"the return annotation of {name!r}",
                )
            # First of the changes: it raises for a name that is taken,
            # and then nothing of this function must be left.
            self.router.add(route)
            self.options[route] = options = serializer, element_size, kind, place
            if has_payload and taken.is_taken:
                self.payloads[route] = taken
            if batches:
                self._batched.add(route)
            # One source for all subscribers:
            # a generator source holds no state, and calls the function for each.
            if route.is_generator:
                self._plain[route] = Publication(
                    self._source(route, function), *options, pattern.text
                )
            return function

        return add

    def publish(
        self,
        name: str,
        source: Streamable[Any] | Log,
        *,
        type: Any = None,
        serializer: str | Serializer | None = None,
        element_size: int = 0,
    ) -> None:
        """Offer `source` itself under `name` to every subscriber:
        a topic, a pipe, a log, or a publisher of your own.

        Without `type` and `serializer` its elements are bytes. Those of a log are bytes also with
        them: they tell subscribers what the program has appended.
        Warns with `StaleElementsWarning` of a source that keeps the newest element only: its
        subscribers hold older ones by default.
        """
        # Converted once, so that a value that cannot be streamed is refused here.
        if isinstance(source, Log):
            options: dict[str, Any] = {
                "type": type,
                "serializer": serializer,
                "element_size": element_size,
            }
            self.publisher(name, log=source, **options)(_no_partition)
            return
        blueprint = self.source_of(source)

        # A function without parameters, so that all names are found and bound in one way.
        def published() -> Source[Any]:
            return blueprint

        self.publisher(name, type=type, serializer=serializer, element_size=element_size)(published)
        self._warn_of_stale_elements(name, blueprint, stacklevel=3)

    def request(self, name: str, *, serializer: str | Serializer | None = None) -> Callable[[F], F]:
        """Answer requests with this name by the decorated ``async def`` function,
        which returns one value.

        Segments of `name`, parameters after a ``?`` and parameters annotated
        `penstock.spi.PeerIdentity` or `penstock.api.Request` are given as for `publisher`.
        A parameter called ``payload`` gets what was sent with the name, converted to its
        annotation; if it has a default, a request may leave the payload out. The return annotation
        gives the type of the answer. Types are sent as JSON, or in the format that the peer has
        named (RSocket), ``str`` as text, bytes unchanged; `serializer` names another format for
        both, or is an object.
        Raises UsageError for a name that is taken or malformed, and for a function with
        which no request could be answered.
        """
        pattern = Pattern.parse(name)

        def add(function: F) -> F:
            # Made first: a function that is refused must not leave its name in the router.
            handler = NamedHandler(pattern, self.called(function), serializer)
            self.router.add(handler.route)
            self.named[handler.route] = handler
            return function

        return add

    def request_response(self, function: F) -> F:
        """Answer requests for one value with the decorated
        ``async def function(data: bytes) -> bytes``.

        It gets the requests whose data is neither a publisher's name nor a request by name
        (`request`); a publisher answers with its first element. A parameter annotated
        `penstock.spi.PeerIdentity` gets the identity of the peer.
        Raises UsageError for a second handler, and for a function that is not async.
        """
        if not inspect.iscoroutinefunction(check_function(function, "request_response")):
            raise UsageError(
                f"{function!r} answers with one value: make it an `async def` that returns it"
            )
        return self._handle(Model.RESPONSE, function)

    def fire_and_forget(self, function: F) -> F:
        """Receive messages without an answer with the decorated
        ``async def function(data: bytes) -> None``.

        Raises as `request_response` does.
        """
        if not inspect.iscoroutinefunction(check_function(function, "fire_and_forget")):
            raise UsageError(
                f"{function!r} receives messages without an answer: make it an `async def`"
            )
        return self._handle(Model.FIRE_AND_FORGET, function)

    def metadata_push(self, function: F) -> F:
        """Receive metadata about a connection with the decorated
        ``async def function(metadata: bytes) -> None``. RSocket has such messages.

        A parameter annotated `penstock.spi.PeerIdentity` gets the identity of the peer. Raises as
        `request_response` does.
        """
        if not inspect.iscoroutinefunction(check_function(function, "metadata_push")):
            raise UsageError(f"{function!r} receives metadata: make it an `async def`")
        return self._handle(Model.METADATA_PUSH, function)

    def request_stream(self, function: F) -> F:
        """Answer requests for a stream with the stream that the decorated function returns; most
        are async generator functions.

        It gets the requests whose data is not a publisher's name. A parameter annotated
        `penstock.spi.PeerIdentity` gets the identity of the peer. Raises UsageError for a second
        handler.
        """
        return self._handle_streaming(Model.STREAM, function)

    def request_channel(self, function: F) -> F:
        """Answer requests for a channel with the stream that the decorated function returns; it
        gets the elements of the peer as a `Source[bytes]`.

        It gets the channels that have no name. One with a name belongs to the publisher of that
        name, which gets the elements in a parameter annotated ``Source[bytes]``. A parameter
        annotated `penstock.spi.PeerIdentity` gets the identity of the peer. Raises UsageError for
        a second handler.
        """
        return self._handle_streaming(Model.CHANNEL, function)

    def request_subscription(self, function: F) -> F:
        """Do as `request_stream` for subscriptions, which are streams that never complete.
        Raises UsageError for a second handler.
        """
        return self._handle_streaming(Model.SUBSCRIPTION, function)

    def names(self) -> list[str]:
        """Return the names and patterns that are offered, sorted."""
        return self.router.names()

    # The two places at which code of the program is given to trio.
    def source_of(self, made: Streamable[Any]) -> Source[Any]:
        """Return what a publisher is, or returns, as a source."""
        return as_source(made)

    def called(self, function: F) -> F:
        """Return what is called in the place of a function of the program that may be async."""
        return function

    # The registry is not known when a publisher is added: the service may be built at import time.
    def check_loop(self) -> None:
        """Raise UsageError if no loop runs here that the functions of this service need."""

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run an async function of trio as a program, in the loop that the functions of this
        service need, and return what it returns.
        """
        return trio.run(function, strict_exception_groups=True)

    def check(self, registry: Registry) -> None:
        """Raise UsageError for a publisher whose serializer is not installed,
        before any peer subscribes to it.
        """
        for route, (serializer, _, kind, _place) in self.options.items():
            try:
                resolve_serializer(registry, serializer, kind)
            except UsageError as error:
                wanted = (
                    f"wants serializer={serializer!r}"
                    if kind is None
                    else f"has elements of type {shown(kind)}"
                )
                raise UsageError(
                    f"the publisher {route.pattern.text!r} {wanted}: {error}"
                ) from None
        # Requests need two serializers each;
        # the handler keeps both for the registry it was asked with.
        for route, handler in self.named.items():
            try:
                handler.serializers(registry)
            except UsageError as error:
                raise UsageError(f"the request {route.pattern.text!r}: {error}") from None

    def find(
        self, name: str, peer: PeerIdentity, payload: bytes | None = None
    ) -> Publication | NamedCall | None:
        """Return what `look_up` returns, or None in the place of NoSuchPublisher."""
        try:
            return self.look_up(name, peer, payload)
        except NoSuchPublisher:
            return None

    def look_up(
        self,
        name: str,
        peer: PeerIdentity,
        payload: bytes | None = None,
        *,
        may_be_empty: bool = False,
        elements: Source[bytes] | None = None,
        request: Request | None = None,
        registry: Registry | None = None,
    ) -> Publication | NamedCall:
        """Return what `name` leads to for `peer`. With `may_be_empty` a payload that is None may
        have been an empty one. `elements` are those of the peer on a channel. `request` is what
        functions get that take it. Without `registry` payloads and elements stay bytes.

        Raises NoSuchPublisher, UnfitPayload, UnfitPosition, and the exceptions of the function.
        """
        try:
            route, given, query = self.router.find(name)
            published = self.logs.get(route) if self.logs else None
            words = {} if published is None else published.take_words(query)
            call = route.bind(given, query, peer, request)
        except NoMatch as none:
            raise NoSuchPublisher(str(none)) from None
        types = None if request is None else request.types
        # `bind` returns the function itself if nothing was given:
        # then the publication is the one made beforehand.
        if route.elements or elements is not None:
            call = self._with_elements(route, call, elements, registry, types)
        handler = self.named.get(route)
        taken = self.payloads.get(route) if handler is None else handler.payload
        if may_be_empty and payload is None and taken is not None and taken.is_needed:
            payload = b""
        if taken is not None and handler is None:
            call, payload = self._with_payload(taken, call, payload, registry, types), None
        known = self._plain.get(route) if call is route.function else None
        if known is not None and payload is None:
            return known
        if handler is not None:
            return handler.call(call, payload, types)
        # Refused, and not dropped: an answer would look as if the payload had been used.
        if payload is not None:
            raise UnfitPayload(
                f"{route.pattern.text} is a publisher and takes no payload, and one of "
                f"{len(payload)} bytes was sent"
            )
        if published is not None:
            return Publication(published.source(call(), words), None, 0, pattern=route.pattern.text)
        options = self.options[route]
        if route.is_generator:
            # The function is called when its stream is first pulled.
            return Publication(self._source(route, call), *options, route.pattern.text)
        made = call()
        if inspect.iscoroutine(made):
            # Without this Python warns that a coroutine was never awaited, somewhere else
            # and later.
            made.close()
            raise UsageError(
                f"{name!r}: its function is a coroutine function, it returns one value; to stream, "
                "`yield` the elements instead"
            )
        source = self._source(route, made)
        self._warn_of_stale_elements(route.pattern.text, source, stacklevel=2)
        return Publication(source, *options, route.pattern.text)

    def _source(self, route: Route, made: Streamable[Any]) -> Source[Any]:
        source = self.source_of(made)
        return from_batches(source) if route in self._batched else source

    def _warn_of_stale_elements(self, name: str, source: Source[Any], *, stacklevel: int) -> None:
        # Once for each name: a function makes a source for each subscriber.
        if source.prefetch == 0 and name not in self._warned:
            self._warned.add(name)
            warnings.warn(
                f"the publisher {name!r} keeps the newest element only, and a subscriber over a "
                "connection requests 256 elements ahead, "
                "which its reader gets first. The program of the subscriber can change this, and "
                "the server cannot: pipe(remote(url), ops.latest()), or demand=1. If the "
                "subscribers do so, or the source only spares its publisher, write in the service: "
                'warnings.simplefilter("ignore", penstock.StaleElementsWarning)',
                StaleElementsWarning,
                stacklevel=stacklevel,
            )

    def name_of(self, target: str | Request) -> str | Request:
        """Return the name that `target` asks for, in its canonical spelling; or `target`, if it
        is data for a handler without a name.
        """
        if isinstance(target, str):
            return canonical_name(target)
        if target.name is not None:
            return canonical_name(target.name) if len(target.name) <= LONGEST_NAME else target
        # `may_open` gets the name alone: with the payload after it, the name would be in no list of
        # names.
        parts = (
            decode_named_request(target.data)
            if self.named and target.model is Model.RESPONSE
            else None
        )
        if parts is not None:
            # A longer name leads nowhere, and a name of 64 KiB may take 60 ms.
            return canonical_name(parts[0]) if len(parts[0]) <= LONGEST_NAME else target
        # Not decoded: data of any length comes here before the peer has been allowed anything.
        if len(target.data) > LONGEST_NAME:
            return target
        try:
            name = target.data.decode()
            self.router.find(name)
        except (UnicodeDecodeError, NoMatch):
            # Without a handler such data can only be meant as a name: then it is shown as one.
            return target
        return canonical_name(name)

    def pattern_of(self, target: str | Request) -> str:
        """Return the name or pattern that `target` leads to, or an empty text
        if it leads to none. For observers.
        """
        name = target
        if isinstance(target, Request) and target.name is not None:
            name = target.name
        elif isinstance(target, Request):
            parts = decode_named_request(target.data) if target.data[:1] == FIRST_BYTE else None
            name = (
                parts[0]
                if parts is not None
                else target.data[:LONGEST_NAME].decode(errors="replace")
            )
        try:
            return self.router.find(str(name))[0].pattern.text
        except NoMatch:
            return ""

    def answer(
        self, request: Request, peer: PeerIdentity, registry: Registry | None = None
    ) -> Publication | Handler:
        """Return what a request leads to for `peer`:
        a publication, or a handler of requests with one answer.

        Raises NoSuchPublisher, UnfitPayload, and the exceptions of the user's function.
        """
        if request.name is not None:
            if len(request.name) > LONGEST_NAME:
                raise NoSuchPublisher(f"the name has more than {LONGEST_NAME:,} characters")
            # Such a protocol cannot tell an empty payload from none. A publisher takes neither.
            # The data of a channel is its first element.
            is_channel = request.model is Model.CHANNEL
            return self.look_up(
                request.name,
                peer,
                None if is_channel else request.data or None,
                may_be_empty=True,
                elements=request.elements,
                request=request,
                registry=registry,
            )
        if self.named and request.model is Model.RESPONSE and request.data[:1] == FIRST_BYTE:
            parts = decode_named_request(request.data)
            # No handler of other data: it could not tell a misspelt name from other data.
            if parts is not None:
                if len(parts[0]) > LONGEST_NAME:
                    raise NoSuchPublisher(f"the name has more than {LONGEST_NAME:,} characters")
                return self.look_up(parts[0], peer, parts[1], request=request, registry=registry)
        handler = self.handlers.get(request.model)
        try:
            return self._look_up_data(request, peer, registry)
        except NoSuchPublisher:
            if handler is None:
                raise
        if handler.takes_request:
            handler = handler.given(request)
        if request.model is Model.RESPONSE:
            # One value: the caller runs the handler itself.
            # A source around it would cost each request two more objects.
            return handler
        # Bound here, so that the stream is a source like any other from now on.
        given: Any = request.data if request.model is not Model.CHANNEL else request.elements
        call = partial(handler, given, peer)
        return Publication(self.source_of(call if handler.is_generator else call()), None, 0)

    def listener(
        self, model: Model = Model.FIRE_AND_FORGET
    ) -> Callable[[bytes, PeerIdentity], Any] | None:
        """Return the handler of messages without an answer, or None."""
        return self.handlers.get(model)

    @property
    def is_empty(self) -> bool:
        """True if nothing is offered: no name, and no handler of requests."""
        return not (self.router.has_names or self.handlers)

    @property
    def is_guarded(self) -> bool:
        """True if there is a setup function."""
        return self._setup is not None

    def examine(self, data: bytes, peer: PeerIdentity) -> Any:
        """Return what the setup function returns for `data`, perhaps an awaitable; None without
        such a function. Raises as it does.
        """
        return None if self._setup is None else self._setup(data, peer)

    def _look_up_data(
        self, request: Request, peer: PeerIdentity, registry: Registry | None
    ) -> Publication | NamedCall:
        try:
            name = request.data.decode() if len(request.data) <= LONGEST_NAME else None
        except UnicodeDecodeError:
            name = None
        if name is None:
            raise NoSuchPublisher(
                f"its {len(request.data):,} bytes are no name, and no handler takes a "
                f"{request.model.value} with data"
            )
        return self.look_up(name, peer, request=request, registry=registry)

    def _with_payload(
        self,
        taken: PayloadParameter,
        call: Callable[..., Any],
        payload: bytes | None,
        registry: Registry | None,
        types: ContentTypes | None,
    ) -> Callable[[], Any]:
        """Return the function of a publisher with its payload. Raises UnfitPayload."""
        taken.check(payload)
        if payload is None:
            return call
        reader = None if registry is None else taken.reader(registry, media_type_of(types))
        try:
            return partial(call, payload=taken.load(reader, payload))
        except UnreadablePayload as unread:
            raise UnfitPayload(str(unread)) from None

    def _with_elements(
        self,
        route: Route,
        call: Callable[..., Any],
        elements: Source[bytes] | None,
        registry: Registry | None,
        types: ContentTypes | None,
    ) -> Callable[[], Any]:
        """Return the function of a publisher with the elements of a channel. Raises UnfitPayload
        if it takes none.
        """
        if not route.elements:
            raise UnfitPayload(
                f"{route.pattern.text} takes no elements, and a channel was asked for: it would "
                "drop them"
            )
        given: dict[str, Source[Any]] = {}
        for name, kind in route.elements.items():
            reader = None
            if registry is not None:
                serializer = self.options[route][0]
                reader = serializer_for(registry, serializer, kind, media_type_of(types))
            if elements is None:
                given[name] = empty()  # without a channel none come
            elif reader is None:
                given[name] = elements
            else:
                given[name] = elements.map(partial(load_element, reader, route.pattern.text))
        return partial(call, **given)

    def _handle_streaming(self, model: Model, function: F) -> F:
        if inspect.iscoroutinefunction(
            check_function(function, f"the handler for a {model.value}")
        ):
            raise UsageError(
                f"{function!r} is a coroutine function, it returns one value; to stream, `yield` "
                "the elements instead"
            )
        return self._handle(model, function)

    def _handle(self, model: Model, function: F) -> F:
        # A second handler would replace the first without a word, perhaps from a module
        # that is imported later.
        if model in self.handlers:
            raise UsageError(
                f"{function!r}: there is a handler for a {model.value} already; a service has one "
                "of each kind"
            )
        self.handlers[model] = Handler(self.called(function), f"the handler for a {model.value}")
        return function

    def __repr__(self) -> str:
        return f"<service of {', '.join(self.names()) or 'no publishers'}>"


def answer_types(types: ContentTypes) -> tuple[str, ...]:
    """Return the MIME types for an answer, best first."""
    return (*types.accepted, types.data)


def _no_partition() -> None:
    # Without a docstring: that of a publisher's function is shown to peers.
    return None


def _check_element_size(name: str, size: object, *, batches: bool) -> None:
    if type(size) is not int or size < 0:
        raise UsageError(
            f"element_size={size!r}; give the number of bytes of every element, or 0 where it "
            "differs"
        )
    if batches and size:
        raise UsageError(
            f"{name!r}: batches=True and element_size= are two ways to yield several elements at "
            "once; give one of them"
        )
