"""`retry` and `on_error_resume`: what goes on after an error, and with which demand."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock import ops
from penstock.api import UNBOUNDED, PublisherStopped, UsageError
from penstock.core import Source
from tests.operators._harness_actions import close_nursery, stop_nursery
from tests.operators.harness import OperatorHarness, ScriptedError, clear_tracebacks


class Fails:
    """A generator function that fails the first `times` times that it is run, after giving `first` elements."""

    def __init__(self, times: float, *, first: int = 0, error: type[Exception] = ScriptedError) -> None:
        self.times = times
        self.first = first
        self.error = error
        self.runs = 0
        self.at: list[float] = []

    async def __call__(self) -> AsyncIterator[int]:
        self.runs += 1
        self.at.append(trio.current_time())
        for number in range(self.first):
            yield number
        if self.runs <= self.times:
            raise self.error(f"failure {self.runs}")
        yield 100

    def waits(self) -> list[float]:
        """The time between each run and the one before it."""
        return [round(late - early, 9) for early, late in zip(self.at, self.at[1:], strict=False)]

    def source(self) -> Source[int]:
        """A fresh generator for each run: the call is made for each subscriber."""
        return penstock.generate(self.__call__)


BOTH = [
    pytest.param(lambda harness: ops.retry(3), id="retry"),
    pytest.param(lambda harness: ops.on_error_resume(harness.source("other")), id="resume"),
]


# --- what both have in common


@pytest.mark.parametrize("make", BOTH)
async def test_what_was_not_answered_is_asked_of_the_next_source(make: Callable[[OperatorHarness], Any]) -> None:
    """Five requested, two answered, an error: three are asked of what follows, in one request, and what comes later is added."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(5)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].fail()
        await harness.settle()
        assert harness.upstreams[1].requests == [3]
        recorder.request(4)
        assert harness.upstreams[1].requests == [3, 4]
        harness.upstreams[1].emit(7)
        harness.upstreams[1].complete()
        assert recorder.elements == list(range(1, 10))
        assert recorder.kinds[-1] == "complete"


@pytest.mark.parametrize("make", BOTH)
async def test_with_nothing_left_to_answer_nothing_is_asked(make: Callable[[OperatorHarness], Any]) -> None:
    """No demand, no request: the next source waits to be asked."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].fail()
        await harness.settle()
        assert harness.upstreams[1].requests == []
        recorder.request(2)
        assert harness.upstreams[1].requests == [2]


@pytest.mark.parametrize("make", BOTH)
async def test_what_is_requested_between_two_sources_is_asked_of_the_next(make: Callable[[OperatorHarness], Any]) -> None:
    """The source that failed is not called again; the demand waits for the next one."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(1)
        harness.upstreams[0].fail()
        recorder.request(2)
        assert harness.upstreams[0].requests == [1]
        await harness.settle()
        assert harness.upstreams[1].requests == [3]


@pytest.mark.parametrize("make", BOTH)
async def test_unbounded_demand_stays_unbounded(make: Callable[[OperatorHarness], Any]) -> None:
    """Elements that have come do not make "without bound" any less."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        harness.upstreams[0].emit(10)
        harness.upstreams[0].fail()
        await harness.settle()
        assert harness.upstreams[1].requests[0] >= UNBOUNDED - 10


@pytest.mark.parametrize("make", BOTH)
async def test_the_subscriber_is_greeted_once(make: Callable[[OperatorHarness], Any]) -> None:
    """However many sources there are, it has one subscription (rule 2.12; the recorder counts)."""
    async with OperatorHarness() as harness:
        harness.run(make(harness))
        harness.upstreams[0].fail()
        await harness.settle()
        assert len(harness.upstreams) == 2
        assert harness.breaches == []


@pytest.mark.parametrize("make", BOTH)
async def test_completion_passes_and_demand_passes_one_for_one(make: Callable[[OperatorHarness], Any]) -> None:
    """Without an error they are not there: no task, no buffer, no demand of their own."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        assert harness.upstreams[0].requests == [3]
        assert harness.peak == 0
        assert harness.scope.running == 0
        harness.upstreams[0].complete()
        assert recorder.kinds == ["next"] * 3 + ["complete"]


