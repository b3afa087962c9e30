"""What all joints of several sources have in common: one loop, one end, and nobody who is held or called after it."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock import operators as ops
from penstock.api import Subscriber, Subscription, UsageError
from penstock.core import Scope, Source, empty, failed, from_iterable, single, subscribe
from penstock.operators import Operator
from penstock.operators._join import JoinInput
from penstock.operators._stage import CANCELLED_SUBSCRIBER
from tests.operators.harness import OperatorHarness, ScriptedError, Upstream

JOINTS: list[Callable[..., Operator[Any, Any]]] = [ops.merge, ops.zip, ops.combine_latest, ops.concat]
SIDE_BY_SIDE = [ops.merge, ops.zip, ops.combine_latest]
each_joint = pytest.mark.parametrize("joint", JOINTS)
each_side_by_side = pytest.mark.parametrize("joint", SIDE_BY_SIDE)


class _Raising(Source[Any]):
    """A source of somebody's whose attach raises, before or after it has greeted its subscriber."""

    def __init__(self, error: Exception, *, greet: bool = False) -> None:
        self._error = error
        self._greet = greet

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        if self._greet:
            subscriber.on_subscribe(_Counting())
        raise self._error


class _Counting(Subscription):
    """Counts its cancellations."""

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


# ------------------------------------------------------------------------------------------------------------ arguments


@each_joint
def test_what_is_no_source_is_refused_by_its_place(joint: Any) -> None:
    """The message names the operator, the argument, and what would be taken."""
    with pytest.raises(UsageError, match=r"^(merge|zip|combine_latest|concat)\(\), argument 2: 'int' cannot be subscribed to: give"):
        joint([1], 5)


@each_joint
async def test_without_other_sources_there_is_one(joint: Any) -> None:
    """`merge()` and its like are the source alone (in tuples, where there are tuples)."""
    async with subscribe(ops.pipe([1, 2], joint())) as stream:
        elements = [element async for element in stream]
    assert elements in ([1, 2], [(1,), (2,)])


def test_a_joint_tells_what_it_joins() -> None:
    """Its repr says how many sources there are, which may be thousands, without listing them."""
    assert repr(ops.merge([1], [2])) == "<operator merge of 3 sources>"
    assert repr(ops.flat_map(single)) == "<operator flat_map(single)>"


@each_joint
async def test_a_joint_is_a_blueprint(joint: Any) -> None:
    """Each subscriber gets streams of its own from every source."""
    piped = ops.pipe(single(1), joint(single(2)))
    results = []
    for _ in range(2):
        async with subscribe(piped) as stream:
            results.append([element async for element in stream])
    assert results[0] == results[1] != []


# ------------------------------------------------------------------------------------------------------------- one loop


@pytest.mark.parametrize("joint", [*SIDE_BY_SIDE, lambda other: ops.flat_map(lambda token: other)])
async def test_signals_never_nest_even_if_sources_answer_inside_request(joint: Any) -> None:
    """A subscriber that asks in on_next gets the next element after it has returned (rules 1.3, 3.3)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))
        harness.answers_in_request, harness.source_length = True, 10_000
        recorder.on_element = lambda: recorder.request(1) if recorder.requested < 500 else None
        recorder.request(1)
        assert recorder.received == 500
        assert recorder.deepest == 1


@pytest.mark.parametrize("step", [1, 7, 10**6])
async def test_a_chain_of_thousands_of_synchronous_sources_needs_no_deeper_stack(step: int) -> None:
    """`concat` of 5,000 sources that signal inside attach and request runs at one depth."""
    depths = set()
    sources = [single(n) if n % 2 else empty() for n in range(5000)]
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def renew() -> None:
            if recorder.received > 1:
                depths.add(_stack_depth())
            recorder.request(step)

        recorder.on_element = renew
        ops.concat(*sources).attach(single(0), recorder, harness.scope)
        recorder.request(step)
        assert recorder.elements == [0, *range(1, 5000, 2)]
        assert recorder.kinds[-1] == "complete"
        assert len(depths) == 1


@pytest.mark.parametrize("step", [1, 7, 10**6])
async def test_thousands_of_synchronous_inner_streams_need_no_deeper_stack(step: int) -> None:
    """`flat_map` over 10,000 elements, all of them there at once, each a stream that signals inside request."""
    depths = set()
    async with OperatorHarness() as harness:
        recorder = harness.recorder

        def renew() -> None:
            if recorder.received > 1:
                depths.add(_stack_depth())
            recorder.request(step)

        recorder.on_element = renew
        harness.run(ops.flat_map(lambda token: single(token.number) if token.number % 3 else empty()))
        harness.answers_in_request, harness.source_length = True, 10_000
        recorder.request(step)
        assert recorder.elements == [n for n in range(1, 10_001) if n % 3]
        assert recorder.kinds[-1] == "complete"
        assert len(depths) == 1


@each_joint
async def test_thousands_of_joints_sources_end_without_a_deeper_stack(joint: Any) -> None:
    """Side by side, too, thousands of sources that are over before they began are no recursion."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        joint(*[empty() for _ in range(5000)]).attach(empty(), recorder, harness.scope)
        assert recorder.kinds == ["complete"]


# ------------------------------------------------------------------------------------------------------------------ end


