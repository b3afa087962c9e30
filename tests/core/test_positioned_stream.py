"""The position of the next element:
elements that the reader has taken count, and not those that have arrived.
"""

from penstock.api import Positions
from penstock.core import PositionedStream


class Nothing:
    """A subscription that does nothing."""

    def request(self, n: int, /) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""


def opened() -> PositionedStream[bytes]:
    stream: PositionedStream[bytes] = PositionedStream(demand=10)
    stream.on_subscribe(Nothing())
    return stream


async def test_the_position_counts_what_was_taken() -> None:
    """By element and by batch; buffered elements do not count."""
    stream = opened()
    assert stream.position is None
    stream.on_fact("something else")
    assert stream.position is None
    stream.on_fact(Positions(500))
    stream.on_next_many([b"a", b"b", b"c"])
    assert stream.position == 500
    assert await anext(stream) == b"a"
    assert stream.position == 501
    assert await anext(stream.batches()) == [b"b", b"c"]
    assert stream.position == 503


async def test_a_later_fact_counts_from_the_elements_that_follow() -> None:
    """Over another connection the stream goes on:
    elements that have arrived have the positions before.
    """
    stream = opened()
    stream.on_fact(Positions(500))
    stream.on_next_many([b"a", b"b", b"c"])
    stream.on_fact(Positions(503))
    assert stream.position == 500
    assert await anext(stream) == b"a"
    assert stream.position == 501


async def test_dropped_elements_do_not_count() -> None:
    """After a cancel the position is that of the first element that the reader did not get."""
    stream = opened()
    stream.on_fact(Positions(500))
    stream.on_next_many([b"a", b"b", b"c"])
    assert await anext(stream) == b"a"
    stream.cancel()
    assert stream.position == 501
