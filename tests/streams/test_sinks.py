"""Each sink opens a stream, reads it, closes it, and raises errors unchanged."""

from functools import partial

import pytest
import trio
from trio.testing import assert_checkpoints

from penstock.api import LimitExceeded, NoElement, UsageError
from penstock.streams import (
    collect,
    empty,
    failed,
    first,
    for_each,
    from_iterable,
    single,
    to_channel,
)
from penstock.streams._sinks import COLLECT_LIMIT
from penstock.testing import ManualPublisher
from tests.core._helpers import numbers, our_tasks, quiet, raised_by

FAILURE = KeyError("publisher")


async def two_and_a_failure():
    yield 1
    yield 2
    raise FAILURE


def _ignore(element: object) -> None:
    """Do nothing."""


async def _send(source) -> int:
    send, receive = trio.open_memory_channel[int](1000)
    with receive:
        return await to_channel(source, send)


SINKS = {
    "collect": collect,
    "first": lambda source: first(source, default=None),
    "for_each": lambda source: for_each(source, _ignore),
    "to_channel": _send,
}


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
@pytest.mark.parametrize(
    "source",
    [[], [1], empty(), single(1), lambda: numbers(3)],
    ids=["[]", "[1]", "empty", "single", "generator"],
)
async def test_a_sink_checkpoints_and_leaves_no_task(sink, source) -> None:
    """Also on an empty stream."""
    with assert_checkpoints():
        await sink(source)
    assert our_tasks() == []


@pytest.mark.parametrize(
    "sink",
    [SINKS["collect"], SINKS["for_each"], SINKS["to_channel"]],
    ids=["collect", "for_each", "to_channel"],
)
async def test_a_sink_raises_the_publishers_error_unchanged(sink) -> None:
    """Not in a group."""
    assert await raised_by(lambda: sink(two_and_a_failure)) is FAILURE
    assert our_tasks() == []


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
async def test_a_sink_refuses_an_object_that_cannot_be_streamed(sink) -> None:
    """Before a stream is opened."""
    error = await raised_by(lambda: sink(5))
    assert isinstance(error, UsageError)
    assert str(error).startswith("'int' cannot be subscribed to")


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
async def test_a_sink_can_be_cancelled(sink, autojump_clock) -> None:
    """Its publisher has stopped then."""
    publisher = ManualPublisher()
    with trio.move_on_after(1) as scope:
        await sink(publisher)
    assert scope.cancelled_caught
    assert publisher.cancelled
    publisher.check()


WITH_DEMAND = {
    "collect": lambda demand: collect([1], demand=demand),
    "for_each": lambda demand: for_each([1], _ignore, demand=demand),
    "to_channel": lambda demand: to_channel(
        [1], trio.open_memory_channel[int](1)[0], demand=demand
    ),
}


@pytest.mark.parametrize("sink", WITH_DEMAND.values(), ids=WITH_DEMAND)
async def test_a_sink_refuses_manual_demand(sink) -> None:
    """It cannot call request(). Other illegal demands are refused as everywhere."""
    error = await raised_by(lambda: sink(0))
    assert str(error) == (
        "demand=0 means that you call request() yourself, and a sink has nowhere to do it; "
        "give at least 1"
    )
    assert isinstance(error, UsageError)
    for wrong in (-1, "1", True):
        assert isinstance(await raised_by(lambda wrong=wrong: sink(wrong)), UsageError)


@pytest.mark.parametrize("demand", [1, 2, 7, 2**70])
async def test_a_sink_uses_the_demand_that_was_given(demand: int) -> None:
    """The result does not depend on it."""
    assert await collect(range(20), demand=demand) == list(range(20))
    assert await for_each(range(20), _ignore, demand=demand) == 20


# --- collect


@pytest.mark.parametrize("limit", [0, 1, 5, 300])
async def test_collect_holds_no_more_than_its_limit(limit: int) -> None:
    """`limit` elements are accepted, one more is not. The error has the bound's name and value."""
    assert await collect(range(limit), limit=limit) == list(range(limit))
    error = await raised_by(lambda: collect(range(limit + 1), limit=limit))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value) == ("collect", limit)
    assert str(error) == (
        f"collect() was given more than {limit} elements. Raise limit=, shorten the stream with "
        "take(), or use the elements as they come: `async for` needs no list"
    )


async def test_collect_stops_an_endless_stream_at_its_limit() -> None:
    """Also by default: a list of a stream is a buffer, and every buffer has a bound."""
    assert COLLECT_LIMIT == 100_000
    error = await raised_by(lambda: collect(numbers))
    assert isinstance(error, LimitExceeded)
    assert error.value == COLLECT_LIMIT
    assert our_tasks() == []


async def test_collect_without_a_limit_takes_all_elements() -> None:
    """`limit=None` says so explicitly."""
    assert len(await collect(range(COLLECT_LIMIT + 1), limit=None)) == COLLECT_LIMIT + 1


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "5"])
async def test_a_limit_is_a_count(wrong) -> None:
    """Or None. The mistake raises before a stream is opened."""
    error = await raised_by(lambda: collect(ManualPublisher(), limit=wrong))
    assert str(error) == f"limit={wrong!r}; give how many elements, an integer of at least 0"
    assert isinstance(error, UsageError)