@pytest.mark.parametrize("make", BOTH)
async def test_a_cancel_before_the_next_source_has_begun_keeps_it_from_beginning(make: Callable[[OperatorHarness], Any]) -> None:
    """Cancelled between two sources there is nobody to cancel, and nothing begins."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(1)
        harness.upstreams[0].fail()
        recorder.cancel()
        await harness.settle()
        assert len(harness.upstreams) == 1
        assert recorder.signals == []
        assert harness.scope.running == 0


@pytest.mark.parametrize("make", BOTH)
async def test_a_cancel_reaches_the_source_that_is_live(make: Callable[[OperatorHarness], Any]) -> None:
    """After the change of sources a cancel goes to the new one (the line of the old one would be a breach)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        harness.upstreams[0].fail()
        await harness.settle()
        recorder.cancel()
        assert harness.upstreams[1].cancelled
        assert not harness.upstreams[0].cancelled


@pytest.mark.parametrize("make", BOTH)
async def test_what_is_no_exception_passes_at_once(make: Callable[[OperatorHarness], Any]) -> None:
    """A KeyboardInterrupt is not to be tried again, nor to be replaced by anything."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        error = KeyboardInterrupt()
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert harness.scope.running == 0


@pytest.mark.parametrize("make", BOTH)
async def test_an_error_in_a_nursery_that_is_being_cancelled_becomes_publisher_stopped(make: Callable[[OperatorHarness], Any]) -> None:
    """The task that would go on is cancelled before its first step, and says who stopped it."""
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(
            harness, make(harness), lambda recorder: harness.upstreams[0].fail() or harness.scope._nursery.cancel_scope.cancel()
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert "was stopped: the nursery that ran it was cancelled" in str(recorder.error)
        assert len(harness.upstreams) == 1


@pytest.mark.parametrize("make", BOTH)
async def test_in_a_nursery_that_has_closed_the_error_passes(make: Callable[[OperatorHarness], Any]) -> None:
    """Where nothing can be begun any more, the error itself says most."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(make(harness))
        error = ScriptedError("the cause")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]


