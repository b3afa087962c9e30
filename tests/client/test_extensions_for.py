"""Only sound extensions are negotiated."""

from collections.abc import Callable

import pytest

from penstock.api import ActiveExtension, Extension, ExtensionLink, UsageError
from penstock.client._extensions_for import (
    check_given,
    extensions_for,
    if_used,
    offered,
)
from penstock.extensions import Keepalive, Position
from penstock.runtime import connect
from penstock.spi import Factory, build_registry, hookimpl


class Odd:
    """An extension that can be wrong in every way."""

    name: str = "odd"

    def __init__(
        self,
        id: int = 200,  # noqa: A002  # its name
        codes: frozenset[int] = frozenset({0x60}),
        name: str = "odd",
    ) -> None:
        self.id: int = id
        self.codes: frozenset[int] = codes
        self.name = name

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        raise AssertionError("never opened")


class Offers:
    """A plugin that offers the extensions it was given."""

    def __init__(self, *offers: Factory) -> None:
        self._offers = list(offers)

    @hookimpl
    def penstock_extensions(self) -> list[Factory]:
        return self._offers


def of(*made: tuple[int, Callable[[], object]]) -> tuple[list[str], list[str]]:
    """Return the names of the negotiated extensions, and the reports."""
    told: list[Exception] = []
    offers = [
        Factory(name=f"odd{position}", id=number, make=make)
        for position, (number, make) in enumerate(made)
    ]
    registry = build_registry([Offers(*offers)])
    assert registry.problems == ()
    return [each.name for each in offered(registry, told.append)], [str(each) for each in told]


def test_sound_extensions_are_negotiated() -> None:
    """Those of the project and those of plugins."""
    assert of((200, Odd), (201, lambda: Odd(201, frozenset({0x7E}), "other"))) == (
        ["content", "drain", "keepalive", "odd", "other", "position", "requests"],
        [],
    )


def test_a_server_without_a_log_does_not_offer_positions() -> None:
    """An extension that the program gave stays."""
    found = extensions_for(build_registry(), None, print)
    assert [each.name for each in if_used(found, has_logs=True).offered] == [
        "content",
        "drain",
        "keepalive",
        "position",
        "requests",
    ]
    assert [each.name for each in if_used(found, has_logs=False).offered] == [
        "content",
        "drain",
        "keepalive",
        "requests",
    ]
    given = extensions_for(build_registry(), [Position()], print)
    assert if_used(given, has_logs=False) == given


def _raises() -> Extension:
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            _raises,
            "the extension 'odd0' raised when it was made, and was left out: KeyError('mine')",
        ),
        (lambda: "text", "'text' is no Extension: it needs an id, a name, codes and open()"),
        (lambda: Odd(201), "'odd0' was offered as id=200, and made with id=201"),
        (
            lambda: Odd(200, frozenset({0x40})),
            "'odd' has the code 0x40; codes from 0x60 to 0x7e are for it",
        ),
        (
            lambda: Odd(200, frozenset({0x12, 0x7F})),
            "'odd' has the code 0x12, 0x7f; codes from 0x60 to 0x7e are for it",
        ),
    ],
    ids=["raises", "no extension", "another id", "our code", "no code"],
)
def test_an_unsound_extension_is_reported_and_left_out(
    make: Callable[[], object], says: str
) -> None:
    """The others are negotiated."""
    names, told = of((200, make))
    assert names == ["content", "drain", "keepalive", "position", "requests"]
    assert len(told) == 1
    assert says in told[0]


def test_two_extensions_with_one_code_are_both_left_out() -> None:
    """Both extensions are reported by their names."""
    names, told = of((200, lambda: Odd(200)), (201, lambda: Odd(201, name="other")))
    assert names == ["content", "drain", "keepalive", "position", "requests"]
    assert told == [
        f"the extension '{name}' has the code 0x60, like another one: neither was negotiated"
        for name in ("odd", "other")
    ]


@pytest.mark.parametrize(
    ("extensions", "says"),
    [
        ([1], "1 is no Extension"),
        ([Odd(200), Odd(200, frozenset({0x61}))], "'odd' has id=200, like another one"),
        ([Odd(200), Odd(201)], "'odd' has the code 0x60, like another one"),
        ([Odd(200, codes=None)], "'odd' has codes=None; give a collection of ints"),  # type: ignore[arg-type]  # wrong on purpose
        ([Odd(200, codes={"a"})], r"'odd' has codes=\{'a'\}; give a collection of ints"),  # type: ignore[arg-type]  # wrong on purpose
        (7, "extensions=7; give a sequence of extensions"),
    ],
    ids=["no extension", "same id", "same code", "no codes", "codes of text", "no sequence"],
)
def test_an_unsound_extension_of_the_program_is_refused_at_the_call(
    extensions: list[Extension], says: str
) -> None:
    """The program can be corrected."""
    with pytest.raises(UsageError, match=says):
        connect("memory://test", extensions=extensions)


def test_extensions_of_the_program_are_taken() -> None:
    """Unchanged, in their order."""
    keepalive, odd = Keepalive(), Odd()
    assert check_given([odd, keepalive]) == (odd, keepalive)
