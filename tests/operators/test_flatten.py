"""`concat` and `flat_map`: whose turn it is, what each source is asked for, and what becomes of functions that fail."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock import operators as ops
from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope, Source, empty, failed, single, subscribe
from tests.operators.harness import OperatorHarness, Recorder, ScriptedError, Token, clear_tracebacks

# --------------------------------------------------------------------------------------------------------------- concat


async def test_concat_subscribes_to_a_source_when_the_one_before_has_completed() -> None:
    """Not earlier, and not only when there is demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(harness.source("a"), harness.source("b")))
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        harness.upstreams[0].complete()
        assert [upstream.name for upstream in harness.upstreams] == ["main", "a"]
        harness.upstreams[1].complete()
        harness.upstreams[2].complete()
        assert recorder.kinds == ["complete"]


async def test_concat_hands_on_exactly_the_demand_that_is_left() -> None:
    """What one source did not use, the next one is asked for: no more, no less."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(harness.source("a"), harness.source("b")))
        recorder.request(5)
        recorder.request(2)
        harness.upstreams[0].emit(3)
        harness.upstreams[0].complete()
        assert harness.upstreams[1].requests == [4]
        harness.upstreams[1].emit(4)
        harness.upstreams[1].complete()
        assert harness.upstreams[2].requests == []
        recorder.request(1)
        assert harness.upstreams[2].requests == [1]


async def test_concat_keeps_demand_that_comes_while_a_source_is_being_attached() -> None:
    """Between two sources, too, every request counts once."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def ask_meanwhile(_: Any) -> None:
            recorder.request(2)

        harness.run(ops.concat(harness.source("a", ask_meanwhile)))
        recorder.request(3)
        harness.upstreams[0].emit(1)
        harness.upstreams[0].complete()
        assert harness.upstreams[1].requests == [4]


async def test_concat_ends_with_an_error_and_begins_no_further_source() -> None:
    """The sources after it are never subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(failed(boom := ScriptedError()), harness.source("never")))
        harness.upstreams[0].complete()
        assert recorder.signals == [("error", boom)]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


async def test_concat_forgets_the_sources_whose_turn_will_not_come() -> None:
    """After the end nothing is held, also not what was still to be attached."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(harness.source("a"), harness.source("b")))
        stage: Any = recorder._subscription
        recorder.cancel()
        assert list(stage._remaining) == []
        assert stage._current is None


async def test_concat_is_what_chain_is() -> None:
    """All elements of all sources, in order, with demand smaller than any of them."""
    piped = ops.pipe(range(10), ops.concat(iter(range(10, 20)), empty(), single(20), lambda: iter(range(21, 30))))
    async with subscribe(piped, demand=3) as stream:
        assert [element async for element in stream] == list(range(30))


# -------------------------------------------------------------------------------------------------- flat_map: the inner


async def _three(n: int) -> AsyncIterator[int]:
    for each in range(3):
        await trio.lowlevel.checkpoint()
        yield 10 * n + each


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda n: [n, n], [1, 1, 2, 2]),
        (lambda n: iter([n]), [1, 2]),
        (single, [1, 2]),
        (lambda n: empty(), []),
        (_three, [10, 11, 12, 20, 21, 22]),
        (lambda n: lambda: iter([n]), [1, 2]),
        (lambda n: ops.pipe([n], ops.map(str)), ["1", "2"]),
    ],
    ids=["list", "iterator", "source", "empty", "generator", "function", "pipe"],
)
async def test_flat_map_takes_whatever_can_be_subscribed_to(function: Any, expected: list[Any]) -> None:
    """The function may return anything that `subscribe` takes."""
    async with subscribe(ops.pipe([1, 2], ops.flat_map(function))) as stream:
        assert sorted([element async for element in stream]) == expected


async def test_flat_map_runs_no_more_inner_streams_than_it_may() -> None:
    """Upstream is asked for as many elements as there may be inner streams, and for one more when one has ended."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner"), concurrency=3))
        recorder.request(100)
        main = harness.upstreams[0]
        assert main.requests == [3]
        main.emit(3)
        assert len(harness.upstreams) == 4
        harness.upstreams[2].complete()
        assert main.requests == [3, 1]
        main.emit()
        assert [upstream.over for upstream in harness.upstreams[1:]] == [False, True, False, False]


async def test_flat_map_keeps_the_place_of_an_inner_stream_until_its_last_element_has_gone_on() -> None:
    """What waits counts: otherwise inner streams that end could pile up elements without bound."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner"), concurrency=1))
        recorder.request(1)
        main = harness.upstreams[0]
        main.emit()
        inner = harness.upstreams[1]
        inner.emit()
        recorder.request(1)
        inner.emit()
        inner.complete()
        assert main.requests == [1], "nobody waits for anything below"
        recorder.request(1)
        assert main.requests == [1, 1]


