"""`JoinStage`: one loop, one end, and no reference or call after the end. For `merge`, `zip`,
`combine_latest`, `concat` and `flat_map`.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock.api import Subscriber, Subscription, UsageError
from penstock.core import Scope
from penstock.streams import Source, empty, failed, from_iterable, ops, single, subscribe
from penstock.streams.ops import Operator
from penstock.streams.ops._join import JoinInput
from penstock.streams.ops._stage import CANCELLED_SUBSCRIBER
from tests.streams.ops.harness import OperatorHarness, ScriptedError, Upstream

JOINS: list[Callable[..., Operator[Any, Any]]] = [
    ops.merge,
    ops.zip,
    ops.combine_latest,
    ops.concat,
]
SIDE_BY_SIDE = [ops.merge, ops.zip, ops.combine_latest]
each_join = pytest.mark.parametrize("join", JOINS)
each_side_by_side = pytest.mark.parametrize("join", SIDE_BY_SIDE)


class _Raising(Source[Any]):
    """A source whose attach raises, before or after its on_subscribe."""

    def __init__(self, error: Exception, *, subscribes: bool = False) -> None:
        self._error = error
        self._subscribes = subscribes

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        if self._subscribes:
            subscriber.on_subscribe(_Counting())
        raise self._error


class _Counting(Subscription):
    """Counts its cancels."""

    def __init__(self) -> None:
        self.cancels = 0

    def request(self, n: int, /) -> None: ...

    def cancel(self, /) -> None:
        self.cancels += 1


def _stack_depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


# ---------------------------------------------------------------------------------------- arguments


@each_join
def test_an_argument_that_is_not_a_source_is_refused(join: Any) -> None:
    """The error names the operator, the position of the argument, and its allowed values."""
    with pytest.raises(
        UsageError,
        match=r"^(merge|zip|combine_latest|concat)\(\), argument 2: 'int' cannot be subscribed to: give",
    ):
        join([1], 5)


@each_join
async def test_a_join_without_other_sources_is_the_source(join: Any) -> None:
    """`merge()` passes the elements of its source on;
    `zip()` and `combine_latest()` put them into tuples of one.
    """
    async with subscribe(ops.pipe([1, 2], join())) as stream:
        elements = [element async for element in stream]
    assert elements in ([1, 2], [(1,), (2,)])


def test_the_repr_of_a_join_counts_its_sources() -> None:
    """There may be thousands of sources, so the repr does not list them."""
    assert repr(ops.merge([1], [2])) == "<operator merge of 3 sources>"
    assert repr(ops.flat_map(single)) == "<operator flat_map(single)>"


@each_join
async def test_each_subscriber_of_a_join_gets_new_streams(join: Any) -> None:
    """Each subscriber subscribes to every source again."""
    piped = ops.pipe(single(1), join(single(2)))
    results = []
    for _ in range(2):
        async with subscribe(piped) as stream:
            results.append([element async for element in stream])
    assert results[0] == results[1] != []


# ----------------------------------------------------------------------------------------- one loop


@pytest.mark.parametrize("join", [*SIDE_BY_SIDE, lambda other: ops.flat_map(lambda token: other)])
async def test_signals_never_nest_if_sources_answer_inside_request(join: Any) -> None:
    """A subscriber that requests in on_next gets the next element after
    that on_next has returned (rules 1.3, 3.3).
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))
        harness.answers_in_request, harness.source_length = True, 10_000
        recorder.on_element = lambda: recorder.request(1) if recorder.requested < 500 else None
        recorder.request(1)
        assert recorder.received == 500
        assert recorder.deepest == 1


@pytest.mark.parametrize("step", [1, 7, 10**6])
async def test_concat_of_thousands_of_synchronous_sources_needs_no_stack(step: int) -> None:
    """5,000 sources that signal inside attach and request run at one stack depth."""
    depths = set()
    sources = [single(n) if n % 2 else empty() for n in range(5000)]
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def request_more() -> None:
            if recorder.received > 1:
                depths.add(_stack_depth())
            recorder.request(step)

        recorder.on_element = request_more
        ops.concat(*sources).attach(single(0), recorder, harness.scope)
        recorder.request(step)
        assert recorder.elements == [0, *range(1, 5000, 2)]
        assert recorder.kinds[-1] == "complete"
        assert len(depths) == 1


