"""`concat`, `start_with`, `flat_map`, `switch_map`:
which source is current, the demand of each, and failing functions.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope
from penstock.streams import Source, collect, empty, failed, interval, ops, single, subscribe
from tests.streams.ops.harness import (
    OperatorHarness,
    Recorder,
    ScriptedError,
    Token,
    clear_tracebacks,
)

# ------------------------------------------------------------------------------------------- concat


async def test_concat_subscribes_to_a_source_when_the_one_before_has_completed() -> None:
    """The next source is subscribed to at the completion, even without demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(harness.source("a"), harness.source("b")))
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        harness.upstreams[0].complete()
        assert [upstream.name for upstream in harness.upstreams] == ["main", "a"]
        harness.upstreams[1].complete()
        harness.upstreams[2].complete()
        assert recorder.kinds == ["complete"]


async def test_concat_passes_unused_demand_to_the_next_source() -> None:
    """The next source gets exactly the demand that the source before has not used."""
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


async def test_concat_counts_demand_during_attach_once() -> None:
    """Demand that arrives while the next source is being attached is requested once."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def request_during_attach(_: Any) -> None:
            recorder.request(2)

        harness.run(ops.concat(harness.source("a", request_during_attach)))
        recorder.request(3)
        harness.upstreams[0].emit(1)
        harness.upstreams[0].complete()
        assert harness.upstreams[1].requests == [4]


async def test_concat_attaches_no_source_after_an_error() -> None:
    """The sources after the failed one are never subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(
            ops.concat(failed(error := ScriptedError()), harness.source("never"))
        )
        harness.upstreams[0].complete()
        assert recorder.signals == [("error", error)]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


async def test_concat_drops_its_remaining_sources_at_the_end() -> None:
    """After the end the stage refers to no source, not even to those that were never attached."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(harness.source("a"), harness.source("b")))
        stage: Any = recorder._subscription
        recorder.cancel()
        assert list(stage._remaining) == []
        assert stage._current is None


async def test_concat_gives_the_elements_of_itertools_chain() -> None:
    """All elements of all sources, in order, with less demand than any source has elements."""
    piped = ops.pipe(
        range(10), ops.concat(iter(range(10, 20)), empty(), single(20), lambda: iter(range(21, 30)))
    )
    async with subscribe(piped, demand=3) as stream:
        assert [element async for element in stream] == list(range(30))


# --------------------------------------------------------------------------------------- start_with


async def test_start_with_subscribes_at_once_and_requests_after_its_elements() -> None:
    """The source is subscribed to before any demand, and gets the demand
    that the elements have left.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.start_with("a", "b"))
        assert len(harness.upstreams) == 1
        recorder.request(1)
        assert harness.upstreams[0].requests == []
        recorder.request(3)
        assert recorder.elements == ["a", "b"]
        assert harness.upstreams[0].requests == [2]
        recorder.request(4)
        assert harness.upstreams[0].requests == [2, 4]
        harness.upstreams[0].emit(6)
        assert recorder.elements == ["a", "b", 1, 2, 3, 4, 5, 6]


async def test_start_with_answers_requests_from_inside_on_next_without_recursion() -> None:
    """A subscriber that requests one more in each on_next is never signalled inside it."""
    async with OperatorHarness() as harness:
        harness.answers_in_request, harness.source_length = True, 3
        recorder = harness.run(ops.start_with(*"abc"))
        recorder.on_element = lambda: recorder.request(1)
        recorder.request(1)
        assert recorder.elements == ["a", "b", "c", 1, 2, 3]
        assert recorder.kinds[-1] == "complete"
        assert recorder.deepest == 1


async def test_start_with_completes_after_its_elements() -> None:
    """Elements that were not requested before the source completed go on,
    and then the completion.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.start_with("a", "b"))
        harness.upstreams[0].complete()
        recorder.request(1)
        assert recorder.kinds == ["next"]
        recorder.request(1)
        assert recorder.kinds == ["next", "next", "complete"]


async def test_an_error_overtakes_the_elements_of_start_with() -> None:
    """Errors do not wait for demand, so elements that were not requested are dropped."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.start_with("a", "b"))
        recorder.request(1)
        harness.upstreams[0].fail()
        recorder.request(1)
        assert recorder.kinds == ["next", "error"]


async def test_start_with_begins_with_the_same_elements_for_each_subscriber() -> None:
    """The operator keeps its elements; without any, it changes nothing."""
    begun = ops.pipe([3], ops.start_with(1, 2))
    assert await collect(begun) == [1, 2, 3]
    assert await collect(begun) == [1, 2, 3]
    assert await collect(ops.pipe([3], ops.start_with())) == [3]


def test_start_with_refuses_none() -> None:
    """None is never an element; the error is raised at the call."""
    with pytest.raises(UsageError, match=r"start_with\(None\): None is never an element"):
        ops.start_with(1, None)


