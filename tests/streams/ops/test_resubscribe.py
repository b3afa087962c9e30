"""`retry` and `on_error_resume`: which source follows an error, and with which demand."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock import ops
from penstock.api import UNBOUNDED, AlreadySubscribed, PublisherStopped, UsageError
from penstock.streams import Source
from tests.streams.ops._harness_actions import close_nursery, stop_nursery
from tests.streams.ops.harness import OperatorHarness, ScriptedError, clear_tracebacks


class Fails:
    """A generator function that gives `first` elements and, in its first `times` runs,
    then fails.
    """

    def __init__(
        self, times: float, *, first: int = 0, error: type[Exception] = ScriptedError
    ) -> None:
        self.times = times
        self.first = first
        self.error = error
        self.runs = 0
        self.start_times: list[float] = []

    async def __call__(self) -> AsyncIterator[int]:
        self.runs += 1
        self.start_times.append(trio.current_time())
        for number in range(self.first):
            yield number
        if self.runs <= self.times:
            raise self.error(f"failure {self.runs}")
        yield 100

    def waits(self) -> list[float]:
        """Return the time between each run and the run before it."""
        return [
            round(late - early, 9)
            for early, late in zip(self.start_times, self.start_times[1:], strict=False)
        ]

    def source(self) -> Source[int]:
        """Return a source that calls this function for each subscriber."""
        return penstock.generate(self.__call__)


BOTH = [
    pytest.param(lambda harness: ops.retry(3), id="retry"),
    pytest.param(lambda harness: ops.on_error_resume(harness.source("other")), id="resume"),
]


# --- retry and on_error_resume


@pytest.mark.parametrize("make", BOTH)
async def test_unanswered_demand_goes_to_the_next_source(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """Of five requested elements two arrive before the error: the next source gets one request
    for three, and later requests are added.
    """
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
async def test_without_demand_the_next_source_gets_no_request(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """It is asked for elements at the next downstream request."""
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
async def test_demand_between_two_sources_goes_to_the_next_source(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """The failed source is not called again, and the demand waits."""
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
    """Elements that have arrived do not make unbounded demand bounded."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        harness.upstreams[0].emit(10)
        harness.upstreams[0].fail()
        await harness.settle()
        assert harness.upstreams[1].requests[0] >= UNBOUNDED - 10


@pytest.mark.parametrize("make", BOTH)
async def test_downstream_gets_one_on_subscribe(make: Callable[[OperatorHarness], Any]) -> None:
    """One subscription serves all sources (rule 2.12; the recorder reports a second one)."""
    async with OperatorHarness() as harness:
        harness.run(make(harness))
        harness.upstreams[0].fail()
        await harness.settle()
        assert len(harness.upstreams) == 2
        assert harness.breaches == []


