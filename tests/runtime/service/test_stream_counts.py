"""The record of a served stream counts elements and keeps the outcome."""

from penstock.core import EndedSubscription
from penstock.runtime.service import CountingSubscriber, StreamCount
from penstock.spi import Outcome
from tests.runtime._plain_subscriber import PlainSubscriber


def test_elements_are_counted_and_passed_on() -> None:
    """On a stream of fixed size a piece counts as the elements in it."""
    reports: list[StreamCount] = []
    count = StreamCount(reports.append)
    subscriber = PlainSubscriber()
    counting = CountingSubscriber(count, subscriber)
    counting.on_next(b"abcd")
    count.element_size = 2
    counting.on_next(b"abcd")
    counting.on_complete()
    assert (count.elements, count.bytes, count.outcome) == (3, 8, Outcome.COMPLETED)
    assert subscriber.elements == [b"abcd"] * 2
    assert reports == []
    count.on_stream_end()
    assert reports == [count]


def test_a_failure_is_kept() -> None:
    """The error itself is in the record."""
    count = StreamCount(lambda _: None)
    error = ValueError("no")
    counting = CountingSubscriber(count, PlainSubscriber())
    counting.on_subscribe(EndedSubscription())
    counting.on_error(error)
    assert (count.outcome, count.error) == (Outcome.FAILED, error)
