"""`share`: when a run begins and ends, the demand that the subscribers make together,
and the policies for slow ones.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import UNBOUNDED, PublisherStopped, SlowSubscriber, UsageError
from penstock.streams import SlowPolicy, Topic, collect, generate, ops, subscribe
from tests.streams.ops.harness import OperatorHarness, Recorder, ScriptedError


class Shared:
    """A shared scripted source in a harness, and recorders that subscribe to it."""

    def __init__(self, harness: OperatorHarness, **options: Any) -> None:
        self.harness = harness
        self.pipe = ops.pipe(harness.source("main"), ops.share(harness.nursery, **options))

    def recorder(self, demand: int = 0) -> Recorder:
        recorder = Recorder(self.harness)
        self.pipe.attach(recorder, self.harness.scope)
        if demand:
            recorder.request(demand)
        return recorder


# --------------------------------------------------------------------------------------------- runs


async def test_the_source_is_subscribed_to_once() -> None:
    """Each subscriber gets every element that arrives after it has joined."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness)
        a = shared.recorder(10)
        harness.upstreams[0].emit()
        b = shared.recorder(10)
        harness.upstreams[0].emit(2)
        assert len(harness.upstreams) == 1
        assert a.elements == [1, 2, 3]
        assert b.elements == [2, 3]
        harness.upstreams[0].complete()
        assert a.kinds[-1] == b.kinds[-1] == "complete"


async def test_the_last_subscriber_that_leaves_cancels_the_source() -> None:
    """The first one may leave before. The next subscriber begins a new run."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness)
        a, b = shared.recorder(1), shared.recorder(1)
        a.cancel()
        assert not harness.upstreams[0].cancelled
        harness.upstreams[0].emit()
        assert b.elements == [1]
        b.cancel()
        assert harness.upstreams[0].cancelled
        c = shared.recorder(1)
        assert len(harness.upstreams) == 2
        harness.upstreams[1].emit()
        assert c.elements == [2]
        c.cancel()


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_after_the_end_of_the_source_the_next_subscriber_begins_a_new_run(end: str) -> None:
    """Also while a subscriber of the run before still has waiting elements."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness)
        slow, fast = shared.recorder(), shared.recorder(2)
        harness.upstreams[0].emit(2)
        getattr(harness.upstreams[0], end)()
        assert fast.kinds[-1] == ("complete" if end == "complete" else "error")
        assert slow.kinds == ([] if end == "complete" else ["error"])
        new = shared.recorder(1)
        harness.upstreams[1].emit()
        assert new.elements == [3]
        new.cancel()
        slow.request(2)
        assert slow.kinds == (["next", "next", "complete"] if end == "complete" else ["error"])
        assert len(harness.upstreams) == 2


async def test_a_subscriber_that_cancels_inside_on_subscribe_begins_no_run() -> None:
    """The source is not subscribed to, and the next subscriber begins the first run."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness)

        class Leaves(Recorder):
            def on_subscribe(self, subscription: Any, /) -> None:
                super().on_subscribe(subscription)
                self.cancel()

        shared.pipe.attach(Leaves(harness), harness.scope)
        assert harness.upstreams == []
        shared.recorder().cancel()
        assert len(harness.upstreams) == 1


async def test_a_subscriber_that_cancels_during_attach_ends_the_run() -> None:
    """The subscription that the source gives afterwards is cancelled (rule 2.6)."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        recorder = Recorder(harness)

        class Late(ops.OperatorBase[Any, Any]):
            def attach(self, source: Any, subscriber: Any, scope: Any) -> None:
                recorder.cancel()
                source.attach(subscriber, scope)

        ops.pipe(harness.source("main"), Late(), ops.share(harness.nursery)).attach(
            recorder, harness.scope
        )
        assert harness.upstreams[0].cancelled


async def test_one_operator_in_two_pipes_has_a_run_for_each() -> None:
    """Runs belong to a source, not to the operator."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        share: Any = ops.share(harness.nursery)
        for name in ("a", "b"):
            recorder = Recorder(harness)
            ops.pipe(harness.source(name), share).attach(recorder, harness.scope)
            harness.upstreams[-1].complete()
            assert recorder.kinds == ["complete"]
        assert [upstream.name for upstream in harness.upstreams] == ["a", "b"]
        assert repr(share) == "<operator share(wait): 0 runs>"


async def test_a_source_whose_attach_raises_fails_its_subscriber() -> None:
    """The next subscriber begins a new run."""
    error = ScriptedError()

    def refuse(_: Any) -> None:
        raise error

    async with OperatorHarness() as harness:
        harness.recorder.over = True
        share: Any = ops.share(harness.nursery)
        recorder = Recorder(harness)
        ops.pipe(harness.source("main", refuse), share).attach(recorder, harness.scope)
        assert recorder.signals == [("error", error)]
        assert repr(share).endswith("0 runs>")
        harness.upstreams[0].cancel()
        error.__traceback__ = None


# ------------------------------------------------------------------------------------------- demand


async def test_nothing_is_requested_beyond_the_subscriber_that_requested_most() -> None:
    """Demand of several subscribers is not added up."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness)
        a, b = shared.recorder(), shared.recorder()
        assert harness.upstreams[0].requests == []
        a.request(3)
        b.request(2)
        b.request(2)
        assert harness.upstreams[0].requests == [3, 1]
        a.cancel()
        b.cancel()