@pytest.mark.parametrize("make", BOTH)
async def test_without_an_error_signals_and_demand_pass_unchanged(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """Without an error the operator has no task, no buffer, and no additional demand."""
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
async def test_a_cancel_before_the_next_source_is_attached_prevents_it(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """Between two sources a cancel has no source to go to, and the next one is never attached."""
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
async def test_a_cancel_goes_to_the_live_source(make: Callable[[OperatorHarness], Any]) -> None:
    """After a change of sources the new one is cancelled.
    A cancel of the failed one would be a breach.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        harness.upstreams[0].fail()
        await harness.settle()
        recorder.cancel()
        assert harness.upstreams[1].cancelled
        assert not harness.upstreams[0].cancelled


@pytest.mark.parametrize("make", BOTH)
async def test_an_error_that_is_not_an_exception_passes_at_once(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """A KeyboardInterrupt is neither retried nor replaced."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        error = KeyboardInterrupt()
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert harness.scope.running == 0


@pytest.mark.parametrize("make", BOTH)
async def test_an_error_in_a_cancelled_nursery_becomes_publisher_stopped(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """The recovery task is cancelled before its first step,
    and the subscriber learns what was cancelled.
    """
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(
            harness,
            make(harness),
            lambda recorder: (
                harness.upstreams[0].fail() or harness.scope._nursery.cancel_scope.cancel()
            ),
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert "was stopped: the nursery that ran it was cancelled" in str(recorder.error)
        assert len(harness.upstreams) == 1


@pytest.mark.parametrize("make", BOTH)
async def test_an_error_in_a_closed_nursery_passes(make: Callable[[OperatorHarness], Any]) -> None:
    """If no task can be started, the error itself says more than a UsageError."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(make(harness))
        error = ScriptedError("the cause")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]


@pytest.mark.parametrize("make", BOTH)
async def test_an_error_after_a_cancel_has_no_effect(
    make: Callable[[OperatorHarness], Any],
) -> None:
    """It starts no task, and the subscriber gets no signal (rule 2.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        stage: Any = harness.upstreams[0]._subscriber
        recorder.cancel()
        stage.on_error(ScriptedError())
        await harness.settle()
        assert recorder.signals == []
        assert len(harness.upstreams) == 1


class Breaks(Source[Any]):
    """A source that fails at its first attach and calls `second(subscriber)` at the others."""

    def __init__(self, harness: OperatorHarness, second: Callable[[Any], None]) -> None:
        self.harness = harness
        self.second = second
        self.attaches = 0

    def attach(self, subscriber: Any, scope: Any) -> None:
        self.attaches += 1
        if self.attaches == 1:
            self.harness.source("first", lambda upstream: upstream.fail()).attach(subscriber, scope)
        else:
            self.second(subscriber)


def resume_with_second(breaks: Breaks) -> Any:
    breaks.attaches = 1
    return ops.on_error_resume(breaks)


@pytest.mark.parametrize("operator", ["retry", "resume"])
async def test_an_attach_that_raises_ends_the_stream(operator: str) -> None:
    """The recovery task has no caller for the error, so the stream fails with it,
    and the nursery does not.
    """

    def refuse(_: Any) -> None:
        raise ScriptedError("in attach")

    async with OperatorHarness() as harness:
        breaks = Breaks(harness, refuse)
        if operator == "retry":
            ops.retry(3).attach(breaks, harness.recorder, harness.scope)
        else:
            resume_with_second(breaks).attach(
                harness.source("first", lambda upstream: upstream.fail()),
                harness.recorder,
                harness.scope,
            )
        await harness.settle()
        assert str(harness.recorder.error) == "in attach"
        assert harness.scope.running == 0


async def test_a_subscription_after_the_cancel_is_cancelled() -> None:
    """If the subscriber cancels during attach, a later on_subscribe of the source is answered
    with a cancel (rule 2.6).
    """
    async with OperatorHarness() as harness:

        def second(subscriber: Any) -> None:
            harness.recorder.cancel()
            harness.source("late").attach(subscriber, harness.scope)

        ops.retry(3).attach(Breaks(harness, second), harness.recorder, harness.scope)
        await harness.settle()
        assert harness.upstreams[-1].cancelled
        assert harness.recorder.signals == []


# --- retry


async def test_retry_subscribes_again_until_the_source_succeeds() -> None:
    """With two failures and three attempts the third run succeeds.
    Elements passed on before a failure stay passed on.
    """
    fails = Fails(2, first=1)
    assert await penstock.collect(penstock.pipe(fails.source(), ops.retry(3))) == [0, 0, 0, 100]
    assert fails.runs == 3


@pytest.mark.parametrize("attempts", [0, 1, 4])
async def test_after_the_last_attempt_the_last_error_passes(attempts: int) -> None:
    """`retry(n)` runs the source at most n + 1 times, and the subscriber gets the last error."""
    fails = Fails(100)
    with pytest.raises(ScriptedError, match=f"^failure {attempts + 1}$"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(attempts)))
    assert fails.runs == attempts + 1


async def test_retry_none_has_no_limit() -> None:
    """`retry(None)` survives 500 failures."""
    fails = Fails(500)
    assert await penstock.collect(penstock.pipe(fails.source(), ops.retry(None))) == [100]
    assert fails.runs == 501


async def test_all_errors_of_the_stream_count() -> None:
    """A source that gives elements before each failure is not retried without limit."""
    fails = Fails(100, first=2)
    with pytest.raises(ScriptedError, match="failure 4"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(3)))
    assert fails.runs == 4


async def test_consecutive_counts_errors_without_an_element_between(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With ``consecutive=True`` each element resets the count and the backoff."""
    fails = Fails(6, first=1)
    operator = ops.retry(1, backoff=2, jitter=None, consecutive=True)
    assert await penstock.collect(penstock.pipe(fails.source(), operator)) == [0] * 7 + [100]
    assert fails.waits() == [2] * 6


async def test_consecutive_gives_up_without_an_element_between() -> None:
    """If no element arrives between the errors, the count goes on."""
    fails = Fails(100)
    with pytest.raises(ScriptedError, match="failure 4"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(3, consecutive=True)))


async def test_the_wait_grows_by_the_factor_up_to_the_longest(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """1, 3, 9, 20, 20 seconds."""
    fails = Fails(5)
    operator = ops.retry(5, backoff=1, factor=3, max_backoff=20, jitter=None)
    assert await penstock.collect(penstock.pipe(fails.source(), operator)) == [100]
    assert fails.waits() == [1, 3, 9, 20, 20]


async def test_jitter_multiplies_each_wait(autojump_clock: trio.testing.MockClock) -> None:
    """The function is called once for each wait and returns a factor from 0 to 1."""
    factors = iter([1.0, 0.5, 0.0, 0.25])
    fails = Fails(4)
    await penstock.collect(
        penstock.pipe(fails.source(), ops.retry(4, backoff=8, jitter=lambda: next(factors)))
    )
    assert fails.waits() == [8, 8, 0, 7.5]


async def test_the_default_jitter_is_random(autojump_clock: trio.testing.MockClock) -> None:
    """Each wait is between 0 and the whole backoff."""
    fails = Fails(30)
    await penstock.collect(penstock.pipe(fails.source(), ops.retry(30, backoff=8, factor=1)))
    assert all(0 <= wait <= 8 for wait in fails.waits())
    assert len(set(fails.waits())) == 30


async def test_a_cancel_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    """A stream that waits for its next attempt can be left without delay."""
    fails = Fails(5)
    async with penstock.subscribe(
        penstock.pipe(fails.source(), ops.retry(5, backoff=1000, max_backoff=1000, jitter=None))
    ):
        await trio.sleep(1)
        start = trio.current_time()
    assert trio.current_time() == start
    assert fails.runs == 1


async def test_a_cancelled_nursery_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    """The subscriber gets PublisherStopped."""
    async with OperatorHarness() as harness:
        operator = ops.retry(5, backoff=30, jitter=None)
        recorder = await stop_nursery(
            harness, operator, lambda recorder: harness.upstreams[0].fail()
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert "retry(5) was stopped" in str(recorder.error)


@pytest.mark.parametrize(
    "when", [ValueError, (KeyError, ValueError), lambda error: isinstance(error, ValueError)]
)
async def test_an_error_that_when_excludes_passes_at_once(when: Any) -> None:
    """`when` may be a type, a tuple or a function.
    Another error passes without a scheduler pass (rule 4.2).
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, when=when))
        harness.upstreams[0].fail(ValueError())
        await harness.settle()
        error = OSError()
        harness.upstreams[1].fail(error)
        assert recorder.signals == [("error", error)]


async def test_when_may_be_async() -> None:
    """An async function is awaited, and its result counts."""
    seen: list[str] = []

    async def when(error: Exception) -> bool:
        await trio.lowlevel.checkpoint()
        seen.append(str(error))
        return len(seen) < 3

    fails = Fails(100)
    with pytest.raises(ScriptedError, match="failure 3"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(5, when=when)))
    assert seen == ["failure 1", "failure 2", "failure 3"]


async def test_when_is_not_called_after_the_last_attempt() -> None:
    """Without a further attempt its result would have no effect."""
    seen: list[Exception] = []
    with pytest.raises(ScriptedError, match="failure 2"):
        await penstock.collect(
            penstock.pipe(
                Fails(100).source(), ops.retry(1, when=lambda error: seen.append(error) or True)
            )
        )
    assert len(seen) == 1


async def test_a_usage_error_is_not_retried_by_default() -> None:
    """For example, a generator that can run once: retrying would hide the message without limit."""
    fails = Fails(100, error=UsageError)
    with pytest.raises(UsageError, match="failure 1"):
        await penstock.collect(penstock.pipe(fails.source(), ops.retry(None)))


@pytest.mark.parametrize("kind", ["plain", "async", "jitter"])
async def test_a_function_of_retry_that_raises_ends_the_stream(kind: str) -> None:
    """Its error becomes the error of the stream, with the source's error as its context."""
    wrong = RuntimeError("in the function")

    def plain(*_: Any) -> Any:
        raise wrong

    async def asynchronous(_: Any) -> Any:
        raise wrong

    arguments = {
        "plain": {"when": plain},
        "async": {"when": asynchronous},
        "jitter": {"backoff": 1, "jitter": plain},
    }[kind]
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, **arguments))
        error = ScriptedError("first")
        harness.upstreams[0].fail(error)
        await harness.settle()
        assert recorder.signals == [("error", wrong)]
        assert wrong.__context__ is error


