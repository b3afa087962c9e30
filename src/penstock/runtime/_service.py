"""A service is what a program offers: publishers by name. It runs nothing by itself; `serve` and `connect` bring it to peers."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from penstock.api import UsageError
from penstock.core import Source, Streamable, as_source, generate
from penstock.plugins import Peer
from penstock.runtime._router import NoMatch, Pattern, Route, Router

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

    def __init__(self) -> None:
        self._router = Router()
        self._options: dict[Route, tuple[str, int]] = {}

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
            route = Route(pattern, function, peer_type=Peer)
            self._router.add(route)
            self._options[route] = serializer, element_size
            return function

        return add

    def publish(self, name: str, source: Streamable[Any], *, serializer: str = "bytes", element_size: int = 0) -> None:
        """Offer `source` itself under `name`, for everybody who asks: a topic, a pipe, a publisher of your own."""
        blueprint = as_source(source)

        def published() -> Source[Any]:
            return blueprint

        self.publisher(name, serializer=serializer, element_size=element_size)(published)

    def names(self) -> list[str]:
        """Return the names and patterns that are offered, sorted."""
        return self._router.names()

    def find(self, name: str, peer: Peer) -> Publication | None:
        """Return what `name` leads to, for `peer`, or None. Raises what the publisher's own function raises."""
        try:
            route, given, query = self._router.find(name)
            call = route.bind(given, query, peer)
        except NoMatch:
            return None
        serializer, element_size = self._options[route]
        if inspect.isasyncgenfunction(route.function):
            return Publication(generate(call), serializer, element_size)  # called when it is first pulled
        made = call()
        if inspect.iscoroutine(made):
            made.close()
            raise UsageError(
                f"{name!r}: its function is a coroutine function, it returns one value; to stream, `yield` the elements instead"
            )
        return Publication(as_source(made), serializer, element_size)

    def __repr__(self) -> str:
        return f"<service of {', '.join(self.names()) or 'nothing'}>"