@pytest.mark.parametrize("make", BOTH)
async def test_a_late_error_after_a_cancel_is_nothing(make: Callable[[OperatorHarness], Any]) -> None:
    """It begins no task and reaches nobody (rule 2.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        stage: Any = harness.upstreams[0]._subscriber
        recorder.cancel()
        stage.on_error(ScriptedError())
        await harness.settle()
        assert recorder.signals == []
        assert len(harness.upstreams) == 1


class Breaks(Source[Any]):
    """A source whose second attach does what no attach may do."""

    def __init__(self, harness: OperatorHarness, second: Callable[[Any], None]) -> None:
        self.harness = harness
        self.second = second
        self.times = 0

    def attach(self, subscriber: Any, scope: Any) -> None:
        self.times += 1
        if self.times == 1:
            self.harness.source("first", lambda upstream: upstream.fail()).attach(subscriber, scope)
        else:
            self.second(subscriber)


def resume_with_second(breaks: Breaks) -> Any:
    breaks.times = 1
    return ops.on_error_resume(breaks)


@pytest.mark.parametrize("operator", ["retry", "resume"])
async def test_a_source_that_raises_in_attach_ends_the_stream(operator: str) -> None:
    """There is no caller that it could raise to: the stream fails with it, and the nursery does not."""

    def refuse(_: Any) -> None:
        raise ScriptedError("in attach")

    async with OperatorHarness() as harness:
        breaks = Breaks(harness, refuse)
        if operator == "retry":
            ops.retry(3).attach(breaks, harness.recorder, harness.scope)
        else:
            resume_with_second(breaks).attach(harness.source("first", lambda upstream: upstream.fail()), harness.recorder, harness.scope)
        await harness.settle()
        assert str(harness.recorder.error) == "in attach"
        assert harness.scope.running == 0


async def test_a_subscription_that_comes_when_nobody_needs_it_is_cancelled() -> None:
    """A source that lets its subscriber cancel before it has greeted it gets its subscription back (rule 2.6)."""
    async with OperatorHarness() as harness:

        def second(subscriber: Any) -> None:
            harness.recorder.cancel()
            harness.source("late").attach(subscriber, harness.scope)

        ops.retry(3).attach(Breaks(harness, second), harness.recorder, harness.scope)
        await harness.settle()
        assert harness.upstreams[-1].cancelled
        assert harness.recorder.signals == []


# --- retry


async def test_retry_begins_anew_until_it_works() -> None:
    """Two failures and three attempts: the third run gives its elements; what came before is not taken back."""
    fails = Fails(2, first=1)
    assert await penstock.collect(penstock.pipe(fails.source(), ops.retry(3))) == [0, 0, 0, 100]
    assert fails.runs == 3


@pytest.mark.parametrize("attempts", [0, 1, 4])
async def test_after_the_last_attempt_the_last_error_passes_on(attempts: int) -> None:
    """`retry(n)` runs the source once, and n times again; the last failure is what the subscriber hears."""
    fails = Fails(100)
    with pytest.raises(ScriptedError, match=f"^failure {attempts + 1}$"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(attempts)))
    assert fails.runs == attempts + 1


async def test_without_a_number_it_never_gives_up() -> None:
    """`retry(None)` goes on for as long as it takes."""
    fails = Fails(500)
    assert await penstock.collect(penstock.pipe(fails.source(), ops.retry(None))) == [100]
    assert fails.runs == 501


async def test_all_errors_of_the_stream_count() -> None:
    """A source that gives something before each failure is not tried for ever."""
    fails = Fails(100, first=2)
    with pytest.raises(ScriptedError, match="failure 4"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(3)))
    assert fails.runs == 4


async def test_consecutive_counts_errors_in_a_row(autojump_clock: trio.testing.MockClock) -> None:
    """With ``consecutive=True`` each element begins the count anew, and the backoff with it."""
    fails = Fails(6, first=1)
    operator = ops.retry(1, backoff=2, jitter=None, consecutive=True)
    assert await penstock.collect(penstock.pipe(fails.source(), operator)) == [0] * 7 + [100]
    assert fails.waits() == [2] * 6


async def test_consecutive_gives_up_where_nothing_came_in_between() -> None:
    """Without an element in between the count runs on."""
    fails = Fails(100)
    with pytest.raises(ScriptedError, match="failure 4"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(3, consecutive=True)))


async def test_the_wait_grows_by_the_factor_up_to_the_longest(autojump_clock: trio.testing.MockClock) -> None:
    """1, 3, 9, 20, 20 seconds."""
    fails = Fails(5)
    operator = ops.retry(5, backoff=1, factor=3, max_backoff=20, jitter=None)
    assert await penstock.collect(penstock.pipe(fails.source(), operator)) == [100]
    assert fails.waits() == [1, 3, 9, 20, 20]


async def test_jitter_says_which_share_of_the_wait_is_waited(autojump_clock: trio.testing.MockClock) -> None:
    """The injected function decides, once for each wait, from 0 (at once) to 1 (the whole)."""
    shares = iter([1.0, 0.5, 0.0, 0.25])
    fails = Fails(4)
    await penstock.collect(penstock.pipe(fails.source(), ops.retry(4, backoff=8, jitter=lambda: next(shares))))
    assert fails.waits() == [8, 8, 0, 7.5]


async def test_by_default_the_share_is_random(autojump_clock: trio.testing.MockClock) -> None:
    """Full jitter: each wait is somewhere between nothing and the whole."""
    fails = Fails(30)
    await penstock.collect(penstock.pipe(fails.source(), ops.retry(30, backoff=8, factor=1)))
    assert all(0 <= wait <= 8 for wait in fails.waits())
    assert len(set(fails.waits())) == 30


async def test_a_cancel_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    """A stream that waits for its next attempt can be left at once."""
    fails = Fails(5)
    async with penstock.subscribe(penstock.pipe(fails.source(), ops.retry(5, backoff=1000, max_backoff=1000, jitter=None))):
        await trio.sleep(1)
        start = trio.current_time()
    assert trio.current_time() == start
    assert fails.runs == 1


async def test_a_nursery_that_is_cancelled_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    """Waiting for the next attempt it is stopped from outside, and says so."""
    async with OperatorHarness() as harness:
        operator = ops.retry(5, backoff=30, jitter=None)
        recorder = await stop_nursery(harness, operator, lambda recorder: harness.upstreams[0].fail())
        assert isinstance(recorder.error, PublisherStopped)
        assert "retry(5) was stopped" in str(recorder.error)


@pytest.mark.parametrize("when", [ValueError, (KeyError, ValueError), lambda error: isinstance(error, ValueError)])
async def test_an_error_that_is_not_to_be_tried_again_passes_at_once(when: Any) -> None:
    """Types, tuples and functions choose; a wrong one passes without a turn of the loop (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, when=when))
        harness.upstreams[0].fail(ValueError())
        await harness.settle()
        error = OSError()
        harness.upstreams[1].fail(error)
        assert recorder.signals == [("error", error)]