# ------------------------------------------------------------------------------ flat_map: the inner


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
async def test_flat_map_accepts_every_kind_of_stream(function: Any, expected: list[Any]) -> None:
    """The function may return anything that `subscribe` accepts."""
    async with subscribe(ops.pipe([1, 2], ops.flat_map(function))) as stream:
        assert sorted([element async for element in stream]) == expected


async def test_flat_map_runs_at_most_concurrency_inner_streams() -> None:
    """Upstream is asked for `concurrency` elements, and for one more
    when an inner stream has ended.
    """
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


async def test_flat_map_counts_an_inner_stream_until_its_last_element_has_gone_on() -> None:
    """Otherwise inner streams that have ended could hold an unbounded number of elements."""
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
        assert main.requests == [1], "downstream has no demand, so no inner stream is needed"
        recorder.request(1)
        assert main.requests == [1, 1]


async def test_flat_map_opens_no_inner_stream_without_demand() -> None:
    """While all demand is met, upstream is not asked for elements,
    even with fewer inner streams than `concurrency`.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: single(token.number), concurrency=2))
        recorder.request(1)
        main = harness.upstreams[0]
        main.emit()
        assert recorder.elements == [1]
        assert main.requests == [2]
        recorder.request(1)
        assert main.requests == [2, 1]


async def test_flat_map_passes_demand_to_inner_streams_and_takes_turns() -> None:
    """Each inner stream is asked for at most 16 elements ahead.
    Waiting inner streams take turns, one element each.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner"), concurrency=2))
        recorder.request(4)
        harness.upstreams[0].emit(2)
        first, second = harness.upstreams[1:]
        assert (first.requests, second.requests) == ([4], [4])
        second.emit(2)  # 3 and 4
        first.emit(4)  # 5 and 6; then 7 and 8, which wait for demand
        second.emit(2)  # 9 and 10
        recorder.request(3)
        assert recorder.elements == [3, 4, 5, 6, 7, 9, 8]
        recorder.request(100)
        assert recorder.elements[7:] == [10]
        assert (first.requested, second.requested) == (4 + 16, 4 + 16)


async def test_flat_map_completes_when_upstream_and_all_inner_streams_have() -> None:
    """The order of their completions does not matter."""
    for inner_first in (False, True):
        async with OperatorHarness() as harness:
            recorder = harness.run(ops.flat_map(lambda token: harness.source("inner")))
            recorder.request(1)
            harness.upstreams[0].emit()
            for upstream in (
                reversed(harness.upstreams) if inner_first else tuple(harness.upstreams)
            ):
                assert recorder.kinds == []
                upstream.complete()
            assert recorder.kinds == ["complete"]