async def test_flat_map_opens_nothing_while_nobody_waits_for_anything() -> None:
    """With all demand met, upstream is not asked for more, even if there is room for more inner streams."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: single(token.number), concurrency=2))
        recorder.request(1)
        main = harness.upstreams[0]
        main.emit()
        assert recorder.elements == [1]
        assert main.requests == [2]
        recorder.request(1)
        assert main.requests == [2, 1]


async def test_flat_map_asks_each_inner_stream_for_what_is_wanted_and_lets_them_take_turns() -> None:
    """At most 16 ahead; those that wait go on one by one."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner"), concurrency=2))
        recorder.request(4)
        harness.upstreams[0].emit(2)
        first, second = harness.upstreams[1:]
        assert (first.requests, second.requests) == ([4], [4])
        second.emit(2)  # 3 and 4
        first.emit(4)  # 5 and 6, then 7 and 8, which wait
        second.emit(2)  # 9 and 10
        recorder.request(3)
        assert recorder.elements == [3, 4, 5, 6, 7, 9, 8]
        recorder.request(100)
        assert recorder.elements[7:] == [10]
        assert (first.requested, second.requested) == (4 + 16, 4 + 16)


async def test_flat_map_completes_when_upstream_and_all_inner_streams_have() -> None:
    """In whatever order they do."""
    for inner_first in (False, True):
        async with OperatorHarness() as harness:
            recorder = harness.run(ops.flat_map(lambda token: harness.source("inner")))
            recorder.request(1)
            harness.upstreams[0].emit()
            for upstream in reversed(harness.upstreams) if inner_first else tuple(harness.upstreams):
                assert recorder.kinds == []
                upstream.complete()
            assert recorder.kinds == ["complete"]


@pytest.mark.parametrize("whose", [0, 1])
async def test_an_error_of_any_stream_ends_all_of_flat_map(whose: int) -> None:
    """Upstream's or an inner stream's: everything that waits is dropped, everybody else cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner")))
        recorder.request(1)
        harness.upstreams[0].emit(2)
        harness.upstreams[1].emit()
        harness.upstreams[2].emit()
        harness.upstreams[whose].fail(boom := ScriptedError())
        assert recorder.kinds == ["next", "error"]
        assert recorder.error is boom
        assert all(upstream.over for upstream in harness.upstreams)
        assert harness.held == 0


# ----------------------------------------------------------------------------------------------- flat_map: the function


async def _fails(operator: Any) -> BaseException:
    """Return what a stream of one element fails with."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator)
        recorder.request(5)
        harness.upstreams[0].emit()
        await harness.settle()
        assert recorder.kinds == ["error"]
        assert all(upstream.over for upstream in harness.upstreams)
        clear_tracebacks(recorder.error)
        assert recorder.error is not None
        return recorder.error


def _async_of(function: Any) -> Any:
    async def of(token: Token) -> Any:
        return function(token)

    return of


@pytest.mark.parametrize("dress", [lambda function: function, _async_of], ids=["plain", "async"])
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned None; it returns a stream for each element. For one without elements, return empty()"),
        (5, "returned an object that is not a stream: 'int' cannot be subscribed to"),
        ("text", "returned an object that is not a stream: str is not streamed element by element"),
    ],
)
async def test_a_function_that_returns_no_stream_fails_the_stream(dress: Any, result: Any, words: str) -> None:
    """The error names the operator and says what to return instead."""
    error = await _fails(ops.flat_map(dress(lambda token: result)))
    assert isinstance(error, UsageError)
    assert words in str(error)
    assert str(error).startswith("flat_map(")


async def test_a_function_that_returns_a_coroutine_in_disguise_fails_the_stream() -> None:
    """The coroutine is closed, and the message says what to give instead."""

    async def fetch(token: Token) -> list[int]:
        return []

    error = await _fails(ops.flat_map(lambda token: fetch(token)))  # noqa: PLW0108 (the lambda is the mistake that is tested)
    assert "so the function is async" in str(error)


