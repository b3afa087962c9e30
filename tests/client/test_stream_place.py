"""Where a stream begins over each of its connections."""

from penstock.api import PositionedName, Positions
from penstock.client import StreamPlace


def test_a_stream_goes_on_under_a_name_with_its_next_position() -> None:
    """Without a position the name is sent as it was typed."""
    place = StreamPlace("orders")
    assert (place.name_at(None), place.first()) == ("orders", None)
    assert str(place.name_at(7)) == str(PositionedName.parse("orders").at(7, None))
    assert StreamPlace(PositionedName.parse("orders").at(3, None)).first() == 3


def test_a_publisher_that_begins_elsewhere_breaks_the_protocol() -> None:
    """The error has both positions, and the reason for the peer."""
    place = StreamPlace("orders")
    assert place.learn(Positions(7), 7) is None
    assert place.learn(Positions(7), None) is None
    error = place.learn(Positions(9_000), 7)
    assert str(error) == (
        "'orders' begins at position 9,000, and 7 was asked for. The peer must act"
    )
    assert error is not None
    assert error.reason == "protocol:position"


def test_the_word_latest_is_decided_once() -> None:
    """A later connection stops where the first one would have stopped."""
    name = PositionedName.parse("orders").at(0, "latest")
    place = StreamPlace(name)
    assert place.learn(Positions(0, latest=50), 0) is None
    assert place.learn(Positions(10, latest=80), 10) is None
    assert str(place.name_at(20)) == str(name.at(20, 50))
