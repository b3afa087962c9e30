"""Where a stream begins, stops and goes on, without a connection."""

import pytest

from penstock.api import ConnectionLost, PositionedName, Positions, PublisherFailed
from penstock.client import StreamPlace

LOST = ConnectionLost("lost")


def test_a_position_is_known_when_it_was_given_or_told() -> None:
    """A word has no number before the publisher has answered."""
    assert StreamPlace("a").position(3) is None
    assert StreamPlace(PositionedName("a", 5)).position(3) == 8
    place = StreamPlace(PositionedName("a", "latest"))
    assert place.position(0) is None
    assert place.learn(Positions(40, 2, 40), 0) is None
    assert place.position(3) == 43


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("a", "a", "a?start=12"),
        (
            "a?region=eu&start=5&stop=latest",
            "a?region=eu&start=5&stop=latest",
            "a?region=eu&start=12&stop=40",
        ),
        (PositionedName("a", "earliest", 30), "a?start=earliest&stop=30", "a?start=12&stop=30"),
        (PositionedName("a", 10, "latest"), "a?start=10&stop=latest", "a?start=12&stop=40"),
    ],
)
def test_a_stream_goes_on_behind_its_last_element(name: str, first: str, second: str) -> None:
    """`latest` as the place to stop is the one of the first answer."""
    place = StreamPlace(name, goes_on=True)
    assert place.next_name(0) == first
    assert place.learn(Positions(10, 2, 40), 0) is None
    assert place.cut(LOST)
    assert place.is_cut
    assert place.next_name(2) == second


def test_a_stream_ends_if_it_cannot_go_on() -> None:
    """Without a policy, without positions, and after a failure of the publisher."""
    with_positions = PositionedName("a", 5)
    assert not StreamPlace(with_positions).cut(LOST)
    assert not StreamPlace("a", goes_on=True).cut(LOST)
    assert not StreamPlace(with_positions, goes_on=True).cut(PublisherFailed("out of paper"))


def test_a_publisher_that_begins_elsewhere_is_at_fault() -> None:
    """Elements would be missing, or come twice."""
    place = StreamPlace(PositionedName("a", 5), goes_on=True)
    assert place.learn(Positions(5, 0, 40), 0) is None
    assert place.learn(Positions(8, 0, 40), 3) is None
    error = place.learn(Positions(9, 0, 40), 3)
    assert error is not None
    assert "'a' begins at position 9, and 8 was asked for" in str(error)
    assert place.position(3) == 8