@pytest.mark.parametrize("slow", [SlowPolicy.WAIT, SlowPolicy.DROP_OLDEST])
async def test_at_most_16_elements_are_requested_ahead(slow: SlowPolicy) -> None:
    """More is requested when half of them have arrived."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        a = Shared(harness, slow=slow).recorder(UNBOUNDED)
        main = harness.upstreams[0]
        main.emit(7)
        assert main.requests == [16]
        main.emit(1)
        assert main.requests == [16, 8]
        a.cancel()


async def test_with_wait_the_slowest_subscriber_sets_the_pace() -> None:
    """A fast one is at most `buffer` elements ahead.
    When the slow one leaves, the fast one goes on.
    """
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness, buffer=4)
        fast, slow = shared.recorder(100), shared.recorder()
        main = harness.upstreams[0]
        main.answer()
        assert fast.elements == [1, 2, 3, 4]
        assert harness.held == 4
        slow.request(1)
        main.answer()
        assert fast.received == 5
        slow.cancel()
        assert harness.held == 0
        main.answer(10)
        assert fast.received == 15
        fast.cancel()


async def test_with_wait_a_new_subscriber_has_room_for_the_elements_under_way() -> None:
    """They were requested before it joined, and are not lost."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness, buffer=4)
        fast = shared.recorder(100)
        late = shared.recorder()
        harness.upstreams[0].answer()
        assert fast.received == 4
        late.request(10)
        assert late.elements == [1, 2, 3, 4]
        harness.upstreams[0].answer(6)
        assert late.elements == fast.elements
        fast.cancel()
        late.cancel()


@pytest.mark.parametrize(
    ("slow", "kept"),
    [
        (SlowPolicy.DROP_OLDEST, [97, 98, 99, 100]),
        (SlowPolicy.DROP_NEWEST, [1, 2, 3, 4]),
        (SlowPolicy.LATEST, [100]),
    ],
)
async def test_with_the_dropping_policies_the_fastest_sets_the_pace(
    slow: SlowPolicy, kept: list[int]
) -> None:
    """The slow subscriber keeps the elements that its policy says."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness, slow=slow, **({} if slow is SlowPolicy.LATEST else {"buffer": 4}))
        fast, lagging = shared.recorder(100), shared.recorder()
        harness.upstreams[0].answer()
        assert fast.received == 100
        lagging.request(10)
        assert lagging.elements == kept
        fast.cancel()
        lagging.cancel()


async def test_with_fail_a_subscriber_that_lags_fails_alone() -> None:
    """The others go on, and the source is not cancelled."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness, slow=SlowPolicy.FAIL, buffer=4)
        fast, lagging = shared.recorder(100), shared.recorder()
        harness.upstreams[0].answer(10)
        assert isinstance(lagging.error, SlowSubscriber)
        assert fast.received == 10
        fast.cancel()


async def test_a_source_that_answers_inside_request_serves_all_in_the_same_order() -> None:
    """Requests from inside on_next go up after every subscriber has got the element."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        harness.answers_in_request, harness.source_length = True, 50
        shared = Shared(harness)
        a, b = shared.recorder(), shared.recorder()
        for recorder in (a, b):
            recorder.on_element = lambda recorder=recorder: recorder.request(1)
        a.request(1)
        b.request(1)
        assert a.elements == b.elements == list(range(1, 51))
        assert (a.deepest, b.deepest) == (1, 1)
        assert a.kinds[-1] == b.kinds[-1] == "complete"


async def test_a_subscriber_that_raises_in_on_next_leaves_the_run_usable() -> None:
    """The exception goes to the caller, and later elements still lead to requests."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        a = Shared(harness).recorder(2)

        def fail() -> None:
            a.on_element = None
            raise ScriptedError

        a.on_element = fail
        with pytest.raises(ScriptedError):
            harness.upstreams[0].emit()
        harness.upstreams[0].emit()
        a.request(1)
        assert harness.upstreams[0].requests == [2, 1]
        a.cancel()


# -------------------------------------------------------------------------------------------- owner


async def _numbers() -> AsyncIterator[int]:
    for number in range(10):
        await trio.lowlevel.checkpoint()
        yield number


