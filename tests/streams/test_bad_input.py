"""Bad input over the whole public surface: each gives what the rules say or a clear error, and
never affects another stream.

The tables here combine every kind of source with every kind of bad input. Each part's own handling
is tested in its own test module.
"""

import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from penstock import ops, pipe
from penstock.api import (
    CleanupTimeout,
    IllegalDemand,
    Publisher,
    PublisherStopped,
    RuleViolation,
    UsageError,
)
from penstock.core import Stream
from penstock.streams import (
    CallbackSubscriber,
    SlowPolicy,
    Source,
    Topic,
    as_source,
    collect,
    empty,
    failed,
    from_publisher,
    interval,
    single,
    subscribe,
    timer,
)
from tests.core._foreign import CallRecorder, CountingPublisher, Recorder, ScriptedPublisher, boom
from tests.core._helpers import numbers, our_tasks, quiet, raised_by


class Walker:
    """An async iterator that is not a generator."""

    def __init__(self, count: int = 5) -> None:
        self._left = iter(range(count))

    def __aiter__(self) -> "Walker":
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        for number in self._left:
            return number
        raise StopAsyncIteration


def walker() -> Walker:
    return Walker()


def plain() -> Iterator[int]:
    yield from range(5)


def channel() -> Source[int]:
    send, receive = trio.open_memory_channel[int](5)
    for number in range(5):
        send.send_nowait(number)
    send.close()
    source = as_source(receive.clone())
    receive.close()
    return source


# Every kind of source, with the five elements 0 to 4.
FIVE: dict[str, Callable[[], Any]] = {
    "list": lambda: list(range(5)),
    "iterator": lambda: iter(range(5)),
    "generator": lambda: plain,
    "async generator": lambda: numbers(5),
    "async generator function": lambda: lambda: numbers(5),
    "async iterator": Walker,
    "function of an async iterator": lambda: walker,
    "foreign publisher": lambda: CountingPublisher(5),
    "pipe": lambda: pipe(list(range(10)), ops.map(lambda number: number), ops.take(5)),
    "pipe with a task": lambda: pipe(list(range(5)), ops.map(_later)),
    "pipe of a pipe": lambda: pipe(
        pipe(lambda: numbers(9), ops.filter(lambda number: number < 5)), ops.take(5)
    ),
}