async def test_a_when_that_returns_a_coroutine_ends_the_stream() -> None:
    """A coroutine is always true, so it would always mean another attempt."""

    async def no(_: Any) -> bool:
        return False

    with pytest.raises(UsageError, match=r"retry\(5\) returned a coroutine, so it is async"):
        await penstock.collect(
            penstock.pipe(Fails(100).source(), ops.retry(5, when=lambda error: no(error.args)))
        )


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_when_may_cancel_its_own_stream(asynchronous: bool) -> None:
    """No source is attached, no signal follows, and no task waits."""

    async def awaited(_: Exception) -> bool:
        harness.recorder.cancel()
        return True

    def plain(_: Exception) -> bool:
        harness.recorder.cancel()
        return True

    async with OperatorHarness() as harness:
        recorder = harness.run(
            ops.retry(5, backoff=20, jitter=None, when=awaited if asynchronous else plain)
        )
        harness.upstreams[0].fail()
        assert harness.scope.running == asynchronous
        await harness.settle()
        assert harness.scope.running == 0
        assert len(harness.upstreams) == 1
        assert recorder.signals == []


async def test_an_error_of_when_during_cancellation_goes_to_the_scope() -> None:
    """After the cancel the error has no subscriber to go to, and it must not be lost."""

    async def when(_: Exception) -> bool:
        try:
            await trio.sleep_forever()
        finally:
            raise ScriptedError("in cleanup")
        return True

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, when=when))
        harness.upstreams[0].fail()
        await harness.settle()
        recorder.cancel()
        await harness.settle()
        assert [str(failure) for failure in harness.failures] == ["in cleanup"]
        harness.failures.clear()


