"""Each operator's promises, measured: demand, buffer, and what happens on error, completion and cancellation."""

import re
from typing import Any

import pytest
import trio

from penstock import operators as ops
from penstock.api import UNBOUNDED
from tests.operators.harness import MAX_ELEMENTS, OperatorHarness, ScriptedError, clear_tracebacks
from tests.operators.promises import PROMISES, STEPS, Promise

each_promise = pytest.mark.parametrize("promise", PROMISES, ids=str)


async def _serve(harness: OperatorHarness, most: int) -> None:
    """Let each line answer some of what it was asked for, a few times over, because an answer may bring a question."""
    for _ in range(3):
        for upstream in tuple(harness.upstreams):
            upstream.answer(most)
        await harness.settle()


async def _filled(harness: OperatorHarness, promise: Promise) -> int:
    """Bring the operator to where it holds something, if it ever does; return how much."""
    harness.run(promise.make(harness)).request(4)
    await _serve(harness, promise.room)
    return harness.held


def _tokens(elements: list[Any]) -> list[int]:
    """Return the numbers of all tokens in what was received, also of those in tuples and lists."""
    return [number for element in elements for number in (_tokens(list(element)) if isinstance(element, tuple | list) else [element])]


# --------------------------------------------------------------------------------------------------------------- demand


@each_promise
async def test_nothing_is_asked_for_from_above_before_something_is_from_below(promise: Promise, autojump_clock: Any) -> None:
    """Demand begins downstream (except where relaxing it is the operator's purpose, and its row says so)."""
    async with OperatorHarness() as harness:
        harness.run(promise.make(harness))
        await harness.settle()
        assert [upstream.requested for upstream in harness.upstreams if upstream.name == "main"] == [promise.idle]


@each_promise
@pytest.mark.parametrize("n", [1, 3, 16, 100, UNBOUNDED])
async def test_the_first_demand_asks_upstream_for_what_is_promised(promise: Promise, n: int, autojump_clock: Any) -> None:
    """`request(n)` below becomes the promised number of elements asked for above, from each source."""
    async with OperatorHarness() as harness:
        harness.run(promise.make(harness)).request(n)
        await harness.settle()
        main, *others = harness.upstreams
        assert min(main.requested, UNBOUNDED) == min(promise.demand(n), UNBOUNDED)
        assert {upstream.requested for upstream in others} == ({promise.others(n)} if promise.others else set())


@each_promise
async def test_demand_in_single_steps_asks_upstream_for_what_is_promised(promise: Promise, autojump_clock: Any) -> None:
    """Over a run of `request(1)`, each answered at once, upstream is asked for exactly the promised number of elements in all."""
    async with OperatorHarness() as harness:
        harness.unblock()
        recorder = harness.run(promise.make(harness))
        for step in range(STEPS):
            recorder.request(1)
            while recorder.received <= step and any(upstream.outstanding for upstream in harness.upstreams):
                for upstream in tuple(harness.upstreams):
                    upstream.answer(1)
                    await harness.settle()
                    await trio.sleep(promise.pause)
        assert harness.upstreams[0].requested == promise.steady


# --------------------------------------------------------------------------------------------------------------- buffer


@each_promise
async def test_no_more_is_held_than_is_promised(promise: Promise, autojump_clock: Any) -> None:
    """However the sources answer and the subscriber asks, the operator holds as many elements as it says, and not one more."""
    peaks = []
    for scenario in (_slow_consumer, _others_first, _sources_answer_inside_on_next):
        async with OperatorHarness() as harness:
            harness.run(promise.make(harness))
            await scenario(harness)
            peaks.append(harness.peak)
    assert max(peaks) <= promise.bound
    assert max(peaks) == promise.max_held, "the row says how much can be seen to be held"


async def _slow_consumer(harness: OperatorHarness) -> None:
    for n in (1, 8, 1000):
        harness.recorder.request(n)
        await _serve(harness, 100)


async def _others_first(harness: OperatorHarness) -> None:
    harness.recorder.request(100)
    for upstream in reversed(harness.upstreams):
        upstream.answer(100)
        await harness.settle()
    await _serve(harness, 100)


async def _sources_answer_inside_on_next(harness: OperatorHarness) -> None:
    """All that was asked for arrives while the subscriber has the first element in its hands."""

    def answer_all() -> None:
        harness.recorder.on_element = None
        for _ in range(2):
            for upstream in tuple(harness.upstreams):
                upstream.emit(min(upstream.outstanding, MAX_ELEMENTS))

    harness.recorder.on_element = answer_all
    harness.recorder.request(100)
    await _serve(harness, 1)


# ----------------------------------------------------------------------------------------------------------------- ends


