"""A topic reaches all its subscribers, each at the pace of its demand.
The policy decides what happens to a slow one.
"""

import gc
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from trio.testing import assert_checkpoints

from penstock.api import (
    UNBOUNDED,
    IllegalDemand,
    LimitExceeded,
    Publisher,
    RuleViolation,
    SlowSubscriber,
    UsageError,
)
from penstock.core import SourceMemory
from penstock.streams import (
    SlowPolicy,
    Source,
    Topic,
    TopicStatistics,
    _topic,
    collect,
    subscribe,
)
from penstock.testing import ManualSubscriber, run_virtual
from tests.core._foreign import Recorder, boom
from tests.core._helpers import Reports, Token, our_tasks, quiet, raised_by

LOSSY = [SlowPolicy.DROP_OLDEST, SlowPolicy.DROP_NEWEST, SlowPolicy.LATEST, SlowPolicy.FAIL]


def joined(topic: Topic[Any], demand: int = 0, **hooks) -> Recorder:
    recorder = Recorder(**hooks)
    topic.subscribe(recorder)
    if demand:
        recorder.subscription.request(demand)
    return recorder


def is_blocked(topic: Topic[Any], element: object) -> bool:
    """Publish, return whether that had to wait, and cancel it."""

    async def attempt() -> bool:
        with trio.move_on_after(1) as scope:
            await topic.publish(element)
        return scope.cancelled_caught

    return run_virtual(attempt)


# --- construction


@pytest.mark.parametrize("slow", ["wait", None, 1, SlowPolicy])
def test_the_policy_is_one_of_the_five(slow) -> None:
    """The message lists them."""
    with pytest.raises(UsageError) as caught:
        Topic(slow=slow)
    assert str(caught.value).endswith(
        "; choose one of SlowPolicy.WAIT, SlowPolicy.DROP_OLDEST, SlowPolicy.DROP_NEWEST, "
        "SlowPolicy.LATEST, SlowPolicy.FAIL"
    )


@pytest.mark.parametrize("wrong", [-1, True, 1.0, "1"])
def test_the_bounds_are_counts(wrong) -> None:
    """Both `buffer` and `retain`."""
    with pytest.raises(
        UsageError, match=r"^buffer=.*; give how many elements, an integer of at least 0$"
    ):
        Topic(buffer=wrong)
    with pytest.raises(
        UsageError, match=r"^retain=.*; give how many elements, an integer of at least 0$"
    ):
        Topic(retain=wrong)


def test_a_retention_without_a_bound_is_refused() -> None:
    """Retention is a buffer, and `None` is not a count."""
    with pytest.raises(UsageError, match=r"^retain=None; give how many"):
        Topic(retain=None)  # type: ignore[arg-type]  # a mistake on purpose


@pytest.mark.parametrize("buffer", [0, 1, 5])
def test_latest_keeps_one_and_takes_no_buffer(buffer: int) -> None:
    """The message names a policy that takes one."""
    with pytest.raises(UsageError) as caught:
        Topic(slow=SlowPolicy.LATEST, buffer=buffer)
    assert str(caught.value) == (
        f"buffer={buffer} with SlowPolicy.LATEST, which keeps exactly one element. For more, "
        "use SlowPolicy.DROP_OLDEST"
    )


