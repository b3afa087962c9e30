"""A service: publishers by name and handlers of requests. `serve` and `connect` offer it to peers.

Rules of this file:

* A publisher is reached by its name through every protocol. If the data of a request is a publisher's name, the request goes to that
  publisher; only other data goes to the handler of the request's kind.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from penstock.api import FIRST_BYTE, Model, Request, UsageError, decode_named_request, shown
from penstock.core import Source, Streamable, as_source, generate
from penstock.plugins import PeerIdentity, Registry, Serializer, check_serializer_argument, resolve_serializer
from penstock.runtime.service._cannot_open import UnfitPayload
from penstock.runtime.service._function_annotations import called_function, check_function, element_type_of
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._named_requests import NamedCall, NamedHandler
from penstock.runtime.service._router import NoMatch, Pattern, Route, Router

LONGEST_NAME: Final = 4096
"""Bytes. Longer request data is not looked up as a publisher's name, so that a large request is not decoded for nothing."""

F = TypeVar("F", bound=Callable[..., Any])


@attrs.frozen
class Publication:
    """A publisher that a name led to, and how its elements become bytes."""

    source: Source[Any]
    serializer: str | Serializer | None
    """As it was given to the decorator."""
    element_size: int
    element_type: Any = None
    """The type of the elements, for `penstock.plugins.resolve_serializer`; None if it is not known."""

    def find_serializer(self, registry: Registry) -> Serializer | None:
        """Return what turns the elements into bytes, or None if they are bytes. Raises UsageError."""
        # The usual case: bytes, for which nothing is looked up.
        if self.serializer is None and (self.element_type is None or self.element_type is bytes):
            return None
        return resolve_serializer(registry, self.serializer, self.element_type)


