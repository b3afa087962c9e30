"""Names of publishers: patterns, parameters, and one answer for every name that does not match."""

import math
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NewType
from uuid import UUID

import pytest

from penstock.api import UsageError
from penstock.runtime import Peer, Service
from penstock.runtime.service._router import MOST_PARAMETERS, NoMatch, Pattern, Route, Router
from penstock.spi import PeerIdentity


class Asker:
    """Stands for the identity of a peer."""


class Side(Enum):
    BUY = "buy"
    SELL = "sell"


def router(*routes: tuple[str, Any]) -> Router:
    made = Router()
    for text, function in routes:
        made.add(Route(Pattern.parse(text), function, peer_type=Asker))
    return made


def ask(made: Router, name: str, peer: object = None) -> Any:
    route, given, query = made.find(name)
    return route.bind(given, query, peer)()


@pytest.mark.parametrize(
    "text", ["", "/a", "a?b", "a{b}", "{a}{b}", "{1}", "{}", "x/{a", "{a}/{a}"]
)
def test_a_malformed_pattern_is_refused(text: str) -> None:
    """When it is given, not when a peer subscribes."""
    with pytest.raises(UsageError):
        Pattern.parse(text)


def test_a_parameter_is_one_segment_with_its_escapes_undone() -> None:
    """A slash inside is written as %2F."""
    made = router(("ticks/{symbol}", lambda symbol: symbol))
    assert ask(made, "ticks/EUR%2FUSD") == "EUR/USD"


@pytest.mark.parametrize(
    "name",
    [
        "ticks",
        "ticks/",
        "ticks/a/b",
        "",
        "Ticks/a",
        "/ticks/a",
        "ticks/a?other=1",
        "ticks/a?symbol=b",
    ],
)
def test_a_name_that_fits_no_pattern_does_not_match(name: str) -> None:
    """Too short, too long, empty, in another spelling, with unknown or repeated parameters."""
    made = router(("ticks/{symbol}", lambda symbol: symbol))
    with pytest.raises(NoMatch):
        ask(made, name)


@pytest.mark.parametrize(
    ("segment", "why"),
    [
        ("{straße}", "the name of a parameter has ASCII letters"),
        ("{max-price}", "the name of a parameter has ASCII letters"),
        ("{1st}", "the name of a parameter has ASCII letters"),
        ("{}", "the name of a parameter has ASCII letters"),
        ("a{b}", "a parameter is a whole segment"),
        ("{a}{b}", "a parameter is a whole segment"),
    ],
)
def test_a_segment_that_is_no_parameter_is_told_why(segment: str, why: str) -> None:
    """A whole segment with another name is not told that it must be a whole segment."""
    with pytest.raises(UsageError, match=why):
        Pattern.parse(f"g/{segment}")


def test_the_most_literal_pattern_wins_in_every_order() -> None:
    """A literal name goes before a parameter."""
    made = router(
        ("{kind}/{symbol}", lambda kind, symbol: "any"),
        ("ticks/{symbol}", lambda symbol: "one"),
        ("ticks/all", lambda: "all"),
    )
    assert [ask(made, name) for name in ("ticks/all", "ticks/a", "bars/a")] == ["all", "one", "any"]
    assert made.names() == ["ticks/all", "ticks/{symbol}", "{kind}/{symbol}"]


@pytest.mark.parametrize("pattern", ["feed/{}", "feed/{}/{{symbol}}"])
def test_the_last_of_many_names_costs_as_many_calls_as_the_first(pattern: str) -> None:
    """A service with ten thousand names is ready in a second. With patterns the place among the
    others is searched by halves.
    """
    made, calls = Router(), []

    def count(_frame: Any, event: str, _argument: Any) -> None:
        calls[-1] += event in {"call", "c_call"}

    for number in range(2_000):
        parsed = Pattern.parse(pattern.format(number))
        route = Route(parsed, lambda symbol="": symbol, peer_type=Asker)
        before = sys.getprofile()
        calls.append(0)
        sys.setprofile(count)
        try:
            made.add(route)
        finally:
            sys.setprofile(before)
    assert calls[-1] <= calls[0] + 4 * math.log2(2_000)