def test_the_hook_is_a_function() -> None:
    """The mistake raises at the call."""
    with pytest.raises(UsageError, match="on_violation is 5"):
        Topic(on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose


def test_a_topic_is_a_source_and_a_publisher() -> None:
    """It serves `subscribe`, `pipe`, and any subscriber, also outside of trio."""
    topic: Topic[int] = Topic()
    assert isinstance(topic, Source)
    assert isinstance(topic, Publisher)


@pytest.mark.parametrize(
    ("slow", "buffer"),
    [
        (SlowPolicy.WAIT, 0),
        (SlowPolicy.DROP_OLDEST, 16),
        (SlowPolicy.DROP_NEWEST, 16),
        (SlowPolicy.LATEST, 1),
        (SlowPolicy.FAIL, 16),
    ],
)
def test_the_buffer_by_default(slow: SlowPolicy, buffer: int) -> None:
    """0 for WAIT, which loses nothing; 16 for policies that may drop; 1 for LATEST."""
    topic: Topic[int] = Topic(slow=slow)
    joined(topic)
    fits = 0
    while not topic.statistics().full and not is_blocked(topic, fits):
        fits += 1
    assert fits == buffer


# --- a subscriber that lends its batch, as a stream over a network does


class Batch:
    """A batch as a subscriber makes it."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self.longest = 3


class LendingRecorder(Recorder):
    """Records signals and the elements that are appended to its batch. It requests `renews`
    elements when all that it has requested have come.
    """

    converted = 0
    """Elements that were converted for any of them."""

    def __init__(self, renews: int = 0) -> None:
        super().__init__()
        self.run: Batch | None = None
        self.calls = 0
        self._renews = renews
        self._left = 0

    @classmethod
    def convert(cls, element: int) -> bytes:
        cls.converted += 1
        return b"%d" % element

    @property
    def lender(self) -> "LendingRecorder":
        return self

    @property
    def signals(self) -> list[tuple[Any, ...]]:
        """The signals, the elements in the open batch included."""
        return self.log + [("on_next", int(data)) for data in self._appended()]

    def ask(self, n: int) -> None:
        self._left += n
        self.subscription.request(n)

    def write(self) -> None:
        """Close the batch, as a writer does."""
        appended, run, self.run = self._appended(), self.run, None
        if run is not None:
            run.longest = -1
        for data in appended:
            self._take(int(data))

    def on_next(self, element: int, /) -> None:
        self.calls += 1
        self.write()
        self._take(element)
        self.run = Batch()
        self._renew()

    def on_converted(self, elements: Sequence[bytes], /) -> None:
        self.calls += 1
        self.write()
        for data in elements:
            self._take(int(data))
        self.run = Batch()
        self._renew()

    def on_reservation_used(self) -> None:
        """Keep the batch open: a stream does the same if the writer has not come."""
        for data in self._appended():
            self._take(int(data))
        assert self.run is not None
        self.run.elements.clear()
        assert self._left == 0
        self._renew()

    def on_error(self, error: Any, /) -> None:
        self.write()
        super().on_error(error)

    def on_complete(self) -> None:
        self.write()
        super().on_complete()

    def _appended(self) -> list[bytes]:
        return [] if self.run is None else self.run.elements

    def _take(self, element: int) -> None:
        self._left -= 1
        self._record("on_next", element)

    def _renew(self) -> None:
        if self._left == 0 and self._renews:
            self.ask(self._renews)


@contextmanager
def passes(nursery: trio.Nursery) -> Iterator[list[None]]:
    """The list is empty as long as no other task has run in the block."""
    counted: list[None] = []

    async def count() -> None:
        counted.append(None)

    nursery.start_soon(count)
    yield counted


IN_PROCESS: Any = SimpleNamespace(max_hold_up=inf, memory=SourceMemory(object(), None))
"""All that a topic reads of a scope."""


def lending(topic: Topic[int], demand: int = 0, *, renews: int = 0) -> LendingRecorder:
    """Attach a recorder without a guard, which would keep the batch from the topic."""
    recorder = LendingRecorder(renews)
    topic.attach(recorder, IN_PROCESS)
    if demand:
        recorder.ask(demand)
    return recorder


# --- the model: every policy, random bounds, demand, joins, leaves, ends


class ModelSubscriber:
    """A simple model of what one subscriber should receive."""

    renews = 0
    """The elements it requests when it has got all."""

    def __init__(
        self,
        model: "Model",
        number: int,
        retained: list[int],
        requests_all: bool,
        cancels_after: int,
    ) -> None:
        self.model = model
        self.number = number
        self.retained = list(retained)
        self.backlog: list[int] = []
        self.demand = 0
        self.requests_all = requests_all
        self.cancels_after = cancels_after
        self.live = True
        self.ending = False
        self.log: list[tuple[Any, ...]] = [("on_subscribe",)]

    @property
    def got(self) -> int:
        return sum(entry[0] == "on_next" for entry in self.log)

    @property
    def waiting(self) -> int:
        return len(self.retained) + len(self.backlog)

    def has_room(self) -> bool:
        return (self.demand > 0 and not self.waiting) or len(self.backlog) < self.model.buffer

    def deliver(self, element: int) -> None:
        self.log.append(("on_next", element))
        self.demand -= self.demand < UNBOUNDED
        if self.requests_all:
            self.demand = min(self.demand + 1, UNBOUNDED)
        self.demand = self.demand or self.renews
        if self.got == self.cancels_after:
            self.leave()

    def drain(self) -> None:
        while self.live and self.demand and self.waiting:
            self.deliver((self.retained or self.backlog).pop(0))
        if self.live and self.ending and not self.waiting:
            self.end(("on_complete",))

    def end(self, *signal: tuple[Any, ...]) -> None:
        self.log += signal
        self.leave()

    def leave(self) -> None:
        self.live = False
        self.retained, self.backlog = [], []


class Model:
    """A simple model of a topic."""

    def __init__(self, slow: SlowPolicy, buffer: int, retain: int) -> None:
        self.slow = slow
        self.buffer = buffer
        self.retained: deque[int] = deque(maxlen=retain)
        self.members: list[ModelSubscriber] = []
        self.published = self.dropped = 0
        self.ended: str = ""

    @property
    def live(self) -> list[ModelSubscriber]:
        return [member for member in self.members if member.live]

    def blocked(self) -> bool:
        return self.slow is SlowPolicy.WAIT and any(not member.has_room() for member in self.live)

    def publish(self, element: int) -> None:
        self.published += 1
        self.retained.append(element)
        for member in self.live:
            if member.live:
                self._offer(member, element)

    def _offer(self, member: ModelSubscriber, element: int) -> None:
        if member.demand and not member.waiting:
            member.deliver(element)
        elif len(member.backlog) < self.buffer:
            member.backlog.append(element)
        elif self.slow is SlowPolicy.FAIL:
            member.end(("on_error", "slow"))
        else:
            self.dropped += 1
            if self.slow is not SlowPolicy.DROP_NEWEST and self.buffer:
                member.backlog = [*member.backlog[1:], element]


class TopicMachine(RuleBasedStateMachine):
    """Any sequence of calls has the same effect on the topic as on the model."""

    slow: SlowPolicy

    def __init__(self) -> None:
        super().__init__()
        self.made = False

    @precondition(lambda self: not self.made)
    @rule(buffer=st.integers(0, 3), retain=st.integers(0, 4))
    def make(self, buffer: int, retain: int) -> None:
        self.made = True
        options = {} if self.slow is SlowPolicy.LATEST else {"buffer": buffer}
        self.reported: list[Exception] = []
        self.topic: Topic[int] = Topic(
            slow=self.slow, retain=retain, on_violation=self.reported.append, **options
        )
        self.model = Model(self.slow, 1 if self.slow is SlowPolicy.LATEST else buffer, retain)
        self.recorders: list[Recorder] = []
        self.count = 0

    @precondition(lambda self: self.made and len(self.recorders) < 6)
    @rule(
        asks=st.integers(0, 3),
        requests_all=st.booleans(),
        cancels_after=st.sampled_from([0, 0, 0, 1, 3]),
    )
    def join(self, asks: int, requests_all: bool, cancels_after: int) -> None:
        model = self.model
        member = ModelSubscriber(
            model,
            len(self.recorders),
            [] if model.ended == "failed" else list(model.retained),
            requests_all,
            cancels_after,
        )
        model.members.append(member)

        def on_subscribe() -> None:
            if asks:
                recorder.subscription.request(asks)

        def on_next(_: int) -> None:
            if requests_all:
                recorder.subscription.request(1)
            if len(recorder.elements) == cancels_after:
                recorder.subscription.cancel()

        recorder = Recorder(on_subscribe=on_subscribe, on_next=on_next)
        self.recorders.append(recorder)
        self.topic.subscribe(recorder)
        member.demand = asks
        member.drain()
        if model.ended == "failed" and member.live:
            member.end(("on_error", "failed"))
        elif model.ended and member.live:
            member.ending = True
            member.drain()

    @precondition(lambda self: self.made and len(self.recorders) < 6 and not self.model.ended)
    @rule(asks=st.integers(0, 3), renews=st.integers(0, 3))
    def join_lending(self, asks: int, renews: int) -> None:
        member = ModelSubscriber(
            self.model, len(self.recorders), list(self.model.retained), False, 0
        )
        member.renews = renews
        self.model.members.append(member)
        self.recorders.append(lending(self.topic, asks, renews=renews))
        member.demand = asks
        member.drain()

    @precondition(lambda self: self.made and self.recorders)
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        recorder = data.draw(st.sampled_from(self.recorders))
        if isinstance(recorder, LendingRecorder):
            recorder.write()

    @precondition(lambda self: self.made and self.recorders)
    @rule(data=st.data(), n=st.sampled_from([1, 1, 2, 5, UNBOUNDED]))
    def request(self, data: st.DataObject, n: int) -> None:
        number = data.draw(st.integers(0, len(self.recorders) - 1))
        recorder = self.recorders[number]
        if isinstance(recorder, LendingRecorder):
            recorder.ask(n)
        else:
            recorder.subscription.request(n)
        member = self.model.members[number]
        member.demand = min(member.demand + n, UNBOUNDED)
        member.drain()

    @precondition(lambda self: self.made and self.recorders)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.recorders) - 1))
        self.recorders[number].subscription.cancel()
        self.model.members[number].leave()

    @precondition(lambda self: self.made and self.recorders)
    @rule(data=st.data())
    def request_nonsense(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.recorders) - 1))
        if isinstance(self.recorders[number], LendingRecorder):
            return  # it has no guard that would refuse that
        self.recorders[number].subscription.request(0)
        if self.model.members[number].live:
            self.model.members[number].end(("on_error", "illegal"))

    @precondition(lambda self: self.made)
    @rule()
    def publish(self) -> None:
        if self.model.ended:
            error = run_virtual(raised_by, lambda: self.topic.publish(self.count))
            assert isinstance(error, UsageError)
            return
        blocked = is_blocked(self.topic, self.count)
        assert blocked == self.model.blocked()
        if not blocked:
            self.model.publish(self.count)
        self.count += 1

    @precondition(lambda self: self.made and not self.model.ended)
    @rule(count=st.integers(0, 9))
    def publish_many(self, count: int) -> None:
        elements = list(range(self.count, self.count + count))
        self.count += count

        async def attempt() -> None:
            with trio.move_on_after(1):
                await self.topic.publish_many(iter(elements))

        run_virtual(attempt)
        while elements and not self.model.blocked():
            self.model.publish(elements.pop(0))

    @precondition(lambda self: self.made)
    @rule()
    def complete(self) -> None:
        self.topic.complete()
        if not self.model.ended:
            self.model.ended = "completed"
            for member in self.model.live:
                member.ending = True
                member.drain()

    @precondition(lambda self: self.made)
    @rule()
    def fail(self) -> None:
        self.topic.fail(OSError("failed"))
        if not self.model.ended:
            self.model.ended = "failed"
            for member in self.model.live:
                member.end(("on_error", "failed"))

    @invariant()
    def subscribers_match_the_model(self) -> None:
        if not self.made:
            return
        names = {SlowSubscriber: "slow", OSError: "failed", IllegalDemand: "illegal"}
        for recorder, member in zip(self.recorders, self.model.members, strict=True):
            log = recorder.signals if isinstance(recorder, LendingRecorder) else recorder.log
            assert member.log == [
                (signal, *(names.get(type(value), value) for value in values))
                for signal, *values in log
            ]
            assert recorder.deepest == 1, "a signal came inside another one"
        assert self.reported == []

    @invariant()
    def statistics_match_the_model(self) -> None:
        if not self.made:
            return
        live = self.model.live if not self.model.ended else []
        now = self.topic.statistics()
        assert (now.published, now.dropped) == (self.model.published, self.model.dropped)
        assert now.subscribers <= len(self.model.live)
        if not self.model.ended:
            assert now.subscribers == len(live)
            assert now.buffered == sum(member.waiting for member in live)
            assert now.full == sum(not member.has_room() for member in live)


def _machine(policy: SlowPolicy) -> type:
    machine = type(f"Topic{policy.name.title()}", (TopicMachine,), {"slow": policy})
    case: Any = machine.TestCase
    case.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
    return case


TestWait = _machine(SlowPolicy.WAIT)
TestDropOldest = _machine(SlowPolicy.DROP_OLDEST)
TestDropNewest = _machine(SlowPolicy.DROP_NEWEST)
TestLatest = _machine(SlowPolicy.LATEST)
TestFail = _machine(SlowPolicy.FAIL)


# --- publishing


async def test_all_subscribers_get_every_element_in_the_same_order(nursery) -> None:
    """Each with its own demand."""
    topic: Topic[int] = Topic()
    readers = [joined(topic, UNBOUNDED) for _ in range(3)]
    for number in range(10):
        await topic.publish(number)
    assert [reader.elements for reader in readers] == [list(range(10))] * 3
    assert our_tasks() == []


async def test_publishing_without_subscribers_does_not_wait() -> None:
    """A hot publisher goes on whether or not it has subscribers."""
    topic: Topic[int] = Topic()
    await topic.publish(1)
    assert joined(topic, 5).elements == []


@pytest.mark.parametrize("slow", SlowPolicy)
@pytest.mark.parametrize("how", ["publish", "publish_many"])
async def test_publishing_lets_other_tasks_run_after_a_turn(
    slow: SlowPolicy, how: str, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With subscribers and without. Before the end of the turn it only looks for a cancel."""
    now = 1.0
    monkeypatch.setattr(_topic, "monotonic", lambda: now)
    topic: Topic[int] = Topic(slow=slow)

    async def publish() -> None:
        await (topic.publish(1) if how == "publish" else topic.publish_many([1, 2]))

    for demand in [0, 50]:
        joined(topic, demand) if demand else None
        with assert_checkpoints():
            await publish()
        with passes(nursery) as passed:
            await publish()
        assert not passed
        now += 0.006
        with trio.CancelScope() as scope:
            scope.cancel()
            await publish()
        assert scope.cancelled_caught


@pytest.mark.parametrize("slow", [each for each in LOSSY if each is not SlowPolicy.LATEST])
async def test_a_publisher_lets_a_subscriber_run_before_it_loses_elements(
    slow: SlowPolicy, nursery: trio.Nursery
) -> None:
    """Its reader has a buffer of three elements, and a publisher in a loop makes a hundred."""
    topic: Topic[int] = Topic(slow=slow)
    got: list[int] = []

    async def read() -> None:
        async with subscribe(topic, demand=3) as stream:
            async for element in stream:
                got.append(element)  # noqa: PERF401  # it is looked at while this goes on

    nursery.start_soon(read)
    await topic.wait_subscribers()
    for element in range(100):
        await topic.publish(element)
    await topic.publish_many(range(100, 200))
    await quiet()
    assert got == list(range(200))


@pytest.mark.parametrize("slow", LOSSY)
@pytest.mark.parametrize("how", ["publish", "publish_many"])
async def test_a_subscriber_that_has_stalled_costs_no_scheduler_pass(
    slow: SlowPolicy, how: str, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its buffer is full, or it has failed."""
    monkeypatch.setattr(_topic, "monotonic", lambda: 1.0)
    topic: Topic[int] = Topic(slow=slow, **({} if slow is SlowPolicy.LATEST else {"buffer": 2}))
    joined(topic), joined(topic, UNBOUNDED)
    await topic.publish_many(range(10))
    with passes(nursery) as passed:
        if how == "publish_many":
            await topic.publish_many(range(100))
        else:
            for element in range(100):
                await topic.publish(element)
    assert not passed


@pytest.mark.parametrize("slow", [each for each in LOSSY if each is not SlowPolicy.FAIL])
async def test_a_publisher_waits_for_no_subscriber_that_has_stalled(
    slow: SlowPolicy, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives some passes to another one that has used up its demand, until that requests more."""
    monkeypatch.setattr(_topic, "monotonic", lambda: 1.0)
    topic: Topic[int] = Topic(slow=slow, **({} if slow is SlowPolicy.LATEST else {"buffer": 1}))
    joined(topic)
    await topic.publish_many(range(5))
    other = joined(topic, 5)
    passed = 0

    async def count() -> None:
        nonlocal passed
        while True:
            passed += 1
            if passed == 4:
                other.subscription.request(100)
            await trio.lowlevel.checkpoint()

    await topic.publish_many(range(5))
    await quiet()
    nursery.start_soon(count)
    await topic.publish(5)
    assert 4 <= passed <= 6
    nursery.cancel_scope.cancel()


# --- a list of elements


async def test_a_list_reaches_a_subscriber_of_lists_in_one_call(nursery: trio.Nursery) -> None:
    """And one of single elements in order; each counts as published."""
    topic: Topic[int] = Topic(retain=2)
    single = joined(topic, UNBOUNDED)
    lists: list[list[int]] = []

    class OfLists(Recorder):
        def on_next_many(self, elements: Sequence[int], /) -> None:
            lists.append(list(elements))

    recorder = OfLists()
    topic.attach(recorder, IN_PROCESS)
    recorder.subscription.request(7)
    nursery.start_soon(topic.publish_many, range(10))
    await quiet()
    assert (lists, single.elements) == ([[*range(7)]], [*range(7)])
    recorder.subscription.request(5)
    await quiet()
    assert (lists, single.elements) == ([[*range(7)], [7, 8, 9]], [*range(10)])
    assert topic.statistics().published == 10
    assert joined(topic, 5).elements == [8, 9]


async def test_a_list_with_none_is_refused_before_anything_is_published() -> None:
    """None is never an element (rule 2.13)."""
    topic: Topic[Any] = Topic()
    recorder = joined(topic, UNBOUNDED)
    error = await raised_by(lambda: topic.publish_many([1, 2, None]))
    assert str(error) == (
        "publish_many(): the element at position 2 is None, and None is never an element "
        "(rule 2.13)"
    )
    assert recorder.elements == []


async def test_a_cancelled_list_has_reached_all_subscribers_in_the_same_part(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """`statistics` tells how many."""
    topic: Topic[int] = Topic()
    quick, slow = joined(topic, UNBOUNDED), joined(topic, 3)
    with trio.move_on_after(1) as scope:
        await topic.publish_many(range(10))
    assert scope.cancelled_caught
    assert quick.elements == slow.elements == [0, 1, 2]
    assert topic.statistics().published == 3


async def test_a_topic_that_ends_while_a_list_waits_is_a_usage_error(
    nursery: trio.Nursery,
) -> None:
    """The rest of the list reaches no subscriber."""
    topic: Topic[int] = Topic()
    recorder = joined(topic, 1)

    async def publish() -> None:
        assert isinstance(await raised_by(lambda: topic.publish_many([1, 2])), UsageError)

    nursery.start_soon(publish)
    await quiet()
    topic.complete()
    await quiet()
    assert recorder.log[1:] == [("on_next", 1), ("on_complete",)]


# --- subscribers that lend their batch


async def test_an_element_is_converted_once_for_all_subscribers_of_one_encoding() -> None:
    """Each of a hundred gets a call in a turn, and not with each element."""
    topic: Topic[int] = Topic()
    recorders = [lending(topic, 1000) for _ in range(100)]
    await topic.publish(0)  # the batches are open from here on
    LendingRecorder.converted = 0
    for element in range(1, 50):
        await topic.publish(element)
    await topic.publish_many(range(50, 100))
    assert LendingRecorder.converted == 99
    assert {recorder.calls for recorder in recorders} == {1}
    for recorder in recorders:
        recorder.write()
        assert recorder.elements == [*range(100)]
    await topic.publish(100)
    assert {recorder.calls for recorder in recorders} == {2}
    assert LendingRecorder.converted == 100


async def test_an_element_that_no_batch_takes_is_signalled() -> None:
    """It has four digits, and the batch takes three; the order holds."""
    topic: Topic[int] = Topic()
    recorder = lending(topic, 1000)
    await topic.publish_many([1, 2, 3000, 4])
    assert [value for _, value in recorder.signals[1:]] == [1, 2, 3000, 4]


async def test_an_element_that_cannot_be_converted_goes_to_each_subscriber(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stream of each reports its failure."""
    topic: Topic[Any] = Topic()
    recorders = [lending(topic, 1000) for _ in range(2)]
    await topic.publish_many([1, 2])
    await topic.publish_many(["a", 3])
    for recorder in recorders:
        recorder.write()
        assert recorder.elements == [1, 2, "a", 3]


async def test_a_subscriber_that_leaves_inside_a_signal_gets_nothing_more() -> None:
    """Its batch may be open."""
    topic: Topic[int] = Topic()
    member = lending(topic, 1000)
    await topic.publish(1)
    joined(topic, UNBOUNDED, on_next=lambda _: member.subscription.cancel())
    await topic.publish(2)
    await topic.publish(3)
    member.write()
    assert member.elements == [1, 2]
    assert topic.statistics().subscribers == 1


@pytest.mark.parametrize("slow", SlowPolicy)
async def test_publishing_none_is_a_usage_error(slow: SlowPolicy) -> None:
    """None is never an element (rule 2.13), and no subscriber gets a signal."""
    topic: Topic[Any] = Topic(slow=slow)
    recorder = joined(topic, 5)
    error = await raised_by(lambda: topic.publish(None))
    assert str(error) == "publish(None): None is never an element (rule 2.13)"
    assert isinstance(error, UsageError)
    assert recorder.elements == []


@pytest.mark.parametrize("slow", SlowPolicy)
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_publishing_after_the_end_is_a_usage_error(slow: SlowPolicy, end: str) -> None:
    """The end may come while the call waits."""
    topic: Topic[int] = Topic(slow=slow)

    def finish() -> None:
        topic.complete() if end == "complete" else topic.fail(KeyError())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_expect_ended, topic)
        finish()
    finish()
    error = await raised_by(lambda: topic.publish(1))
    assert (
        str(error)
        == "publish() on a topic that has ended; after complete() or fail() make a new topic"
    )
    assert isinstance(error, UsageError)


async def _expect_ended(topic: Topic[int]) -> None:
    assert isinstance(await raised_by(lambda: topic.publish(1)), UsageError)


# --- waiting for the slowest


async def test_publish_waits_for_the_slowest(nursery) -> None:
    """It waits until each subscriber has room; then all get the element at once."""
    topic: Topic[int] = Topic()
    quick, slow = joined(topic, UNBOUNDED), joined(topic, 1)
    await topic.publish(0)
    nursery.start_soon(topic.publish, 1)
    await quiet()
    assert (quick.elements, slow.elements) == ([0], [0])
    assert topic.statistics().full == 1
    slow.subscription.request(1)
    await quiet()
    assert (quick.elements, slow.elements) == ([0, 1], [0, 1])


@pytest.mark.parametrize("how", ["cancels", "raises"])
async def test_publish_stops_waiting_for_a_slow_subscriber_that_leaves(nursery, how: str) -> None:
    """It cancelled, or was cancelled because it raised."""
    topic: Topic[int] = Topic(on_violation=lambda _: None)
    quick = joined(topic, UNBOUNDED)
    slow = joined(topic, 1, on_next=boom if how == "raises" else (lambda _: None))
    await topic.publish(0)
    nursery.start_soon(topic.publish, 1)
    await quiet()
    if how == "cancels":
        assert quick.elements == [0]
        slow.subscription.cancel()
        await quiet()
    assert quick.elements == [0, 1]


async def test_a_cancelled_publish_has_reached_no_subscriber(nursery, autojump_clock) -> None:
    """It is all or nothing, and does not delay the next publish."""
    topic: Topic[int] = Topic()
    quick, slow = joined(topic, UNBOUNDED), joined(topic)
    with trio.move_on_after(1) as scope:
        await topic.publish(1)
    assert scope.cancelled_caught
    slow.subscription.request(UNBOUNDED)
    await topic.publish(2)
    assert (quick.elements, slow.elements) == ([2], [2])
    assert topic.statistics().published == 1


async def test_waiting_publishers_go_on_in_order(nursery) -> None:
    """In the order of their calls, and all subscribers see that order."""
    topic: Topic[int] = Topic()
    readers = [joined(topic), joined(topic)]
    for number in range(5):
        nursery.start_soon(topic.publish, number)
        await quiet()
    for _ in range(5):
        for reader in readers:
            reader.subscription.request(1)
            await quiet()
    assert [reader.elements for reader in readers] == [list(range(5))] * 2


async def test_publish_waits_for_a_new_subscriber_without_demand(nursery) -> None:
    """It may join while a publisher waits, and delay that publisher further."""
    topic: Topic[int] = Topic()
    first = joined(topic)
    nursery.start_soon(topic.publish, 1)
    await quiet()
    second = joined(topic)
    first.subscription.request(5)
    await quiet()
    assert first.elements == []
    second.subscription.request(1)
    await quiet()
    assert (first.elements, second.elements) == ([1], [1])


async def test_slow_subscribers_may_lag_by_the_buffer(nursery) -> None:
    """When `buffer` elements wait, publishing waits."""
    topic: Topic[int] = Topic(buffer=2)
    slow = joined(topic)
    await topic.publish(0)
    await topic.publish(1)
    nursery.start_soon(topic.publish, 2)
    await quiet()
    assert topic.statistics() == TopicStatistics(
        subscribers=1, published=2, dropped=0, buffered=2, full=1
    )
    slow.subscription.request(2)
    await quiet()
    assert (slow.elements, topic.statistics().buffered) == ([0, 1], 1)


# --- policies that drop or fail


@pytest.mark.parametrize(
    ("slow", "kept"),
    [(SlowPolicy.DROP_OLDEST, [3, 4]), (SlowPolicy.DROP_NEWEST, [0, 1]), (SlowPolicy.LATEST, [4])],
    ids=lambda each: getattr(each, "name", ""),
)
async def test_each_policy_keeps_the_right_elements_for_a_slow_subscriber(
    slow: SlowPolicy, kept: list[int]
) -> None:
    """Dropped elements are counted; a subscriber that keeps up gets all elements."""
    topic: Topic[int] = Topic(slow=slow, **({} if slow is SlowPolicy.LATEST else {"buffer": 2}))
    lagging, quick = joined(topic), joined(topic, UNBOUNDED)
    for number in range(5):
        await topic.publish(number)
    assert topic.statistics().dropped == 5 - len(kept)
    lagging.subscription.request(UNBOUNDED)
    assert (lagging.elements, quick.elements) == (kept, list(range(5)))
    await topic.publish(5)
    assert lagging.elements == [*kept, 5]


@pytest.mark.parametrize("slow", [SlowPolicy.DROP_OLDEST, SlowPolicy.DROP_NEWEST])
async def test_without_a_buffer_an_element_without_demand_is_dropped(slow: SlowPolicy) -> None:
    """A topic without a buffer has no room for an element, so both dropping policies drop the new
    one.
    """
    topic: Topic[int] = Topic(slow=slow, buffer=0)
    lagging = joined(topic, 1)
    for number in range(3):
        await topic.publish(number)
    lagging.subscription.request(5)
    await topic.publish(3)
    assert (lagging.elements, topic.statistics().dropped) == ([0, 3], 2)


@pytest.mark.parametrize("buffer", [0, 1, 2])
async def test_a_subscriber_that_lags_too_far_is_failed(buffer: int) -> None:
    """The error has the bound's name and value. Other subscribers are not affected."""
    topic: Topic[int] = Topic(slow=SlowPolicy.FAIL, buffer=buffer)
    lagging, quick = joined(topic), joined(topic, UNBOUNDED)
    for number in range(buffer):
        await topic.publish(number)
        assert lagging.log == [("on_subscribe",)]
    await topic.publish(99)
    error = lagging.error
    assert isinstance(error, SlowSubscriber)
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value) == ("buffer", buffer)
    assert str(error) == (
        f"this subscriber had no demand left and {buffer} elements waiting when another one was "
        "published; "
        "its topic fails a subscriber that lags further. Request more, or give the topic a larger "
        "buffer or another `slow`"
    )
    assert quick.elements == [*range(buffer), 99]
    assert topic.statistics().subscribers == 1
    lagging.subscription.request(5)
    assert len(lagging.log) == 2


# --- retention


async def test_a_new_subscriber_gets_the_retained_elements_first() -> None:
    """The last n, in order, as its demand permits;
    then the elements that are published after it joined.
    """
    topic: Topic[int] = Topic(retain=3, buffer=10)
    for number in range(5):
        await topic.publish(number)
    new_subscriber = joined(topic, 2)
    assert new_subscriber.elements == [2, 3]
    await topic.publish(5)
    assert new_subscriber.elements == [2, 3]
    new_subscriber.subscription.request(5)
    assert new_subscriber.elements == [2, 3, 4, 5]


@pytest.mark.parametrize("slow", LOSSY)
async def test_retained_elements_do_not_count_as_lag(slow: SlowPolicy) -> None:
    """They wait apart from the buffer:
    they are never dropped, and do not make the subscriber slow.
    """
    topic: Topic[int] = Topic(
        slow=slow, retain=4, **({} if slow is SlowPolicy.LATEST else {"buffer": 1})
    )
    for number in range(4):
        await topic.publish(number)
    new_subscriber = joined(topic)
    await topic.publish(4)
    assert new_subscriber.log == [("on_subscribe",)]
    new_subscriber.subscription.request(UNBOUNDED)
    assert new_subscriber.elements == [0, 1, 2, 3, 4]


async def test_a_new_subscriber_that_takes_all_retained_elements_has_room() -> None:
    """It requests inside on_subscribe, gets the retained elements, and publishing goes on."""
    topic: Topic[int] = Topic(retain=1)
    await topic.publish(0)
    recorder = Recorder(on_subscribe=lambda: recorder.subscription.request(2))
    topic.subscribe(recorder)
    assert topic.statistics().full == 0
    await topic.publish(1)
    assert recorder.elements == [0, 1]


async def test_a_subscriber_that_joins_inside_a_signal_gets_the_element_at_most_once(
    nursery,
) -> None:
    """With retention it gets the element as a retained one;
    without retention it does not get it.
    """
    for retain, expected in ((0, []), (2, [0])):
        topic: Topic[int] = Topic(retain=retain)
        new_subscribers: list[Recorder] = []

        def join(_, topic=topic, new_subscribers=new_subscribers) -> None:
            new_subscribers.append(joined(topic, UNBOUNDED))

        joined(topic, 1, on_next=join)
        await topic.publish(0)
        assert [new_subscriber.elements for new_subscriber in new_subscribers] == [expected]


# --- ends


async def test_completion_comes_after_waiting_elements() -> None:
    """To each subscriber in its own time.
    A later subscriber gets the retained elements and the end.
    """
    topic: Topic[int] = Topic(slow=SlowPolicy.DROP_OLDEST, retain=1)
    lagging, quick = joined(topic), joined(topic, UNBOUNDED)
    await topic.publish(0)
    await topic.publish(1)
    topic.complete()
    assert quick.log[-1] == ("on_complete",)
    lagging.subscription.request(1)
    assert lagging.log == [("on_subscribe",), ("on_next", 0)]
    lagging.subscription.request(1)
    assert lagging.log[-2:] == [("on_next", 1), ("on_complete",)]
    late = joined(topic)
    assert late.log == [("on_subscribe",)]
    late.subscription.request(1)
    assert late.log == [("on_subscribe",), ("on_next", 1), ("on_complete",)]


async def test_an_error_overtakes_waiting_elements() -> None:
    """A later subscriber gets the error alone."""
    error = KeyError("failed")
    topic: Topic[int] = Topic(slow=SlowPolicy.DROP_OLDEST, retain=1)
    lagging = joined(topic)
    await topic.publish(0)
    topic.fail(error)
    topic.complete()
    assert lagging.log == [("on_subscribe",), ("on_error", error)]
    assert joined(topic, 5).log == [("on_subscribe",), ("on_error", error)]


@pytest.mark.parametrize("wrong", [None, "why", KeyError, KeyboardInterrupt()], ids=repr)
def test_a_topic_fails_with_an_exception(wrong) -> None:
    """A text, a class or an interrupt is refused."""
    with pytest.raises(
        UsageError,
        match=r"^fail\(\) was given .*; give it the exception that subscribers shall get$",
    ):
        Topic().fail(wrong)


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_end_declared_inside_a_signal_comes_after_it(end: str) -> None:
    """All subscribers get the element that is being delivered first,
    and no signals nest (rule 1.3).
    """
    topic: Topic[int] = Topic()
    error = KeyError()

    def finish(_) -> None:
        topic.complete() if end == "complete" else topic.fail(error)

    before, middle, after = joined(topic, 5), joined(topic, 5, on_next=finish), joined(topic, 5)
    await topic.publish(0)
    last = ("on_complete",) if end == "complete" else ("on_error", error)
    for recorder in (before, middle, after):
        assert (recorder.log, recorder.deepest) == ([("on_subscribe",), ("on_next", 0), last], 1)


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_end_declared_inside_a_delayed_element_comes_after_it(end: str) -> None:
    """The element came out of a buffer, inside `request`. Completion comes after the other
    elements, an error before them.
    """
    topic: Topic[int] = Topic(buffer=5)
    error = KeyError()

    def finish(_) -> None:
        topic.complete() if end == "complete" else topic.fail(error)

    recorder = joined(topic, on_next=finish)
    await topic.publish(0)
    await topic.publish(1)
    recorder.subscription.request(5)
    rest = [("on_next", 1), ("on_complete",)] if end == "complete" else [("on_error", error)]
    assert (recorder.log[1:], recorder.deepest) == ([("on_next", 0), *rest], 1)


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_an_end_declared_inside_on_subscribe_comes_after_it(end: str) -> None:
    """The first signal has returned before the last one comes."""
    topic: Topic[int] = Topic()
    recorder = joined(
        topic,
        on_subscribe=lambda: topic.complete() if end == "complete" else topic.fail(KeyError()),
    )
    assert [entry[0] for entry in recorder.log] == [
        "on_subscribe",
        f"on_{end}".replace("fail", "error"),
    ]
    assert recorder.deepest == 1


async def test_elements_requested_inside_on_subscribe_come_after_it() -> None:
    """Signals are serial, also if retained elements are available at once (rule 1.3)."""
    topic: Topic[int] = Topic(retain=3)
    for number in range(3):
        await topic.publish(number)
    recorder = Recorder(on_subscribe=lambda: recorder.subscription.request(2))
    topic.subscribe(recorder)
    assert (recorder.elements, recorder.deepest) == ([0, 1], 1)


# --- subscribers


async def test_a_subscriber_may_cancel_another_one_inside_a_signal() -> None:
    """The cancel takes effect at once:
    the other one does not get the element that is being delivered.
    """
    topic: Topic[int] = Topic()
    victims: list[Recorder] = []
    joined(topic, 5, on_next=lambda _: victims[0].subscription.cancel())
    victims.append(joined(topic, 5))
    await topic.publish(0)
    assert victims[0].log == [("on_subscribe",)]
    assert topic.statistics().subscribers == 1


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_a_subscriber_may_cancel_another_one_inside_its_end(nursery, end: str) -> None:
    """The other one does not get the end."""
    topic: Topic[int] = Topic()
    victims: list[Recorder] = []
    joined(
        topic, **{f"on_{end}".replace("fail", "error"): lambda *_: victims[0].subscription.cancel()}
    )
    victims.append(joined(topic))
    topic.complete() if end == "complete" else topic.fail(KeyError())
    assert victims[0].log == [("on_subscribe",)]


async def test_a_cancelled_subscription_of_a_stage_does_nothing(nursery) -> None:
    """A stage relies on silence after its cancel (rules 3.6, 3.7)."""
    topic: Topic[int] = Topic(buffer=1)
    recorder = Recorder()
    topic.attach(recorder, Reports(nursery).scope)
    await topic.publish(0)
    recorder.subscription.cancel()
    recorder.subscription.request(5)
    recorder.subscription.cancel()
    await topic.publish(1)
    topic.complete()
    assert recorder.log == [("on_subscribe",)]


async def test_requests_inside_signals_do_not_nest() -> None:
    """Rule 3.3: a thousand elements come out of a buffer at one stack depth,
    each requested inside the one before.
    """
    topic: Topic[int] = Topic(buffer=1000)
    depths: set[int] = set()

    def on_next(_: int) -> None:
        frame, depth = sys._getframe(), 0
        while frame.f_back is not None:
            frame, depth = frame.f_back, depth + 1
        depths.add(depth)
        recorder.subscription.request(1)

    recorder = joined(topic, on_next=on_next)
    for number in range(1000):
        await topic.publish(number)
    recorder.subscription.request(1)
    assert (recorder.elements, recorder.deepest, len(depths)) == (list(range(1000)), 1, 1)


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error", "on_complete"])
async def test_a_subscriber_that_raises_affects_no_other(signal: str) -> None:
    """Rule 2.13: it is cancelled and reported once, and the topic goes on for the others."""
    reported: list[Exception] = []
    topic: Topic[int] = Topic(on_violation=reported.append)
    before = joined(topic, UNBOUNDED)
    bad = Recorder(**{signal: boom})
    topic.subscribe(bad)
    if signal != "on_subscribe":
        bad.subscription.request(UNBOUNDED)
    after = joined(topic, UNBOUNDED)
    for number in range(3):
        await topic.publish(number)
    assert topic.statistics().subscribers == (2 if signal in ("on_subscribe", "on_next") else 3)
    topic.fail(KeyError()) if signal == "on_error" else topic.complete()
    assert before.log == after.log
    assert before.elements == [0, 1, 2]
    (violation,) = reported
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"


async def test_the_same_object_may_subscribe_twice() -> None:
    """A topic does not compare its subscribers: each subscription has its own demand."""
    topic: Topic[int] = Topic()
    twice = Recorder()
    topic.subscribe(twice)
    first = twice.subscription
    topic.subscribe(twice)
    first.request(1)
    twice.subscription.request(1)
    await topic.publish(0)
    assert twice.elements == [0, 0]


@pytest.mark.parametrize("wrong", [None, object(), 5])
def test_an_object_that_is_not_a_subscriber_is_a_type_error(wrong) -> None:
    """Rule 1.9, and no subscription is made."""
    topic: Topic[int] = Topic()
    with pytest.raises(TypeError, match="which is no subscriber"):
        topic.subscribe(wrong)
    assert topic.statistics().subscribers == 0


async def test_a_topic_can_be_streamed(nursery) -> None:
    """Through `subscribe`, to the end."""
    topic: Topic[int] = Topic()

    async def publish() -> None:
        for number in range(500):
            await topic.publish(number)
        topic.complete()

    async with subscribe(topic, demand=3) as stream:
        nursery.start_soon(publish)
        assert [element async for element in stream] == list(range(500))
    assert topic.statistics().subscribers == 0


async def test_leaving_a_stream_of_a_topic_ends_its_subscription(nursery) -> None:
    """A publisher that waits for it goes on."""
    topic: Topic[int] = Topic()
    async with subscribe(topic, demand=0):
        nursery.start_soon(topic.publish, 1)
        await quiet()
        assert topic.statistics().published == 0
    await quiet()
    assert topic.statistics() == TopicStatistics(
        subscribers=0, published=1, dropped=0, buffered=0, full=0
    )


async def test_a_completed_topic_can_be_collected() -> None:
    """`collect` gets the retained elements, and then the end."""
    topic: Topic[int] = Topic(retain=5)
    for number in range(9):
        await topic.publish(number)
    topic.complete()
    assert await collect(topic) == [4, 5, 6, 7, 8]


# --- references and repr


@pytest.mark.parametrize("how", ["cancel", "complete", "fail", "too slow", "raises"])
async def test_a_topic_keeps_no_reference_to_a_cancelled_subscriber(how: str) -> None:
    """Rules 1.6, 3.13: neither to the subscriber nor to elements that waited for it."""
    topic: Topic[Any] = Topic(slow=SlowPolicy.FAIL, buffer=1, on_violation=lambda _: None)
    recorder = joined(topic, 1, on_next=boom if how == "raises" else (lambda _: None))
    ref, subscription = weakref.ref(recorder), recorder.subscription
    await topic.publish("first")
    token = Token()
    waiting = weakref.ref(token)
    await topic.publish(token)
    if how == "cancel":
        subscription.cancel()
    elif how == "too slow":
        await topic.publish("third")
    elif how == "fail":
        topic.fail(KeyError())
    elif how == "complete":
        subscription.request(1)
        topic.complete()
    recorder.log.clear()
    del recorder, token
    gc.collect()
    assert (ref(), waiting()) == (None, None)
    subscription.request(1)
    subscription.cancel()


async def test_a_subscriber_that_keeps_up_costs_no_containers() -> None:
    """It shares one empty deque, so an idle subscription costs some hundred bytes."""
    topic: Topic[int] = Topic()
    joined(topic, UNBOUNDED)
    await topic.publish(1)
    (member,) = topic._subscriptions
    held = [
        getattr(member, name)
        for name in type(member).__slots__
        if isinstance(getattr(member, name), deque)
    ]
    assert held == [deque(), deque()]
    assert held[0] is held[1]
    assert sys.getsizeof(member) < 200


async def test_the_repr_shows_the_counts() -> None:
    """In one line, for a log."""
    topic: Topic[int] = Topic(slow=SlowPolicy.DROP_NEWEST, buffer=0)
    joined(topic)
    await topic.publish(1)
    assert repr(topic) == "<topic (drop newest): 1 subscribers, 1 published, 1 dropped>"
    topic.complete()
    assert repr(topic) == "<topic (drop newest): 0 subscribers, 1 published, 1 dropped, ended>"


async def test_a_manual_subscriber_records_no_violation_of_a_topic(autojump_clock) -> None:
    """`ManualSubscriber` checks the rules of each signal."""
    topic: Topic[int] = Topic(retain=2)
    subscriber = ManualSubscriber()
    topic.subscribe(subscriber)
    subscriber.request(2)
    await topic.publish(1)
    await topic.publish(2)
    topic.complete()
    await subscriber.expect_next(1, 2)
    await subscriber.expect_complete()
    await subscriber.expect_nothing()


class ManyRecorder(Recorder):
    """A subscriber that also takes lists, and records them."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self._record("on_next_many", list(elements))


async def test_waiting_elements_go_in_one_call_as_demand_permits(nursery: trio.Nursery) -> None:
    """To a subscriber that takes lists; retained ones first. An end waits for them."""
    topic: Topic[int] = Topic(retain=2, buffer=10)
    for number in range(3):
        await topic.publish(number)
    recorder = ManyRecorder()
    topic.attach(recorder, Reports(nursery).scope)
    for number in range(3, 8):
        await topic.publish(number)
    topic.complete()
    recorder.log.clear()
    recorder.subscription.request(1)
    recorder.subscription.request(4)
    assert recorder.log == [("on_next", 1), ("on_next", 2), ("on_next_many", [3, 4, 5])]
    recorder.subscription.request(UNBOUNDED)
    assert recorder.log[3:] == [("on_next_many", [6, 7]), ("on_complete",)]


async def test_a_cancel_inside_a_list_drops_what_waits_behind_it(nursery: trio.Nursery) -> None:
    """Nothing is signalled after it."""
    topic: Topic[int] = Topic(buffer=10)
    recorder = ManyRecorder(on_next_many=lambda _: recorder.subscription.cancel())
    topic.attach(recorder, Reports(nursery).scope)
    for number in range(5):
        await topic.publish(number)
    recorder.subscription.request(3)
    recorder.subscription.request(3)
    assert recorder.log == [("on_subscribe",), ("on_next_many", [0, 1, 2])]
    assert topic.statistics().subscribers == 0