async def test_10_000_failures_at_once_need_no_stack_and_let_other_tasks_run() -> None:
    """A source that fails inside `attach` is attached 10,001 times;
    another task gets more than 10,000 steps meanwhile.
    """
    steps_of_the_other = 0

    async def other_task() -> None:
        nonlocal steps_of_the_other
        while True:
            await trio.lowlevel.checkpoint()
            steps_of_the_other += 1

    class FailsInside(Source[Any]):
        runs = 0

        def attach(self, subscriber: Any, scope: Any) -> None:
            FailsInside.runs += 1
            penstock.failed(ScriptedError(f"failure {FailsInside.runs}")).attach(subscriber, scope)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other_task)
        with pytest.raises(ScriptedError, match="failure 10001"):
            await penstock.collect(penstock.pipe(FailsInside(), ops.retry(10_000)))
        nursery.cancel_scope.cancel()
    assert FailsInside.runs == 10_001
    assert steps_of_the_other > 10_000


async def test_a_source_that_fails_inside_request_is_retried_without_recursion() -> None:
    """The error may even arrive inside on_subscribe."""
    async with OperatorHarness() as harness:

        def fail_at_once(upstream: Any) -> None:
            if len(harness.upstreams) <= 50:
                upstream.fail()

        harness.on_request = fail_at_once  # type: ignore[method-assign]  # replaces the answer for this harness only
        recorder = harness.run(ops.retry(50))
        recorder.request(2)
        await harness.settle()
        assert len(harness.upstreams) == 51
        assert harness.upstreams[50].requests == [2]


async def test_retry_has_at_most_one_task() -> None:
    """One task runs while it waits, and none while the source runs."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.retry(5, backoff=0.001, jitter=None, when=ScriptedError))
        harness.upstreams[0].fail()
        assert harness.scope.running == 1
        recorder.cancel()
        await harness.settle()
        assert harness.scope.running == 0


# --- on_error_resume


async def test_resume_goes_on_with_another_source() -> None:
    """Elements before the error stay passed on, and those of the other source follow."""
    source = penstock.pipe(Fails(1, first=2).source(), ops.on_error_resume([7, 8]))
    assert await penstock.collect(source) == [0, 1, 7, 8]


async def test_resume_does_not_subscribe_without_an_error() -> None:
    """The other source is not subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(harness.source("other")))
        harness.upstreams[0].complete()
        await harness.settle()
        assert recorder.kinds == ["complete"]
        assert len(harness.upstreams) == 1


