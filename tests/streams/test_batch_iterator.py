"""`from_batches`: the elements of lists, within demand, one list at a time."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
import trio

from penstock.api import AlreadySubscribed, BytesList, UsageError
from penstock.streams import Topic, as_source, collect, empty, from_batches, generate, subscribe
from tests.core._helpers import quiet
from tests.streams.test_ready_iterators import Harness, Recorder


class Batches:
    """A generator of lists that records when it is pulled, and when it is closed."""

    def __init__(self, *batches: Any) -> None:
        self.batches = batches
        self.pulled = 0
        self.closed = False

    async def __call__(self) -> AsyncIterator[Any]:
        try:
            for batch in self.batches:
                self.pulled += 1
                yield batch
        finally:
            self.closed = True


async def test_a_batch_beyond_the_demand_waits_in_part(nursery: trio.Nursery) -> None:
    """The next list is pulled when this one has been taken and there is more demand."""
    batches = Batches([0, 1, 2, 3, 4], (5, 6), range(7, 9))
    harness = Harness(nursery, from_batches(batches))
    assert batches.pulled == 0
    assert await harness.ask(2) == [("on_next", 0), ("on_next", 1)]
    assert await harness.ask(2) == [("on_next_many", [2, 3])]
    assert batches.pulled == 1
    assert await harness.ask(1) == [("on_next", 4)]
    assert batches.pulled == 1
    assert await harness.ask(100) == [
        ("on_next", 5),
        ("on_next", 6),
        ("on_next", 7),
        ("on_next", 8),
        ("on_complete",),
    ]
    assert batches.closed


async def test_a_subscriber_without_lists_gets_single_elements(nursery: trio.Nursery) -> None:
    """In order, over several requests."""
    harness = Harness(nursery, from_batches([[0, 1], [2, 3]]), Recorder())
    assert await harness.ask(3) == [("on_next", 0), ("on_next", 1), ("on_next", 2)]
    assert await harness.ask(3) == [("on_next", 3), ("on_complete",)]


def plain() -> Iterator[list[int]]:
    yield [1, 2]
    yield [3]


async def asynchronous(*batches: Any) -> AsyncIterator[Sequence[int]]:
    for batch in batches or ([1, 2], (3,)):
        yield batch


def channel() -> Any:
    send, receive = trio.open_memory_channel[list[int]](2)
    send.send_nowait([1, 2])
    send.send_nowait([3])
    send.close()
    return receive


@pytest.mark.parametrize(
    "make",
    [
        lambda: [[1, 2], [3]],
        lambda: iter([[1, 2], [3]]),
        lambda: plain,
        plain,
        lambda: asynchronous,
        asynchronous,
        lambda: generate(asynchronous, [1], [2, 3]),
        lambda: as_source([[1], [2], [3]]),
        channel,
        lambda: [[], [1, 2], [], [], [3], []],
    ],
    ids=[
        "list",
        "iterator",
        "function",
        "generator",
        "async function",
        "async generator",
        "generate",
        "source",
        "channel",
        "empty lists",
    ],
)
async def test_each_way_to_give_lists_streams_their_elements(make: Any) -> None:
    """Also one element at a time."""
    assert await collect(from_batches(make())) == [1, 2, 3]
    assert await collect(from_batches(make()), demand=1) == [1, 2, 3]


async def test_no_lists_are_an_empty_stream() -> None:
    """The end comes with the first request."""
    assert await collect(from_batches([])) == []
    assert await collect(from_batches([[]])) == []


async def test_a_list_may_be_filled_again() -> None:
    """The elements were copied when they were taken."""

    async def reusing() -> AsyncIterator[list[int]]:
        block: list[int] = []
        for start in (0, 3):
            block[:] = range(start, start + 3)
            yield block

    async with subscribe(from_batches(reusing), demand=2) as stream:
        assert [number async for number in stream] == [0, 1, 2, 3, 4, 5]


async def test_a_cancel_in_the_middle_of_a_list_closes_the_generator() -> None:
    """The elements that are left are dropped."""
    batches = Batches([0, 1, 2], [3])
    async with subscribe(from_batches(batches), demand=1) as stream:
        assert await anext(stream) == 0
        assert not batches.closed
    assert batches.closed
    assert batches.pulled == 1


async def test_a_cancel_while_the_generator_waits_is_a_cancellation_there() -> None:
    """A generator of single elements is cancelled in the same way."""
    seen: list[str] = []

    async def waits() -> AsyncIterator[list[int]]:
        try:
            yield [1, 2]
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    async with subscribe(from_batches(waits)) as stream:
        assert [await anext(stream), await anext(stream)] == [1, 2]
        await quiet()
    assert seen == ["cancelled"]


async def test_a_timeout_around_the_yield_reaches_the_generator(autojump_clock: Any) -> None:
    """It goes off while the pump waits for demand, and the list
    that the generator yields in answer is the next batch.
    """

    async def times_out() -> AsyncIterator[list[int]]:
        try:
            with trio.fail_after(1):
                yield [1]
                yield [2]
        except trio.TooSlowError:
            yield [8, 9]

    async with subscribe(from_batches(times_out), demand=0) as stream:
        stream.request(1)
        assert await anext(stream) == 1
        await trio.sleep(2)
        stream.request(5)
        assert [number async for number in stream] == [8, 9]


async def test_a_failure_comes_after_the_elements_before_it() -> None:
    """Those of the lists that were yielded."""

    async def fails() -> AsyncIterator[list[int]]:
        yield [1, 2]
        raise ValueError("no more rows")

    async with subscribe(from_batches(fails)) as stream:
        assert [await anext(stream), await anext(stream)] == [1, 2]
        with pytest.raises(ValueError, match="no more rows"):
            await anext(stream)


@pytest.mark.parametrize("batch", [5, "ab", b"ab", {1, 2}, None])
async def test_what_is_no_list_ends_the_stream_with_what_to_yield(batch: Any) -> None:
    """A text is a sequence of characters, but that is not what its author means."""
    with pytest.raises(UsageError) as caught:
        await collect(from_batches(Batches([1], batch)))
    assert str(caught.value).endswith(
        f"yielded {batch!r}, and from_batches() streams the elements of lists: yield a list or a "
        "tuple"
    )


@pytest.mark.parametrize("batches", [([1, None, 2],), ([1], [None])])
async def test_none_in_a_list_is_found_with_its_position(batches: Any) -> None:
    """Elements before it go on."""
    async with subscribe(from_batches(Batches(*batches))) as stream:
        assert await anext(stream) == 1
        with pytest.raises(UsageError, match="yielded None at position 1"):
            await anext(stream)


async def test_a_generator_of_empty_lists_lets_other_tasks_run() -> None:
    """Nothing else would make it wait."""
    ran = trio.Event()

    async def idle() -> AsyncIterator[list[int]]:
        while not ran.is_set():
            yield []
        yield [1]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        nursery.start_soon(_set, ran)
        assert await collect(from_batches(idle)) == [1]


async def _set(event: trio.Event) -> None:
    await trio.lowlevel.checkpoint()
    event.set()


async def test_an_iterator_of_lists_has_one_subscriber() -> None:
    """As every iterator has."""
    source = from_batches(iter([[1], [2]]))
    async with subscribe(source, demand=1) as stream:
        assert await anext(stream) == 1
        with pytest.raises(AlreadySubscribed):
            await collect(source)


@pytest.mark.parametrize(
    "given",
    [Topic[list[int]](), empty(), as_source([[1]]).map(list)],
    ids=["topic", "empty", "pipe"],
)
def test_a_source_that_is_not_pulled_is_refused(given: Any) -> None:
    """An operator does the same there."""
    with pytest.raises(UsageError, match=r"or write source\.flat_map\(lambda batch: batch\)$"):
        from_batches(given)


@pytest.mark.parametrize("kind", [BytesList, list, tuple])
async def test_elements_that_are_known_to_be_bytes_stay_known(
    nursery: trio.Nursery, kind: Any
) -> None:
    """A part of such a list is one, too, and that of another list is not."""
    taken: list[Any] = []

    class Many(Recorder):
        def on_next_many(self, elements: Sequence[Any]) -> None:
            taken.append(elements)

    await Harness(nursery, from_batches([kind([b"a", b"b", b"c", b"d"])]), Many()).ask(3)
    assert [type(each) for each in taken] == [BytesList if kind is BytesList else kind]
