"""Elements of fixed size, cut out of the pieces of their publisher."""

from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import UsageError
from penstock.core import Scope
from penstock.runtime.service._pieces import ElementsOfPieces
from penstock.streams import from_iterable
from penstock.testing import ManualPublisher
from tests.runtime._plain_subscriber import PlainSubscriber


async def test_each_element_of_a_piece_is_delivered_on_demand(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One piece is kept at most, and the completion comes after its last element."""
    pieces = [b"aabbcc", bytearray(b"dd"), memoryview(b"eeff")]
    async with trio.open_nursery() as nursery:
        subscriber = PlainSubscriber()
        from_iterable(pieces).attach(ElementsOfPieces(subscriber, 2), Scope(nursery))
        seen = []
        for n in (1, 1, 3, 1):
            assert not subscriber.is_completed
            subscriber.request(n)
            await trio.testing.wait_all_tasks_blocked()
            seen.append(len(subscriber.elements))
        assert seen == [1, 2, 5, 6]
        assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd", b"ee", b"ff"]
        if not subscriber.is_completed:
            subscriber.request(1)
            await trio.testing.wait_all_tasks_blocked()
        assert subscriber.is_completed


@pytest.mark.parametrize("piece", [b"", b"abc", "ab", 4, [b"ab"]])
async def test_a_piece_that_has_no_whole_elements_fails_the_stream(
    piece: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """The publisher is cancelled, and the error says what it has published."""
    async with trio.open_nursery() as nursery:
        subscriber, publisher = PlainSubscriber(), ManualPublisher()
        publisher.subscribe(ElementsOfPieces(subscriber, 2))
        subscriber.request(1)
        publisher.emit(piece)
        assert isinstance(subscriber.error, UsageError)
        assert publisher.cancelled
        nursery.cancel_scope.cancel()


def test_a_failure_waits_for_the_elements_of_the_last_piece() -> None:
    """As a completion does. After it the publisher gets no call (rule 2.4)."""
    subscriber, publisher = PlainSubscriber(), ManualPublisher()
    publisher.subscribe(ElementsOfPieces(subscriber, 1))
    subscriber.request(2)
    publisher.emit(b"abc")
    publisher.fail(ValueError("broken"))
    assert (subscriber.elements, subscriber.error) == ([b"a", b"b"], None)
    subscriber.request(1)
    assert subscriber.elements == [b"a", b"b", b"c"]
    assert str(subscriber.error) == "broken"


def test_a_cancel_reaches_the_publisher_and_silences_it() -> None:
    """Also inside an element: nothing of the piece follows."""

    class Leaving(PlainSubscriber):
        def on_next(self, element: Any, /) -> None:
            super().on_next(element)
            self.cancel()

    subscriber, publisher = Leaving(), ManualPublisher()
    publisher.subscribe(ElementsOfPieces(subscriber, 1))
    subscriber.request(5)
    publisher.emit(b"abc")
    assert subscriber.elements == [b"a"]
    assert publisher.cancelled
    assert not subscriber.is_completed


def test_a_subscriber_of_batches_gets_the_elements_of_a_piece_together() -> None:
    """One call for a piece; an error after it is passed on, and nothing follows a cancel."""

    class Batches(PlainSubscriber):
        calls = 0

        def on_next_many(self, elements: list[bytes]) -> None:
            self.calls += 1
            self.elements.extend(elements)

    subscriber, publisher = Batches(), ManualPublisher()
    publisher.subscribe(ElementsOfPieces(subscriber, 1))
    subscriber.request(10)
    publisher.emit(b"abc")
    assert (subscriber.elements, subscriber.calls) == ([b"a", b"b", b"c"], 1)
    publisher.fail(ValueError("broken"))
    assert str(subscriber.error) == "broken"
    cancelled, other = Batches(), ManualPublisher()
    pieces = ElementsOfPieces(cancelled, 1)
    other.subscribe(pieces)
    cancelled.request(1)
    for _ in range(2):
        cancelled.cancel()
    # A signal that was under way at the cancel (rule 2.8).
    pieces.on_next(b"abc")
    pieces.on_complete()
    cancelled.request(1)
    assert cancelled.elements == []
    assert not cancelled.is_completed