async def test_the_nursery_owns_the_tasks_of_the_source(autojump_clock: Any) -> None:
    """The first subscriber may leave its block while the second reads on.
    At the end the nursery has no task left.
    """
    seen: list[int] = []

    async def read() -> None:
        async with subscribe(shared) as stream:
            seen.extend([number async for number in stream])

    async with trio.open_nursery() as owner, trio.open_nursery() as readers:
        shared = ops.pipe(generate(_numbers), ops.share(owner, buffer=2))
        async with subscribe(shared, demand=1) as first:
            assert await anext(first) == 0
            readers.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            assert len(owner.child_tasks) == 1
        await trio.sleep(1)
        assert seen == list(range(1, 10))
        assert not owner.child_tasks


async def test_a_cancelled_nursery_stops_every_subscriber(autojump_clock: Any) -> None:
    """Each gets PublisherStopped from the task of the source."""
    async with trio.open_nursery() as owner, trio.open_nursery() as readers:
        shared = ops.pipe(generate(_endless), ops.share(owner))

        async def read() -> None:
            with pytest.raises(PublisherStopped):
                await collect(shared)

        readers.start_soon(read)
        readers.start_soon(read)
        await trio.sleep(1)
        owner.cancel_scope.cancel()


async def _endless() -> AsyncIterator[int]:
    yield 0
    await trio.sleep_forever()


async def test_a_closed_nursery_fails_the_subscriber() -> None:
    """The source cannot start its task; the error says so."""
    async with trio.open_nursery() as nursery:
        shared = ops.pipe(generate(_numbers), ops.share(nursery))
    with pytest.raises(UsageError, match="has closed"):
        await collect(shared)


async def test_two_streams_of_a_shared_generator_get_the_same_elements(autojump_clock: Any) -> None:
    """Without share, each would begin its own generator."""
    begun = []

    async def counted() -> AsyncIterator[int]:
        begun.append(1)
        async for number in _numbers():
            yield number

    results: list[list[int]] = []
    async with trio.open_nursery() as nursery, trio.open_nursery() as readers:
        gate: Topic[int] = Topic()
        shared = ops.pipe(gate, ops.flat_map(lambda _: generate(counted)), ops.share(nursery))

        async def read() -> None:
            results.append(await collect(shared))

        readers.start_soon(read)
        readers.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        await gate.publish(1)
        gate.complete()
    assert results == [list(range(10))] * 2
    assert begun == [1]


# ---------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("wrong", [None, 5, trio])
def test_the_owner_is_a_nursery(wrong: Any) -> None:
    """The error says what to give."""
    with pytest.raises(
        UsageError,
        match=r"share\(\) was given .*; give the nursery that shall run the tasks of the source",
    ):
        ops.share(wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slow": "wait"}, r"share\(slow='wait'\): choose one of SlowPolicy.WAIT, "),
        ({"buffer": 0}, r"share\(buffer=0\): give how many elements may wait"),
        ({"buffer": True}, r"share\(buffer=True\): give how many elements may wait"),
        (
            {"slow": SlowPolicy.LATEST, "buffer": 3},
            r"share\(buffer=3\) with SlowPolicy.LATEST, which keeps exactly one element",
        ),
        ({"on_violation": 5}, r"on_violation is 5"),
    ],
)
async def test_wrong_arguments_are_refused(options: Any, words: str) -> None:
    """The error names the operator, the argument, and what to give."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(UsageError, match=words):
            ops.share(nursery, **options)


async def test_a_bound_on_the_hold_up_is_refused_with_a_policy_that_never_waits() -> None:
    """It would have no effect."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(UsageError, match=r"max_hold_up=3 with SlowPolicy\.FAIL"):
            ops.share(nursery, slow=SlowPolicy.FAIL, max_hold_up=3)


async def test_the_bound_counts_while_another_subscriber_wants_elements(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A subscriber without room holds up no other one while the others want nothing."""
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        shared = Shared(harness, buffer=1, max_hold_up=3)
        mute, other = shared.recorder(), shared.recorder(1)
        harness.upstreams[0].emit()
        await trio.sleep(100)
        assert "error" not in mute.kinds
        other.request(1)
        await trio.sleep(2.9)
        assert "error" not in mute.kinds
        await trio.sleep(0.2)
        assert mute.kinds[-1] == "error"
        harness.upstreams[0].emit()
        assert other.elements == [1, 2]
        other.cancel()


async def test_the_timer_of_a_run_ends_with_its_nursery(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The subscribers get the error of a source that was stopped, and the source is cancelled."""
    async with trio.open_nursery() as outer, trio.open_nursery() as owner:
        topic: Topic[int] = Topic()
        shared = ops.pipe(topic, ops.share(owner, buffer=1, max_hold_up=100))
        async with subscribe(shared, demand=1) as mute, subscribe(shared, demand=8) as other:
            for number in range(3):
                outer.start_soon(topic.publish, number)
            await trio.testing.wait_all_tasks_blocked()
            owner.cancel_scope.cancel()
            with pytest.raises(PublisherStopped):
                [element async for element in other]
            with pytest.raises(PublisherStopped):
                [element async for element in mute]
            assert topic.statistics().subscribers == 0
        outer.cancel_scope.cancel()
