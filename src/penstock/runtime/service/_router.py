"""Names of publishers: patterns like ``ticks/{symbol}``, matched against what a peer asks for, with parameters checked and converted.

Rules of this file:

* A name that matches nothing, and a parameter that cannot be converted, are the same to the peer: no such publisher.
* A pattern's parameter matches one segment. What follows a ``?`` gives further parameters, by name, as in a URL.
* The most literal pattern wins; two that would match the same names are a UsageError when the second is added.
"""

import inspect
import re
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote

import attrs

from penstock.api import UsageError

_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})


class NoMatch(Exception):
    """No publisher of that name: an answer, caught where it was asked for."""


@attrs.frozen
class Pattern:
    """The shape of a name: literal segments and parameters."""

    text: str
    segments: tuple[str | None, ...]
    """A literal segment, or None for a parameter."""
    parameters: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Read a pattern. Raises UsageError for one that makes no sense."""
        if not text or text.startswith("/") or "?" in text:
            raise UsageError(
                f"{text!r} is no publisher's name: give segments separated by '/', like 'ticks/{{symbol}}', without '/' in front"
            )
        segments: list[str | None] = []
        parameters: list[str] = []
        for segment in text.split("/"):
            whole = _PARAMETER.fullmatch(segment)
            if whole is None and ("{" in segment or "}" in segment):
                raise UsageError(f"{segment!r} in {text!r}: a parameter is a whole segment, like '{{symbol}}'")
            segments.append(None if whole else segment)
            if whole:
                parameters.append(whole[1])
        if len(set(parameters)) < len(parameters):
            raise UsageError(f"{text!r} names a parameter twice")
        return cls(text, tuple(segments), tuple(parameters))

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Return the parameters in a name's segments, or None where they do not fit."""
        if len(segments) != len(self.segments):
            return None
        values = [given for given, literal in zip(segments, self.segments, strict=True) if literal is None]
        fits = all(literal is None or literal == given for given, literal in zip(segments, self.segments, strict=True))
        return dict(zip(self.parameters, map(unquote, values), strict=True)) if fits and all(values) else None


class Route:
    """A pattern and the function that answers it."""

    __slots__ = ("_converters", "_required", "_takes_peer", "function", "is_generator", "pattern")

    def __init__(self, pattern: Pattern, function: Callable[..., Any], *, peer_type: type) -> None:
        self.pattern = pattern
        self.function = function
        self.is_generator: bool = inspect.isasyncgenfunction(function)
        signature = inspect.signature(function)
        hints = hints_of(function)
        for name, each in signature.parameters.items():
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise UsageError(
                    f"{pattern.text!r}: the parameter {name!r} cannot be given by name, and no name would ever match; name each"
                )
        self._takes_peer = [name for name in signature.parameters if hints.get(name) is peer_type]
        named = {name: each for name, each in signature.parameters.items() if name not in self._takes_peer}
        self._converters = {name: _converter(hints.get(name, str), name, pattern.text) for name in named}
        self._required = {name for name, each in named.items() if each.default is inspect.Parameter.empty}
        missing = [name for name in pattern.parameters if name not in named]
        if missing:
            raise UsageError(f"{pattern.text!r} has the parameter {missing[0]!r}, which its function does not take")

    def bind(self, given: dict[str, str], query: dict[str, str], peer: object) -> Callable[[], Any]:
        """Return the function with the converted parameters. Raises NoMatch for parameters that do not fit."""
        texts = given | query
        if not texts and not self._takes_peer and not self._required:
            return self.function
        if not texts.keys() <= self._converters.keys() or not texts.keys() >= self._required:
            raise NoMatch
        try:
            values = {name: self._converters[name](text) for name, text in texts.items()}
        except (ValueError, TypeError, ArithmeticError):  # what the usual types raise for a text that is none of theirs
            raise NoMatch from None
        return partial(self.function, **values, **dict.fromkeys(self._takes_peer, peer))


class Router:
    """All routes of a service."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str | None, ...], Route] = {}
        self._literal: dict[str, Route] = {}  # of these, those without parameters: most, and found at once
        self._patterns: dict[int, list[Route]] = {}  # the others, by the number of their segments
        self._encoded: set[bytes] = set()  # the names of the literal ones, as they arrive

    def add(self, route: Route) -> None:
        """Add a route. Raises UsageError where another one matches the same names."""
        shape = route.pattern.segments
        if shape in self._routes:
            other = self._routes[shape].pattern.text
            raise UsageError(
                f"{route.pattern.text!r} matches the same names as {other!r}, which was added before; give one of them another name"
            )
        self._routes[shape] = route
        # The most literal first: "ticks/all" goes before "ticks/{symbol}".
        self._routes = dict(sorted(self._routes.items(), key=lambda item: [segment is None for segment in item[0]]))
        if None not in shape:
            self._literal[route.pattern.text] = route
            self._encoded.add(route.pattern.text.encode())
        else:
            alike = [each for segments, each in self._routes.items() if len(segments) == len(shape) and None in segments]
            self._patterns[len(shape)] = alike

    def may_find(self, name: bytes) -> bool:
        """Return whether a name, as it arrived, may lead somewhere: what is no name at all is told from one without looking closely."""
        path = name.partition(b"?")[0]
        return path in self._encoded or path.count(b"/") + 1 in self._patterns

    def find(self, name: str) -> tuple[Route, dict[str, str], dict[str, str]]:
        """Return the route for a name, with its parameters. Raises NoMatch."""
        path, _, query = name.partition("?")
        route = self._literal.get(path)
        if route is not None:
            return _with_query(route, {}, query)
        segments = path.split("/")
        for route in self._patterns.get(len(segments), ()):
            given = route.pattern.match(segments)
            if given is not None:
                return _with_query(route, given, query)
        raise NoMatch

    def names(self) -> list[str]:
        """The patterns, sorted."""
        return sorted(route.pattern.text for route in self._routes.values())


def _with_query(route: Route, given: dict[str, str], query: str) -> tuple[Route, dict[str, str], dict[str, str]]:
    pairs = parse_qsl(query, keep_blank_values=True) if query else []
    if len(dict(pairs)) < len(pairs) or dict(pairs).keys() & given.keys():
        raise NoMatch
    return route, given, dict(pairs)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function; of a partial's, and of an object's that is called like one."""
    while isinstance(function, partial):
        function = function.func
    return get_type_hints(function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__)


def _converter(kind: Any, name: str, pattern: str) -> Callable[[str], Any]:
    """Return what turns a text into a parameter of that type; what it cannot turn is a ValueError."""
    if get_origin(kind) in (Union, UnionType):
        choices = [each for each in get_args(kind) if each is not type(None)]
        if len(choices) == 1:
            kind = choices[0]
    if kind in (str, Any, inspect.Parameter.empty):
        return str
    if kind is bool:
        return _as_bool
    if kind is int:
        return _as_int
    if isinstance(kind, type):
        return kind
    raise UsageError(
        f"{pattern!r}: the parameter {name!r} is annotated with {kind!r}; annotate it with a type that takes a text, like int or UUID"
    )


def _as_bool(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise ValueError(text)


def _as_int(text: str) -> int:
    # int() takes underscores, blanks and digits of other scripts; a name's parameter has one spelling.
    if not re.fullmatch(r"-?[0-9]{1,40}", text):
        raise ValueError(text)
    return int(text)