@pytest.mark.parametrize("step", [1, 7, 10**6])
async def test_flat_map_of_thousands_of_synchronous_streams_needs_no_stack(step: int) -> None:
    """10,000 elements that are there at once, each a stream that signals inside request,
    run at one stack depth.
    """
    depths = set()
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def request_more() -> None:
            if recorder.received > 1:
                depths.add(_stack_depth())
            recorder.request(step)

        recorder.on_element = request_more
        harness.run(
            ops.flat_map(lambda token: single(token.number) if token.number % 3 else empty())
        )
        harness.answers_in_request, harness.source_length = True, 10_000
        recorder.request(step)
        assert recorder.elements == [n for n in range(1, 10_001) if n % 3]
        assert recorder.kinds[-1] == "complete"
        assert len(depths) == 1


@each_join
async def test_thousands_of_sources_that_end_at_once_need_no_stack(join: Any) -> None:
    """5,000 sources that complete inside attach do not recurse."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        join(*[empty() for _ in range(5000)]).attach(empty(), recorder, harness.scope)
        assert recorder.kinds == ["complete"]


# ---------------------------------------------------------------------------------------------- end


@each_join
async def test_a_cancel_inside_on_subscribe_attaches_no_source(join: Any) -> None:
    """A source of a cancelled stream is never subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        on_subscribe = recorder.on_subscribe

        def subscribe_and_cancel(subscription: Subscription, /) -> None:
            on_subscribe(subscription)
            recorder.cancel()

        recorder.on_subscribe = subscribe_and_cancel  # type: ignore[method-assign]  # another behaviour for this recorder only
        harness.run(join(harness.source()))
        assert harness.upstreams == []


@each_join
async def test_demand_inside_on_subscribe_reaches_every_source(join: Any) -> None:
    """Demand that comes before the sources are attached is requested when they are."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        on_subscribe = recorder.on_subscribe

        def subscribe_and_request(subscription: Subscription, /) -> None:
            on_subscribe(subscription)
            recorder.request(3)

        recorder.on_subscribe = subscribe_and_request  # type: ignore[method-assign]  # another behaviour for this recorder only
        harness.run(join(harness.source()))
        assert {upstream.requested for upstream in harness.upstreams} == {3}


@each_side_by_side
async def test_a_source_that_fails_at_once_prevents_further_attaches(join: Any) -> None:
    """The subscriber gets the error, and the sources after the failed one are not subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(failed(error := ScriptedError()), harness.source("never")))
        assert recorder.signals == [("error", error)]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        assert harness.upstreams[0].cancelled


@each_join
@pytest.mark.parametrize("subscribes", [False, True])
async def test_a_source_whose_attach_raises_fails_the_stream(join: Any, subscribes: bool) -> None:
    """An error from `attach` of a user's source becomes on_error, before
    or after its on_subscribe.
    """
    async with OperatorHarness() as harness:
        error = ScriptedError()
        recorder = harness.run(join(_Raising(error, subscribes=subscribes)))
        if not recorder.over:
            harness.upstreams[0].complete()  # concat attaches the next source only now
        assert recorder.signals == [("error", error)]
        assert harness.upstreams[0].over


async def test_an_attach_error_after_the_end_goes_to_the_scope() -> None:
    """After the end the error has no subscriber to go to, and it must not be lost."""

    class Late(Source[Any]):
        def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
            subscriber.on_error(ScriptedError("first"))
            raise ScriptedError("second")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(Late()))
        assert str(recorder.error) == "first"
        assert [str(failure) for failure in harness.failures] == ["second"]
        harness.failures.clear()


