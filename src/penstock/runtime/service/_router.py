"""Names of publishers: patterns like ``ticks/{symbol}``, matched against the name in a subscribe; parameters are checked and converted.

Rules of this file:

* A name without a publisher and a parameter that cannot be converted have one answer (`NoMatch`).
* A parameter of a pattern matches one segment. Further parameters stand behind a ``?``, by name, as in a URL.
* The pattern with the earliest literal segment wins. Two patterns that match the same names are a UsageError when the second is added.
* A parameter that no text could ever fill is a UsageError when the publisher is added, and not an answer to each subscribe.
"""

import inspect
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import partial
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote

import attrs

from penstock.api import UsageError

_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})

_CONVERT_IN_FUNCTION: Final = {
    bytes: "annotate it with str, and encode it in the function",
    bytearray: "annotate it with str, and encode it in the function",
    memoryview: "annotate it with str, and encode it in the function",
    date: "annotate it with str, and call date.fromisoformat in the function",
    datetime: "annotate it with str, and call datetime.fromisoformat in the function",
    time: "annotate it with str, and call time.fromisoformat in the function",
    timedelta: "annotate it with float, and call timedelta(seconds=...) in the function",
    object: "annotate it with str",
}
"""Types that raise TypeError for every text, and what to write instead. They tell nothing of it in a signature."""


_COLLECTIONS: Final = (dict, list, tuple, set, frozenset, range, slice, BaseException)
"""Types that a text fits by accident, if at all: list("ab") is ["a", "b"]."""


class NoMatch(Exception):
    """The name leads to no publisher, or its parameters do not fit. Caught by `Service.find`."""


@attrs.frozen
class Pattern:
    """A name with its segments: literal ones and parameters."""

    text: str
    segments: tuple[str | None, ...]
    """The literal segments, with None in the place of each parameter."""
    parameters: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Read a pattern. Raises UsageError for an empty one, for a '?', and for a parameter that is not a whole segment."""
        if not text or text.startswith("/") or "?" in text:
            raise UsageError(
                f"{text!r} cannot be a publisher's name: give segments separated by '/', like 'ticks/{{symbol}}', without '/' in front"
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
        """Return the parameters in the segments of a name, or None if these do not fit."""
        if len(segments) != len(self.segments):
            return None
        # zip is strict: the lengths were compared above.
        values = [given for given, literal in zip(segments, self.segments, strict=True) if literal is None]
        fits = all(literal is None or literal == given for given, literal in zip(segments, self.segments, strict=True))
        # An empty segment fills no parameter: "ticks/" does not match "ticks/{symbol}".
        return dict(zip(self.parameters, map(unquote, values), strict=True)) if fits and all(values) else None


class Route:
    """A pattern, its function, and how the texts of a name become the parameters of that function."""

    __slots__ = ("_converters", "_required", "_takes_peer", "function", "is_generator", "pattern")

    def __init__(self, pattern: Pattern, function: Callable[..., Any], *, peer_type: type) -> None:
        """Parameters annotated with `peer_type` get the identity of the peer."""
        self.pattern = pattern
        self.function = function
        # All of `inspect` happens here, when the route is made, and none of it when a peer subscribes.
        self.is_generator: bool = inspect.isasyncgenfunction(function)
        signature = inspect.signature(function)
        hints = hints_of(function)
        for name, each in signature.parameters.items():
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise UsageError(
                    f"{pattern.text!r}: the parameter {name!r} of its function cannot be given by name, and no subscribe would ever match; "
                    "write each parameter out, without '*' and '/'"
                )
        if isinstance(function, type):
            # Its annotations are those of the class body, and not of __init__: a peer could give itself an identity.
            raise UsageError(f"{pattern.text!r}: {function!r} is a class; publish a function that makes the object and returns it")
        self._takes_peer = [name for name in signature.parameters if without_none(hints.get(name)) is peer_type]
        named = {name: each for name, each in signature.parameters.items() if name not in self._takes_peer}
        check_peer_annotations(hints, f"{pattern.text!r}")
        self._converters = {name: _converter(hints.get(name, str), name, pattern.text) for name in named}
        self._required = {name for name, each in named.items() if each.default is inspect.Parameter.empty}
        # A parameter that has a default may have any type: the program itself may call the function with such a value.
        # But a parameter of the pattern always comes as a text, with or without a default.
        for name in sorted(self._required | (named.keys() & set(pattern.parameters))):
            if advice := _why_never_from_text(hints.get(name, str)):
                raise UsageError(
                    f"{pattern.text!r}: no text can become the parameter {name!r}, so every subscribe would be refused; {advice}"
                )
        missing = [name for name in pattern.parameters if name not in named]
        if missing:
            raise UsageError(f"{pattern.text!r} has the parameter {missing[0]!r}, which its function does not take")

    def bind(self, given: dict[str, str], query: dict[str, str], peer: object) -> Callable[[], Any]:
        """Return the function with the converted parameters. Raises NoMatch for parameters that do not fit.

        Returns the very function that was added if it takes no parameter: `Service` knows these by identity.
        """
        texts = given | query
        # The usual case, and the one without a partial.
        if not texts and not self._takes_peer and not self._required:
            return self.function
        if not texts.keys() <= self._converters.keys() or not texts.keys() >= self._required:
            raise NoMatch
        try:
            values = {name: self._converters[name](text) for name, text in texts.items()}
        except Exception:  # boundary: a converter of the user's. With any other answer a peer could find out which names exist
            raise NoMatch from None
        return partial(self.function, **values, **dict.fromkeys(self._takes_peer, peer))


class Router:
    """All routes of a service."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str | None, ...], Route] = {}  # all, by their segments
        self._literal: dict[str, Route] = {}  # those without parameters: found in one dict lookup
        self.patterns: dict[int, list[Route]] = {}
        """Routes with parameters, by their number of segments."""
        self.literal_names: set[bytes] = set()
        """The names of the routes without parameters, as UTF-8."""

    def add(self, route: Route) -> None:
        """Add a route. Raises UsageError if another route matches the same names."""
        shape = route.pattern.segments
        if shape in self._routes:
            other = self._routes[shape].pattern.text
            raise UsageError(f"{route.pattern.text!r} matches the same names as {other!r}, which was added before; change one of the two")
        self._routes[shape] = route
        # Literal segments sort before parameters: "ticks/all" before "ticks/{symbol}".
        self._routes = dict(sorted(self._routes.items(), key=lambda item: [segment is None for segment in item[0]]))
        if None not in shape:
            self._literal[route.pattern.text] = route
            self.literal_names.add(route.pattern.text.encode())
        else:
            alike = [each for segments, each in self._routes.items() if len(segments) == len(shape) and None in segments]
            self.patterns[len(shape)] = alike

    def find(self, name: str) -> tuple[Route, dict[str, str], dict[str, str]]:
        """Return the route for `name`, the parameters in its segments, and those behind the '?'. Raises NoMatch."""
        path, _, query = name.partition("?")
        # Literal names first: "ticks/all" is never taken for a parameter.
        route = self._literal.get(path)
        if route is not None:
            return _with_query(route, {}, query)
        segments = path.split("/")
        for route in self.patterns.get(len(segments), ()):
            given = route.pattern.match(segments)
            if given is not None:
                return _with_query(route, given, query)
        raise NoMatch

    def names(self) -> list[str]:
        """Return the patterns, sorted."""
        return sorted(route.pattern.text for route in self._routes.values())