async def _later(element: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return element


by_source = pytest.mark.parametrize("make", FIVE.values(), ids=FIVE)


class Bound:
    """A source as a publisher in a nursery, and the reports of its hook."""

    def __init__(self, made: Any, nursery: trio.Nursery, **options: Any) -> None:
        self.reported: list[Exception] = []
        self.publisher = as_source(made).publisher(
            nursery, on_violation=self.reported.append, **options
        )

    def listen(self, demand: int = 0, **hooks: Callable[..., object]) -> Recorder:
        recorder = Recorder(**hooks)
        self.publisher.subscribe(recorder)
        if demand:
            recorder.subscription.request(demand)
        return recorder


async def neighbour_works(nursery: trio.Nursery) -> None:
    """Check that another stream in the same nursery works, and
    that the nursery is not cancelled.
    """
    recorder = Bound(lambda: numbers(3), nursery).listen(10)
    await quiet()
    assert recorder.log[1:] == [("on_next", 0), ("on_next", 1), ("on_next", 2), ("on_complete",)]
    assert not nursery.cancel_scope.cancel_called


@by_source
async def test_every_source_of_the_table_works(nursery, make) -> None:
    """The faults in the tables below come from the input alone."""
    recorder = Bound(make(), nursery).listen(10)
    await quiet()
    assert recorder.elements == list(range(5))
    assert recorder.log[-1] == ("on_complete",)
    assert our_tasks() == []


# --- demand

WRONG_DEMAND = [
    0,
    -1,
    -(2**63),
    -(2**70),
    True,
    False,
    None,
    1.0,
    float("inf"),
    "1",
    b"1",
    [1],
    object,
]


@by_source
@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_an_illegal_demand_fails_only_that_subscriber(nursery, make, wrong) -> None:
    """Rules 3.9 and 3.16, at the first request and after elements: one error, no further signal,
    no task. The call returns normally.
    """
    for begun in (0, 2):
        bound = Bound(make(), nursery)
        recorder = bound.listen(begun)
        await quiet()
        recorder.subscription.request(wrong)
        assert recorder.elements == list(range(begun))
        assert isinstance(recorder.error, IllegalDemand)
        assert "rule 3.9" in str(recorder.error)
        seen = list(recorder.log)
        recorder.subscription.request(5)
        recorder.subscription.cancel()
        await quiet()
        assert (recorder.log, bound.reported, our_tasks()) == (seen, [], [])
    await neighbour_works(nursery)


@by_source
@pytest.mark.parametrize("place", ["on_subscribe", "on_next"])
async def test_an_illegal_demand_inside_a_signal_fails_the_stream(
    nursery, make, place: str
) -> None:
    """Rule 3.9 holds inside each signal, and no signal follows the error."""
    bound = Bound(make(), nursery)
    recorder = Recorder(
        on_subscribe=lambda: recorder.subscription.request(0 if place == "on_subscribe" else 3),
        on_next=lambda _: recorder.subscription.request(-1),
    )
    bound.publisher.subscribe(recorder)
    await quiet()
    assert isinstance(recorder.error, IllegalDemand)
    assert len(recorder.elements) == (place == "on_next")
    assert (bound.reported, our_tasks()) == ([], [])


@by_source
@pytest.mark.parametrize(
    "huge", [2**63 - 1, 2**63, 2**70, 10**5000], ids=["2^63-1", "2^63", "2^70", "10^5000"]
)
async def test_a_demand_above_the_bound_is_unbounded(nursery, make, huge: int) -> None:
    """Rule 3.17: it is legal, alone and added to other demand, and all elements come."""
    recorder = Bound(make(), nursery).listen(1)
    recorder.subscription.request(huge)
    recorder.subscription.request(huge)
    await quiet()
    assert recorder.elements == list(range(5))
    assert recorder.log[-1] == ("on_complete",)


@pytest.mark.parametrize("slow", SlowPolicy)
@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_an_illegal_demand_fails_only_that_subscriber_of_a_topic(
    slow: SlowPolicy, wrong
) -> None:
    """The others get all elements, and publish does not wait for the failed one."""
    topic: Topic[int] = Topic(slow=slow)
    before, bad, after = Recorder(), Recorder(), Recorder()
    for recorder in (before, bad, after):
        topic.subscribe(recorder)
    for recorder in (before, after):
        recorder.subscription.request(2**70)
    bad.subscription.request(1)
    await topic.publish(0)
    bad.subscription.request(wrong)
    await topic.publish(1)
    assert isinstance(bad.error, IllegalDemand)
    assert (before.elements, bad.elements, after.elements) == ([0, 1], [0], [0, 1])
    assert topic.statistics().subscribers == 2


@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_an_illegal_demand_on_a_stream_raises_to_the_caller(wrong) -> None:
    """`Stream.request` is a call of the program, not a signal.
    It raises, and the stream goes on.
    """
    async with subscribe(lambda: numbers(3), demand=0) as stream:
        with pytest.raises(IllegalDemand):
            stream.request(wrong)
        stream.request(2**70)
        assert [element async for element in stream] == [0, 1, 2]


# --- None as an element


async def _none_later() -> AsyncIterator[Any]:
    yield 0
    yield None


def _none_plain() -> Iterator[Any]:
    yield 0
    yield None


def _none_channel() -> Source[Any]:
    send, receive = trio.open_memory_channel[Any](5)
    send.send_nowait(0)
    send.send_nowait(None)
    source = as_source(receive.clone())
    receive.close()
    send.close()
    return source


async def _async_none(element: int) -> Any:
    return element or None


WITH_NONE: dict[str, Callable[[], Any]] = {
    "list": lambda: [0, None],
    "generator": lambda: _none_plain,
    "async generator": _none_later,
    "async generator function": lambda: _none_later,
    "memory channel": _none_channel,
    "function of a list": lambda: lambda: [0, None],
    "a map": lambda: pipe([0, 1], ops.map({0: 0}.get)),
    "an async map": lambda: pipe([1, 0], ops.map(_async_none)),
    "a scan": lambda: pipe([0, 1], ops.scan(lambda total, element: None if element else 0, 0)),
    "a pipe over a list": lambda: pipe([0, None], ops.filter(lambda element: True)),
}


@pytest.mark.parametrize("make", WITH_NONE.values(), ids=WITH_NONE)
async def test_none_from_any_source_is_a_usage_error(nursery, make) -> None:
    """The elements before it arrive first; for a stream as for a subscriber."""
    bound = Bound(make(), nursery)
    recorder = bound.listen(10)
    await quiet()
    assert len(recorder.elements) == 1
    assert isinstance(recorder.error, UsageError)
    assert "never an element (rule 2.13)" in str(recorder.error)
    error = await raised_by(lambda: collect(make()))
    assert type(error) is UsageError
    assert (bound.reported, our_tasks()) == ([], [])
    await neighbour_works(nursery)


async def test_none_as_an_argument_raises_to_the_caller() -> None:
    """In `single`, `publish` and `scan`. No subscriber gets a signal."""
    with pytest.raises(UsageError, match="never an element"):
        single(None)
    with pytest.raises(UsageError, match="never an element"):
        await Topic[Any]().publish(None)
    with pytest.raises(UsageError, match="never an element"):
        ops.scan(lambda total, element: total, None)


async def test_a_foreign_publisher_that_signals_none_gets_a_type_error() -> None:
    """Rule 2.13: if the publisher goes on after the TypeError, so does the stream."""
    refused: list[TypeError] = []

    def subscribe_(subscriber: Any) -> None:
        subscriber.on_subscribe(CallRecorder())
        for wrong in ("on_next", "on_error", "on_subscribe"):
            try:
                getattr(subscriber, wrong)(None)
            except TypeError as error:
                refused.append(error)
        subscriber.on_next(1)
        subscriber.on_complete()

    assert await collect(ScriptedPublisher(subscribe_)) == [1]
    assert len(refused) == 3


# --- a publisher that raises


class RaisesAt:
    """Sources of every kind that raise after k elements."""

    def __init__(self, k: int, error: Exception) -> None:
        self.k = k
        self.error = error

    def check(self, number: int) -> int:
        if number == self.k:
            raise self.error
        return number

    async def check_later(self, number: int) -> int:
        await trio.lowlevel.checkpoint()
        return self.check(number)

    async def generator(self) -> AsyncIterator[int]:
        for number in range(self.k + 1):
            yield self.check(number)

    def plain_generator(self) -> Iterator[int]:
        for number in range(self.k + 1):
            yield self.check(number)

    def publisher(self) -> ScriptedPublisher:
        def answer(_: int) -> None:
            for number in range(self.k):
                script.subscriber.on_next(number)
            script.subscriber.on_error(self.error)

        script = ScriptedPublisher(
            lambda subscriber: subscriber.on_subscribe(CallRecorder(request=answer))
        )
        return script


RAISING: dict[str, Callable[[RaisesAt], Any]] = {
    "an iterator": lambda at: map(at.check, range(at.k + 1)),
    "a generator": lambda at: at.plain_generator,
    "an async generator": lambda at: at.generator,
    "a map": lambda at: pipe(range(at.k + 2), ops.map(at.check)),
    "an async map": lambda at: pipe(range(at.k + 2), ops.map(at.check_later)),
    "a filter": lambda at: pipe(range(at.k + 2), ops.filter(lambda number: at.check(number) >= 0)),
    "a pipe above": lambda at: pipe(at.generator, ops.map(lambda number: number), ops.skip(0)),
    "a foreign publisher": lambda at: at.publisher(),
}


@pytest.mark.parametrize("make", RAISING.values(), ids=RAISING)
@pytest.mark.parametrize("k", [0, 1, 40])
async def test_a_publisher_that_raises_fails_after_its_elements(nursery, make, k: int) -> None:
    """Rules 1.4, 1.9, 3.16: on its first element, on its second, and in its second burst. One
    subscriber gets the same exception object.
    """
    error = KeyError("publisher")
    bound = Bound(make(RaisesAt(k, error)), nursery)
    recorder = bound.listen(100)
    await quiet()
    assert recorder.elements == list(range(k))
    assert recorder.error is error
    assert (bound.reported, our_tasks()) == ([], [])
    assert await raised_by(lambda: collect(make(RaisesAt(k, error)))) is error
    await neighbour_works(nursery)


class _NoIterator:
    """Raises when it is asked for an iterator."""

    def __iter__(self) -> Iterator[int]:
        raise KeyError("creation")


class _NoAsyncIterator:
    def __aiter__(self) -> AsyncIterator[int]:
        raise KeyError("creation")


def _no_function() -> list[int]:
    raise KeyError("creation")


MADE_BADLY = {
    "iter": _NoIterator(),
    "aiter": _NoAsyncIterator(),
    "call": _no_function,
    "pipe": pipe(_no_function, ops.take(2)),
}


@pytest.mark.parametrize("made", MADE_BADLY.values(), ids=MADE_BADLY)
async def test_a_publisher_that_raises_while_it_is_made_fails_at_the_first_pull(
    nursery, made
) -> None:
    """Subscribing and requesting return normally; the error is a signal."""
    recorder = Bound(made, nursery).listen()
    assert recorder.log == [("on_subscribe",)]
    recorder.subscription.request(1)
    await quiet()
    assert isinstance(recorder.error, KeyError)
    assert isinstance(await raised_by(lambda: collect(made)), KeyError)
    await neighbour_works(nursery)


@pytest.mark.parametrize(("place", "rule"), [("subscribe", "1.9"), ("request", "3.16")])
async def test_a_foreign_publisher_that_raises_breaks_a_rule(
    nursery, place: str, rule: str
) -> None:
    """Its stream ends with the rule's number, with the exception as cause. No call raises."""
    publisher = ScriptedPublisher(
        boom
        if place == "subscribe"
        else lambda subscriber: subscriber.on_subscribe(CallRecorder(request=boom))
    )
    error = await raised_by(lambda: collect(publisher))
    assert isinstance(error, RuleViolation)
    assert error.rule == rule
    assert isinstance(error.__cause__, ValueError)
    recorder = Bound(publisher, nursery).listen(1)
    assert isinstance(recorder.error, RuleViolation)
    await neighbour_works(nursery)


async def test_a_foreign_publisher_that_raises_in_cancel_is_reported() -> None:
    """No subscriber is left to receive the error, and the block is left normally (rule 3.15)."""
    reported: list[Exception] = []
    async with subscribe(
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder(cancel=boom))),
        on_violation=reported.append,
    ):
        pass
    assert [getattr(error, "rule", None) for error in reported] == ["3.15"]


