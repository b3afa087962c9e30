"""Every source, and the source that `as_source` makes of each kind of argument."""

import gc
import io
import sys
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from penstock.api import UNBOUNDED, AlreadySubscribed, RuleViolation, UsageError
from penstock.core import EndedSubscription
from penstock.streams import (
    Source,
    Topic,
    as_source,
    collect,
    empty,
    failed,
    first,
    from_async_iterable,
    from_channel,
    from_iterable,
    from_publisher,
    generate,
    interval,
    single,
    subscribe,
    timer,
)
from tests.core._foreign import CountingPublisher, Recorder, ScriptedPublisher, boom
from tests.core._helpers import Reports, Token, numbers, our_tasks, quiet, raised_by


def plain(count: int = 3) -> Iterator[int]:
    yield from range(count)


class Countable:
    """An async iterable that makes an iterator for each loop."""

    def __init__(self, count: int = 3) -> None:
        self._count = count

    def __aiter__(self) -> AsyncIterator[int]:
        return numbers(self._count)


class Sized:
    """A collection that reports a given length."""

    def __init__(self, length, elements=(1, 2, 3)) -> None:
        self._length = length
        self._elements = elements

    def __len__(self) -> int:
        return self._length()

    def __iter__(self):
        return iter(self._elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements


def attached(source: Source[object], nursery: trio.Nursery) -> Recorder:
    recorder = Recorder()
    source.attach(recorder, Reports(nursery).scope)
    return recorder


# --- as_source


async def _three() -> AsyncIterator[int]:
    for number in range(3):
        yield number


STREAMABLE = {
    "a list": lambda: [0, 1, 2],
    "a tuple": lambda: (0, 1, 2),
    "a range": lambda: range(3),
    "a dict": lambda: {0: "a", 1: "b", 2: "c"},
    "an iterator": lambda: iter([0, 1, 2]),
    "a generator": plain,
    "a generator function": lambda: plain,
    "an async generator": _three,
    "an async generator function": lambda: _three,
    "an async iterable": Countable,
    "a class of async iterables": lambda: Countable,
    "a function of an async iterable": lambda: lambda: Countable(3),
    "a function of a list": lambda: lambda: [0, 1, 2],
    "a publisher": lambda: CountingPublisher(3),
    "a source": lambda: from_iterable([0, 1, 2]),
}


@pytest.mark.parametrize("make", STREAMABLE.values(), ids=STREAMABLE)
async def test_any_iterable_can_be_streamed(make) -> None:
    """All elements come in order, and the iterator is closed afterwards."""
    assert await collect(make()) == [0, 1, 2]
    assert our_tasks() == []


@pytest.mark.parametrize("make", STREAMABLE.values(), ids=STREAMABLE)
def test_as_source_returns_a_source_unchanged(make) -> None:
    """A second call of as_source returns the same object."""
    source = as_source(make())
    assert isinstance(source, Source)
    assert as_source(source) is source


def test_a_topic_is_used_as_a_source() -> None:
    """It is a publisher, too, but needs no guard."""
    topic: Topic[int] = Topic()
    assert as_source(topic) is topic


@pytest.mark.parametrize("text", ["text", b"bytes", bytearray(b"bytes")])
def test_text_is_not_streamed_by_character(text) -> None:
    """It is nearly always a mistake; the message says how to do it on purpose."""
    with pytest.raises(UsageError) as caught:
        as_source(text)
    assert str(caught.value).startswith(f"{type(text).__name__} is not streamed element by element")
    assert str(caught.value).endswith("For its characters, give iter(...)")
    assert isinstance(as_source(iter(text)), Source)


@pytest.mark.parametrize(
    "garbage", [None, 5, 1.5, object(), Ellipsis], ids=lambda each: type(each).__name__
)
def test_an_object_that_cannot_be_streamed_is_refused(garbage) -> None:
    """The message lists the types that can be given."""
    with pytest.raises(UsageError) as caught:
        as_source(garbage)
    assert str(caught.value) == (
        f"{type(garbage).__name__!r} cannot be subscribed to: give a publisher, a source, an "
        "async iterable, an iterable, or a function that returns one (an async generator "
        "function, say)"
    )


async def _coroutine() -> int:
    return 1


def test_a_coroutine_function_is_refused() -> None:
    """It returns one value. The error comes before anything runs."""
    with pytest.raises(
        UsageError,
        match=r"^_coroutine is a coroutine function, it returns one value; to stream, `yield` the elements",
    ):
        as_source(_coroutine)


@pytest.mark.parametrize(
    "made", [_coroutine, lambda: 5, lambda: None, int], ids=["coroutine", "number", "None", "class"]
)
async def test_a_function_that_returns_no_iterable_fails_the_stream(nursery, made) -> None:
    """That is known only when it is called. If it returned a coroutine, that is closed."""

    def disguised() -> object:
        return made()

    recorder = attached(as_source(disguised), nursery)
    recorder.subscription.request(1)
    await quiet()
    assert isinstance(recorder.error, UsageError)
    assert "to be streamed it must return an iterable or an async iterable" in str(recorder.error)


# --- iterables


@pytest.mark.parametrize("length", [0, 1, 3, 1000])
async def test_a_collection_completes_with_its_last_element(nursery, length: int) -> None:
    """Rule 1.5: exact demand is enough, and an empty collection needs none."""
    recorder = attached(from_iterable(range(length)), nursery)
    if length:
        recorder.subscription.request(length)
        await quiet()
    assert recorder.elements == list(range(length))
    assert recorder.log[-1] == ("on_complete",)


async def test_an_iterator_completes_at_the_pull_after_its_last_element(nursery) -> None:
    """Its length is not known, and it is never pulled without demand."""
    recorder = attached(from_iterable(iter([1])), nursery)
    recorder.subscription.request(1)
    await quiet()
    assert recorder.log[-1] == ("on_next", 1)
    recorder.subscription.request(1)
    await quiet()
    assert recorder.log[-1] == ("on_complete",)


@pytest.mark.parametrize("length", [sys.maxsize, sys.maxsize + 1, 2**100])
async def test_a_range_of_more_than_maxsize_elements_is_streamed(length: int) -> None:
    """`len()` raises OverflowError above sys.maxsize."""
    async with subscribe(range(length), demand=2) as stream:
        assert [await anext(stream), await anext(stream)] == [0, 1]


@pytest.mark.parametrize("length", [boom, lambda: -1], ids=["raises", "negative"])
async def test_a_length_that_raises_fails_the_stream(nursery, length) -> None:
    """Subscribing returns normally although `__len__` raises (rules 1.4, 1.9)."""
    recorder = attached(from_iterable(Sized(length)), nursery)
    assert [entry[0] for entry in recorder.log] == ["on_subscribe", "on_error"]
    assert isinstance(recorder.error, ValueError)


async def test_the_length_is_read_at_subscription(nursery) -> None:
    """The collection may have changed since the source was made."""
    elements: list[int] = []
    source = from_iterable(elements)
    assert attached(source, nursery).log == [("on_subscribe",), ("on_complete",)]
    elements.append(7)
    recorder = attached(source, nursery)
    recorder.subscription.request(1)
    await quiet()
    assert recorder.log == [("on_subscribe",), ("on_next", 7), ("on_complete",)]


async def test_a_collection_that_grows_meanwhile_ends_at_its_first_length() -> None:
    """A list that is appended to while it is read must not become endless."""
    elements = [0]
    async with subscribe(elements, demand=1) as stream:
        assert await anext(stream) == 0
        elements.append(1)
        assert [element async for element in stream] == []


async def test_a_plain_generator_is_closed_when_its_stream_is_left() -> None:
    """Its `finally` runs then, and not when it is collected."""
    closed: list[str] = []

    def watched() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append("closed")

    async with subscribe(watched, demand=1) as stream:
        await anext(stream)
        assert closed == []
    assert closed == ["closed"]


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration])
async def test_an_iterator_that_raises_stop_async_iteration_fails_the_stream(
    error: type[Exception],
) -> None:
    """PEP 479: it does not end the stream as if that were complete."""

    class Wrong:
        def __iter__(self):
            return self

        def __next__(self) -> int:
            raise StopAsyncIteration

    def wrong() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(RuntimeError):
        await collect(wrong)
    with pytest.raises(RuntimeError):
        await collect(Wrong())


