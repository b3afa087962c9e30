"""Elements become bytes, or the stream fails; the first element alone can be the answer."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from penstock.api import PublisherFailed, UsageError
from penstock.runtime import Service, connect, serve
from penstock.runtime.service._serializing import FirstElementOnly, Serializing
from penstock.spi import build_registry
from penstock.testing import ManualPublisher
from tests.runtime._plain_subscriber import PlainSubscriber


def test_an_element_that_cannot_be_serialized_cancels_the_publisher_and_fails_the_stream() -> None:
    """Elements before it have arrived as bytes."""
    publisher, subscriber = ManualPublisher(), PlainSubscriber()
    publisher.subscribe(Serializing(subscriber, build_registry().serializer("json"), ""))
    subscriber.request(2)
    publisher.emit({"a": 1})
    publisher.emit(object())
    assert subscriber.elements == [b'{"a":1}']
    assert isinstance(subscriber.error, UsageError)
    assert publisher.cancelled


@pytest.mark.parametrize(("size", "arrives"), [(0, b"abcd"), (2, b"ab")])
def test_the_first_element_completes_the_answer(size: int, arrives: bytes) -> None:
    """A piece of several elements of fixed size is cut;
    the publisher is cancelled, and its later signals are dropped.
    """
    publisher, subscriber = ManualPublisher(), PlainSubscriber()
    first = FirstElementOnly(subscriber, size)
    publisher.subscribe(first)
    subscriber.request(100)
    assert publisher.requested == 1
    publisher.emit(b"abcd")
    first.on_next(b"late")
    first.on_complete()
    first.on_error(ValueError("late"))
    assert (subscriber.elements, subscriber.is_completed, subscriber.error) == (
        [arrives],
        True,
        None,
    )
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


class ManySubscriber(PlainSubscriber):
    """Also takes elements together, and keeps the lengths of the lists."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: list[int] = []

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.elements += elements
        self.lists.append(len(elements))


@pytest.mark.parametrize(
    ("subscriber", "lists"), [(PlainSubscriber(), None), (ManySubscriber(), [2])]
)
def test_elements_that_are_at_hand_are_serialized_together(
    subscriber: PlainSubscriber, lists: list[int] | None
) -> None:
    """One call for the subscriber if it takes lists, else one for each element."""
    serializing = Serializing(subscriber, build_registry().serializer("json"), "")
    serializing.on_next_many([{"a": 1}, [2]])
    assert subscriber.elements == [b'{"a":1}', b"[2]"]
    assert getattr(subscriber, "lists", None) == lists


def test_an_element_of_a_list_that_cannot_be_serialized_fails_the_stream_behind_those_before_it() -> (
    None
):
    """The publisher is cancelled, and the elements after it are dropped."""
    publisher, subscriber = ManualPublisher(), ManySubscriber()
    serializing = Serializing(subscriber, build_registry().serializer("json"), "")
    publisher.subscribe(serializing)
    subscriber.request(3)
    serializing.on_next_many([1, object(), 3])
    assert subscriber.elements == [b"1"]
    assert isinstance(subscriber.error, UsageError)
    assert publisher.cancelled


async def test_a_serializer_converts_into_the_batch_of_the_stream() -> None:
    """Each object is converted when it is yielded, because the generator may change it. One that
    fails ends the stream in its place.
    """
    service = Service()

    @service.publisher("objects", serializer="json")
    async def objects() -> AsyncIterator[object]:
        record: dict[str, Any] = {"number": 0}
        for number in range(50):
            record["number"] = number
            record["text"] = "x" * (number % 7)
            yield record
        yield object()

    got: list[Any] = []
    async with serve(service, "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("objects", serializer="json") as stream:
            with pytest.raises(PublisherFailed):
                async for batch in stream.batches():
                    got += batch
    assert got == [{"number": number, "text": "x" * (number % 7)} for number in range(50)]