async def test_when_may_be_async() -> None:
    """An async function is awaited, and its answer counts."""
    asked: list[str] = []

    async def when(error: Exception) -> bool:
        await trio.lowlevel.checkpoint()
        asked.append(str(error))
        return len(asked) < 3

    fails = Fails(100)
    with pytest.raises(ScriptedError, match="failure 3"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(5, when=when)))
    assert asked == ["failure 1", "failure 2", "failure 3"]


async def test_when_is_not_asked_after_the_last_attempt() -> None:
    """Where nothing could follow there is nothing to decide."""
    asked: list[Exception] = []
    with pytest.raises(ScriptedError, match="failure 2"):
        await penstock.collect(penstock.pipe(Fails(100).source(), ops.retry(1, when=lambda error: asked.append(error) or True)))
    assert len(asked) == 1


async def test_by_default_a_usage_error_is_not_tried_again() -> None:
    """A generator that runs once, for example: trying again would hide the message for ever."""
    fails = Fails(100, error=UsageError)
    with pytest.raises(UsageError, match="failure 1"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(None)))


@pytest.mark.parametrize("kind", ["plain", "async", "jitter"])
async def test_what_a_function_raises_ends_the_stream(kind: str) -> None:
    """It is the stream's error, with the one that was being answered as its context."""
    wrong = RuntimeError("in the function")

    def plain(*_: Any) -> Any:
        raise wrong

    async def asynchronous(_: Any) -> Any:
        raise wrong

    told = {"plain": {"when": plain}, "async": {"when": asynchronous}, "jitter": {"backoff": 1, "jitter": plain}}[kind]
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, **told))
        error = ScriptedError("first")
        harness.upstreams[0].fail(error)
        await harness.settle()
        assert recorder.signals == [("error", wrong)]
        assert wrong.__context__ is error


async def test_a_function_that_is_async_in_disguise_ends_the_stream() -> None:
    """A coroutine is true: taken for an answer it would always mean yes."""

    async def no(_: Any) -> bool:
        return False

    with pytest.raises(UsageError, match=r"retry\(5\) returned a coroutine, so it is async"):
        await penstock.collect(penstock.pipe(Fails(100).source(), ops.retry(5, when=lambda error: no(error.args))))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_function_may_cancel_the_very_stream_that_it_is_asked_about(asynchronous: bool) -> None:
    """Nothing is begun, nothing is signalled, and no task waits for an attempt that nobody wants."""

    async def awaited(_: Exception) -> bool:
        harness.recorder.cancel()
        return True

    def plain(_: Exception) -> bool:
        harness.recorder.cancel()
        return True

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, backoff=20, jitter=None, when=awaited if asynchronous else plain))
        harness.upstreams[0].fail()
        assert harness.scope.running == asynchronous
        await harness.settle()
        assert harness.scope.running == 0
        assert len(harness.upstreams) == 1
        assert recorder.signals == []