async def test_none_in_a_list_is_refused_with_its_position() -> None:
    """None is never an element."""
    with pytest.raises(UsageError, match=r"^list yielded None at position 2 \(counted from 0\)"):
        await collect([0, 1, None])


@pytest.mark.parametrize("wrong", [None, 5, boom], ids=["None", "number", "function"])
def test_each_source_function_refuses_a_wrong_argument(wrong) -> None:
    """The error is raised at the call, and its message names the function."""
    for function, message in [
        (from_iterable, r"^from_iterable\(\) was given .*, which cannot be iterated over$"),
        (
            from_async_iterable,
            r"^from_async_iterable\(\) was given .*, which cannot be iterated over with `async for`$",
        ),
        (
            from_channel,
            r"^from_channel\(\) was given .*; give the receiving end of trio.open_memory_channel\(\)$",
        ),
        (
            from_publisher,
            r"^from_publisher\(\) was given .*, which is not an object with a subscribe\(\); as_source\(\) takes other",
        ),
    ]:
        with pytest.raises(UsageError, match=message):
            function(wrong)


# --- async iterables


async def test_each_subscriber_of_an_async_iterable_gets_its_own_iterator() -> None:
    """As each `async for` does."""
    source = from_async_iterable(Countable(3))
    assert [await collect(source), await collect(source)] == [[0, 1, 2], [0, 1, 2]]