async def test_an_inner_stream_that_fails_while_it_is_created_fails_the_stream() -> None:
    """Whether the function, a generator function that it returns, or the source's attach raises."""
    boom = ScriptedError()

    def broken() -> Any:
        raise boom

    class Broken(Source[Any]):
        def attach(self, subscriber: Any, scope: Scope) -> None:
            raise boom

    async def broken_later(token: Token) -> Any:
        return Broken()

    for operator in (
        ops.flat_map(lambda token: broken),
        ops.flat_map(lambda token: Broken()),
        ops.flat_map(broken_later),
    ):
        assert await _fails(operator) is boom


def test_what_is_no_function_and_no_concurrency_is_refused() -> None:
    """The messages name the operator, what it was given, and what it takes."""
    with pytest.raises(UsageError, match=r"flat_map\(\) was given \[1\]; it takes a function, plain or async, that returns a stream"):
        ops.flat_map([1])  # type: ignore[arg-type]  # the mistake that is tested
    for concurrency in (0, -1, 1.5, True, None, "2"):
        with pytest.raises(UsageError, match=r"flat_map\(concurrency=.*\): give how many inner streams may run at a time, an integer"):
            ops.flat_map(single, concurrency=concurrency)  # type: ignore[arg-type]  # the mistake that is tested


async def test_a_function_that_cancels_its_own_stream_opens_nothing() -> None:
    """The stream that it returns all the same is nobody's."""
    async with OperatorHarness() as harness:

        def stop(token: Token) -> Any:
            harness.recorder.cancel()
            return harness.source("inner")

        recorder = harness.run(ops.flat_map(stop))
        recorder.request(5)
        harness.upstreams[0].emit()
        assert recorder.kinds == []
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


# ------------------------------------------------------------------------------------------- flat_map: async functions


async def test_async_functions_run_side_by_side_within_the_concurrency() -> None:
    """That is what it is for: several calls at a time, and results as they come."""
    running: list[int] = []
    most = 0

    async def fetch(token: Token) -> list[int]:
        nonlocal most
        running.append(token.number)
        most = max(most, len(running))
        await harness.wait_unblocked()
        running.remove(token.number)
        return [token.number]

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch, concurrency=3))
        recorder.request(100)
        harness.upstreams[0].answer()
        await harness.settle()
        assert sorted(running) == [1, 2, 3]
        harness.unblock()
        while harness.upstreams[0].sent < 10:
            harness.upstreams[0].answer(10 - harness.upstreams[0].sent)
            await harness.settle()
        assert sorted(recorder.elements) == list(range(1, 11))
        assert most == 3


async def test_an_async_function_is_called_when_its_stream_is_asked_for_something() -> None:
    """Not before: nothing runs for a subscriber that waits for nothing."""
    called: list[int] = []

    async def fetch(token: Token) -> list[int]:
        called.append(token.number)
        return [token.number]

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch, concurrency=2))
        recorder.request(1)
        main = harness.upstreams[0]
        main.emit()
        await harness.settle()
        assert (called, recorder.elements) == ([1], [1])
        main.emit()
        await harness.settle()
        assert called == [1]
        recorder.request(1)
        await harness.settle()
        assert (called, recorder.elements) == ([1, 2], [1, 2])


async def test_demand_while_an_async_function_runs_is_not_lost() -> None:
    """All that was asked for before the stream was named is asked of it then."""
    async with OperatorHarness() as harness:

        async def fetch(token: Token) -> Any:
            await harness.wait_unblocked()
            return harness.source("inner")

        recorder = harness.run(ops.flat_map(fetch))
        recorder.request(2)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.request(3)
        harness.unblock()
        await harness.settle()
        assert harness.upstreams[1].requests == [5]
        recorder.request(1)
        assert harness.upstreams[1].requests == [5, 1]


async def test_cancelling_stops_async_functions_and_the_streams_that_they_named() -> None:
    """Those that run are cancelled, those that have returned have their streams cancelled."""
    stopped = []

    async def fetch(token: Token) -> Any:
        if token.number == 1:
            return harness.source("inner")
        try:
            await trio.sleep_forever()
        finally:
            stopped.append(token.number)

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch))
        recorder.request(2)
        harness.upstreams[0].emit(2)
        await harness.settle()
        recorder.cancel()
        assert harness.upstreams[1].cancelled
        await harness.settle()
        assert stopped == [2]


