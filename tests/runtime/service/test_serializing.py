"""Elements become bytes, or the stream fails; the first element alone can be the answer."""

import pytest

from penstock.api import UsageError
from penstock.plugins import build_registry
from penstock.runtime.service._serializing import FirstElementOnly, Serializing
from penstock.testing import ManualPublisher
from tests.runtime._plain_subscriber import PlainSubscriber


def test_an_element_that_cannot_be_serialized_cancels_the_publisher_and_fails_the_stream() -> None:
    """Elements before it have arrived as bytes."""
    publisher, subscriber = ManualPublisher(), PlainSubscriber()
    publisher.subscribe(Serializing(subscriber, build_registry().serializer("json")))
    subscriber.request(2)
    publisher.emit({"a": 1})
    publisher.emit(object())
    assert subscriber.elements == [b'{"a":1}']
    assert isinstance(subscriber.error, UsageError)
    assert publisher.cancelled


@pytest.mark.parametrize(("size", "arrives"), [(0, b"abcd"), (2, b"ab")])
def test_the_first_element_completes_the_answer(size: int, arrives: bytes) -> None:
    """A piece of several elements of fixed size is cut; the publisher is cancelled, and its later signals are dropped."""
    publisher, subscriber = ManualPublisher(), PlainSubscriber()
    first = FirstElementOnly(subscriber, size)
    publisher.subscribe(first)
    subscriber.request(100)
    assert publisher.requested == 1
    publisher.emit(b"abcd")
    first.on_next(b"late")
    first.on_complete()
    first.on_error(ValueError("late"))
    assert (subscriber.elements, subscriber.is_completed, subscriber.error) == ([arrives], True, None)
    assert publisher.cancelled


def test_an_answer_without_an_element_ends_as_its_publisher_does() -> None:
    """With its failure; a cancel before the first element reaches the publisher."""
    failing, cancelled = ManualPublisher(), ManualPublisher()
    subscriber, other = PlainSubscriber(), PlainSubscriber()
    failing.subscribe(FirstElementOnly(subscriber, 0))
    failing.fail(ValueError("no"))
    assert isinstance(subscriber.error, ValueError)
    cancelled.subscribe(FirstElementOnly(other, 0))
    other.cancel()
    assert cancelled.cancelled