async def test_an_async_generator_refuses_a_second_subscriber(nursery) -> None:
    """The error says what to give instead, and the first stream is not disturbed."""
    source = from_async_iterable(numbers(3))
    first, second = attached(source, nursery), attached(source, nursery)
    first.subscription.request(1)
    await quiet()
    second.subscription.request(1)
    await quiet()
    assert str(second.error) == (
        "numbers was subscribed to before, and a generator runs once. "
        "Give the generator function itself (without the call): each subscriber then gets its own. "
        "To let subscribers share one, put share() or a Topic in between"
    )
    first.subscription.request(5)
    await quiet()
    assert first.log == [
        ("on_subscribe",),
        ("on_next", 0),
        ("on_next", 1),
        ("on_next", 2),
        ("on_complete",),
    ]


async def test_a_given_async_generator_is_closed_pulled_or_not() -> None:
    """A program that gives a generator also leaves the closing to the stream."""
    closed: list[str] = []

    async def watched() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("closed")

    pulled, begun = watched(), watched()
    async with subscribe(pulled, demand=1) as stream:
        await anext(stream)
    assert closed == ["closed"]
    await anext(begun)
    async with subscribe(begun, demand=0):
        pass
    assert closed == ["closed", "closed"]
    assert pulled.ag_frame is begun.ag_frame is None  # type: ignore[attr-defined]  # the objects are generators


async def test_an_object_that_is_its_own_iterator_stays_open() -> None:
    """An open socket, for example: its owner closes it, and it continues at its position."""
    send, receive = trio.open_memory_channel[int](10)

    class Reader:
        def __aiter__(self):
            return self

        async def __anext__(self) -> int:
            return await receive.receive()

        async def aclose(self) -> None:
            await receive.aclose()

    reader = Reader()
    for number in range(3):
        send.send_nowait(number)
    async with subscribe(reader, demand=1) as stream:
        assert await anext(stream) == 0
    async with subscribe(reader, demand=1) as stream:
        assert await anext(stream) == 1
    assert receive.receive_nowait() == 2
    send.close()
    receive.close()


# --- one subscriber for each iterator


def _six() -> Iterator[int]:
    yield from range(6)


class Reader:
    """An async iterator that stays open, as a socket does."""

    def __init__(self) -> None:
        self._numbers = iter(range(6))

    def __aiter__(self) -> "Reader":
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        for number in self._numbers:
            return number
        raise StopAsyncIteration


class SlottedReader(Reader):
    """One that cannot be referred to weakly."""

    __slots__ = ("_numbers",)