@pytest.mark.parametrize("failing", [0, 1])
async def test_an_error_of_any_stream_ends_flat_map(failing: int) -> None:
    """An error of upstream or of an inner stream drops waiting elements
    and cancels all other streams.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(lambda token: harness.source("inner")))
        recorder.request(1)
        harness.upstreams[0].emit(2)
        harness.upstreams[1].emit()
        harness.upstreams[2].emit()
        harness.upstreams[failing].fail(error := ScriptedError())
        assert recorder.kinds == ["next", "error"]
        assert recorder.error is error
        assert all(upstream.over for upstream in harness.upstreams)
        assert harness.held == 0


# --------------------------------------------------------------------------- flat_map: the function


async def _fails(operator: Any) -> BaseException:
    """Return the error of a stream with one element."""
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
    async def wrapper(token: Token) -> Any:
        return function(token)

    return wrapper


@pytest.mark.parametrize("dress", [lambda function: function, _async_of], ids=["plain", "async"])
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            None,
            (
                "returned None; it returns a stream for each element. For one without elements, "
                "return empty()"
            ),
        ),
        (5, "returned an object that is not a stream: 'int' cannot be subscribed to"),
        ("text", "returned an object that is not a stream: str is not streamed element by element"),
    ],
)
async def test_a_function_without_a_stream_as_its_result_fails_the_stream(
    dress: Any, result: Any, words: str
) -> None:
    """The error names the operator and says what to return."""
    error = await _fails(ops.flat_map(dress(lambda token: result)))
    assert isinstance(error, UsageError)
    assert words in str(error)
    assert str(error).startswith("flat_map(")


async def test_a_plain_function_that_returns_a_coroutine_fails_the_stream() -> None:
    """The coroutine is closed, and the error says what to give."""

    async def fetch(token: Token) -> list[int]:
        return []

    error = await _fails(ops.flat_map(lambda token: fetch(token)))  # noqa: PLW0108 (the lambda is the mistake that is tested)
    assert "so the function is async" in str(error)


async def test_an_error_during_the_creation_of_an_inner_stream_fails_the_stream() -> None:
    """The error may come from the function, from a generator function that it returns,
    or from the attach of a source.
    """
    error = ScriptedError()

    def broken() -> Any:
        raise error

    class Broken(Source[Any]):
        def attach(self, subscriber: Any, scope: Scope) -> None:
            raise error

    async def broken_later(token: Token) -> Any:
        return Broken()

    for operator in (
        ops.flat_map(lambda token: broken),
        ops.flat_map(lambda token: Broken()),
        ops.flat_map(broken_later),
    ):
        assert await _fails(operator) is error


def test_wrong_arguments_of_flat_map_are_refused() -> None:
    """The errors name the operator, the argument, and its allowed values."""
    with pytest.raises(
        UsageError,
        match=r"flat_map\(\) was given \[1\]; it takes a function, plain or async, that returns a stream",
    ):
        ops.flat_map([1])  # type: ignore[arg-type]  # the mistake that is tested
    for concurrency in (0, -1, 1.5, True, None, "2"):
        with pytest.raises(
            UsageError,
            match=r"flat_map\(concurrency=.*\): give how many inner streams may run at a time, an integer",
        ):
            ops.flat_map(single, concurrency=concurrency)  # type: ignore[arg-type]  # the mistake that is tested


async def test_a_function_that_cancels_its_own_stream_opens_no_inner_stream() -> None:
    """The stream that the function returns is not subscribed to."""
    async with OperatorHarness() as harness:

        def stop(token: Token) -> Any:
            harness.recorder.cancel()
            return harness.source("inner")

        recorder = harness.run(ops.flat_map(stop))
        recorder.request(5)
        harness.upstreams[0].emit()
        assert recorder.kinds == []
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


# ------------------------------------------------------------------------ flat_map: async functions


async def test_async_functions_run_concurrently_within_the_limit() -> None:
    """Three calls run at a time with concurrency=3, and results go on as they arrive."""
    running: list[int] = []
    max_running = 0

    async def fetch(token: Token) -> list[int]:
        nonlocal max_running
        running.append(token.number)
        max_running = max(max_running, len(running))
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
        assert max_running == 3


async def test_an_async_function_is_called_at_the_first_demand_for_its_stream() -> None:
    """Without downstream demand the function does not run."""
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


async def test_demand_while_an_async_function_runs_is_kept() -> None:
    """When the function returns its stream, all demand until then is requested from it."""
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


async def test_a_cancel_cancels_running_functions_and_their_streams() -> None:
    """Running calls are cancelled, and so are the streams of calls that have returned."""
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


async def test_a_cancel_before_the_task_runs_prevents_the_call_of_flat_map() -> None:
    """If the stream ends between the first request and the first step of the task,
    the function is never called.
    """
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


async def test_the_stream_of_a_shielded_function_is_not_attached_after_cancel() -> None:
    """A function may finish in spite of the cancel.
    The stream that it returns is not subscribed to.
    """

    async def shielded(token: Token) -> Any:
        with trio.CancelScope(shield=True):
            await harness.wait_unblocked()
        return harness.source("inner")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(shielded))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        harness.unblock()
        await harness.settle()
        assert [upstream.name for upstream in harness.upstreams] == ["main"]


async def test_a_cancel_during_attach_cancels_the_inner_stream() -> None:
    """A source that calls on_subscribe after the cancel is cancelled,
    and later requests have no effect.
    """
    attached = []

    class CancelsFirst(Source[Any]):
        def attach(self, subscriber: Any, scope: Scope) -> None:
            harness.recorder.cancel()
            harness.source("inner").attach(subscriber, scope)
            subscriber.request(1)
            attached.append(subscriber)

    async def fetch(token: Token) -> Any:
        return CancelsFirst()

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(fetch))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        assert [
            (upstream.name, upstream.requests, upstream.cancelled) for upstream in harness.upstreams
        ] == [
            ("main", [16], True),
            ("inner", [], True),
        ]
        assert len(attached) == 1


async def test_an_error_of_an_async_function_during_cancellation_goes_to_the_scope() -> None:
    """After the cancel the error has no subscriber to go to, and it must not be lost."""

    async def raises_in_cleanup(token: Token) -> Any:
        try:
            await trio.sleep_forever()
        finally:
            raise ScriptedError("in cleanup")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.flat_map(raises_in_cleanup))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        await harness.settle()
        assert [str(failure) for failure in harness.failures] == ["in cleanup"]
        clear_tracebacks(harness.failures.pop())


async def test_a_cancelled_nursery_fails_flat_map() -> None:
    """The subscriber gets PublisherStopped."""

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


async def test_a_closed_nursery_fails_flat_map() -> None:
    """If the task cannot start, the subscriber gets the error."""

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


async def test_generators_of_flat_map_are_closed_at_its_end() -> None:
    """Leaving the block closes the generator of upstream and those of all inner streams."""
    opened, closed = [], []

    async def endless(n: int) -> AsyncIterator[int]:
        opened.append(n)
        try:
            while True:
                await trio.lowlevel.checkpoint()
                yield n
        finally:
            closed.append(n)

    async with subscribe(
        ops.pipe(lambda: endless(0), ops.flat_map(lambda n: endless(1), concurrency=3))
    ) as stream:
        for _ in range(20):
            await anext(stream)
    assert sorted(opened) == sorted(closed) == [0, 1, 1, 1]


# --------------------------------------------------------------------------------------- switch_map


async def test_switch_map_cancels_the_inner_stream_at_the_next_element() -> None:
    """The new inner stream gets the demand that is left."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
        recorder.request(5)
        main = harness.upstreams[0]
        assert main.requests == [1]
        main.emit()
        harness.upstreams[1].emit(2)
        main.emit()
        assert harness.upstreams[1].cancelled
        assert [upstream.requests for upstream in harness.upstreams] == [[1, 1, 1], [5], [3]]
        harness.upstreams[2].emit(3)
        assert recorder.elements == [2, 3, 5, 6, 7]