# --- a subscriber that raises


SIGNALS = ["on_subscribe", "on_next", "on_error", "on_complete"]


@by_source
@pytest.mark.parametrize("signal", SIGNALS)
async def test_only_the_subscriber_that_raises_is_cancelled(nursery, make, signal: str) -> None:
    """Rule 2.13: it is reported once, gets no further signal, and is not kept. Another
    subscriber of the publisher goes on.
    """
    made = (
        pipe(make(), ops.map(lambda number: number if number < 4 else boom()))
        if signal == "on_error"
        else make()
    )
    bound = Bound(made, nursery)
    bad = Recorder(**{signal: boom})
    bound.publisher.subscribe(bad)
    if signal != "on_subscribe":
        bad.subscription.request(10)
    await quiet()
    (violation,) = bound.reported
    assert isinstance(violation, RuleViolation)
    assert (violation.rule, bad.log[-1][0]) == ("2.13", signal)
    assert (
        len(bad.elements)
        == {"on_subscribe": 0, "on_next": 1, "on_error": 4, "on_complete": 5}[signal]
    )
    seen, ref, subscription = list(bad.log), weakref.ref(bad), bad.subscription
    subscription.request(5)
    subscription.cancel()
    await quiet()
    assert (bad.log, bound.reported, our_tasks()) == (seen, [violation], [])
    # A debugger needs its frames, and these refer to the subscriber.
    violation.__cause__.__traceback__ = violation.__context__ = None
    bad.log.clear()
    seen.clear()
    del bad
    gc.collect()
    assert ref() is None
    await neighbour_works(nursery)