STATEFUL = {
    "a generator": _six,
    "a generator expression": lambda: (number for number in range(6)),
    "an iterator": lambda: iter(range(6)),
    "a map": lambda: map(int, "012345"),
    "an open file": lambda: io.StringIO("0\n1\n2\n3\n4\n5\n"),
    "an async generator": lambda: numbers(6),
    "an open async iterator": Reader,
    "an open async iterator with slots": SlottedReader,
}
by_stateful = pytest.mark.parametrize("make", STATEFUL.values(), ids=STATEFUL)
WAYS = {
    "the object twice": lambda given: (given, given),
    "one source twice": lambda given: (as_source(given),) * 2,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@by_stateful
async def test_two_subscribers_do_not_share_one_iterator_in_silence(make, way) -> None:
    """The second gets an error that says what to give;
    the first gets every element that it would get alone.
    """
    one, other = way(make())
    async with subscribe(one, demand=3) as first_stream:
        error = await raised_by(lambda: collect(other))
        assert isinstance(error, AlreadySubscribed)
        assert "share() or a Topic" in str(error)
        assert "function" in str(error)
        assert [int(element) async for element in first_stream] == list(range(6))


@by_stateful
async def test_a_source_of_one_iterator_has_one_subscriber_for_good(make) -> None:
    """It has no second one after the first stream is over: that stream may have requested elements
    that its reader never got.
    """
    source = as_source(make())
    async with subscribe(source, demand=1):
        pass
    assert isinstance(await raised_by(lambda: collect(source)), AlreadySubscribed)


@pytest.mark.parametrize(
    "make", [lambda: iter(range(6)), Reader, SlottedReader], ids=["iterator", "async", "slots"]
)
async def test_an_open_iterator_is_read_on_by_the_next_stream(make) -> None:
    """It belongs to the program, which says so by giving it again.
    With a demand of 1 nothing was requested ahead.
    """
    given = make()
    assert [await first(given), await collect(given)] == [0, [1, 2, 3, 4, 5]]


@pytest.mark.parametrize("make", [_six, lambda: numbers(6)], ids=["plain", "async"])
async def test_a_generator_is_refused_also_after_its_stream(make) -> None:
    """The stream has closed it, and a second one would be empty in silence."""
    given = make()
    assert await first(given) == 0
    assert isinstance(await raised_by(lambda: collect(given)), AlreadySubscribed)


@by_stateful
async def test_a_function_that_returns_the_same_iterator_is_found_out(make) -> None:
    """At the pull, because only then it is called."""
    given = make()

    def function():
        return given

    async with subscribe(function, demand=3) as stream:
        assert int(await anext(stream)) == 0
        error = await raised_by(lambda: collect(function))
        assert isinstance(error, AlreadySubscribed)


async def test_a_function_that_makes_an_iterator_serves_each_subscriber() -> None:
    """The error advises such a function."""
    for function in (_six, lambda: iter(range(6)), lambda: numbers(6), Reader, SlottedReader):
        async with subscribe(function) as one, subscribe(function) as other:
            assert (
                [element async for element in one]
                == [element async for element in other]
                == list(range(6))
            )


async def test_a_subscription_that_never_requested_frees_an_open_iterator() -> None:
    """Its stream is over, and has pulled nothing."""
    given = iter(range(3))
    async with subscribe(given, demand=0):
        pass
    assert await collect(given) == [0, 1, 2]


# --- functions


async def test_arguments_go_to_the_function_of_each_subscriber() -> None:
    """The function is called anew for each one."""
    source = generate(numbers, 2)
    assert [await collect(source), await collect(source)] == [[0, 1], [0, 1]]
    assert await collect(generate(range, 2, 5)) == [2, 3, 4]


async def test_an_iterator_that_a_function_returned_is_closed() -> None:
    """Also an object that is its own iterator, which stays open if it is given directly."""
    send, receive = trio.open_memory_channel[int](10)
    send.send_nowait(1)
    async with subscribe(lambda: receive, demand=1) as stream:
        await anext(stream)
    with pytest.raises(trio.ClosedResourceError):
        receive.receive_nowait()
    send.close()


@pytest.mark.parametrize("wrong", [None, 5, [1]], ids=repr)
def test_generate_refuses_an_object_that_cannot_be_called(wrong) -> None:
    """`generate` takes functions; as_source takes other objects."""
    with pytest.raises(UsageError, match=r"^what generate\(\) shall call is "):
        generate(wrong)


def test_generate_refuses_coroutine_functions() -> None:
    """They return one value."""
    with pytest.raises(UsageError, match="_coroutine is a coroutine function"):
        generate(_coroutine)  # type: ignore[arg-type]  # a mistake on purpose


async def test_wrong_arguments_fail_the_stream(nursery) -> None:
    """With the TypeError that Python raises for the call."""
    recorder = attached(generate(numbers, 1, 2, 3), nursery)
    recorder.subscription.request(1)
    await quiet()
    assert isinstance(recorder.error, TypeError)


async def test_the_function_is_called_in_the_task_that_pulls(nursery) -> None:
    """It may open a cancel scope or a nursery, which belong to that task."""
    seen: list[str] = []

    def opens():
        seen.append(trio.lowlevel.current_task().name)
        return [1]

    recorder = attached(generate(opens), nursery)
    recorder.subscription.request(1)
    await quiet()
    assert len(seen) == 1
    assert seen[0].startswith("penstock pump of ")


# --- channels


async def test_a_channel_is_received_through_a_clone_and_stays_open() -> None:
    """The stream closes its clone, and not the caller's end."""
    send, receive = trio.open_memory_channel[int](10)
    for number in range(5):
        send.send_nowait(number)
    async with subscribe(from_channel(receive), demand=2) as stream:
        assert [await anext(stream), await anext(stream)] == [0, 1]
        assert receive.statistics().open_receive_channels == 2
    assert receive.statistics().open_receive_channels == 1
    await send.aclose()
    assert receive.receive_nowait() >= 2
    receive.close()


async def test_a_channel_completes_when_the_last_sender_has_closed() -> None:
    """A channel that is given to as_source does so as well."""
    send, receive = trio.open_memory_channel[int](10)
    send.send_nowait(1)
    send.close()
    assert await collect(receive) == [1]
    receive.close()


async def test_subscribers_of_one_channel_compete(nursery) -> None:
    """Each element reaches one of them."""
    send, receive = trio.open_memory_channel[int](10)
    source = from_channel(receive)
    recorders = [attached(source, nursery) for _ in range(2)]
    for recorder in recorders:
        recorder.subscription.request(10)
    await quiet()
    for number in range(6):
        send.send_nowait(number)
    await quiet()
    assert sorted(recorders[0].elements + recorders[1].elements) == list(range(6))
    receive.close()
    send.close()
    await quiet()
    assert [recorder.log[-1] for recorder in recorders] == [("on_complete",)] * 2


async def test_a_channel_that_was_closed_fails_the_stream() -> None:
    """It cannot be cloned any more."""
    send, receive = trio.open_memory_channel[int](1)
    source = from_channel(receive)
    receive.close()
    send.close()
    with pytest.raises(trio.ClosedResourceError):
        await collect(source)


async def test_nothing_is_taken_from_a_channel_without_demand(nursery) -> None:
    """Elements that were not requested stay for other receivers."""
    send, receive = trio.open_memory_channel[int](10)
    for number in range(5):
        send.send_nowait(number)
    recorder = attached(from_channel(receive), nursery)
    recorder.subscription.request(2)
    await quiet()
    recorder.subscription.cancel()
    await quiet()
    assert recorder.elements == [0, 1]
    assert receive.receive_nowait() == 2
    send.close()
    receive.close()


# --- publishers


async def test_a_foreign_publisher_is_guarded() -> None:
    """If it breaks a rule, the stream ends with a violation that names the rule."""

    def too_eager(subscriber) -> None:
        subscriber.on_subscribe(EndedSubscription())
        subscriber.on_next(1)

    with pytest.raises(
        RuleViolation, match=r"signalled an element that was not requested; that breaks rule 1\.1"
    ):
        async with subscribe(ScriptedPublisher(too_eager), demand=0) as stream:
            await anext(stream)


# --- time


async def test_an_interval_ticks_from_the_first_pull_on(nursery, autojump_clock) -> None:
    """It is cold like any source: the time begins with the first request."""
    recorder = attached(interval(2), nursery)
    await trio.sleep(10)
    start = trio.current_time()
    recorder.subscription.request(3)
    await trio.sleep(1.9)
    assert recorder.elements == []
    await trio.sleep(0.2)
    assert recorder.elements == [0]
    await trio.sleep(4)
    assert (recorder.elements, trio.current_time() - start) == ([0, 1, 2], pytest.approx(6.1))
    recorder.subscription.cancel()


@pytest.mark.parametrize(("delay", "first"), [(None, 2.0), (0, 0.0), (5, 5.0)])
async def test_the_first_tick_comes_after_the_delay(autojump_clock, delay, first: float) -> None:
    """By default after one interval."""
    async with subscribe(interval(2, delay=delay), demand=1) as stream:
        times = []
        async for tick in stream:
            times.append(trio.current_time())
            if tick == 2:
                break
    assert times == [first, first + 2, first + 4]


async def test_ticks_without_demand_are_left_out(autojump_clock) -> None:
    """The element is the number of the tick; missed ticks are not signalled later."""
    got = []
    async with subscribe(interval(1), demand=0) as stream:
        for pause in (0, 0, 2.5, 0, 10):
            await trio.sleep(pause)
            stream.request(1)
            got.append((await anext(stream), trio.current_time()))
    assert got == [(0, 1.0), (1, 2.0), (4, 5.0), (5, 6.0), (15, 16.0)]


@pytest.mark.parametrize("seconds", [0.1, 0.3, 1 / 3, 0.7])
async def test_a_request_exactly_on_time_misses_no_tick(autojump_clock, seconds: float) -> None:
    """A hundred intervals, added up in floating point, are not exactly a hundred intervals."""
    ticks = []
    async with subscribe(interval(seconds, delay=0), demand=1) as stream:
        async for tick in stream:
            ticks.append(tick)
            if tick >= 100:
                break
            await trio.sleep(seconds)
    assert ticks == list(range(101))


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_an_interval_of_zero_is_refused(wrong) -> None:
    """It would be an endless loop."""
    with pytest.raises(
        UsageError, match=r"^the interval is .*; it is a time in seconds, above 0, and finite$"
    ):
        interval(wrong)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", True])
def test_a_delay_below_zero_is_refused(wrong) -> None:
    """By `interval` and by `timer`."""
    for make in (timer, lambda delay: interval(1, delay=delay)):
        with pytest.raises(
            UsageError, match=r"^the delay is .*; it is a time in seconds, 0 or more, and finite$"
        ):
            make(wrong)


@pytest.mark.parametrize("delay", [0, 0.5, 3600])
async def test_a_timer_gives_one_element_after_its_delay(autojump_clock, delay: float) -> None:
    """It completes at the next pull."""
    assert await collect(timer(delay)) == [0]
    assert trio.current_time() == delay


# --- empty, failed and single


async def test_empty_completes_at_once_and_without_demand(nursery) -> None:
    """Rule 1.5; calls on its subscription do nothing."""
    recorder = attached(empty(), nursery)
    assert recorder.log == [("on_subscribe",), ("on_complete",)]
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    assert len(recorder.log) == 2
    assert await collect(empty()) == []


async def test_failed_fails_at_once_with_the_same_error_object(nursery) -> None:
    """Rule 1.4; for each subscriber."""
    error = KeyError("why")
    recorder = attached(failed(error), nursery)
    assert recorder.log == [("on_subscribe",), ("on_error", error)]
    with pytest.raises(KeyError) as caught:
        await collect(failed(error))
    assert caught.value is error


@pytest.mark.parametrize("wrong", [None, "why", ValueError, KeyboardInterrupt()], ids=repr)
def test_failed_needs_an_exception(wrong) -> None:
    """A class or an interrupt is refused."""
    with pytest.raises(
        UsageError,
        match=r"^failed\(\) was given .*; give it the exception that subscribers shall get$",
    ):
        failed(wrong)


async def test_single_completes_with_its_element_inside_the_request(nursery) -> None:
    """Rule 3.10 permits that, so no task is needed. Further requests do nothing."""
    recorder = attached(single(7), nursery)
    assert recorder.log == [("on_subscribe",)]
    recorder.subscription.request(UNBOUNDED)
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    assert recorder.log == [("on_subscribe",), ("on_next", 7), ("on_complete",)]
    assert our_tasks() == []


async def test_single_can_be_cancelled_before_and_inside_its_signal(nursery) -> None:
    """Rule 1.8: no completion after that."""
    recorder = attached(single(7), nursery)
    recorder.subscription.cancel()
    recorder.subscription.request(1)
    assert recorder.log == [("on_subscribe",)]
    inside = Recorder(on_next=lambda _: inside.subscription.cancel())
    single(7).attach(inside, Reports(nursery).scope)
    inside.subscription.request(1)
    assert inside.log == [("on_subscribe",), ("on_next", 7)]


async def test_a_request_inside_the_signal_of_single_does_nothing(nursery) -> None:
    """Rule 3.3: signals do not nest."""
    recorder = Recorder(on_next=lambda _: recorder.subscription.request(1))
    single(7).attach(recorder, Reports(nursery).scope)
    recorder.subscription.request(1)
    assert (recorder.log[1:], recorder.deepest) == ([("on_next", 7), ("on_complete",)], 1)


async def test_single_keeps_no_element_once_it_was_taken(nursery) -> None:
    """A subscriber that keeps its subscription does not keep the element."""
    token = Token()
    ref = weakref.ref(token)
    recorder = Recorder()
    single(token).attach(recorder, Reports(nursery).scope)
    recorder.subscription.request(1)
    recorder.log.clear()
    del token
    gc.collect()
    assert ref() is None


def test_single_needs_an_element() -> None:
    """None is not an element."""
    with pytest.raises(
        UsageError,
        match=r"^single\(None\): None is never an element \(rule 2\.13\)\. For a stream of nothing, use empty\(\)$",
    ):
        single(None)


# --- repr


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (from_iterable([1]), "<source list>"),
        (generate(numbers), "<source numbers>"),
        (generate(range, 3), "<source range>"),
        (as_source(Countable()), "<source Countable>"),
        (empty(), "<source empty>"),
        (failed(KeyError(1)), "<source failed with KeyError(1)>"),
        (single(5), "<source single>"),
        (interval(1), "<source interval(1)>"),
        (timer(1), "<source timer(1)>"),
    ],
    ids=str,
)
def test_the_repr_of_a_source_names_what_it_streams(source: Source[object], text: str) -> None:
    """For logs and messages."""
    assert repr(source) == text


