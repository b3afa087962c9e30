"""A service is what a program offers: publishers by name, and handlers of requests. `serve` and `connect` bring it to peers.

Rules of this file:

* A publisher is reached by its name through every protocol: where a request carries data, data that is a publisher's name leads to that
  publisher. Only what is no publisher's name goes to the handler of its kind.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from penstock.api import Model, Request, UsageError
from penstock.core import Source, Streamable, as_source, generate
from penstock.plugins import PeerIdentity, Registry
from penstock.runtime.service._router import NoMatch, Pattern, Route, Router, hints_of

LONGEST_NAME: Final = 4096
"""Data longer than this is not looked up as a publisher's name."""

F = TypeVar("F", bound=Callable[..., Any])


@attrs.frozen
class Publication:
    """A publisher that a name led to: the stream, and how its elements become bytes."""

    source: Source[Any]
    serializer: str
    element_size: int


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
        """`setup` examines what a ReactiveSocket client sends when it connects; without it everybody is let in.

        It is called with the data and, if it has a parameter annotated `Peer`, who sends it; it may be async. It refuses by raising
        `Rejected` or `PublicError`, whose text the client gets, or by returning False.
        """
        self._setup = None if setup is None else Handler(setup, "the setup function")
        self._handlers: dict[Model, Handler] = {}
        self._router = Router()
        self._options: dict[Route, tuple[str, int]] = {}
        self._plain: dict[Route, Publication] = {}  # generator functions as they are: what a name without parameters leads to

    def publisher(self, name: str, *, serializer: str = "bytes", element_size: int = 0) -> Callable[[F], F]:
        """Offer the decorated function under `name`.

        The function is called for each subscription and returns what can be subscribed to; an async generator function is the usual one.
        A segment of `name` like ``{symbol}`` becomes the parameter of that name, converted to its annotation; parameters with defaults
        may also come behind a ``?``, as in a URL; a parameter annotated `Peer` gets who asks.

        `serializer` turns elements into bytes. With `element_size` every element has that many bytes; one that is yielded may then be
        several in one piece.
        Raises UsageError for a name that is taken, or makes no sense.
        """
        pattern = Pattern.parse(name)
        if type(element_size) is not int or element_size < 0:
            raise UsageError(f"element_size={element_size!r}; give the number of bytes of every element, or 0 where it differs")

        def add(function: F) -> F:
            route = Route(pattern, function, peer_type=PeerIdentity)
            self._router.add(route)
            self._options[route] = serializer, element_size
            if route.is_generator:
                self._plain[route] = Publication(generate(function), serializer, element_size)
            return function

        return add

    def publish(self, name: str, source: Streamable[Any], *, serializer: str = "bytes", element_size: int = 0) -> None:
        """Offer `source` itself under `name`, for everybody who asks: a topic, a pipe, a publisher of your own."""
        blueprint = as_source(source)

        def published() -> Source[Any]:
            return blueprint

        self.publisher(name, serializer=serializer, element_size=element_size)(published)

    def request_response(self, function: F) -> F:
        """Answer requests for one value with the decorated ``async def function(data: bytes) -> bytes``.

        It gets what is no publisher's name; a publisher's answer is its first element. A parameter annotated `Peer` gets who asks.
        Raises UsageError for a second one, and for what is no async function.
        """
        if not inspect.iscoroutinefunction(function):
            raise UsageError(f"{function!r} answers with one value: make it an `async def` that returns it")
        return self._handle(Model.RESPONSE, function)

    def fire_and_forget(self, function: F) -> F:
        """Take what needs no answer with the decorated ``async def function(data: bytes) -> None``. Raises as `request_response` does."""
        if not inspect.iscoroutinefunction(function):
            raise UsageError(f"{function!r} takes what needs no answer: make it an `async def`")
        return self._handle(Model.FIRE_AND_FORGET, function)

    def request_stream(self, function: F) -> F:
        """Answer requests for a stream with what the decorated function returns for the data; an async generator function is usual.

        It gets what is no publisher's name. A parameter annotated `Peer` gets who asks. Raises UsageError for a second one.
        """
        return self._handle_streaming(Model.STREAM, function)

    def request_subscription(self, function: F) -> F:
        """The same for subscriptions: streams without an end of their own. Raises UsageError for a second one."""
        return self._handle_streaming(Model.SUBSCRIPTION, function)

    def names(self) -> list[str]:
        """Return the names and patterns that are offered, sorted."""
        return self._router.names()

    def check(self, registry: Registry) -> None:
        """Raise UsageError for a publisher whose serializer is not there: better now than when somebody subscribes."""
        for route, (serializer, _) in self._options.items():
            try:
                registry.serializer(serializer)
            except UsageError as error:
                raise UsageError(f"the publisher {route.pattern.text!r} wants serializer={serializer!r}: {error}") from None

    def find(self, name: str, peer: PeerIdentity) -> Publication | None:
        """Return what `name` leads to, for `peer`, or None. Raises what the publisher's own function raises."""
        try:
            route, given, query = self._router.find(name)
            call = route.bind(given, query, peer)
        except NoMatch:
            return None
        known = self._plain.get(route) if call is route.function else None
        if known is not None:
            return known
        serializer, element_size = self._options[route]
        if route.is_generator:
            return Publication(generate(call), serializer, element_size)  # called when it is first pulled
        made = call()
        if inspect.iscoroutine(made):
            made.close()
            raise UsageError(
                f"{name!r}: its function is a coroutine function, it returns one value; to stream, `yield` the elements instead"
            )
        return Publication(as_source(made), serializer, element_size)

    def answer(self, request: Request, peer: PeerIdentity) -> "Publication | Handler | None":
        """Return what a request leads to, for `peer`, or None; its handler, where it has one answer. Raises as the user's function does."""
        named = self._named(request, peer)
        handler = self._handlers.get(request.model)
        if named is not None or handler is None:
            return named
        if request.model is Model.RESPONSE:
            return handler
        call = partial(handler, request.data, peer)
        return Publication(generate(call) if handler.is_generator else as_source(call()), "bytes", 0)

    def listener(self) -> Callable[[bytes, PeerIdentity], Any] | None:
        """Return what takes requests without an answer, or None."""
        return self._handlers.get(Model.FIRE_AND_FORGET)

    @property
    def is_guarded(self) -> bool:
        """Who connects is examined."""
        return self._setup is not None

    def examine(self, data: bytes, peer: PeerIdentity) -> Any:
        """Return what the setup function says of an introduction, perhaps an awaitable; None where there is none. Raises as it does."""
        return None if self._setup is None else self._setup(data, peer)

    def _named(self, request: Request, peer: PeerIdentity) -> Publication | None:
        if len(request.data) > LONGEST_NAME or not self._router.may_find(request.data):
            return None
        try:
            name = request.data.decode()
        except UnicodeDecodeError:
            return None
        return self.find(name, peer)

    def _handle_streaming(self, model: Model, function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise UsageError(f"{function!r} is a coroutine function, it returns one value; to stream, `yield` the elements instead")
        return self._handle(model, function)

    def _handle(self, model: Model, function: F) -> F:
        if model in self._handlers:
            raise UsageError(f"{function!r}: there is a handler for a {model.value} already; a service has one of each kind")
        self._handlers[model] = Handler(function, f"the handler for a {model.value}")
        return function

    def __repr__(self) -> str:
        return f"<service of {', '.join(self.names()) or 'nothing'}>"


class Handler:
    """A user's function that takes data, and perhaps who sent it."""

    __slots__ = ("_function", "_takes_peer", "is_generator", "label")

    def __init__(self, function: Any, what: str) -> None:
        if not callable(function):
            raise UsageError(f"{what}: {function!r} is no function; decorators of handlers take one, and nothing else")
        signature, hints = inspect.signature(function), hints_of(function)
        self._takes_peer = [name for name in signature.parameters if hints.get(name) is PeerIdentity]
        try:
            signature.bind(b"", **dict.fromkeys(self._takes_peer))
        except TypeError:
            raise UsageError(
                f"{what} {function!r} takes {signature}; give it one parameter for the data, and if you like one annotated Peer"
            ) from None
        self._function = function
        self.label: str = getattr(function, "__qualname__", what)
        self.is_generator: bool = inspect.isasyncgenfunction(function)

    def __call__(self, data: bytes, peer: PeerIdentity) -> Any:
        return self._function(data, **dict.fromkeys(self._takes_peer, peer)) if self._takes_peer else self._function(data)
