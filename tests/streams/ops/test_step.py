"""`Step`: plain functions run inside `on_next`, async functions in one task. Both keep order,
demand, and the rules after the end.
"""

import functools
from typing import Any

import pytest
import trio

from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope
from penstock.streams import ops, subscribe
from penstock.streams.ops._step import (
    FINISHED_STEP,
    WINDOW,
    Step,
    checked_element,
    is_async,
    step_operator,
)
from tests.streams.ops.harness import (
    OperatorHarness,
    Recorder,
    ScriptedError,
    Token,
    clear_tracebacks,
)


async def _async(element: Any) -> Any:
    return element


class _AsyncObject:
    async def __call__(self, element: Any) -> Any:
        return element


class _Slow:
    """An async function whose calls wait until `release`."""

    def __init__(self) -> None:
        self.called: list[int] = []
        self.running = 0
        self.max_running = 0
        self._events: list[trio.Event] = []

    async def __call__(self, token: Token) -> Token:
        self.called.append(token.number)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        event = trio.Event()
        self._events.append(event)
        try:
            await event.wait()
        finally:
            self.running -= 1
        return token

    async def release(self, harness: OperatorHarness, count: int = 1) -> None:
        for _ in range(count):
            self._events.pop(0).set()
            await harness.settle()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_async, True),
        (_AsyncObject(), True),
        (functools.partial(_async), True),
        (_AsyncObject, False),
        (len, False),
        (str, False),
        (lambda element: element, False),
    ],
    ids=["function", "object", "partial", "class of async objects", "builtin", "class", "lambda"],
)
def test_is_async_recognises_async_callables(function: Any, expected: bool) -> None:
    """A callable is async if a call of it returns an awaitable."""
    assert is_async(function) is expected


async def test_an_async_function_processes_one_element_at_a_time() -> None:
    """The next call begins when the call before has ended and its result has been passed on."""
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        await harness.settle()
        assert (slow.called, recorder.elements) == ([1], [])
        await slow.release(harness)
        assert (slow.called, recorder.elements) == ([1, 2], [1])
        await slow.release(harness, 2)
        assert recorder.elements == [1, 2, 3]
        assert slow.max_running == 1


async def test_the_task_lives_from_the_first_element_to_the_end() -> None:
    """A stage without an element has no task, and neither has one that is over."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(_async))
        recorder.request(3)
        await harness.settle()
        assert harness.scope.running == 0
        harness.upstreams[0].emit()
        await harness.settle()
        assert harness.scope.running == 1
        harness.upstreams[0].complete()
        await harness.settle()
        assert recorder.kinds == ["next", "complete"]
        assert harness.scope.running == 0


async def test_requests_pass_at_once_up_to_the_window() -> None:
    """A hot source drops elements without demand, so a request must not wait for the task."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(_async))
        for _ in range(3):
            recorder.request(1)
        assert harness.upstreams[0].requests == [1, 1, 1]
        recorder.request(100)
        assert harness.upstreams[0].requests == [1, 1, 1, WINDOW - 3]
        recorder.request(100)
        assert harness.upstreams[0].requested == WINDOW


async def test_the_window_is_refilled_in_halves() -> None:
    """Upstream gets one request for eight elements, not one for each."""
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(100)
        harness.upstreams[0].emit(WINDOW)
        await harness.settle()
        await slow.release(harness, WINDOW // 2 - 1)
        assert harness.upstreams[0].requests == [WINDOW]
        await slow.release(harness)
        assert harness.upstreams[0].requests == [WINDOW, WINDOW // 2]
        assert recorder.received == WINDOW // 2


async def test_elements_left_out_are_requested_again() -> None:
    """Downstream demand is met although an async predicate leaves elements out."""

    async def fifth(token: Token) -> bool:
        return token.number % 5 == 0

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.filter(fifth))
        recorder.request(3)
        while harness.upstreams[0].outstanding:
            harness.upstreams[0].answer()
            await harness.settle()
        assert recorder.elements == [5, 10, 15]
        assert harness.upstreams[0].requested == 15


async def test_completion_waits_for_queued_elements() -> None:
    """Elements that arrived before the completion are processed and passed on first."""
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(2)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        await harness.settle()
        assert recorder.kinds == []
        recorder.request(5)
        await slow.release(harness, 2)
        assert recorder.kinds == ["next", "next", "complete"]


async def test_an_upstream_error_drops_the_queue_and_cancels_the_function() -> None:
    """The running call is cancelled, and the function is not called for queued elements."""
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        await harness.settle()
        harness.upstreams[0].fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        await harness.settle()
        assert slow.running == 0
        assert slow.called == [1]


async def test_a_cancel_cancels_the_function() -> None:
    """The running call is cancelled, and its result is dropped."""
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        await harness.settle()
        subscription: Any = recorder._subscription
        recorder.cancel()
        subscription.request(1)
        subscription.cancel()
        await harness.settle()
        assert slow.running == 0
        assert recorder.kinds == []


async def test_a_cancel_before_the_task_runs_prevents_the_call() -> None:
    """If the stream ends between the first element and the first step of the task,
    the function is never called.
    """
    slow = _Slow()
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(slow))
        recorder.request(1)
        harness.upstreams[0].emit()
        recorder.cancel()
        await harness.settle()
        assert slow.called == []