async def test_switch_map_requests_nothing_from_upstream_without_demand() -> None:
    """One element may be under way;
    the stream that it opens gets no demand before the next request.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
        recorder.request(1)
        main = harness.upstreams[0]
        main.emit()
        harness.upstreams[1].emit()
        main.emit()
        assert main.outstanding == 0
        assert harness.upstreams[2].requests == []
        recorder.request(1)
        assert main.outstanding == 1
        assert harness.upstreams[2].requests == [1]


async def test_a_switch_inside_on_next_waits_for_its_end() -> None:
    """If upstream signals while the subscriber is in on_next, a new inner stream that answers at
    once does not signal inside it.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
        recorder.request(5)
        main = harness.upstreams[0]
        main.emit()

        def switch() -> None:
            recorder.on_element = None
            main.emit()
            harness.upstreams[2].emit(2)
            harness.upstreams[2].complete()

        recorder.on_element = switch
        harness.upstreams[1].emit()
        assert recorder.elements == [2, 4, 5]
        assert recorder.deepest == 1
        main.complete()
        assert recorder.kinds[-1] == "complete"


async def test_a_switch_drops_the_waiting_elements_of_the_old_stream() -> None:
    """They arrived while the subscriber was in on_next,
    and the next element of upstream came before that ended.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
        recorder.request(5)
        main = harness.upstreams[0]
        main.emit()

        def switch() -> None:
            recorder.on_element = None
            harness.upstreams[1].emit(2)
            assert harness.held == 2
            main.emit()
            assert harness.held == 0

        recorder.on_element = switch
        harness.upstreams[1].emit()
        assert recorder.elements == [2]


async def test_switch_map_completes_when_upstream_and_the_inner_stream_have() -> None:
    """In either order; an upstream without elements completes the stream at once."""
    for order in ([0, 1], [1, 0]):
        async with OperatorHarness() as harness:
            recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
            recorder.request(1)
            harness.upstreams[0].emit()
            for each in order:
                assert recorder.kinds == []
                harness.upstreams[each].complete()
            assert recorder.kinds == ["complete"]


@pytest.mark.parametrize("failing", [0, 1])
async def test_an_error_of_upstream_or_of_the_inner_stream_ends_switch_map(failing: int) -> None:
    """The other one is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.switch_map(lambda token: harness.source("inner")))
        recorder.request(1)
        harness.upstreams[0].emit()
        harness.upstreams[failing].fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        assert harness.upstreams[1 - failing].cancelled


async def test_a_newer_element_cancels_the_async_function_of_switch_map(
    autojump_clock: Any,
) -> None:
    """Only the call for the last of three elements returns."""
    calls: list[str] = []

    async def fetch(number: int) -> list[int]:
        calls.append(f"begin {number}")
        try:
            await trio.sleep(2)
        except trio.Cancelled:
            calls.append(f"cancelled {number}")
            raise
        return [number]

    result = await collect(ops.pipe(interval(1), ops.take(3), ops.switch_map(fetch)))
    assert result == [2]
    # A cancelled call and the next one are two tasks: which of them runs first is not promised.
    assert [call for call in calls if call.startswith("begin")] == ["begin 0", "begin 1", "begin 2"]
    assert [call for call in calls if call.startswith("cancelled")] == [
        "cancelled 0",
        "cancelled 1",
    ]


def test_switch_map_takes_a_function() -> None:
    """The error names the operator."""
    with pytest.raises(
        UsageError,
        match=r"switch_map\(\) was given \[1\]; it takes a function, plain or async, that returns a stream",
    ):
        ops.switch_map([1])  # type: ignore[arg-type]  # the mistake that is tested