async def test_a_subscriber_that_requests_and_raises_in_on_subscribe_gets_nothing(nursery) -> None:
    """The pull that it requested is stopped before it begins."""

    def requests_and_raises() -> None:
        bad.subscription.request(5)
        boom()

    bound = Bound(lambda: numbers(5), nursery)
    bad = Recorder(on_subscribe=requests_and_raises)
    bound.publisher.subscribe(bad)
    await quiet()
    assert (bad.log, len(bound.reported), our_tasks()) == ([("on_subscribe",)], 1, [])


async def test_a_hook_that_raises_affects_no_stream(nursery, caplog) -> None:
    """Neither the pipe nor another stream; the hook's error is logged."""
    publisher = as_source(lambda: numbers(5)).publisher(nursery, on_violation=boom)
    bad, good = Recorder(on_next=boom), Recorder()
    for recorder in (bad, good):
        publisher.subscribe(recorder)
        recorder.subscription.request(10)
    await quiet()
    assert (bad.elements, good.elements) == ([0], list(range(5)))
    assert "the on_violation hook raised while it was told of" in caplog.text


# --- signals after the end


END = KeyError("the end")
ENDS = {"on_complete": (), "on_error": (END,)}


class KeepsOn(ScriptedPublisher):
    """A publisher that answers a request with one element and an end, and goes on signalling."""

    def __init__(self, end: str) -> None:
        super().__init__(lambda subscriber: subscriber.on_subscribe(self.calls))
        self.calls = CallRecorder(request=self._answer)
        self._end = end

    def _answer(self, _: int) -> None:
        self.subscriber.on_next(1)
        getattr(self.subscriber, self._end)(*ENDS[self._end])
        for _ in range(3):
            self.subscriber.on_next(2)
            self.subscriber.on_complete()
            self.subscriber.on_error(OSError("late"))