def test_two_patterns_for_the_same_names_are_refused() -> None:
    """The names of their parameters do not matter."""
    with pytest.raises(UsageError, match="same names"):
        router(("a/{x}", lambda x: x), ("a/{y}", lambda y: y))


def test_a_parameter_that_the_function_does_not_take_is_refused() -> None:
    """When the route is made."""
    with pytest.raises(UsageError, match="'symbol'"):
        router(("ticks/{symbol}", lambda: None))


CONVERTED: list[tuple[Any, str, Any]] = [
    (str, "x", "x"),
    (int, "-12", -12),
    (float, "1.5", 1.5),
    (bool, "Yes", True),
    (bool, "off", False),
    (int | None, "3", 3),
    (UUID, "12345678123456781234567812345678", UUID("12345678123456781234567812345678")),
    (Side, "buy", Side.BUY),
    (Any, "x", "x"),
]


def taking(kind: Any) -> Any:
    def function(value: Any) -> Any:
        return value

    function.__annotations__["value"] = kind
    return function


@pytest.mark.parametrize(
    ("kind", "text", "value"), CONVERTED, ids=[f"{case[0]}-{case[1]}" for case in CONVERTED]
)
def test_a_parameter_is_converted_by_its_annotation(kind: Any, text: str, value: object) -> None:
    """For types that can be made of one text."""
    assert ask(router(("x/{value}", taking(kind))), f"x/{text}") == value


BAD = [
    (int, "1_000"),
    (int, "+1"),
    (int, "1.0"),
    (int, "٣"),
    (int, "1" * 41),
    (bool, "maybe"),
    (float, "x"),
    (UUID, "x"),
    (Side, "hold"),
]


@pytest.mark.parametrize(
    ("kind", "text"), BAD, ids=[f"{kind.__name__}-{text[:5]}" for kind, text in BAD]
)
def test_a_parameter_that_cannot_be_converted_does_not_match(kind: Any, text: str) -> None:
    """The answer is that of an unknown name."""
    with pytest.raises(NoMatch):
        ask(router(("x/{value}", taking(kind))), f"x/{text}")


@pytest.mark.parametrize(
    "kind", [int | str, list[int], "not a type", "Missing", list[int | str]], ids=str
)
def test_an_annotation_that_is_not_a_type_is_refused(kind: Any) -> None:
    """When the route is made, with the name of the pattern and the parameter."""
    with pytest.raises(UsageError, match=r"'x/\{value\}': .*the parameter 'value'"):
        router(("x/{value}", taking(kind)))


def test_a_list_takes_a_key_that_is_given_several_times() -> None:
    """In their order. Every other parameter is given once."""

    def bars(symbol: str, minutes: list[int], kind: tuple[str, ...] | None = None) -> object:
        return symbol, minutes, kind

    made = router(("bars/{symbol}", bars))
    assert ask(made, "bars/a?minutes=1&minutes=5&kind=x") == ("a", [1, 5], ("x",))
    assert ask(made, "bars/a?minutes=1") == ("a", [1], None)
    for name in ("bars/a", "bars/a?minutes=1&minutes=x"):
        with pytest.raises(NoMatch):
            ask(made, name)


def test_what_a_partial_has_set_cannot_be_given_by_a_peer() -> None:
    """By keyword or by position, in one partial or in several."""

    def secrets(of: Asker, name: str, *, admin: bool = False) -> object:
        return of, name, admin

    mine = Asker()
    for function in (
        partial(partial(secrets, mine), admin=False),
        partial(secrets, of=mine, admin=False),
    ):
        made = router(("secrets/{name}", function))
        assert ask(made, "secrets/a", Asker()) == (mine, "a", False)
        with pytest.raises(NoMatch):
            ask(made, "secrets/a?admin=yes")
    with pytest.raises(UsageError, match="'admin', which its function does not take"):
        router(("secrets/{name}/{admin}", partial(secrets, mine, admin=False)))