async def test_the_result_of_a_shielded_function_is_dropped_after_cancel() -> None:
    """A function may finish in spite of the cancel. Its result is not passed on."""

    async def shielded(token: Token) -> Token:
        with trio.CancelScope(shield=True):
            await harness.wait_unblocked()
        return token

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(shielded))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        harness.unblock()
        await harness.settle()
        assert recorder.kinds == []


async def test_an_error_during_cancellation_goes_to_the_scope() -> None:
    """After the cancel the error has no subscriber to go to, and it must not be lost."""

    async def raises_in_cleanup(token: Token) -> Token:
        try:
            await trio.sleep_forever()
        finally:
            raise ScriptedError("in cleanup")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.map(raises_in_cleanup))
        recorder.request(1)
        harness.upstreams[0].emit()
        await harness.settle()
        recorder.cancel()
        await harness.settle()
        assert [str(failure) for failure in harness.failures] == ["in cleanup"]
        assert recorder.kinds == []
        clear_tracebacks(harness.failures.pop())


@pytest.mark.parametrize(
    ("operator", "numbers", "expected"),
    [
        (ops.take_while, 3, ["next", "next", "complete"]),
        (ops.first, 1, ["next", "complete"]),
    ],
    ids=["take_while", "first"],
)
async def test_an_async_predicate_can_end_the_stream(
    operator: Any, numbers: int, expected: list[str]
) -> None:
    """The element that decides also ends the stream.
    Later elements are dropped, and upstream is cancelled.
    """

    async def below_three(token: Token) -> bool:
        return token.number < 3

    async with OperatorHarness() as harness:
        recorder = harness.run(operator(below_three))
        recorder.request(10)
        harness.upstreams[0].emit(10)
        await harness.settle()
        assert recorder.kinds == expected
        assert harness.upstreams[0].cancelled


async def test_a_cancelled_nursery_fails_the_stream() -> None:
    """The subscriber gets PublisherStopped with a hint."""
    async with OperatorHarness() as harness:
        recorder = Recorder(harness)
        async with trio.open_nursery() as nursery:
            ops.map(_async).attach(harness.source(), recorder, Scope(nursery))
            recorder.request(2)
            harness.upstreams[0].emit()
            await harness.settle()
            nursery.cancel_scope.cancel()
        assert recorder.kinds == ["next", "error"]
        assert isinstance(recorder.error, PublisherStopped)
        assert "map(_async) was stopped: the nursery that ran it was cancelled" in str(
            recorder.error
        )
        assert harness.upstreams[0].cancelled
        harness.recorder.over = True  # it was not used


async def test_a_closed_nursery_fails_the_stream() -> None:
    """If the task cannot start, the subscriber gets the error, and the element is dropped."""
    async with OperatorHarness() as harness:
        recorder = Recorder(harness)
        async with trio.open_nursery() as nursery:
            scope = Scope(nursery)
        ops.map(_async).attach(harness.source(), recorder, scope)
        recorder.request(2)
        harness.upstreams[0].emit()
        assert recorder.kinds == ["error"]
        assert (
            "penstock map(_async) cannot start: the nursery that this publisher was bound to "
            "has closed"
        ) in str(recorder.error)
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)
        harness.recorder.over = True  # it was not used


def test_none_and_coroutines_are_not_elements() -> None:
    """Every other value is accepted."""
    assert checked_element(0, "map(f)") == 0
    with pytest.raises(
        UsageError, match=r"^map\(f\) returned None, which is never an element \(rule 2.13\)"
    ):
        checked_element(None, "map(f)")
    coroutine = _async(1)
    with pytest.raises(UsageError, match=r"^map\(f\) returned a coroutine"):
        checked_element(coroutine, "map(f)")
    assert coroutine.cr_frame is None, (
        "the coroutine is closed, so that Python does not warn about it"
    )


def test_a_step_must_define_decide() -> None:
    """A step without `decide` fails at its first element."""
    with pytest.raises(AssertionError, match=r"Step does not define decide\(\)"):
        Step(len).decide(1, 1)
    assert FINISHED_STEP.invoke(1) is False


def test_the_repr_of_a_step_operator_names_the_function() -> None:
    """Reprs and messages show the text of the call."""
    assert repr(step_operator("map", len, lambda: Step(len))) == "<operator map(len)>"
    assert (
        repr(step_operator("map", _AsyncObject(), lambda: Step(len)))
        == "<operator map(_AsyncObject)>"
    )


async def test_a_chain_of_async_and_plain_functions_keeps_every_element() -> None:
    """Stages of both kinds compose, with less demand than elements."""
    piped = ops.pipe(
        range(500), ops.map(_async), ops.filter(lambda n: n % 2), ops.map(_async), ops.tap(_async)
    )
    async with subscribe(piped, demand=7) as stream:
        assert [element async for element in stream] == list(range(1, 500, 2))
