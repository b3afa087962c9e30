"""Names of publishers: patterns like ``ticks/{symbol}``, matched against the name in a subscribe;
parameters are checked and converted.

Rules of this file:

* A name without a publisher and a parameter that cannot be converted have one answer (`NoMatch`).
  Its text is for the log of this side.
* A parameter of a pattern matches one segment.
  Further parameters follow a ``?``, by name, as in a URL.
* The pattern with the earliest literal segment wins. Two patterns that match the same names are a
  UsageError when the second is added.
* `_text_parameters` turns the texts into values.
"""

import inspect
import re
from bisect import insort
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final, get_args, get_origin
from urllib.parse import parse_qsl, unquote, urlencode

import attrs

from penstock.api import Model, Request, UsageError, shown
from penstock.runtime.service._function_annotations import (
    Annotations,
    check_function,
    open_parameters,
)
from penstock.runtime.service._text_parameters import (
    is_list,
    texts_reader,
    why_never_from_text,
    without_none,
)
from penstock.streams import Source

_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BRACES: Final = re.compile(r"\{[^{}]*\}")

MOST_PARAMETERS: Final = 256
"""Parameters behind the '?' of a name. 4 KiB of a request can hold 2,000, which take
milliseconds, and a chunk holds 32 such requests.
"""


class NoMatch(Exception):
    """The name leads to no publisher, or its parameters do not fit. The text says which.
    Caught by `Service.look_up`.
    """