def test_a_partial_may_hold_a_connected_peer() -> None:
    """Its parameter is set, so its annotation does not matter."""

    def relay(peer: Peer, symbol: str) -> list[str]:
        return [symbol]

    assert ask(router(("relay/{symbol}", partial(relay, None))), "relay/a") == ["a"]
    assert ask(router(("relay/{symbol}", partial(relay, peer=None))), "relay/a") == ["a"]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (5, "5 is not callable; put the decorator directly above"),
        (dict.get, "cannot be given by name"),
    ],
)
def test_an_object_that_is_no_usual_function_is_refused(function: Any, says: str) -> None:
    """With what to write."""
    with pytest.raises(UsageError, match=says):
        router(("x", function))


def test_parameters_with_defaults_may_come_behind_a_question_mark() -> None:
    """They are written like those of a URL; each comes once."""

    def bars(symbol: str, minutes: int = 5, *, live: bool = False) -> tuple[str, int, bool]:
        return symbol, minutes, live

    made = router(("bars/{symbol}", bars))
    assert ask(made, "bars/a") == ("a", 5, False)
    assert ask(made, "bars/a?minutes=1&live=1") == ("a", 1, True)
    for name in (
        "bars/a?minutes=1&minutes=2",
        "bars/a?minutes=",
        "bars/a?live=perhaps",
        "bars/a?symbol=a",
    ):
        with pytest.raises(NoMatch):
            ask(made, name)


def test_a_parameter_without_a_default_is_required() -> None:
    """From the pattern or from behind the question mark."""
    made = router(("bars", lambda symbol: symbol))
    assert ask(made, "bars?symbol=a") == "a"
    with pytest.raises(NoMatch):
        ask(made, "bars")


def test_the_identity_comes_by_annotation_and_from_nowhere_else() -> None:
    """A peer cannot give its identity in the name."""

    def whoami(peer: Asker) -> Peer:
        return peer

    made = router(("who", whoami))
    peer = Asker()
    assert ask(made, "who", peer) is peer
    with pytest.raises(NoMatch):
        ask(made, "who?peer=root", peer)


def by_position(symbol: str, /) -> None:
    pass


def by_any_name(**parameters: str) -> None:
    pass


@pytest.mark.parametrize("function", [by_position, by_any_name])
def test_a_parameter_that_cannot_be_given_by_name_is_refused(function: Any) -> None:
    """No subscribe could ever match."""
    with pytest.raises(UsageError, match="cannot be given by name"):
        Route(Pattern.parse("ticks"), function, peer_type=Asker)


class Source:
    def __call__(self, number: int) -> int:
        return number


def test_a_partial_and_a_callable_object_are_functions_too() -> None:
    """Their annotations are those of the function that is called in the end."""

    def ticks(of: str, number: int) -> tuple[str, int]:
        return of, number

    for function, expected in ((partial(ticks, "EURUSD"), ("EURUSD", 7)), (Source(), 7)):
        route = Route(Pattern.parse("ticks/{number}"), function, peer_type=Asker)
        assert route.bind({"number": "7"}, {}, None)() == expected


# --- parameters that nothing can fill


@pytest.mark.parametrize("annotation", [Peer, Peer | None], ids=["Peer", "Peer or None"])
@pytest.mark.parametrize("default", [True, False])
def test_the_wrong_peer_is_refused_when_it_is_added(annotation: Any, default: bool) -> None:
    """`penstock.Peer` is a connection's other side; the text says to write
    `penstock.spi.PeerIdentity`.
    """
    service = Service()

    async def ticks(symbol: str, peer: Any = None) -> AsyncIterator[bytes]:
        yield b""

    async def answer(data: bytes, peer: Any = None) -> bytes:
        return data

    def setup(data: bytes, peer: Any = None) -> bool:
        return True

    for function in (ticks, answer, setup):
        function.__annotations__["peer"] = annotation
        if not default:
            function.__defaults__ = None
    for add in (
        lambda: service.publisher("ticks/{symbol}")(ticks),
        lambda: service.request_response(answer),
        lambda: Service(setup=setup),
    ):
        with pytest.raises(UsageError, match=r"penstock\.Peer.*penstock\.spi\.PeerIdentity"):
            add()
    assert service.names() == []


class Weight(Enum):
    """No value is a text."""

    LOW = 1.5


class Token(bytes):
    """Bytes by another name."""