async def _by_block(publisher: KeepsOn) -> list[object]:
    async with subscribe(publisher, on_violation=boom) as stream:
        return [await anext(stream), await raised_by(stream.__anext__)]


async def _by_stream(publisher: KeepsOn) -> list[object]:
    stream: Stream[object] = Stream()
    publisher.subscribe(stream)
    return [await anext(stream), await raised_by(stream.__anext__)]


async def _by_callback(publisher: KeepsOn) -> list[object]:
    recorder: list[object] = []
    publisher.subscribe(
        CallbackSubscriber(
            recorder.append,
            error=recorder.append,
            complete=lambda: recorder.append(StopAsyncIteration()),
            on_violation=boom,
        )
    )
    return recorder


async def _by_binding(publisher: KeepsOn) -> list[object]:
    return await _listened(as_source(publisher))


async def _by_pipe(publisher: KeepsOn) -> list[object]:
    return await _listened(pipe(publisher, ops.map(lambda element: element), ops.skip(0)))


async def _listened(source: Source[object]) -> list[object]:
    async with trio.open_nursery() as nursery:
        recorder = Bound(source, nursery).listen(10)
        return [
            *recorder.elements,
            *(entry[1] if len(entry) > 1 else StopAsyncIteration() for entry in recorder.log[2:]),
        ]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "through",
    [_by_block, _by_stream, _by_callback, _by_binding, _by_pipe],
    ids=lambda each: each.__name__.strip("_"),
)
async def test_signals_after_the_end_do_nothing(through, end: str) -> None:
    """Rules 1.7, 2.4, 2.8: the consumer gets one end, and no method of the publisher's
    subscription is called after it.
    """
    publisher = KeepsOn(end)
    element, last = await through(publisher)
    assert element == 1
    assert last is END if end == "on_error" else isinstance(last, StopAsyncIteration)
    assert [call[0] for call in publisher.calls.log] == ["request"]


# --- subscribed twice


@by_source
async def test_a_stream_that_is_subscribed_twice_keeps_its_first_subscription(
    nursery, make
) -> None:
    """Rule 2.5: the second one is cancelled before it has cost a task."""
    stream: Stream[int] = Stream()
    one, other = Bound(make(), nursery), Bound(lambda: numbers(5), nursery)
    one.publisher.subscribe(stream)
    other.publisher.subscribe(stream)
    assert [element async for element in stream] == list(range(5))
    assert (our_tasks(), other.reported) == ([], [])


async def test_one_object_in_two_subscriptions_of_one_publisher_is_served_twice(nursery) -> None:
    """Penstock's publishers do not compare subscribers (rule 1.10 binds the subscriber). Each
    subscription gets correct signals.
    """
    publisher = Bound([0, 1], nursery).publisher
    twice = Recorder()
    publisher.subscribe(twice)
    first = twice.subscription
    publisher.subscribe(twice)
    first.request(5)
    await quiet()
    twice.subscription.request(5)
    await quiet()
    assert (
        twice.log
        == [("on_subscribe",)] * 2 + [("on_next", 0), ("on_next", 1), ("on_complete",)] * 2
    )


# --- objects that are not subscribers