async def test_what_a_function_raises_while_it_is_cancelled_is_told_to_the_scope() -> None:
    """Nobody listens any more, and yet it is not lost."""

    async def when(_: Exception) -> bool:
        try:
            await trio.sleep_forever()
        finally:
            raise ScriptedError("on the way out")
        return True

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, when=when))
        harness.upstreams[0].fail()
        await harness.settle()
        recorder.cancel()
        await harness.settle()
        assert [str(failure) for failure in harness.failures] == ["on the way out"]
        harness.failures.clear()


async def test_ten_thousand_failures_at_once_take_no_stack_and_no_neighbours_turn() -> None:
    """A source that fails inside `attach` is begun 10,000 times; meanwhile other tasks get their turns."""
    turns = 0

    async def neighbour() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    class FailsInside(Source[Any]):
        runs = 0

        def attach(self, subscriber: Any, scope: Any) -> None:
            FailsInside.runs += 1
            penstock.failed(ScriptedError(f"failure {FailsInside.runs}")).attach(subscriber, scope)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        with pytest.raises(ScriptedError, match="failure 10001"):
            await penstock.collect(penstock.pipe(FailsInside(), ops.retry(10_000)))
        nursery.cancel_scope.cancel()
    assert FailsInside.runs == 10_001
    assert turns > 10_000


async def test_a_source_that_fails_inside_request_is_begun_anew_too() -> None:
    """An error from inside `request`, even from inside the greeting, recurses as little."""
    async with OperatorHarness() as harness:

        def asked(upstream: Any) -> None:
            if len(harness.upstreams) <= 50:
                upstream.fail()

        harness.on_request = asked  # type: ignore[method-assign]  # another way to answer
        recorder = harness.run(ops.retry(50))
        recorder.request(2)
        await harness.settle()
        assert len(harness.upstreams) == 51
        assert harness.upstreams[50].requests == [2]


async def test_at_most_one_task_waits() -> None:
    """However many attempts there were, one task is there while it waits, and none when the source runs."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, backoff=0.001, jitter=None, when=ScriptedError))
        harness.upstreams[0].fail()
        assert harness.scope.running == 1
        recorder.cancel()
        await harness.settle()
        assert harness.scope.running == 0


# --- on_error_resume


async def test_resume_goes_on_with_another_source() -> None:
    """What came before the error stays, and the other source follows."""
    source = penstock.pipe(Fails(1, first=2).source(), ops.on_error_resume([7, 8]))
    assert await penstock.collect(source) == [0, 1, 7, 8]


async def test_resume_is_not_needed_where_nothing_fails() -> None:
    """The other source is not even subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(harness.source("other")))
        harness.upstreams[0].complete()
        await harness.settle()
        assert recorder.kinds == ["complete"]
        assert len(harness.upstreams) == 1


