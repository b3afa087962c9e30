"""The promises of each operator, measured:
demand, buffer, and the reaction to error, completion and cancel.
"""

import re
from typing import Any

import pytest
import trio

from penstock.api import UNBOUNDED
from penstock.streams import ops
from tests.streams.ops.harness import MAX_ELEMENTS, OperatorHarness, ScriptedError, clear_tracebacks
from tests.streams.ops.promises import PROMISES, STEPS, Promise

OPERATORS = {name for name in ops.__all__ if name.islower() and name not in {"pipe", "processor"}}

each_promise = pytest.mark.parametrize("promise", PROMISES, ids=str)


async def _answer_three_times(harness: OperatorHarness, at_most: int) -> None:
    """Let each upstream signal some of the requested elements, three times,
    because an answer may lead to a new request.

    Inner streams answer before their upstream, because its next element may replace them.
    """
    for _ in range(3):
        for upstream in reversed(tuple(harness.upstreams)):
            upstream.answer(at_most)
        await harness.settle()


async def _filled(harness: OperatorHarness, promise: Promise) -> int:
    """Fill the buffer of the operator, if it has one. Return the number of held elements."""
    harness.run(promise.make(harness)).request(4)
    await _answer_three_times(harness, promise.room)
    return harness.held


def _tokens(elements: list[Any]) -> list[int]:
    """Return the numbers of all tokens in the received elements, also of those in tuples
    and lists.
    """
    return [
        number
        for element in elements
        for number in (_tokens(list(element)) if isinstance(element, tuple | list) else [element])
    ]


# ------------------------------------------------------------------------------------------- demand


@each_promise
async def test_no_demand_goes_upstream_before_downstream_requests(
    promise: Promise, autojump_clock: Any
) -> None:
    """Demand begins downstream. The row of an operator
    that relaxes demand says how much it requests by itself.
    """
    async with OperatorHarness() as harness:
        harness.run(promise.make(harness))
        await harness.settle()
        assert [
            upstream.requested for upstream in harness.upstreams if upstream.name == "main"
        ] == [promise.idle]


@each_promise
@pytest.mark.parametrize("n", [1, 3, 16, 100, UNBOUNDED])
async def test_the_first_request_leads_to_the_promised_demand(
    promise: Promise, n: int, autojump_clock: Any
) -> None:
    """`request(n)` from downstream becomes the promised demand on each source."""
    async with OperatorHarness() as harness:
        harness.run(promise.make(harness)).request(n)
        await harness.settle()
        main, *others = harness.upstreams
        assert min(main.requested, UNBOUNDED) == min(promise.demand(n), UNBOUNDED)
        assert {upstream.requested for upstream in others} == (
            {promise.others(n)} if promise.others else set()
        )


@each_promise
async def test_single_requests_lead_to_the_promised_demand(
    promise: Promise, autojump_clock: Any
) -> None:
    """`STEPS` requests of 1, each answered at once,
    lead to exactly the promised demand in total.
    """
    async with OperatorHarness() as harness:
        harness.unblock()
        recorder = harness.run(promise.make(harness))
        for step in range(STEPS):
            recorder.request(1)
            # The limit is for an operator that passes on nothing before its source has completed.
            while recorder.received <= step and any(
                each.outstanding and each.sent < MAX_ELEMENTS for each in harness.upstreams
            ):
                for upstream in reversed(tuple(harness.upstreams)):
                    upstream.answer(1)
                    await harness.settle()
                    await trio.sleep(promise.pause)
        assert harness.upstreams[0].requested == promise.steady


# ------------------------------------------------------------------------------------------- buffer


@each_promise
async def test_the_operator_never_holds_more_than_promised(
    promise: Promise, autojump_clock: Any
) -> None:
    """In each scenario the number of held elements stays within the bound,
    and the largest is exactly the promised peak.
    """
    peaks = []
    for scenario in (_slow_consumer, _others_first, _sources_answer_inside_on_next):
        async with OperatorHarness() as harness:
            harness.run(promise.make(harness))
            await scenario(harness)
            peaks.append(harness.peak)
    assert max(peaks) <= promise.bound
    assert max(peaks) == promise.max_held, "the row states the largest number of held elements"


async def _slow_consumer(harness: OperatorHarness) -> None:
    for n in (1, 8, 1000):
        harness.recorder.request(n)
        await _answer_three_times(harness, 100)


async def _others_first(harness: OperatorHarness) -> None:
    harness.recorder.request(100)
    for upstream in reversed(harness.upstreams):
        upstream.answer(100)
        await harness.settle()
    await _answer_three_times(harness, 100)


async def _sources_answer_inside_on_next(harness: OperatorHarness) -> None:
    """All requested elements arrive while the subscriber is inside the on_next of the first one."""

    def answer_all() -> None:
        harness.recorder.on_element = None
        for _ in range(2):
            for upstream in reversed(tuple(harness.upstreams)):
                upstream.emit(min(upstream.outstanding, MAX_ELEMENTS))

    harness.recorder.on_element = answer_all
    harness.recorder.request(100)
    await _answer_three_times(harness, 1)


# --------------------------------------------------------------------------------------------- ends


@each_promise
async def test_an_error_leads_to_the_promised_signals(
    promise: Promise, autojump_clock: Any
) -> None:
    """An error does not wait for held elements, needs no demand, arrives as the same object,
    and ends all sources at once.
    """
    async with OperatorHarness() as harness:
        await _filled(harness, promise)
        seen = len(harness.recorder.signals)
        harness.upstreams[0].fail(error := ScriptedError())
        assert tuple(harness.recorder.kinds[seen:]) == promise.after_error
        if "error" in promise.after_error:
            assert harness.recorder.error is error
            assert [upstream for upstream in harness.upstreams if not upstream.over] == []
        await harness.settle()