def test_the_repr_of_a_publisher_source_shows_the_publisher() -> None:
    """That of a channel names the channel."""
    send, receive = trio.open_memory_channel[int](1)
    assert repr(from_channel(receive)) == "<source memory channel>"
    assert repr(from_publisher(Topic())).startswith("<source from <topic (wait): 0 subscribers")
    send.close()
    receive.close()


async def test_every_source_calls_on_subscribe_in_attach_and_starts_no_task(nursery) -> None:
    """A subscription without demand is an object, not a task."""
    topic: Topic[int] = Topic()
    sources = [
        from_iterable([1]),
        from_async_iterable(Countable()),
        generate(numbers),
        topic,
        from_publisher(CountingPublisher(1)),
        interval(1),
        timer(1),
    ]
    for source in [*sources, empty(), failed(KeyError()), single(1)]:
        recorder = attached(source, nursery)
        assert recorder.log[0] == ("on_subscribe",)
    assert our_tasks() == []
    await quiet()


@pytest.mark.parametrize("given", [CountingPublisher, Topic])
async def test_a_publisher_class_is_refused(given) -> None:
    """The mistake is a forgotten call, and not a publisher that breaks a rule."""
    with pytest.raises(
        UsageError,
        match=r"^from_publisher\(\) was given <class .*>, which is not an object with a subscribe\(\)",
    ):
        from_publisher(given)
    with pytest.raises(
        (UsageError, TypeError),
        match=r"Topic returned .* must return an iterable|missing 1 required",
    ):
        await collect(given)