async def test_errors_of_the_other_source_pass_at_once() -> None:
    """It is resumed once: what fails then has failed (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(harness.source("other")))
        harness.upstreams[0].fail()
        await harness.settle()
        error = ScriptedError("second")
        harness.upstreams[1].fail(error)
        assert recorder.signals == [("error", error)]


async def test_resume_asks_a_function_which_source_it_is() -> None:
    """The function is called with the error, and what it returns is streamed, whatever can be."""
    operator: Any = ops.on_error_resume(lambda error: [str(error), "and on"])
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1", "and on"]


async def test_the_function_may_be_async() -> None:
    """It is awaited: it may look for a replacement somewhere."""

    async def function(error: Exception) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [str(error)]

    operator: Any = ops.on_error_resume(function)
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1"]


async def test_a_function_without_an_argument_is_a_source_like_any_other() -> None:
    """What `subscribe` takes, this takes too: a generator function does not have to be told the error."""

    async def function() -> AsyncIterator[int]:
        yield 7

    assert await penstock.collect(penstock.pipe(Fails(1).source(), ops.on_error_resume(function))) == [7]


class Unreadable:
    """A function that hides what it takes, as some written in C do."""

    __signature__ = 3  # not a signature: to ask for it is a TypeError

    def __call__(self, error: Exception) -> list[str]:
        return [str(error)]


async def test_a_function_that_hides_what_it_takes_is_called_with_the_error() -> None:
    """Where the signature cannot be read, calling is how to find out."""
    operator: Any = ops.on_error_resume(Unreadable())
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1"]


async def test_the_function_may_be_an_async_generator_function() -> None:
    """Called with the error it returns a stream, as any function may."""

    async def function(error: Exception) -> AsyncIterator[str]:
        yield str(error)
        yield "yielded"

    operator: Any = ops.on_error_resume(function)
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1", "yielded"]


async def test_to_let_an_error_pass_raise_it() -> None:
    """A function that raises the very error that it was told passes it on as it is."""

    def function(error: Exception) -> Any:
        raise error

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(function))
        error = ScriptedError("as it was")
        harness.upstreams[0].fail(error)
        await harness.settle()
        clear_tracebacks(error)
        assert recorder.signals == [("error", error)]
        assert error.__context__ is None


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_the_function_raises_ends_the_stream(asynchronous: bool) -> None:
    """It is the stream's error, with the one that was being answered as its context."""
    wrong = RuntimeError("in the function")

    def plain(_: Any) -> Any:
        raise wrong

    async def awaited(_: Any) -> Any:
        raise wrong

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(awaited if asynchronous else plain))
        error = ScriptedError("first")
        harness.upstreams[0].fail(error)
        await harness.settle()
        assert recorder.signals == [("error", wrong)]
        assert wrong.__context__ is error


async def test_a_resume_function_may_cancel_the_very_stream_that_it_is_asked_about() -> None:
    """What it returns is not begun."""

    def function(_: Exception) -> Any:
        harness.recorder.cancel()
        return harness.source("other")

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(function))
        harness.upstreams[0].fail()
        await harness.settle()
        assert len(harness.upstreams) == 1
        assert recorder.signals == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [(None, "'NoneType' cannot be subscribed to"), (7, "'int' cannot be subscribed to"), ("text", "not streamed element by element")],
)
async def test_a_function_that_returns_nothing_to_stream_ends_the_stream(answer: Any, message: str) -> None:
    """The error says what can be streamed."""
    operator: Any = ops.on_error_resume(lambda _: answer)
    with pytest.raises(UsageError, match=message):
        await penstock.collect(penstock.pipe(Fails(1).source(), operator))


async def test_a_resume_function_that_is_async_in_disguise_ends_the_stream() -> None:
    """A coroutine is no source; the message says what to give instead."""

    async def function(_: Any) -> list[int]:
        return []

    operator: Any = ops.on_error_resume(lambda error: function(error.args))
    with pytest.raises(UsageError, match="so it is async"):
        await penstock.collect(penstock.pipe(Fails(1).source(), operator))


@pytest.mark.parametrize("bad", [None, 3, "text"])
def test_resume_refuses_what_is_no_source(bad: Any) -> None:
    """The message is the one that every source gets."""
    with pytest.raises(UsageError):
        ops.on_error_resume(bad)


def test_resume_says_what_it_is() -> None:
    """The repr names the source or the function."""

    def plan_b(_: Exception) -> Any: ...

    assert repr(ops.on_error_resume(plan_b)).endswith("plan_b)>")
    assert repr(ops.on_error_resume([1])) == "<operator on_error_resume(<source list>)>"


async def test_retry_and_resume_go_together(autojump_clock: trio.testing.MockClock) -> None:
    """Try three times, then go on with what is there: the way both are used."""
    fails = Fails(100)
    source = penstock.pipe(fails.source(), ops.timeout(60), ops.retry(2, backoff=1, jitter=None), ops.on_error_resume([1]))
    assert await penstock.collect(source) == [1]
    assert fails.waits() == [1, 2]