@each_promise
async def test_completion_leads_to_the_promised_signals(
    promise: Promise, autojump_clock: Any
) -> None:
    """If no element is held, completion passes without demand."""
    async with OperatorHarness() as harness:
        harness.run(promise.make(harness))
        await harness.settle()
        harness.upstreams[0].complete()
        await harness.settle()
        assert tuple(harness.recorder.kinds) == promise.after_complete
        while live := [upstream for upstream in harness.upstreams if not upstream.over]:
            live[0].complete()
            await harness.settle()
        assert tuple(harness.recorder.kinds) == promise.after_all


@each_promise
async def test_held_elements_are_passed_on_before_completion(
    promise: Promise, autojump_clock: Any
) -> None:
    """Elements that arrived before the completion, and were not left out,
    arrive before it downstream.
    """
    async with OperatorHarness() as harness:
        held = await _filled(harness, promise)
        seen = len(_tokens(harness.recorder.elements))
        for _ in range(2):  # an unblocked function may return one more source
            while live := [upstream for upstream in harness.upstreams if not upstream.over]:
                live[0].complete()
            harness.recorder.request(100)
            harness.unblock()
            await harness.settle()
            await trio.sleep(promise.pause)
        assert harness.recorder.kinds[-1] == "complete"
        if promise.raising is None:  # a function may leave elements out
            assert len(_tokens(harness.recorder.elements)) - seen == promise.passes_on(
                held - promise.remembered
            )


@each_promise
async def test_a_cancel_after_completion_does_not_reach_the_sources(
    promise: Promise, autojump_clock: Any
) -> None:
    """A subscription must not be called after its end, and a cancel drops the held elements.
    The harness checks both.
    """
    async with OperatorHarness() as harness:
        await _filled(harness, promise)
        while live := [upstream for upstream in harness.upstreams if not upstream.over]:
            live[0].complete()
        kinds = list(harness.recorder.kinds)
        if not harness.recorder.over:
            harness.recorder.cancel()
        await harness.settle()
        assert harness.recorder.kinds == kinds


@each_promise
async def test_a_cancel_ends_everything_at_once(promise: Promise, autojump_clock: Any) -> None:
    """When `cancel()` returns, every source is cancelled and no element is held.
    No signal follows within an hour.
    """
    async with OperatorHarness() as harness:
        await _filled(harness, promise)
        seen = list(harness.recorder.kinds)
        harness.recorder.cancel()
        assert [upstream for upstream in harness.upstreams if not upstream.over] == []
        await harness.settle()
        assert harness.held == 0
        harness.unblock()
        await trio.sleep(3600)
        assert harness.recorder.kinds == seen


@pytest.mark.parametrize("promise", [row for row in PROMISES if row.raising], ids=str)
async def test_a_function_that_raises_fails_the_stream(
    promise: Promise, autojump_clock: Any
) -> None:
    """The subscriber gets the same error object, and upstream is cancelled."""
    error = ScriptedError()

    def plain(*args: Any) -> Any:
        raise error

    async def slow(*args: Any) -> Any:
        raise error

    assert promise.raising is not None
    async with OperatorHarness() as harness:
        recorder = harness.run(promise.raising(slow if promise.variant == "async" else plain))
        recorder.request(5)
        harness.upstreams[0].emit()
        await harness.settle()
        assert recorder.kinds == ["error"]
        assert recorder.error is error
        assert harness.upstreams[0].cancelled
        clear_tracebacks(error)


# --------------------------------------------------------------------------------------- docstrings


def test_every_operator_has_a_row() -> None:
    """A new operator cannot be exported without a measured promise."""
    assert {promise.name for promise in PROMISES} == OPERATORS


def test_an_operator_for_async_functions_has_a_row_with_one() -> None:
    """If the docstring mentions an async function, a row measures the buffer with one."""
    speaking = {name for name in OPERATORS if "async function" in _doc(name)}
    assert speaking == {promise.name for promise in PROMISES if promise.variant.startswith("async")}


def _doc(name: str) -> str:
    return " ".join((getattr(ops, name).__doc__ or "").split())


def _sentences(name: str) -> tuple[str, str]:
    """Return the sentences of a docstring after "Upstream demand:" and after "Buffer:"."""
    found = re.search(r"Upstream demand: (.*?)\. Buffer: (.*?)\. ", _doc(name))
    assert found, f"{name}: say `Upstream demand: … . Buffer: … .` in this order"
    return found[1], found[2]


@each_promise
def test_the_docstring_says_what_was_measured(promise: Promise) -> None:
    """The words and numbers in the docstring are those of the row,
    and the tests above measure the row.
    """
    demand, buffer = _sentences(promise.name)
    assert promise.demand_words in demand
    assert promise.buffer_words in buffer
    for figure in re.findall(r"\d+", promise.buffer_words):
        assert (promise.bound - promise.remembered) % int(figure) == 0, (
            f"{figure} does not divide the bound {promise.bound}"
        )
    assert (promise.bound == promise.remembered) == promise.buffer_words.startswith("none")


@pytest.mark.parametrize("name", sorted({promise.name for promise in PROMISES}))
def test_the_docstring_describes_every_end(name: str) -> None:
    """It says what happens on error, completion and cancel."""
    doc = _doc(name).lower()
    assert [word for word in ("error", "complet", "cancel") if word not in doc] == []