class Pair:
    """Needs two values."""

    def __init__(self, first: str, second: str) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        (bytes, "annotate it with str, and encode it"),
        (memoryview, "annotate it with str"),
        (Pair, "Pair cannot be made of one text"),
        (bytes | None, "annotate it with str"),
        (Weight, "look the Weight up in the function"),
        (dict, "take the text apart"),
        (NewType("Raw", bytes), "annotate it with str, and encode it"),
        (Token, "annotate it with str, and encode it"),
    ],
)
def test_a_required_parameter_that_no_text_can_become_is_refused_when_it_is_added(
    annotation: Any, advice: str
) -> None:
    """Every subscribe would be refused otherwise, without a word on this side.
    The text says what to write.
    """

    def required(when: Any) -> list[bytes]:
        return []

    def optional(when: Any = None) -> list[bytes]:
        return []

    required.__annotations__["when"] = optional.__annotations__["when"] = annotation
    service = Service()
    for name in ("at/{when}", "at"):
        with pytest.raises(UsageError, match=advice):
            service.publisher(name)(required)
    service.publisher("at")(optional)
    assert service.names() == ["at"]


class Color(Enum):
    """Can be made of a text."""

    RED = "red"


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "a", "a"),
        (int, "7", 7),
        (float, "1.5", 1.5),
        (bool, "yes", True),
        (UUID, "12345678123456781234567812345678", UUID("12345678123456781234567812345678")),
        (Decimal, "1.5", Decimal("1.5")),
        (Path, "a", Path("a")),
        (Color, "red", Color.RED),
        (int | None, "7", 7),
        (Any, "a", "a"),
        (None, "a", "a"),
    ],
)
def test_a_parameter_of_a_usual_type_is_made_of_its_text(
    annotation: Any, text: str, value: object
) -> None:
    """Without an annotation it is a str."""
    seen: list[object] = []

    def found(value):
        seen.append(value)
        return []

    if annotation is not None:
        found.__annotations__["value"] = annotation
    service = Service()
    service.publisher("found/{value}")(found)
    assert service.find(f"found/{text}", PeerIdentity(address="test")) is not None
    assert seen == [value]


def test_a_parameter_of_the_pattern_is_a_text_also_with_a_default() -> None:
    """The default would never be used, and the text never be converted."""

    def at(when: bytes = b"") -> bytes:
        return when

    with pytest.raises(UsageError, match="encode it in the function"):
        router(("at/{when}", at))


def test_a_converter_that_raises_anything_does_not_match() -> None:
    """A peer gets the same answer as for an unknown name, so it cannot find out
    which names exist.
    """

    class Fussy:
        def __init__(self, text: str) -> None:
            raise RuntimeError(text)

    def fussy(value: Fussy) -> Fussy:
        return value

    with pytest.raises(NoMatch):
        ask(router(("fussy/{value}", fussy)), "fussy/x")


def test_a_class_is_refused_as_a_publisher() -> None:
    """The annotations of its constructor are not those of the class,
    so a peer could name its own identity.
    """

    class Stream:
        def __init__(self, peer: Asker) -> None: ...

    with pytest.raises(UsageError, match="is a class"):
        router(("s", Stream))


def test_an_optional_identity_gets_the_identity_of_the_peer() -> None:
    """`Asker | None` is the same parameter as `Asker`."""

    def who(peer: Asker | None = None) -> Asker | None:
        return peer

    asker = Asker()
    assert ask(router(("who", who)), "who", asker) is asker


@pytest.mark.parametrize("name", ["numbers", "orders/7"])
def test_a_name_with_too_many_parameters_does_not_match(name: str) -> None:
    """A request can hold 2,000 parameters, which take some milliseconds.
    So they are counted before they are parsed.
    """

    def numbers(value: list[int], order: int = 0) -> int:
        return len(value)

    made = router(("numbers", numbers), ("orders/{order}", numbers))
    most = f"{name}?" + "&".join(["value=1"] * MOST_PARAMETERS)
    assert ask(made, most) == MOST_PARAMETERS
    with pytest.raises(NoMatch, match="more than 256 parameters"):
        made.find(f"{most}&value=1")