@pytest.mark.parametrize("join", [*JOINS, lambda other: ops.flat_map(lambda token: other)])
async def test_an_error_inside_on_next_is_signalled_after_it(join: Any) -> None:
    """Signals are serial (rule 1.3). All sources are cancelled at once, before on_next returns."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))
        seen = []

        def break_a_source() -> None:
            live = [upstream for upstream in harness.upstreams if not upstream.over]
            live[-1].fail()
            seen.append(
                (
                    recorder.kinds[-1],
                    [upstream for upstream in harness.upstreams if not upstream.over],
                )
            )

        recorder.request(5)
        harness.upstreams[0].emit()
        recorder.on_element = break_a_source
        if len(harness.upstreams) > 1:
            harness.upstreams[1].emit()
        if not seen:
            harness.upstreams[0].emit()
        assert recorder.kinds.count("error") == 1
        # concat has one source at a time and passes its signals straight through.
        if join is not ops.concat:
            assert seen == [("next", [])]


@each_side_by_side
async def test_a_cancel_after_an_error_in_the_same_on_next_suppresses_it(join: Any) -> None:
    """After a cancel no signal arrives, not even of an error that came before the cancel."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))

        def fail_and_cancel() -> None:
            harness.upstreams[1].fail()
            recorder.cancel()

        recorder.on_element = fail_and_cancel
        recorder.request(5)
        harness.upstreams[0].emit()
        if not recorder.over:
            harness.upstreams[1].emit()
        assert recorder.kinds == ["next"]


@each_join
async def test_a_cancel_inside_on_next_is_final(join: Any) -> None:
    """Waiting elements are dropped, and later calls have no effect."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))
        subscription: Any = recorder._subscription
        recorder.on_element = recorder.cancel
        recorder.request(5)
        harness.upstreams[0].emit(1)
        if not recorder.over:
            harness.upstreams[1].emit(1)
        assert recorder.kinds == ["next"]
        subscription.request(5)
        subscription.cancel()
        subscription.fail(ScriptedError())
        assert recorder.kinds == ["next"]
        assert harness.held == 0


@each_join
@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
async def test_neither_side_is_referenced_after_the_end(join: Any, end: str) -> None:
    """A stage that is over refers to neither its subscriber nor its sources."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))
        stage: Any = recorder._subscription
        assert "live" in repr(stage)
        while not recorder.over:
            if end == "cancel":
                recorder.cancel()
            else:
                upstream: Upstream = next(
                    upstream for upstream in harness.upstreams if not upstream.over
                )
                getattr(upstream, end)()
        assert stage._downstream is CANCELLED_SUBSCRIBER
        assert stage._inputs == {}
        assert repr(stage).endswith(": over>")


def test_a_closed_input_cancels_a_late_subscription() -> None:
    """A source that calls on_subscribe after the end is cancelled,
    and its signals have no effect.
    """
    input_ = JoinInput(ops.merge()._make_stage(CANCELLED_SUBSCRIBER, None))  # type: ignore[attr-defined]  # the stage, without a stream around it
    input_.close()
    subscription = _Counting()
    input_.on_subscribe(subscription)
    assert subscription.cancels == 1
    input_.on_next(1)
    input_.on_error(ScriptedError())
    input_.on_complete()
    assert input_.waiting == []
    assert input_.ended


@each_side_by_side
async def test_a_source_beyond_demand_does_not_break_downstream_demand(join: Any) -> None:
    """Even if a source breaks rule 1.1, elements without downstream demand wait."""
    async with OperatorHarness() as harness:
        recorder = harness.run(join(harness.source()))
        recorder.request(1)
        for upstream in (*harness.upstreams, *harness.upstreams):
            upstream.last_subscriber.on_next(upstream.name)
        assert recorder.received == 1
        recorder.request(1)
        assert recorder.received == 2


async def test_unbounded_demand_is_not_counted_down() -> None:
    """A demand of 2^63-1 does not change (rule 3.17)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(from_iterable([])))
        recorder.request(2**63 - 1)
        harness.upstreams[0].emit(3)
        stage: Any = recorder._subscription
        assert stage._demand == 2**63 - 1
