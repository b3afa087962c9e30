"""Places and positions: the name that carries them, and the facts."""

import pytest

from penstock.api import PositionedName, Positions, UsageError, on_fact_of, positions_of


@pytest.mark.parametrize(
    ("bare", "start", "stop", "text"),
    [
        ("orders", None, None, "orders"),
        ("orders", 500, None, "orders?start=500"),
        ("orders", None, "latest", "orders?stop=latest"),
        (
            "orders?partition=0",
            "earliest",
            2**63 - 1,
            "orders?partition=0&start=earliest&stop=9223372036854775807",
        ),
    ],
)
def test_a_name_has_its_places_behind_the_mark(bare: str, start: int, stop: int, text: str) -> None:
    """And is read again to the same parts."""
    name = PositionedName(bare, start, stop)
    assert (str(name), name.encode(), name.bare) == (text, text.encode(), bare)
    read = PositionedName.parse(text)
    assert (read, read.bare, read.start, read.stop) == (name, bare, start, stop)
    assert name.at(7, None) == PositionedName(bare, 7)


KEPT = [
    "a?start=soon",
    "a?start=-1",
    "a?start=99999999999999999999",
    "a?starts=1",
    "a?start=",
    "start=1",
    "a?b&c=d",
    "a?start=1&start=2",
]


@pytest.mark.parametrize("name", KEPT)
def test_a_word_that_is_no_place_stays_in_the_name(name: str) -> None:
    """The service judges it, and one that is repeated."""
    read = PositionedName.parse(name)
    assert (str(read), read.start, read.stop) == (name, None, None)


def test_a_place_is_given_once() -> None:
    """Beside the name or in it."""
    with pytest.raises(
        UsageError,
        match=r"start= is given, and the name 'a[?]start=2' has start behind its '[?]' as well",
    ):
        PositionedName("a?start=2", 3)


@pytest.mark.parametrize("wrong", [-1, 2**63, "soon", "", True, 1.0, b"latest"])
def test_a_place_is_a_position_or_one_of_two_words(wrong: object) -> None:
    """Everything else is refused, for both places."""
    for places in ((wrong, None), (None, wrong)):
        with pytest.raises(UsageError, match="or 'earliest' or 'latest'"):
            PositionedName("a", *places)  # type: ignore[arg-type]  # the mistake that is tested


def test_what_an_object_offers_is_found() -> None:
    """Or None is returned."""

    class Offers:
        positions = Positions(1, 0, 2)

        def on_fact(self, fact: object, /) -> None:
            """Take a fact."""

    offers = Offers()
    assert on_fact_of(offers) == offers.on_fact
    assert on_fact_of(object()) is None
    assert positions_of(offers) == Positions(1, 0, 2)
    assert positions_of(object()) is None
    assert Positions(3) == (3, None, None)