class Service:
    """Publishers by name, for `serve` and `connect`.

    Give a publisher its name with a decorator::

        service = Service()

        @service.publisher("ticks/{symbol}")
        async def ticks(symbol: str):
            async for tick in market.follow(symbol):
                yield tick
    """

    def __init__(self, *, setup: Callable[..., Any] | None = None) -> None:
        """`setup` checks the data that a ReactiveSocket client sends when it connects; without it every client is accepted.

        It is called with the data and, in a parameter annotated `penstock.plugins.PeerIdentity`, the identity of the client; it may be
        async. It refuses by raising `Rejected` or `PublicError`, whose text the client gets, or by returning False.
        """
        # Checked now: a wrong signature would otherwise refuse every client.
        self._setup = None if setup is None else Handler(setup, "the setup function")
        self.handlers: dict[Model, Handler] = {}
        """The handlers of requests that carry data, by the kind of request."""
        self.router: Router = Router()
        """The publishers, by their names."""
        self._options: dict[Route, tuple[str | Serializer | None, int, Any]] = {}  # the fields of a Publication after its source
        self._plain: dict[Route, Publication] = {}  # for generator functions without parameters: made once, not for each subscribe
        self.named: dict[Route, NamedHandler] = {}
        """The handlers of requests by name."""

    def publisher(
        self,
        name: str,
        *,
        type: Any = None,
        serializer: str | Serializer | None = None,
        element_size: int = 0,
    ) -> Callable[[F], F]:
        """Offer the decorated function under `name`.

        The function is called for each subscription and returns a publisher, a source or an iterable; most are async generator functions.
        A segment of `name` like ``{symbol}`` becomes the parameter of that name, converted to its annotation; parameters may also stand
        behind a ``?``, as in a URL. A parameter annotated `penstock.plugins.PeerIdentity` gets the identity of the peer that subscribes.

        The return annotation gives the type of the elements: those of ``AsyncIterator[Quote]`` are sent as JSON, those of
        ``AsyncIterator[str]`` as text, and bytes as they are. `type` says it for a function without an annotation. `serializer` is a name
        like ``"json"`` or an object, and is used in place of the annotation.
        With `element_size` every element has that number of bytes; the function may then yield several elements as one piece of memory.
        Raises UsageError for a name that is taken or malformed, and for a parameter that no text can become.
        """
        pattern = Pattern.parse(name)
        # All of this is checked before the decorator is applied, so the traceback ends at the line of the decorator.
        _check_element_size(element_size)
        check_serializer_argument(serializer)

        def add(function: F) -> F:
            route = Route(pattern, function, peer_type=PeerIdentity)
            if inspect.iscoroutinefunction(called_function(function)):
                raise UsageError(
                    f"{name!r}: its function is a coroutine function, it returns one value; to stream, `yield` the elements instead"
                )
            # A serializer that is named is taken as it is; the annotation counts without one.
            kind = element_type_of(function, f"{name!r}") if type is serializer is None and not element_size else type
            self.router.add(route)
            self._options[route] = options = serializer, element_size, kind
            # One source for all subscribers: a generator source holds no state, and calls the function for each.
            if route.is_generator:
                self._plain[route] = Publication(generate(function), *options)
            return function

        return add

    def publish(
        self,
        name: str,
        source: Streamable[Any],
        *,
        type: Any = None,
        serializer: str | Serializer | None = None,
        element_size: int = 0,
    ) -> None:
        """Offer `source` itself under `name` to every subscriber: a topic, a pipe, or a publisher of your own.

        Without `type` and `serializer` its elements are bytes.
        """
        # Converted once, so that a value that cannot be streamed is refused here.
        blueprint = as_source(source)

        # A function without parameters, so that all names are found and bound in one way.
        def published() -> Source[Any]:
            return blueprint

        self.publisher(name, type=type, serializer=serializer, element_size=element_size)(published)

    def request(self, name: str, *, serializer: str | Serializer | None = None) -> Callable[[F], F]:
        """Answer requests with this name by the decorated ``async def`` function, which returns one value.

        Segments of `name`, parameters behind a ``?`` and parameters annotated `penstock.plugins.PeerIdentity` are given as for `publisher`.
        A parameter called ``payload`` gets what was sent with the name, converted to its annotation; if it has a default, a request may
        leave the payload out. The return annotation gives the type of the answer. Types are sent as JSON, ``str`` as text, bytes as they
        are; `serializer` names another format for both, or is an object.
        Raises UsageError for a name that is taken or malformed, and for a function with which no request could be answered.
        """
        pattern = Pattern.parse(name)

        def add(function: F) -> F:
            # Made first: a function that is refused must not leave its name in the router.
            handler = NamedHandler(pattern, function, serializer)
            self.router.add(handler.route)
            self.named[handler.route] = handler
            return function

        return add

    def request_response(self, function: F) -> F:
        """Answer requests for one value with the decorated ``async def function(data: bytes) -> bytes``.

        It gets the requests whose data is neither a publisher's name nor a request by name (`request`); a publisher answers with its first
        element. A parameter annotated `penstock.plugins.PeerIdentity` gets the identity of the peer.
        Raises UsageError for a second handler, and for a function that is not async.
        """
        if not inspect.iscoroutinefunction(check_function(function, "request_response")):
            raise UsageError(f"{function!r} answers with one value: make it an `async def` that returns it")
        return self._handle(Model.RESPONSE, function)

    def fire_and_forget(self, function: F) -> F:
        """Receive messages without an answer with the decorated ``async def function(data: bytes) -> None``.

        Raises as `request_response` does.
        """
        if not inspect.iscoroutinefunction(check_function(function, "fire_and_forget")):
            raise UsageError(f"{function!r} receives messages without an answer: make it an `async def`")
        return self._handle(Model.FIRE_AND_FORGET, function)

    def request_stream(self, function: F) -> F:
        """Answer requests for a stream with the stream that the decorated function returns; most are async generator functions.

        It gets the requests whose data is not a publisher's name. A parameter annotated `penstock.plugins.PeerIdentity` gets the identity
        of the peer. Raises UsageError for a second handler.
        """
        return self._handle_streaming(Model.STREAM, function)

    def request_subscription(self, function: F) -> F:
        """Do as `request_stream` for subscriptions, which are streams that never complete. Raises UsageError for a second handler."""
        return self._handle_streaming(Model.SUBSCRIPTION, function)

    def names(self) -> list[str]:
        """Return the names and patterns that are offered, sorted."""
        return self.router.names()

    # The registry is not known when a publisher is added: the service may be built at import time.
    def check(self, registry: Registry) -> None:
        """Raise UsageError for a publisher whose serializer is not installed, before any peer subscribes to it."""
        for route, (serializer, _, kind) in self._options.items():
            try:
                resolve_serializer(registry, serializer, kind)
            except UsageError as error:
                wanted = f"wants serializer={serializer!r}" if kind is None else f"has elements of type {shown(kind)}"
                raise UsageError(f"the publisher {route.pattern.text!r} {wanted}: {error}") from None
        # Requests need two serializers each; the handler keeps both for the registry it was asked with.
        for route, handler in self.named.items():
            try:
                handler.serializers(registry)
            except UsageError as error:
                raise UsageError(f"the request {route.pattern.text!r}: {error}") from None

    def find(self, name: str, peer: PeerIdentity, payload: bytes | None = None) -> Publication | NamedCall | None:
        """Return what `name` leads to for `peer`, or None. Raises UnfitPayload, and what the publisher's own function raises."""
        try:
            route, given, query = self.router.find(name)
            call = route.bind(given, query, peer)
        except NoMatch:
            return None
        # `bind` returns the function itself if nothing was given: then the publication is the one made beforehand.
        known = self._plain.get(route) if call is route.function else None
        if known is not None and payload is None:
            return known
        if route in self.named:
            return self.named[route].call(call, payload)
        if payload is not None:
            raise UnfitPayload(f"{route.pattern.text} is a publisher and takes no payload, and one of {len(payload)} bytes was sent")
        options = self._options[route]
        if route.is_generator:
            return Publication(generate(call), *options)  # the function is called when its stream is first pulled
        made = call()
        if inspect.iscoroutine(made):
            # Without this Python warns that a coroutine was never awaited, somewhere else and later.
            made.close()
            raise UsageError(
                f"{name!r}: its function is a coroutine function, it returns one value; to stream, `yield` the elements instead"
            )
        return Publication(as_source(made), *options)

    def answer(self, request: Request, peer: PeerIdentity) -> Publication | Handler | None:
        """Return what a request leads to for `peer`: a publication, or a handler of requests with one answer, or None.

        Raises UnfitPayload, and what the user's function raises.
        """
        if self.named and request.model is Model.RESPONSE and request.data[:1] == FIRST_BYTE:
            parts = decode_named_request(request.data)
            # No handler of other data: it could not tell a misspelt name from data of its own.
            if parts is not None:
                return self.find(parts[0], peer, parts[1]) if len(parts[0]) <= LONGEST_NAME else None
        named = self._find_by_data(request, peer)
        handler = self.handlers.get(request.model)
        if named is not None or handler is None:
            return named
        if request.model is Model.RESPONSE:
            return handler
        # Bound here, so that the stream is a source like any other from now on.
        call = partial(handler, request.data, peer)
        return Publication(generate(call) if handler.is_generator else as_source(call()), None, 0)

    def listener(self) -> Callable[[bytes, PeerIdentity], Any] | None:
        """Return the handler of messages without an answer, or None."""
        return self.handlers.get(Model.FIRE_AND_FORGET)

    @property
    def is_guarded(self) -> bool:
        """True if there is a setup function."""
        return self._setup is not None

    def examine(self, data: bytes, peer: PeerIdentity) -> Any:
        """Return what the setup function returns for `data`, perhaps an awaitable; None without such a function. Raises as it does."""
        return None if self._setup is None else self._setup(data, peer)

    def _find_by_data(self, request: Request, peer: PeerIdentity) -> Publication | NamedCall | None:
        if len(request.data) > LONGEST_NAME:
            return None
        try:
            name = request.data.decode()
        except UnicodeDecodeError:
            return None  # not UTF-8, so not a name
        return self.find(name, peer)

    def _handle_streaming(self, model: Model, function: F) -> F:
        if inspect.iscoroutinefunction(check_function(function, f"the handler for a {model.value}")):
            raise UsageError(f"{function!r} is a coroutine function, it returns one value; to stream, `yield` the elements instead")
        return self._handle(model, function)

    def _handle(self, model: Model, function: F) -> F:
        if model in self.handlers:
            raise UsageError(f"{function!r}: there is a handler for a {model.value} already; a service has one of each kind")
        self.handlers[model] = Handler(function, f"the handler for a {model.value}")
        return function

    def __repr__(self) -> str:
        return f"<service of {', '.join(self.names()) or 'no publishers'}>"


def _check_element_size(size: object) -> None:
    if type(size) is not int or size < 0:
        raise UsageError(f"element_size={size!r}; give the number of bytes of every element, or 0 where it differs")