PUBLISHERS: dict[str, Callable[[trio.Nursery], Publisher[Any]]] = {
    "a bound source": lambda nursery: as_source([1]).publisher(nursery),
    "a bound pipe": lambda nursery: pipe([1], ops.take(1)).publisher(nursery),
    "a bound topic": lambda nursery: Topic[Any]().publisher(nursery),
    "a topic": lambda nursery: Topic[Any](),
    "empty": lambda nursery: empty().publisher(nursery),
    "failed": lambda nursery: failed(KeyError()).publisher(nursery),
    "single": lambda nursery: single(1).publisher(nursery),
    "interval": lambda nursery: interval(1).publisher(nursery),
    "timer": lambda nursery: timer(1).publisher(nursery),
    "foreign": lambda nursery: from_publisher(CountingPublisher(1)).publisher(nursery),
}


@pytest.mark.parametrize("make", PUBLISHERS.values(), ids=PUBLISHERS)
@pytest.mark.parametrize(
    "garbage",
    [None, 5, "x", object(), Recorder],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
async def test_an_object_that_is_not_a_subscriber_is_a_type_error(nursery, make, garbage) -> None:
    """Rule 1.9: `subscribe` raises nothing else. A subscriber class counts as such an object."""
    with pytest.raises(
        TypeError,
        match="which is no subscriber: it needs on_subscribe, on_next, on_error and on_complete",
    ):
        make(nursery).subscribe(garbage)
    assert our_tasks() == []


# --- nurseries


@by_source
async def test_a_closed_nursery_is_an_error_or_is_not_needed(make) -> None:
    """For every source, subscribe and request return normally, and the subscriber gets an end."""
    async with trio.open_nursery() as closed:
        bound = Bound(make(), closed)
    recorder = bound.listen(10)
    assert recorder.log[-1][0] in ("on_error", "on_complete")
    if recorder.log[-1][0] == "on_error":
        assert isinstance(recorder.error, UsageError)
        assert "has closed" in str(recorder.error)
    assert our_tasks() == []


@by_source
async def test_a_cancelled_nursery_ends_its_streams(make) -> None:
    """Cancelled before the task's first step, or while it waits for demand:
    one end, and no task.
    """
    for demand in (10, 2):
        async with trio.open_nursery() as cancelled:
            recorder = Bound(make(), cancelled).listen(demand)
            if demand == 2:
                await quiet()
            cancelled.cancel_scope.cancel()
        if recorder.log[-1][0] == "on_error":
            assert isinstance(recorder.error, PublisherStopped)
        assert our_tasks() == []
    assert len([entry for entry in recorder.log if entry[0] in ("on_error", "on_complete")]) <= 1


# --- cleanup


async def _hangs() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        await trio.sleep_forever()


async def _raises() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        raise KeyError("cleanup")


async def _yields() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        yield 2


CLEANUPS = {
    "hangs": (_hangs, CleanupTimeout),
    "raises": (_raises, KeyError),
    "yields": (_yields, RuntimeError),
}


@pytest.mark.parametrize(("generator", "expected"), CLEANUPS.values(), ids=CLEANUPS)
@pytest.mark.parametrize("piped", [False, True])
async def test_bad_cleanup_is_raised_from_a_block_and_reported_for_a_publisher(
    nursery, autojump_clock, generator, expected, piped: bool
) -> None:
    """The block raises it without a group. No task is left, and the nursery is not cancelled."""
    source = pipe(generator, ops.map(lambda number: number)) if piped else as_source(generator)

    async def block() -> None:
        async with subscribe(source, demand=1) as stream:
            await anext(stream)

    assert type(await raised_by(block)) is expected
    bound = Bound(source, nursery)
    recorder = bound.listen(1)
    await quiet()
    recorder.subscription.cancel()
    await trio.sleep(10)
    assert [type(error) for error in bound.reported] == [expected]
    assert (recorder.elements, our_tasks()) == ([1], [])
    await neighbour_works(nursery)


@pytest.mark.parametrize(("generator", "expected"), CLEANUPS.values(), ids=CLEANUPS)
async def test_bad_cleanup_of_a_pipe_that_completes_early_is_raised_from_the_block(
    autojump_clock, generator, expected
) -> None:
    """`take` cancels its source inside a signal. The elements arrive, and the failure is raised."""
    got: list[int] = []

    async def block() -> None:
        async with subscribe(pipe(generator, ops.take(1))) as stream:
            got.extend([element async for element in stream])

    assert type(await raised_by(block)) is expected
    assert got == [1]