def _with_query(route: Route, given: dict[str, str], query: str) -> tuple[Route, dict[str, str], dict[str, str]]:
    pairs = parse_qsl(query, keep_blank_values=True) if query else []
    # A parameter that is given twice is refused: which of the two values counts would be a guess.
    if len(dict(pairs)) < len(pairs) or dict(pairs).keys() & given.keys():
        raise NoMatch
    return route, given, dict(pairs)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function, of the function in a partial, or of the `__call__` of an object."""
    # A partial has no annotations; the function inside it has.
    while isinstance(function, partial):
        function = function.func
    return get_type_hints(function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__)


def check_peer_annotations(hints: dict[str, Any], where: str) -> None:
    """Raise UsageError for a parameter annotated `penstock.Peer`, which is a connection's other side and not an identity."""
    for name, hint in hints.items():
        kind = without_none(hint)
        # By name: the class is defined in a layer above this one.
        if isinstance(kind, type) and kind.__name__ == "Peer" and kind.__module__.partition(".")[0] == "penstock" and name != "return":
            raise UsageError(
                f"{where}: the parameter {name!r} is annotated with penstock.Peer, the object to subscribe to a connected peer with; "
                "to get the identity of the peer that asks, annotate it with penstock.plugins.PeerIdentity"
            )


def without_none(kind: Any) -> Any:
    """Return T for ``T | None``."""
    if get_origin(kind) in (Union, UnionType):
        choices = [each for each in get_args(kind) if each is not type(None)]
        if len(choices) == 1:
            return choices[0]
    return kind


def _advice_for(kind: type) -> str:
    """Return what to write instead of a type that is known to take no text, or ''."""
    if issubclass(kind, Enum) and not any(isinstance(member.value, str) for member in kind):
        return f"no value of {kind.__name__} is a text: annotate it with str, and look the {kind.__name__} up in the function"
    if issubclass(kind, _COLLECTIONS):
        return "annotate it with str, and take the text apart in the function"
    # The nearest base counts: a datetime is a date, too. Every class is an object, so that one counts only if it is written itself.
    known = [base for base in kind.__mro__ if base in _CONVERT_IN_FUNCTION and (base is not object or kind is object)]
    return _CONVERT_IN_FUNCTION[known[0]] if known else ""


def _why_never_from_text(kind: Any) -> str:
    """Return what to write instead if no text can become a value of type `kind`, or ''."""
    kind = without_none(kind)
    if not isinstance(kind, type):
        return ""  # str, Any and the like: `_converter` has refused everything else
    if advice := _advice_for(kind):
        return advice
    # Asked of the signature, and not tried: to make an object of a user's class may have effects.
    try:
        inspect.signature(kind).bind("")
    except ValueError:
        return ""  # a type written in C that has no signature, like int before Python 3.13
    except TypeError:
        return f"{kind.__name__} cannot be made of one text: annotate it with str, and make the {kind.__name__} in the function"
    return ""


def _converter(kind: Any, name: str, pattern: str) -> Callable[[str], Any]:
    """Return a function that turns a text into a parameter of type `kind`, or raises ValueError."""
    kind = without_none(kind)
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
    # int() also takes underscores, blanks and digits of other scripts. A parameter has one spelling, so that names can be compared.
    # 40 digits bound the work: int() of n digits takes time in the order of n squared.
    if not re.fullmatch(r"-?[0-9]{1,40}", text):
        raise ValueError(text)
    return int(text)