@attrs.frozen
class Pattern:
    """A name with its segments: literal ones and parameters."""

    text: str
    segments: tuple[str | None, ...]
    """The literal segments, with None in the place of each parameter."""
    parameters: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Read a pattern. Raises UsageError for an empty one, for a '?', and for a parameter
        that is not a whole segment, or whose name has other than ASCII letters, digits and '_'.
        """
        if not isinstance(text, str):
            raise UsageError(f"{shown(text)} cannot be a publisher's name: give a str")
        if not text or text.startswith("/") or "?" in text:
            raise UsageError(
                f"{text!r} cannot be a publisher's name: give segments separated by '/', like "
                "'ticks/{symbol}', without '/' in front"
            )
        segments: list[str | None] = []
        parameters: list[str] = []
        for segment in text.split("/"):
            whole = _PARAMETER.fullmatch(segment)
            if whole is None and ("{" in segment or "}" in segment):
                if _BRACES.fullmatch(segment):
                    raise UsageError(
                        f"{segment!r} in {text!r}: the name of a parameter has ASCII letters, "
                        "digits and '_', and no digit in front; rename it here and in the function"
                    )
                raise UsageError(
                    f"{segment!r} in {text!r}: a parameter is a whole segment, like '{{symbol}}'"
                )
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
        values = [
            given for given, literal in zip(segments, self.segments, strict=True) if literal is None
        ]
        fits = all(
            literal is None or literal == given
            for given, literal in zip(segments, self.segments, strict=True)
        )
        # An empty segment fills no parameter: "ticks/" does not match "ticks/{symbol}".
        return (
            dict(zip(self.parameters, map(unquote, values), strict=True))
            if fits and all(values)
            else None
        )


class Route:
    """A pattern, its function, and how the texts of a name become the parameters of
    that function.
    """

    __slots__ = (
        "_readers",
        "_required",
        "_takes_peer",
        "_takes_request",
        "content",
        "elements",
        "function",
        "is_generator",
        "pattern",
    )

    def __init__(
        self, pattern: Pattern, function: Callable[..., Any], *, peer_type: type, payload: str = ""
    ) -> None:
        """Parameters annotated with `peer_type` get the identity of the peer, and those annotated
        with `Request` the request. `payload` names a parameter that is not in the name.
        """
        self.pattern: Pattern = pattern
        self.function: Callable[..., Any] = function
        self.content: tuple[str, str] | None = None
        """The names of the serializer and of the type of the elements. Made once, by the first
        subscriber: each of them is told.
        """
        # All of `inspect` happens here, when the route is made, and none of it
        # when a peer subscribes.
        self.is_generator: bool = inspect.isasyncgenfunction(
            check_function(function, f"{pattern.text!r}")
        )
        parameters = open_parameters(function, f"{pattern.text!r}")
        for name, each in parameters.items():
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise UsageError(
                    f"{pattern.text!r}: the parameter {name!r} of its function cannot be given by "
                    "name, and no subscribe would ever match; write each parameter out, without "
                    "'*' and '/'"
                )
        annotations = Annotations(function, f"{pattern.text!r}")
        hints = {name: annotations.of(name, str) for name in parameters}
        check_peer_annotations(hints, f"{pattern.text!r}")
        self._takes_peer = [name for name, hint in hints.items() if without_none(hint) is peer_type]
        self._takes_request = [
            name for name, hint in hints.items() if without_none(hint) is Request
        ]
        self.elements: dict[str, Any] = {
            name: element_type
            for name, hint in hints.items()
            if (element_type := channel_type(hint))
        }
        """The parameters that get the elements of a channel, each with the type of these."""
        named = {
            name: each
            for name, each in parameters.items()
            if name not in self._takes_peer
            and name not in self._takes_request
            and name not in self.elements
            and name != payload
        }
        self._readers = {
            name: texts_reader(hints[name], f"{pattern.text!r}: the parameter {name!r}")
            for name in named
        }
        self._required = {
            name for name, each in named.items() if each.default is inspect.Parameter.empty
        }
        self._check_texts(hints, named.keys())

    def _check_texts(self, hints: dict[str, Any], named: Collection[str]) -> None:
        """Raise UsageError for a parameter that no name could ever fill."""
        text = self.pattern.text
        # A parameter that has a default may have any type:
        # the program itself may call the function with such a value.
        # But a parameter of the pattern always comes as a text, with or without a default.
        for name in sorted(
            self._required.union(each for each in self.pattern.parameters if each in named)
        ):
            if advice := why_never_from_text(hints[name]):
                raise UsageError(
                    f"{text!r}: no text can become the parameter {name!r}, so every subscribe "
                    f"would be refused; {advice}"
                )
        for name in self.pattern.parameters:
            if name not in named:
                raise UsageError(
                    f"{text!r} has the parameter {name!r}, which its function does not take"
                )
            if is_list(hints[name]):
                raise UsageError(
                    f"{text!r}: the parameter {name!r} is one segment, and a list takes several "
                    f"texts; take it out of the name, and peers give it as '?{name}=a&{name}=b', "
                    "or annotate it with str"
                )

    def bind(
        self,
        given: dict[str, str],
        query: dict[str, list[str]],
        peer: object,
        request: Request | None = None,
    ) -> Callable[[], Any]:
        """Return the function with the converted parameters.
        Raises NoMatch for parameters that do not fit.

        Returns the very function that was added if it takes no parameter:
        `Service` knows these by identity.
        """
        # The usual case, and the one without a partial.
        if (
            not given
            and not query
            and not self._takes_peer
            and not self._required
            and not self._takes_request
        ):
            return self.function
        texts = {**{name: [text] for name, text in given.items()}, **query}
        if not texts.keys() <= self._readers.keys():
            # The first by name, so that the text does not depend on the order of a set.
            raise NoMatch(
                f"{self.pattern.text} takes no parameter "
                f"{min(texts.keys() - self._readers.keys())!r}"
            )
        if not texts.keys() >= self._required:
            raise NoMatch(
                f"{self.pattern.text} needs the parameter {min(self._required - texts.keys())!r}, "
                "which was not given"
            )
        values: dict[str, Any] = {}
        for name, each in texts.items():
            try:
                values[name] = self._readers[name](each)
            except Exception as error:
                # boundary: a user wrote the converter.
                # Another answer would tell a peer which names exist.
                raise NoMatch(
                    f"the parameter {name!r} of {self.pattern.text} cannot be {shown(each[0])}: "
                    f"{_reason(error)}"
                ) from None
        if self._takes_request:
            # A subscribe of RS.io is a name, and no request.
            values |= dict.fromkeys(
                self._takes_request, request or Request(Model.NAMED, b"", name=self.pattern.text)
            )
        return partial(self.function, **values, **dict.fromkeys(self._takes_peer, peer))


class Router:
    """All routes of a service."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str | None, ...], Route] = {}  # all, by their segments
        self._literal: dict[str, Route] = {}  # those without parameters: found in one dict lookup
        self.patterns: dict[int, list[Route]] = {}
        """Routes with parameters, by their number of segments. The first route of a list that
        matches a name is the most literal one.
        """
        self.literal_names: set[bytes] = set()
        """The names of the routes without parameters, as UTF-8."""

    def add(self, route: Route) -> None:
        """Add a route. Raises UsageError if another route matches the same names."""
        shape = route.pattern.segments
        if shape in self._routes:
            other = self._routes[shape].pattern.text
            raise UsageError(
                f"{route.pattern.text!r} matches the same names as {other!r}, which was added "
                "before; change one of the two"
            )
        self._routes[shape] = route
        if None not in shape:
            self._literal[route.pattern.text] = route
            self.literal_names.add(route.pattern.text.encode())
        else:
            insort(self.patterns.setdefault(len(shape), []), route, key=_by_literals)

    def find(self, name: str) -> tuple[Route, dict[str, str], dict[str, list[str]]]:
        """Return the route for `name`, the parameters in its segments, and those behind the '?'.
        Raises NoMatch.
        """
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
        raise NoMatch("no publisher and no request has this name")

    @property
    def has_names(self) -> bool:
        """True if anything was added."""
        return bool(self._routes)

    def routes(self) -> list[Route]:
        """Return the routes, sorted by their patterns."""
        return sorted(self._routes.values(), key=lambda route: route.pattern.text)

    def names(self) -> list[str]:
        """Return the patterns, sorted."""
        return sorted(route.pattern.text for route in self._routes.values())