async def test_an_error_of_the_other_source_passes_at_once() -> None:
    """The stream is resumed once (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(harness.source("other")))
        harness.upstreams[0].fail()
        await harness.settle()
        error = ScriptedError("second")
        harness.upstreams[1].fail(error)
        assert recorder.signals == [("error", error)]


async def test_resume_streams_the_result_of_its_function() -> None:
    """The function is called with the error and may return anything that can be streamed."""
    operator: Any = ops.on_error_resume(lambda error: [str(error), "second"])
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == [
        "failure 1",
        "second",
    ]


async def test_the_function_of_resume_may_be_async() -> None:
    """An async function is awaited."""

    async def function(error: Exception) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [str(error)]

    operator: Any = ops.on_error_resume(function)
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1"]


async def test_a_function_without_an_argument_is_a_source() -> None:
    """A generator function without arguments is a source here, and so it is for `subscribe`."""

    async def function() -> AsyncIterator[int]:
        yield 7

    assert await penstock.collect(
        penstock.pipe(Fails(1).source(), ops.on_error_resume(function))
    ) == [7]


class WithoutSignature:
    """A callable without a readable signature, as some functions written in C are."""

    __signature__ = 3  # not a signature: inspect raises TypeError

    def __call__(self, error: Exception) -> list[str]:
        return [str(error)]


async def test_a_callable_without_a_signature_is_called_with_the_error() -> None:
    """If the signature cannot be read, only a call can tell."""
    operator: Any = ops.on_error_resume(WithoutSignature())
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == ["failure 1"]


async def test_the_function_of_resume_may_be_an_async_generator_function() -> None:
    """Called with the error it returns a stream, like any other function."""

    async def function(error: Exception) -> AsyncIterator[str]:
        yield str(error)
        yield "yielded"

    operator: Any = ops.on_error_resume(function)
    assert await penstock.collect(penstock.pipe(Fails(1).source(), operator)) == [
        "failure 1",
        "yielded",
    ]


async def test_an_error_raised_again_passes_unchanged() -> None:
    """A function that raises the error that it was called with passes on the same object."""

    def function(error: Exception) -> Any:
        raise error

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.on_error_resume(function))
        error = ScriptedError("unchanged")
        harness.upstreams[0].fail(error)
        await harness.settle()
        clear_tracebacks(error)
        assert recorder.signals == [("error", error)]
        assert error.__context__ is None


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_function_of_resume_that_raises_ends_the_stream(asynchronous: bool) -> None:
    """Its error becomes the error of the stream, with the source's error as its context."""
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


async def test_the_function_of_resume_may_cancel_its_own_stream() -> None:
    """The source that it returns is not attached."""

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
    ("result", "message"),
    [
        (None, "'NoneType' cannot be subscribed to"),
        (7, "'int' cannot be subscribed to"),
        ("text", "not streamed element by element"),
    ],
)
async def test_a_function_of_resume_without_a_stream_as_its_result_ends_the_stream(
    result: Any, message: str
) -> None:
    """The error says what can be streamed."""
    operator: Any = ops.on_error_resume(lambda _: result)
    with pytest.raises(UsageError, match=message):
        await penstock.collect(penstock.pipe(Fails(1).source(), operator))


async def test_a_function_of_resume_that_returns_a_coroutine_ends_the_stream() -> None:
    """A coroutine is not a source; the error says what to give."""

    async def function(_: Any) -> list[int]:
        return []

    operator: Any = ops.on_error_resume(lambda error: function(error.args))
    with pytest.raises(UsageError, match="so it is async"):
        await penstock.collect(penstock.pipe(Fails(1).source(), operator))


@pytest.mark.parametrize("bad", [None, 3, "text"])
def test_resume_refuses_an_argument_that_is_not_a_source(bad: Any) -> None:
    """Every other function gives the same error for such an argument."""
    with pytest.raises(UsageError):
        ops.on_error_resume(bad)


def test_the_repr_of_resume_names_its_source_or_function() -> None:
    """A repr shows what was written."""

    def replacement(_: Exception) -> Any: ...

    assert repr(ops.on_error_resume(replacement)).endswith("replacement)>")
    assert repr(ops.on_error_resume([1])) == "<operator on_error_resume(<source list>)>"


async def test_timeout_retry_and_resume_together(autojump_clock: trio.testing.MockClock) -> None:
    """Two more attempts, then another source: how these operators are used together."""
    fails = Fails(100)
    source = penstock.pipe(
        fails.source(),
        ops.timeout(60),
        ops.retry(2, backoff=1, jitter=None),
        ops.on_error_resume([1]),
    )
    assert await penstock.collect(source) == [1]
    assert fails.waits() == [1, 2]


async def test_a_retry_of_one_iterator_says_why_it_cannot_begin_again() -> None:
    """An iterator has one subscriber. It is not read on in the middle as if that were the
    beginning; the error names the first failure.
    """
    piped = ops.pipe(iter(range(6)), ops.map(lambda number: 6 // (number - 2)), ops.retry(3))
    with pytest.raises(AlreadySubscribed) as caught:
        await penstock.collect(piped)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