# --- first


async def test_first_takes_one_and_cancels_the_rest() -> None:
    """It requests one element, and cancels after it."""
    publisher = ManualPublisher()
    results: list[int] = []

    async def take() -> None:
        results.append(await first(publisher))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await quiet()
        assert publisher.subscription.requests == [1]
        publisher.emit(7)
    assert results == [7]
    assert publisher.cancelled


async def test_first_closes_the_generator_before_it_returns(autojump_clock) -> None:
    """Cleanup may wait, and `first` waits for it."""
    closed: list[float] = []

    async def slow():
        try:
            yield 1
        finally:
            await trio.sleep(2)
            closed.append(trio.current_time())

    assert await first(slow) == 1
    assert closed == [2.0]


async def test_first_of_nothing_is_an_error_or_the_default() -> None:
    """None is a valid default."""
    error = await raised_by(lambda: first([]))
    assert isinstance(error, NoElement)
    assert str(error) == (
        "the stream ended before its first element; give first(…, default=…) what to return "
        "in that case"
    )
    for default in (None, 0, NoElement):
        assert await first([], default=default) is default
    assert await first([5], default=7) == 5


async def test_first_of_a_failure_is_the_failure() -> None:
    """A default changes nothing: a failure is not an empty stream."""
    assert await raised_by(lambda: first(failed(FAILURE))) is FAILURE
    assert await raised_by(lambda: first(failed(FAILURE), default=None)) is FAILURE


# --- for_each


async def test_for_each_calls_a_plain_function_in_order_and_counts() -> None:
    """Its results are ignored."""
    seen: list[int] = []
    assert await for_each(from_iterable(range(5)), seen.append) == 5
    assert seen == list(range(5))


async def test_for_each_awaits_an_async_function_one_at_a_time(autojump_clock) -> None:
    """The next element waits for the last call."""
    seen: list[tuple[float, int]] = []

    async def slow(element: int) -> None:
        await trio.sleep(1)
        seen.append((trio.current_time(), element))

    assert await for_each(range(3), slow) == 3
    assert seen == [(1.0, 0), (2.0, 1), (3.0, 2)]


async def test_for_each_awaits_any_awaitable_result() -> None:
    """Also that of a plain function that returns a coroutine."""
    seen: list[int] = []

    async def note(element: int) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(element)

    def disguised(element: int):
        return note(element)

    assert await for_each(range(3), disguised) == 3
    assert seen == [0, 1, 2]


async def test_for_each_raises_the_functions_error_and_cancels() -> None:
    """The same exception object; the stream is cancelled."""
    raised = OSError("function")

    def failing(element: int) -> None:
        if element == 3:
            raise raised

    assert await raised_by(lambda: for_each(numbers, failing)) is raised
    assert our_tasks() == []


@pytest.mark.parametrize("wrong", [None, 5, "print"])
async def test_for_each_needs_a_function(wrong) -> None:
    """The mistake raises before a stream is opened."""
    publisher = ManualPublisher()
    error = await raised_by(lambda: for_each(publisher, wrong))
    assert (
        str(error)
        == f"for_each() was given {wrong!r}; it takes a function, plain or async, of one element"
    )
    assert isinstance(error, UsageError)
    assert publisher.subscriptions == []


# --- to_channel


async def test_to_channel_sends_in_order_and_closes_its_end() -> None:
    """So the receiver's loop ends."""
    send, receive = trio.open_memory_channel[int](0)
    got: list[int] = []

    async def read() -> None:
        got.extend([element async for element in receive])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        assert await to_channel(range(20), send, demand=3) == 20
    assert got == list(range(20))
    receive.close()


async def test_to_channel_closes_its_end_after_every_error() -> None:
    """A failing publisher, an object that is not a source, an illegal demand:
    the receiver must not wait forever.
    """
    for source, demand in ((two_and_a_failure, 5), (5, 5), ([1], 0), ([1], -1)):
        send, receive = trio.open_memory_channel[int](10)
        await raised_by(
            lambda source=source, send=send, demand=demand: to_channel(source, send, demand=demand)
        )
        assert receive.statistics().open_send_channels == 0
        receive.close()


async def test_to_channel_raises_when_the_receiver_has_closed() -> None:
    """Not in a group, and the publisher is cancelled."""
    send, receive = trio.open_memory_channel[int](0)
    receive.close()
    publisher = ManualPublisher()

    async def emit() -> None:
        await quiet()
        publisher.emit(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(emit)
        assert isinstance(
            await raised_by(lambda: to_channel(publisher, send)), trio.BrokenResourceError
        )
    assert publisher.cancelled
    publisher.check()


async def test_a_slow_receiver_slows_the_publisher_down() -> None:
    """At most the demand and the channel's own buffer are under way."""
    send, receive = trio.open_memory_channel[int](2)
    pulled: list[int] = []

    async def watched():
        for number in range(100):
            pulled.append(number)
            yield number

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(to_channel, watched, send, demand=4))
        await quiet()
        assert len(pulled) <= 4 + 2 + 1
        nursery.cancel_scope.cancel()
    receive.close()