@each_promise
async def test_an_error_is_answered_as_promised(promise: Promise, autojump_clock: Any) -> None:
    """An error overtakes what is held, needs no demand, arrives as the same object, and ends everything else at once."""
    async with OperatorHarness() as harness:
        await _filled(harness, promise)
        seen = len(harness.recorder.signals)
        harness.upstreams[0].fail(boom := ScriptedError())
        assert tuple(harness.recorder.kinds[seen:]) == promise.after_error
        if "error" in promise.after_error:
            assert harness.recorder.error is boom
            assert [upstream for upstream in harness.upstreams if not upstream.over] == []
        await harness.settle()


@each_promise
async def test_completion_is_answered_as_promised(promise: Promise, autojump_clock: Any) -> None:
    """Where nothing is held, completion needs no demand to be passed on."""
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
async def test_what_is_held_is_passed_on_before_completion(promise: Promise, autojump_clock: Any) -> None:
    """Completion overtakes nothing: what was received before it and was not left out arrives first."""
    async with OperatorHarness() as harness:
        held = await _filled(harness, promise)
        seen = len(_tokens(harness.recorder.elements))
        for _ in range(2):  # a function that is unblocked may name one more source
            while live := [upstream for upstream in harness.upstreams if not upstream.over]:
                live[0].complete()
            harness.recorder.request(100)
            harness.unblock()
            await harness.settle()
        assert harness.recorder.kinds[-1] == "complete"
        if promise.raising is None:  # a function may leave out what it is asked about
            assert len(_tokens(harness.recorder.elements)) - seen == promise.passes_on(held - promise.remembered)


@each_promise
async def test_cancelling_while_something_is_held_after_completion_leaves_the_sources_alone(promise: Promise, autojump_clock: Any) -> None:
    """A subscription that has ended is not called any more, and what was held is dropped; the bench looks at both."""
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
async def test_cancelling_ends_everything_at_once_and_for_good(promise: Promise, autojump_clock: Any) -> None:
    """When `cancel()` returns, every source is cancelled and nothing is held; no signal follows, also not by the clock."""
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
async def test_a_function_that_raises_ends_the_stream_with_its_error(promise: Promise, autojump_clock: Any) -> None:
    """The user's fault reaches the subscriber as the same object, and upstream is cancelled."""
    boom = ScriptedError()

    def plain(*args: Any) -> Any:
        raise boom

    async def slow(*args: Any) -> Any:
        raise boom

    assert promise.raising is not None
    async with OperatorHarness() as harness:
        recorder = harness.run(promise.raising(slow if promise.variant == "async" else plain))
        recorder.request(5)
        harness.upstreams[0].emit()
        await harness.settle()
        assert recorder.kinds == ["error"]
        assert recorder.error is boom
        assert harness.upstreams[0].cancelled
        clear_tracebacks(boom)


# ------------------------------------------------------------------------------------------------------------ the words


def test_every_operator_has_a_row() -> None:
    """The table is complete: a new operator cannot be exported without a promise that is measured."""
    operators = set(ops.__all__) - {"Operator", "pipe"}
    assert operators == {promise.name for promise in PROMISES}


def test_an_operator_with_async_functions_has_a_row_for_them() -> None:
    """Where the docstring speaks of an async function, its buffer is measured with one."""
    speaking = {name for name in set(ops.__all__) - {"Operator", "pipe"} if "async function" in _doc(name)}
    assert speaking == {promise.name for promise in PROMISES if promise.variant.startswith("async")}


def _doc(name: str) -> str:
    return " ".join((getattr(ops, name).__doc__ or "").split())


def _sentences(name: str) -> tuple[str, str]:
    """Return what a docstring says behind "Upstream demand:" and behind "Buffer:"."""
    found = re.search(r"Upstream demand: (.*?)\. Buffer: (.*?)\. ", _doc(name))
    assert found, f"{name}: say `Upstream demand: … . Buffer: … .` in this order"
    return found[1], found[2]


@each_promise
def test_the_docstring_says_what_was_measured(promise: Promise) -> None:
    """Words and figures in the docstring are those of the row, and the row's are measured."""
    demand, buffer = _sentences(promise.name)
    assert promise.demand_words in demand
    assert promise.buffer_words in buffer
    for figure in re.findall(r"\d+", promise.buffer_words):
        assert (promise.bound - promise.remembered) % int(figure) == 0, f"{figure} says nothing about a bound of {promise.bound}"
    assert (promise.bound == promise.remembered) == promise.buffer_words.startswith("none")


@pytest.mark.parametrize("name", sorted({promise.name for promise in PROMISES}))
def test_the_docstring_tells_of_every_end(name: str) -> None:
    """It says what happens on an error, on completion and on cancellation."""
    doc = _doc(name).lower()
    assert [word for word in ("error", "complet", "cancel") if word not in doc] == []
