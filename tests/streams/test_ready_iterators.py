"""Elements at hand go in one call, within demand. Lists and memory channels have them;
lazy iterables never do.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import trio

from penstock.api import BytesList, UsageError
from penstock.core._pump import before_none
from penstock.streams import Source, as_source, from_channel, from_iterable, subscribe
from penstock.streams._ready_iterators import CollectionIterator
from tests.core._foreign import Recorder
from tests.core._helpers import Reports, quiet


class ManyRecorder(Recorder):
    """A subscriber that also takes lists, and records them."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self._record("on_next_many", list(elements))


class Harness:
    """A source, attached to a subscriber that takes lists."""

    def __init__(
        self,
        nursery: trio.Nursery,
        source: Source[Any],
        recorder: Recorder | None = None,
        **hooks: Any,
    ) -> None:
        self.reports = Reports(nursery)
        self.recorder = recorder or ManyRecorder(**hooks)
        source.attach(self.recorder, self.reports.scope)

    async def ask(self, n: int) -> list[tuple[Any, ...]]:
        """Request `n` elements, and return the signals that follow."""
        self.recorder.log.clear()
        self.recorder.subscription.request(n)
        await quiet()
        return list(self.recorder.log)


@pytest.mark.parametrize("collection", [[0, 1, 2, 3, 4, 5], (0, 1, 2, 3, 4, 5), range(6)])
async def test_a_collection_goes_in_lists_as_demand_permits(
    nursery: trio.Nursery, collection: Sequence[int]
) -> None:
    """A single element goes with `on_next`; the end comes with the last element."""
    harness = Harness(nursery, from_iterable(collection))
    assert await harness.ask(2) == [("on_next_many", [0, 1])]
    assert await harness.ask(1) == [("on_next", 2)]
    assert await harness.ask(100) == [("on_next_many", [3, 4, 5]), ("on_complete",)]


async def test_a_subscriber_without_lists_gets_single_elements(nursery: trio.Nursery) -> None:
    """In order, over several requests."""
    harness = Harness(nursery, from_iterable([0, 1, 2, 3]), Recorder())
    assert await harness.ask(3) == [("on_next", 0), ("on_next", 1), ("on_next", 2)]
    assert await harness.ask(3) == [("on_next", 3), ("on_complete",)]


async def test_a_lazy_iterable_is_not_read_ahead(nursery: trio.Nursery) -> None:
    """Its code would run for elements that a cancel makes superfluous.
    Subclasses of list may also be lazy.
    """
    pulled: list[int] = []

    def lazy() -> Iterator[int]:
        for number in range(10):
            pulled.append(number)
            yield number

    class Computed(list[int]):
        """A list whose iteration does something."""

        def __iter__(self) -> Iterator[int]:
            return lazy()

    for source in (from_iterable(lazy()), from_iterable(Computed(range(10)))):
        pulled.clear()
        harness = Harness(nursery, source)
        harness.recorder._hooks["on_next"] = lambda number, recorder=harness.recorder: (
            number == 2 and recorder.subscription.cancel()
        )
        assert await harness.ask(8) == [("on_next", 0), ("on_next", 1), ("on_next", 2)]
        assert pulled == [0, 1, 2]


@pytest.mark.parametrize("place", [0, 1, 3])
async def test_none_in_a_list_is_refused_behind_the_elements_before_it(
    nursery: trio.Nursery, place: int
) -> None:
    """Rule 2.13, with its position."""
    elements: list[Any] = [0, 1, 2, 3]
    elements[place] = None
    harness = Harness(nursery, from_iterable(elements))
    *before, (signal, error) = await harness.ask(10)
    assert before == ([("on_next_many", elements[:place])] if place else [])
    assert signal == "on_error"
    assert isinstance(error, UsageError)
    assert f"yielded None at position {place} " in str(error)


async def test_none_behind_a_cancel_is_not_reported(nursery: trio.Nursery) -> None:
    """After a cancel nothing is signalled, and nothing failed."""
    harness = Harness(
        nursery,
        from_iterable([0, 1, None]),
        on_next_many=lambda _: harness.recorder.subscription.cancel(),
    )
    assert await harness.ask(10) == [("on_next_many", [0, 1])]
    assert not harness.reports.violations


async def test_a_cancel_inside_a_list_ends_the_stream(nursery: trio.Nursery) -> None:
    """The list was signalled as a whole; the rest of the collection is not."""
    harness = Harness(
        nursery,
        from_iterable(range(5000)),
        on_next_many=lambda _: harness.recorder.subscription.cancel(),
    )
    assert await harness.ask(5000) == [("on_next_many", list(range(32)))]


async def test_a_list_that_shrinks_completes_early(nursery: trio.Nursery) -> None:
    """As an iterator over it does."""
    elements = list(range(10))
    harness = Harness(nursery, from_iterable(elements))
    await harness.ask(2)
    del elements[4:]
    assert await harness.ask(100) == [("on_next_many", [2, 3]), ("on_complete",)]


async def test_a_channel_hands_over_what_waits(nursery: trio.Nursery) -> None:
    """The first element ends the wait; the others that are there follow in one call."""
    send, receive = trio.open_memory_channel[int](10)
    harness = Harness(nursery, from_channel(receive))
    assert await harness.ask(5) == []
    for number in range(7):
        send.send_nowait(number)
    receive.close()  # the pump's clone alone shares the elements now
    await quiet()
    assert harness.recorder.log[0] == ("on_next", 0)
    assert harness.recorder.log[1][0] == "on_next_many"
    got = [
        number
        for entry in harness.recorder.log
        for number in (entry[1] if entry[0] == "on_next_many" else [entry[1]])
    ]
    assert got == [0, 1, 2, 3, 4]
    send.close()
    assert (await harness.ask(5))[-1] == ("on_complete",)


async def test_two_subscribers_of_a_channel_share_its_elements(nursery: trio.Nursery) -> None:
    """Neither takes all that waits before the other has run."""
    send, receive = trio.open_memory_channel[int](1000)
    counts: list[int] = []

    async def read() -> None:
        async with subscribe(from_channel(receive), demand=2000) as stream:
            counts.append(len([number async for number in stream]))

    for number in range(1000):
        send.send_nowait(number)
    nursery.start_soon(read)
    nursery.start_soon(read)
    await quiet()
    send.close()
    await quiet()
    assert sum(counts) == 1000
    assert min(counts) > 100


async def test_a_collection_can_be_iterated_as_any_async_iterator() -> None:
    """With anext and with async for, one after the other."""
    iterator = CollectionIterator([1, 2, 3])
    assert await anext(iterator) == 1
    assert [number async for number in iterator] == [2, 3]
    await iterator.aclose()
    await CollectionIterator([1]).aclose()
    assert as_source([1]) is not None


def test_none_is_found_without_comparing_elements() -> None:
    """An element whose `==` has no truth value is one of many."""

    class Array:
        def __eq__(self, other: object) -> Any:
            raise AssertionError("compared")

        __hash__ = None  # type: ignore[assignment]  # as arrays have it

    array = Array()
    assert before_none([array, None, 1])[0] is array
    assert [
        len(before_none(elements)) for elements in ([array, None, 1], [array, array], [None], [])
    ] == [1, 2, 0, 0]


def test_types_that_are_known_are_not_examined() -> None:
    """A log hands over elements that were examined when they were appended."""
    elements = BytesList([b"a", None])  # type: ignore[list-item]  # so that a look would be seen
    assert before_none(elements) is elements
