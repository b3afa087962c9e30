"""Which extensions are negotiated: those that are sound."""

from collections.abc import Callable

import pytest

from penstock.api import ActiveExtension, Extension, ExtensionLink, UsageError
from penstock.builtin import Keepalive
from penstock.plugins import Factory, build_registry, hookimpl
from penstock.runtime import connect
from penstock.runtime.connection._extensions_for import check_given, offered


class Odd:
    """An extension of which anything can be wrong."""

    name: str = "odd"

    def __init__(self, id: int = 200, codes: frozenset[int] = frozenset({0x60}), name: str = "odd") -> None:  # noqa: A002  # its name
        self.id: int = id
        self.codes: frozenset[int] = codes
        self.name = name

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        raise AssertionError("never opened")


class Offers:
    """A plugin that offers what it was given."""

    def __init__(self, *offers: Factory) -> None:
        self._offers = list(offers)

    @hookimpl
    def penstock_extensions(self) -> list[Factory]:
        return self._offers


def of(*made: tuple[int, Callable[[], object]]) -> tuple[list[str], list[str]]:
    """The names of what is negotiated of these offers, and what was told."""
    told: list[Exception] = []
    offers = [Factory(name=f"odd{position}", id=number, make=make) for position, (number, make) in enumerate(made)]
    registry = build_registry([Offers(*offers)])
    assert registry.problems == ()
    return [each.name for each in offered(registry, told.append)], [str(each) for each in told]


def test_what_is_sound_is_negotiated() -> None:
    """Ours and theirs."""
    assert of((200, Odd), (201, lambda: Odd(201, frozenset({0x7E}), "other"))) == (["keepalive", "odd", "other"], [])


def _raises() -> Extension:
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_raises, "the extension 'odd0' raised when it was made, and was left out: KeyError('mine')"),
        (lambda: "text", "'text' is no Extension: it needs an id, a name, codes and open()"),
        (lambda: Odd(201), "'odd0' was offered as id=200, and made with id=201"),
        (lambda: Odd(200, frozenset({0x40})), "'odd' has the code 0x40; codes from 0x60 to 0x7e are for it"),
        (lambda: Odd(200, frozenset({0x12, 0x7F})), "'odd' has the code 0x12, 0x7f; codes from 0x60 to 0x7e are for it"),
    ],
    ids=["raises", "no extension", "another id", "our code", "no code"],
)
def test_what_is_not_sound_is_told_and_left_out(make: Callable[[], object], says: str) -> None:
    """The others are negotiated all the same."""
    names, told = of((200, make))
    assert names == ["keepalive"]
    assert len(told) == 1
    assert says in told[0]


def test_a_code_that_two_claim_goes_to_neither() -> None:
    """Both are told of."""
    names, told = of((200, lambda: Odd(200)), (201, lambda: Odd(201, name="other")))
    assert names == ["keepalive"]
    assert told == [f"the extension '{name}' has the code 0x60, like another one: neither was negotiated" for name in ("odd", "other")]


@pytest.mark.parametrize(
    ("extensions", "says"),
    [
        ([1], "1 is no Extension"),
        ([Odd(200), Odd(200, frozenset({0x61}))], "'odd' has id=200, like another one"),
        ([Odd(200), Odd(201)], "'odd' has the code 0x60, like another one"),
    ],
    ids=["no extension", "same id", "same code"],
)
def test_what_the_program_gives_itself_is_refused_by_the_call(extensions: list[Extension], says: str) -> None:
    """There somebody can mend it."""
    with pytest.raises(UsageError, match=says):
        connect("memory://test", extensions=extensions)


def test_what_the_program_gives_is_taken() -> None:
    """As it is, in its order."""
    keepalive, odd = Keepalive(), Odd()
    assert check_given([odd, keepalive]) == (odd, keepalive)