async def test_a_call_that_was_cancelled_before_its_turn_never_happens() -> None:
    """Between the first request and the task's first turn, everything may be over."""
    called = []

    async def fetch(token: Token) -> Any:
        called.append(token.number)
        return []

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch))
        recorder.request(1)
        harness.upstreams[0].emit()
        recorder.cancel()
        await harness.settle()
        assert called == []


async def test_a_stream_that_is_named_in_spite_of_cancellation_is_not_begun() -> None:
    """A function may finish its work when it is cancelled; nobody subscribes to what it returns."""

    async def stubborn(token: Token) -> Any:
        with trio.CancelScope(shield=True):
            await harness.wait_unblocked()
        return harness.source("inner")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(stubborn))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        harness.unblock()
        await harness.settle()
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


async def test_a_stream_that_is_cancelled_while_it_is_being_begun_is_cancelled_above() -> None:
    """A source that takes its time to greet finds out then; what is asked for after the end is nothing."""
    greeted = []

    class Hesitant(Source[Any]):
        def attach(self, subscriber: Any, scope: Scope) -> None:
            harness.recorder.cancel()
            harness.source("inner").attach(subscriber, scope)
            subscriber.request(1)
            greeted.append(subscriber)

    async def fetch(token: Token) -> Any:
        return Hesitant()

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        assert [(upstream.name, upstream.requests, upstream.cancelled) for upstream in harness.upstreams] == [
            ("main", [16], True),
            ("inner", [], True),
        ]
        assert len(greeted) == 1


async def test_a_fault_of_an_async_function_while_being_cancelled_is_told_to_the_scope() -> None:
    """Nobody listens to the stream any more, and the fault is not lost."""

    async def clumsy(token: Token) -> Any:
        try:
            await trio.sleep_forever()
        finally:
            raise ScriptedError("in cleanup")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(clumsy))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        await harness.settle()
        assert [str(failure) for failure in harness.failures] == ["in cleanup"]
        clear_tracebacks(harness.failures.pop())


async def test_a_cancelled_nursery_ends_flat_map_with_an_error() -> None:
    """Whoever still listens learns that the publisher was stopped."""

    async def forever(token: Token) -> Any:
        await trio.sleep_forever()

    async with OperatorHarness() as harness:
        recorder = Recorder(harness)
        async with trio.open_nursery() as nursery:
            ops.flat_map(forever).attach(harness.source(), recorder, Scope(nursery))
            recorder.request(1)
            harness.upstreams[0].emit()
            await harness.settle()
            nursery.cancel_scope.cancel()
        assert recorder.kinds == ["error"]
        assert isinstance(recorder.error, PublisherStopped)
        assert "flat_map(" in str(recorder.error)
        assert harness.upstreams[0].cancelled
        harness.recorder.over = True  # it was not used


async def test_a_closed_nursery_ends_flat_map_with_an_error() -> None:
    """A task that cannot start is told to the subscriber."""

    async def fetch(token: Token) -> Any:
        return []

    async with OperatorHarness() as harness:
        recorder = Recorder(harness)
        async with trio.open_nursery() as nursery:
            scope = Scope(nursery)
        ops.flat_map(fetch).attach(harness.source(), recorder, scope)
        recorder.request(1)
        harness.upstreams[0].emit()
        assert recorder.kinds == ["error"]
        assert "the nursery that this publisher was bound to has closed" in str(recorder.error)
        clear_tracebacks(recorder.error)
        assert harness.upstreams[0].cancelled
        harness.recorder.over = True  # it was not used


async def test_generators_that_flat_map_runs_are_closed_when_it_ends() -> None:
    """Leaving the block closes upstream's generator and those of all inner streams."""
    opened, closed = [], []

    async def endless(n: int) -> AsyncIterator[int]:
        opened.append(n)
        try:
            while True:
                await trio.lowlevel.checkpoint()
                yield n
        finally:
            closed.append(n)

    async with subscribe(ops.pipe(lambda: endless(0), ops.flat_map(lambda n: endless(1), concurrency=3))) as stream:
        for _ in range(20):
            await anext(stream)
    assert sorted(opened) == sorted(closed) == [0, 1, 1, 1]
