"""Bad input over the whole public surface: each gets what the rules say, a clear error, and never harms a neighbour.

The tables here go across; what each part makes of bad input by itself is in its own test module.
"""

import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from penstock import ops, pipe
from penstock.api import CleanupTimeout, IllegalDemand, Publisher, PublisherStopped, RuleViolation, UsageError
from penstock.core import (
    CallbackSubscriber,
    SlowPolicy,
    Source,
    Stream,
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
from tests.core._foreign import Calls, Counting, Heard, Script, boom
from tests.core._helpers import numbers, our_tasks, quiet, raised_by


class Walker:
    """An async iterator by hand."""

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


# Every kind of source, of five elements 0 to 4.
FIVE: dict[str, Callable[[], Any]] = {
    "list": lambda: list(range(5)),
    "iterator": lambda: iter(range(5)),
    "generator": lambda: plain,
    "async generator": lambda: numbers(5),
    "async generator function": lambda: lambda: numbers(5),
    "async iterator": Walker,
    "function of an async iterator": lambda: walker,
    "foreign publisher": lambda: Counting(5),
    "pipe": lambda: pipe(list(range(10)), ops.map(lambda number: number), ops.take(5)),
    "pipe with a task": lambda: pipe(list(range(5)), ops.map(_later)),
    "pipe of a pipe": lambda: pipe(pipe(lambda: numbers(9), ops.filter(lambda number: number < 5)), ops.take(5)),
}


async def _later(element: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return element


by_source = pytest.mark.parametrize("make", FIVE.values(), ids=FIVE)


class Bound:
    """A source as a publisher in a nursery, and what its hook is told."""

    def __init__(self, made: Any, nursery: trio.Nursery, **options: Any) -> None:
        self.told: list[Exception] = []
        self.publisher = as_source(made).publisher(nursery, on_violation=self.told.append, **options)

    def listen(self, demand: int = 0, **hooks: Callable[..., object]) -> Heard:
        heard = Heard(**hooks)
        self.publisher.subscribe(heard)
        if demand:
            heard.subscription.request(demand)
        return heard


async def neighbour_is_well(nursery: trio.Nursery) -> None:
    """Somebody else's stream in the same nursery goes on, and the nursery stands."""
    heard = Bound(lambda: numbers(3), nursery).listen(10)
    await quiet()
    assert heard.log[1:] == [("on_next", 0), ("on_next", 1), ("on_next", 2), ("on_complete",)]
    assert not nursery.cancel_scope.cancel_called


@by_source
async def test_every_row_of_the_table_is_well_by_itself(nursery, make) -> None:
    """What the tables below break is whole before."""
    heard = Bound(make(), nursery).listen(10)
    await quiet()
    assert heard.elements == list(range(5))
    assert heard.log[-1] == ("on_complete",)
    assert our_tasks() == []


# --- demand

WRONG_DEMAND = [0, -1, -(2**63), -(2**70), True, False, None, 1.0, float("inf"), "1", b"1", [1], object]


@by_source
@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_a_demand_that_is_none_fails_that_subscriber_alone(nursery, make, wrong) -> None:
    """Rules 3.9 and 3.16, at the first request and after elements: an error, silence, no task; the call returns normally."""
    for begun in (0, 2):
        bound = Bound(make(), nursery)
        heard = bound.listen(begun)
        await quiet()
        heard.subscription.request(wrong)
        assert heard.elements == list(range(begun))
        assert isinstance(heard.error, IllegalDemand)
        assert "rule 3.9" in str(heard.error)
        seen = list(heard.log)
        heard.subscription.request(5)
        heard.subscription.cancel()
        await quiet()
        assert (heard.log, bound.told, our_tasks()) == (seen, [], [])
    await neighbour_is_well(nursery)


@by_source
@pytest.mark.parametrize("place", ["on_subscribe", "on_next"])
async def test_a_wrong_demand_inside_a_signal_is_the_same(nursery, make, place: str) -> None:
    """Rule 3.9 from wherever it is called; nothing follows the error."""
    bound = Bound(make(), nursery)
    heard = Heard(
        on_subscribe=lambda: heard.subscription.request(0 if place == "on_subscribe" else 3),
        on_next=lambda _: heard.subscription.request(-1),
    )
    bound.publisher.subscribe(heard)
    await quiet()
    assert isinstance(heard.error, IllegalDemand)
    assert len(heard.elements) == (place == "on_next")
    assert (bound.told, our_tasks()) == ([], [])


@by_source
@pytest.mark.parametrize("huge", [2**63 - 1, 2**63, 2**70, 10**5000], ids=["2^63-1", "2^63", "2^70", "10^5000"])
async def test_a_demand_beyond_all_bounds_is_without_bound(nursery, make, huge: int) -> None:
    """Rule 3.17: legal, alone and on top of others; the elements flow to the last one."""
    heard = Bound(make(), nursery).listen(1)
    heard.subscription.request(huge)
    heard.subscription.request(huge)
    await quiet()
    assert heard.elements == list(range(5))
    assert heard.log[-1] == ("on_complete",)


@pytest.mark.parametrize("slow", SlowPolicy)
@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_a_demand_that_is_none_fails_one_subscriber_of_a_topic_alone(slow: SlowPolicy, wrong) -> None:
    """The others get everything, and its place is free."""
    topic: Topic[int] = Topic(slow=slow)
    before, bad, after = Heard(), Heard(), Heard()
    for heard in (before, bad, after):
        topic.subscribe(heard)
    for heard in (before, after):
        heard.subscription.request(2**70)
    bad.subscription.request(1)
    await topic.publish(0)
    bad.subscription.request(wrong)
    await topic.publish(1)
    assert isinstance(bad.error, IllegalDemand)
    assert (before.elements, bad.elements, after.elements) == ([0, 1], [0], [0, 1])
    assert topic.statistics().subscribers == 2


@pytest.mark.parametrize("wrong", WRONG_DEMAND, ids=lambda each: repr(each)[:10])
async def test_a_demand_that_is_none_is_told_to_whoever_holds_the_stream(wrong) -> None:
    """`Stream.request` is a call of the user's, not a signal: it raises where it was called, and the stream goes on."""
    async with subscribe(lambda: numbers(3), demand=0) as stream:
        with pytest.raises(IllegalDemand):
            stream.request(wrong)
        stream.request(2**70)
        assert [element async for element in stream] == [0, 1, 2]


# --- None for an element


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


HOLEY: dict[str, Callable[[], Any]] = {
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


@pytest.mark.parametrize("make", HOLEY.values(), ids=HOLEY)
async def test_none_is_no_element_wherever_it_comes_from(nursery, make) -> None:
    """The elements before it arrive, then a UsageError that says so; for a reader as for a subscriber."""
    bound = Bound(make(), nursery)
    heard = bound.listen(10)
    await quiet()
    assert len(heard.elements) == 1
    assert isinstance(heard.error, UsageError)
    assert "never an element (rule 2.13)" in str(heard.error)
    error = await raised_by(lambda: collect(make()))
    assert type(error) is UsageError
    assert (bound.told, our_tasks()) == ([], [])
    await neighbour_is_well(nursery)


async def test_none_is_refused_at_the_call_where_there_is_one() -> None:
    """`single`, `publish`, `scan`: the caller hears of it, nobody else."""
    with pytest.raises(UsageError, match="never an element"):
        single(None)
    with pytest.raises(UsageError, match="never an element"):
        await Topic[Any]().publish(None)
    with pytest.raises(UsageError, match="never an element"):
        ops.scan(lambda total, element: total, None)


async def test_a_foreign_publisher_that_signals_none_is_told_so() -> None:
    """Rule 2.13: the TypeError is its own; if it lives on, so does the stream."""
    refused: list[TypeError] = []

    def subscribe_(subscriber: Any) -> None:
        subscriber.on_subscribe(Calls())
        for wrong in ("on_next", "on_error", "on_subscribe"):
            try:
                getattr(subscriber, wrong)(None)
            except TypeError as error:
                refused.append(error)
        subscriber.on_next(1)
        subscriber.on_complete()

    assert await collect(Script(subscribe_)) == [1]
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

    def publisher(self) -> Script:
        def answer(_: int) -> None:
            for number in range(self.k):
                script.subscriber.on_next(number)
            script.subscriber.on_error(self.error)

        script = Script(lambda subscriber: subscriber.on_subscribe(Calls(request=answer)))
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
    """Rules 1.4, 1.9, 3.16: on its first element, on its second, in its second burst; the very exception, for one subscriber."""
    error = KeyError("publisher")
    bound = Bound(make(RaisesAt(k, error)), nursery)
    heard = bound.listen(100)
    await quiet()
    assert heard.elements == list(range(k))
    assert heard.error is error
    assert (bound.told, our_tasks()) == ([], [])
    assert await raised_by(lambda: collect(make(RaisesAt(k, error)))) is error
    await neighbour_is_well(nursery)


class _NoIterator:
    """What raises when it is asked for an iterator."""

    def __iter__(self) -> Iterator[int]:
        raise KeyError("creation")


class _NoAsyncIterator:
    def __aiter__(self) -> AsyncIterator[int]:
        raise KeyError("creation")


def _no_function() -> list[int]:
    raise KeyError("creation")


MADE_BADLY = {"iter": _NoIterator(), "aiter": _NoAsyncIterator(), "call": _no_function, "pipe": pipe(_no_function, ops.take(2))}


@pytest.mark.parametrize("made", MADE_BADLY.values(), ids=MADE_BADLY)
async def test_a_publisher_that_raises_while_it_is_made_fails_at_the_first_pull(nursery, made) -> None:
    """Subscribing returns normally, and so does the request; the error is a signal."""
    heard = Bound(made, nursery).listen()
    assert heard.log == [("on_subscribe",)]
    heard.subscription.request(1)
    await quiet()
    assert isinstance(heard.error, KeyError)
    assert isinstance(await raised_by(lambda: collect(made)), KeyError)
    await neighbour_is_well(nursery)


@pytest.mark.parametrize(("place", "rule"), [("subscribe", "1.9"), ("request", "3.16")])
async def test_a_foreign_publisher_that_raises_breaks_a_rule(nursery, place: str, rule: str) -> None:
    """Its stream ends with the rule's number and the exception for its cause; nothing escapes."""
    publisher = Script(boom if place == "subscribe" else lambda subscriber: subscriber.on_subscribe(Calls(request=boom)))
    error = await raised_by(lambda: collect(publisher))
    assert isinstance(error, RuleViolation)
    assert error.rule == rule
    assert isinstance(error.__cause__, ValueError)
    heard = Bound(publisher, nursery).listen(1)
    assert isinstance(heard.error, RuleViolation)
    await neighbour_is_well(nursery)


async def test_a_foreign_publisher_that_raises_in_cancel_is_told_to_the_hook() -> None:
    """Nobody listens any more; the block is left as if nothing had happened (rule 3.15)."""
    told: list[Exception] = []
    async with subscribe(Script(lambda subscriber: subscriber.on_subscribe(Calls(cancel=boom))), on_violation=told.append):
        pass
    assert [getattr(error, "rule", None) for error in told] == ["3.15"]


# --- a subscriber that raises


SIGNALS = ["on_subscribe", "on_next", "on_error", "on_complete"]


@by_source
@pytest.mark.parametrize("signal", SIGNALS)
async def test_a_subscriber_that_raises_is_cut_off_alone(nursery, make, signal: str) -> None:
    """Rule 2.13: the hook is told once, no signal follows, nothing of it is kept, and its neighbour on the same publisher is well."""
    made = pipe(make(), ops.map(lambda number: number if number < 4 else boom())) if signal == "on_error" else make()
    bound = Bound(made, nursery)
    bad = Heard(**{signal: boom})
    bound.publisher.subscribe(bad)
    if signal != "on_subscribe":
        bad.subscription.request(10)
    await quiet()
    (violation,) = bound.told
    assert isinstance(violation, RuleViolation)
    assert (violation.rule, bad.log[-1][0]) == ("2.13", signal)
    assert len(bad.elements) == {"on_subscribe": 0, "on_next": 1, "on_error": 4, "on_complete": 5}[signal]
    seen, ref, subscription = list(bad.log), weakref.ref(bad), bad.subscription
    subscription.request(5)
    subscription.cancel()
    await quiet()
    assert (bad.log, bound.told, our_tasks()) == (seen, [violation], [])
    violation.__cause__.__traceback__ = violation.__context__ = None  # its frames are what a debugger wants to see
    bad.log.clear()
    seen.clear()
    del bad
    gc.collect()
    assert ref() is None
    await neighbour_is_well(nursery)


async def test_a_subscriber_that_raises_inside_on_subscribe_after_it_has_asked_gets_nothing(nursery) -> None:
    """The pull that it caused is stopped before it begins."""

    def asks_and_raises() -> None:
        bad.subscription.request(5)
        boom()

    bound = Bound(lambda: numbers(5), nursery)
    bad = Heard(on_subscribe=asks_and_raises)
    bound.publisher.subscribe(bad)
    await quiet()
    assert (bad.log, len(bound.told), our_tasks()) == ([("on_subscribe",)], 1, [])


async def test_a_hook_that_raises_about_a_subscriber_that_raises_harms_nobody(nursery, caplog) -> None:
    """Neither the pipe nor the neighbour: it ends in the log."""
    publisher = as_source(lambda: numbers(5)).publisher(nursery, on_violation=boom)
    bad, good = Heard(on_next=boom), Heard()
    for heard in (bad, good):
        publisher.subscribe(heard)
        heard.subscription.request(10)
    await quiet()
    assert (bad.elements, good.elements) == ([0], list(range(5)))
    assert "the on_violation hook raised while it was told of" in caplog.text


# --- signals after the end


THE_END = KeyError("the end")
ENDS = {"on_complete": (), "on_error": (THE_END,)}


class KeepsOn(Script):
    """A publisher that answers a request with one element and an end, and then goes on signalling."""

    def __init__(self, end: str) -> None:
        super().__init__(lambda subscriber: subscriber.on_subscribe(self.calls))
        self.calls = Calls(request=self._answer)
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
    heard: list[object] = []
    publisher.subscribe(
        CallbackSubscriber(heard.append, error=heard.append, complete=lambda: heard.append(StopAsyncIteration()), on_violation=boom)
    )
    return heard


async def _by_binding(publisher: KeepsOn) -> list[object]:
    return await _listened(as_source(publisher))


async def _by_pipe(publisher: KeepsOn) -> list[object]:
    return await _listened(pipe(publisher, ops.map(lambda element: element), ops.skip(0)))


async def _listened(source: Source[object]) -> list[object]:
    async with trio.open_nursery() as nursery:
        heard = Bound(source, nursery).listen(10)
        return [*heard.elements, *(entry[1] if len(entry) > 1 else StopAsyncIteration() for entry in heard.log[2:])]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("through", [_by_block, _by_stream, _by_callback, _by_binding, _by_pipe], ids=lambda each: each.__name__.strip("_"))
async def test_signals_after_the_end_are_nothing(through, end: str) -> None:
    """Rules 1.7, 2.4, 2.8: however long a foreign publisher goes on, one end is heard, and its subscription is left alone."""
    publisher = KeepsOn(end)
    element, last = await through(publisher)
    assert element == 1
    assert last is THE_END if end == "on_error" else isinstance(last, StopAsyncIteration)
    assert [call[0] for call in publisher.calls.log] == ["request"]


# --- subscribed twice


@by_source
async def test_a_stream_that_is_subscribed_twice_keeps_its_first_subscription(nursery, make) -> None:
    """Rule 2.5 from inside: the second one is cancelled before it has cost a task."""
    stream: Stream[int] = Stream()
    one, other = Bound(make(), nursery), Bound(lambda: numbers(5), nursery)
    one.publisher.subscribe(stream)
    other.publisher.subscribe(stream)
    assert [element async for element in stream] == list(range(5))
    assert (our_tasks(), other.told) == ([], [])


async def test_one_object_in_two_subscriptions_of_one_publisher_is_served_twice(nursery) -> None:
    """Publishers of ours do not compare subscribers (rule 1.10 is theirs to keep); each subscription obeys the grammar."""
    publisher = Bound([0, 1], nursery).publisher
    twice = Heard()
    publisher.subscribe(twice)
    first = twice.subscription
    publisher.subscribe(twice)
    first.request(5)
    await quiet()
    twice.subscription.request(5)
    await quiet()
    assert twice.log == [("on_subscribe",)] * 2 + [("on_next", 0), ("on_next", 1), ("on_complete",)] * 2


# --- what is no subscriber


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
    "foreign": lambda nursery: from_publisher(Counting(1)).publisher(nursery),
}


@pytest.mark.parametrize("make", PUBLISHERS.values(), ids=PUBLISHERS)
@pytest.mark.parametrize("garbage", [None, 5, "x", object(), Heard], ids=lambda each: getattr(each, "__name__", type(each).__name__))
async def test_what_is_no_subscriber_is_a_type_error(nursery, make, garbage) -> None:
    """Rule 1.9: the only thing that `subscribe` ever raises; a class in the place of its object counts as that."""
    with pytest.raises(TypeError, match="which is no subscriber: it needs on_subscribe, on_next, on_error and on_complete"):
        make(nursery).subscribe(garbage)
    assert our_tasks() == []


# --- nurseries


@by_source
async def test_a_closed_nursery_is_an_error_or_is_not_needed(make) -> None:
    """Every source: subscribe and request return normally; the subscriber hears an end, one way or the other."""
    async with trio.open_nursery() as closed:
        bound = Bound(make(), closed)
    heard = bound.listen(10)
    assert heard.log[-1][0] in ("on_error", "on_complete")
    if heard.log[-1][0] == "on_error":
        assert isinstance(heard.error, UsageError)
        assert "has closed" in str(heard.error)
    assert our_tasks() == []


@by_source
async def test_a_cancelled_nursery_ends_its_streams(make) -> None:
    """Cancelled before the first turn, or with demand used up and more to come: one end, and no task."""
    for demand in (10, 2):
        async with trio.open_nursery() as cancelled:
            heard = Bound(make(), cancelled).listen(demand)
            if demand == 2:
                await quiet()
            cancelled.cancel_scope.cancel()
        if heard.log[-1][0] == "on_error":
            assert isinstance(heard.error, PublisherStopped)
        assert our_tasks() == []
    assert len([entry for entry in heard.log if entry[0] in ("on_error", "on_complete")]) <= 1


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


CLEANUPS = {"hangs": (_hangs, CleanupTimeout), "raises": (_raises, KeyError), "yields": (_yields, RuntimeError)}


@pytest.mark.parametrize(("generator", "expected"), CLEANUPS.values(), ids=CLEANUPS)
@pytest.mark.parametrize("piped", [False, True])
async def test_bad_cleanup_is_raised_from_a_block_and_told_of_a_publisher(
    nursery, autojump_clock, generator, expected, piped: bool
) -> None:
    """Bare from the block, to the hook elsewhere; no task stays, and the nursery stands."""
    source = pipe(generator, ops.map(lambda number: number)) if piped else as_source(generator)

    async def block() -> None:
        async with subscribe(source, demand=1) as stream:
            await anext(stream)

    assert type(await raised_by(block)) is expected
    bound = Bound(source, nursery)
    heard = bound.listen(1)
    await quiet()
    heard.subscription.cancel()
    await trio.sleep(10)
    assert [type(error) for error in bound.told] == [expected]
    assert (heard.elements, our_tasks()) == ([1], [])
    await neighbour_is_well(nursery)


@pytest.mark.parametrize(("generator", "expected"), CLEANUPS.values(), ids=CLEANUPS)
async def test_bad_cleanup_of_a_pipe_that_completes_early_is_raised_from_the_block(autojump_clock, generator, expected) -> None:
    """`take` leaves its source inside a signal; the elements are safe, the failure is not lost."""
    got: list[int] = []

    async def block() -> None:
        async with subscribe(pipe(generator, ops.take(1))) as stream:
            got.extend([element async for element in stream])

    assert type(await raised_by(block)) is expected
    assert got == [1]
