"""A blueprint bound to a nursery: a plain publisher, with a scope for each subscriber."""

import trio

from penstock.api import Publisher
from penstock.core import log_violation
from penstock.streams import from_iterable
from penstock.streams._source import BoundPublisher
from penstock.testing import ManualSubscriber


async def test_each_subscriber_has_its_own_stream_and_its_own_scope() -> None:
    """A cancel of one does not reach the other."""
    source = from_iterable(range(3))
    one, other = ManualSubscriber("one"), ManualSubscriber("other")
    async with trio.open_nursery() as nursery:
        publisher = BoundPublisher(source, nursery, log_violation, 1.0)
        assert isinstance(publisher, Publisher)
        assert repr(publisher) == f"<publisher of {source!r}>"
        publisher.subscribe(one)
        publisher.subscribe(other)
        one.cancel()
        other.request(3)
    assert one.elements == []
    assert other.elements == [0, 1, 2]
    assert other.ended