def _by_literals(route: Route) -> list[bool]:
    """Return a key by which literal segments sort before parameters: "ticks/all" before
    "ticks/{symbol}".
    """
    return [segment is None for segment in route.pattern.segments]


def _with_query(
    route: Route, given: dict[str, str], query: str
) -> tuple[Route, dict[str, str], dict[str, list[str]]]:
    if _has_too_many(query):
        raise NoMatch(
            f"{route.pattern.text} was given more than {MOST_PARAMETERS} parameters behind the '?'"
        )
    texts: dict[str, list[str]] = {}
    for name, text in parse_qsl(query, keep_blank_values=True) if query else ():
        # A parameter of the pattern that is given again is refused:
        # which of the two values counts would be a guess.
        if name in given:
            raise NoMatch(
                f"{route.pattern.text} has the parameter {name!r} in the name, and it was given "
                "again behind the '?'"
            )
        texts.setdefault(name, []).append(text)
    return route, given, texts


def _has_too_many(query: str) -> bool:
    # Before the query is parsed: that takes most of the time.
    return query.count("&") >= MOST_PARAMETERS


def canonical_name(name: str) -> str:
    """Return the one spelling of all names that lead to the same function with the same
    parameters.
    """
    # The usual name has neither an escape nor a query.
    if "%" not in name and "?" not in name:
        return name
    path, mark, query = name.partition("?")
    # Such a name leads nowhere in any spelling.
    if _has_too_many(query):
        return name
    segments = [_escaped(unquote(segment)) for segment in path.split("/")]
    # parse_qsl and urlencode: '+' and '%20' are the same blank,
    # and empty pieces do not count as parameters.
    return "/".join(segments) + (
        f"?{urlencode(parse_qsl(query, keep_blank_values=True), safe='/:,')}" if mark else ""
    )


def _escaped(segment: str) -> str:
    # Unescaped, these would end the segment, or begin an escape. Not a regular expression: for
    # 2,000 escapes it takes eight times as long.
    return segment.replace("%", "%25").replace("/", "%2F").replace("?", "%3F")


def _reason(error: Exception) -> str:
    # A reader raises ValueError with the text that did not fit; of another error, which a user's
    # code raised, only the class is told.
    return (
        "it does not fit the annotation"
        if type(error) is ValueError
        else f"its class raised {type(error).__name__}"
    )


def channel_type(hint: Any) -> Any:
    """Return the type of the elements that a parameter with this annotation gets from a channel;
    None for another parameter.
    """
    if (get_origin(hint) or hint) is not Source:
        return None
    return (get_args(hint) or (bytes,))[0]


def check_peer_annotations(hints: dict[str, Any], where: str) -> None:
    """Raise UsageError for a parameter annotated `penstock.Peer`,
    which is a connection's other side and not an identity.
    """
    for name, hint in hints.items():
        kind = without_none(hint)
        # By name: the class is defined in a layer above this one.
        if (
            isinstance(kind, type)
            and kind.__name__ == "Peer"
            and kind.__module__.partition(".")[0] == "penstock"
            and name != "return"
        ):
            raise UsageError(
                f"{where}: the parameter {name!r} is annotated with penstock.Peer, the object to "
                "subscribe to a connected peer with; to get the identity of the peer that asks, "
                "annotate it with penstock.spi.PeerIdentity"
            )