@each_joint
async def test_cancelling_inside_on_subscribe_attaches_no_source(joint: Any) -> None:
    """Where nobody listens any more, the sources need not hear of it at all."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        greet = recorder.on_subscribe

        def greet_and_cancel(subscription: Subscription, /) -> None:
            greet(subscription)
            recorder.cancel()

        recorder.on_subscribe = greet_and_cancel  # type: ignore[method-assign]  # a subscriber with a mind of its own
        harness.run(joint(harness.source()))
        assert harness.upstreams == []


@each_joint
async def test_demand_inside_on_subscribe_is_heard(joint: Any) -> None:
    """What is requested before the sources are there reaches them when they are."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        greet = recorder.on_subscribe

        def greet_and_request(subscription: Subscription, /) -> None:
            greet(subscription)
            recorder.request(3)

        recorder.on_subscribe = greet_and_request  # type: ignore[method-assign]  # a subscriber with a mind of its own
        harness.run(joint(harness.source()))
        assert {upstream.requested for upstream in harness.upstreams} == {3}


@each_side_by_side
async def test_a_source_that_fails_at_once_keeps_those_after_it_from_being_attached(joint: Any) -> None:
    """The error is the subscriber's; no further source is begun for nobody."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(failed(boom := ScriptedError()), harness.source("never")))
        assert recorder.signals == [("error", boom)]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        assert harness.upstreams[0].cancelled


@each_joint
@pytest.mark.parametrize("greet", [False, True])
async def test_a_source_whose_attach_raises_fails_the_stream(joint: Any, greet: bool) -> None:
    """What somebody else's source raises becomes an on_error, whatever it has done before."""
    async with OperatorHarness() as harness:
        boom = ScriptedError()
        recorder = harness.run(joint(_Raising(boom, greet=greet)))
        if not recorder.over:
            harness.upstreams[0].complete()  # concat: the next one's turn
        assert recorder.signals == [("error", boom)]
        assert harness.upstreams[0].over


async def test_a_source_whose_attach_raises_when_nobody_listens_is_told_to_the_scope() -> None:
    """A fault is never lost."""

    class Late(Source[Any]):
        def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
            subscriber.on_error(ScriptedError("first"))
            raise ScriptedError("second")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(Late()))
        assert str(recorder.error) == "first"
        assert [str(failure) for failure in harness.failures] == ["second"]
        harness.failures.clear()


@pytest.mark.parametrize("joint", [*JOINTS, lambda other: ops.flat_map(lambda token: other)])
async def test_an_error_inside_on_next_is_signalled_when_on_next_has_returned(joint: Any) -> None:
    """Signals are serial; the sources are cancelled at once all the same."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))
        seen = []

        def break_a_source() -> None:
            live = [upstream for upstream in harness.upstreams if not upstream.over]
            live[-1].fail()
            seen.append((recorder.kinds[-1], [upstream for upstream in harness.upstreams if not upstream.over]))

        recorder.request(5)
        harness.upstreams[0].emit()
        recorder.on_element = break_a_source
        if len(harness.upstreams) > 1:
            harness.upstreams[1].emit()
        if not seen:
            harness.upstreams[0].emit()
        assert recorder.kinds.count("error") == 1
        if joint is not ops.concat:  # which passes everything straight through, one source at a time
            assert seen == [("next", [])]


@each_side_by_side
async def test_cancelling_after_an_error_inside_the_same_on_next_silences_it(joint: Any) -> None:
    """Who has cancelled hears nothing more, not even of what happened before."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))

        def break_and_leave() -> None:
            harness.upstreams[1].fail()
            recorder.cancel()

        recorder.on_element = break_and_leave
        recorder.request(5)
        harness.upstreams[0].emit()
        if not recorder.over:
            harness.upstreams[1].emit()
        assert recorder.kinds == ["next"]


@each_joint
async def test_cancelling_inside_on_next_is_the_last_that_happens(joint: Any) -> None:
    """What waits is dropped, what is asked after it is nothing."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))
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


@each_joint
@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
async def test_neither_side_is_held_after_the_end(joint: Any, end: str) -> None:
    """A junction that somebody still refers to keeps neither its subscriber nor its sources alive."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))
        junction: Any = recorder._subscription
        assert "live" in repr(junction)
        while not recorder.over:
            if end == "cancel":
                recorder.cancel()
            else:
                upstream: Upstream = next(upstream for upstream in harness.upstreams if not upstream.over)
                getattr(upstream, end)()
        assert junction._downstream is CANCELLED_SUBSCRIBER
        assert junction._inputs == {}
        assert repr(junction).endswith(": over>")


def test_an_inlet_that_is_closed_before_it_was_greeted_cancels_what_greets_it() -> None:
    """A source that takes its time to greet learns that it is not wanted any more; its signals are nothing."""
    inlet = JoinInput(ops.merge()._make_stage(CANCELLED_SUBSCRIBER, None))  # type: ignore[attr-defined]  # the stage, without a stream around it
    inlet.close()
    subscription = _Counting()
    inlet.on_subscribe(subscription)
    assert subscription.cancels == 1
    inlet.on_next(1)
    inlet.on_error(ScriptedError())
    inlet.on_complete()
    assert inlet.waiting == []
    assert inlet.ended


@each_side_by_side
async def test_a_source_that_gives_more_than_it_was_asked_for_does_not_make_the_joint_do_so(joint: Any) -> None:
    """Inside a pipe nobody does that; if somebody does, what was not asked for below still waits."""
    async with OperatorHarness() as harness:
        recorder = harness.run(joint(harness.source()))
        recorder.request(1)
        for upstream in (*harness.upstreams, *harness.upstreams):
            upstream.last_subscriber.on_next(upstream.name)
        assert recorder.received == 1
        recorder.request(1)
        assert recorder.received == 2


async def test_demand_without_bound_stays_without_bound() -> None:
    """2^63-1 is not counted down (rule 3.17)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.concat(from_iterable([])))
        recorder.request(2**63 - 1)
        harness.upstreams[0].emit(3)
        junction: Any = recorder._subscription
        assert junction._demand == 2**63 - 1
