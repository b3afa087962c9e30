"""A scope owns tasks: it starts them, stops them one by one or all, waits for them, and keeps their failures from its nursery."""

import gc
import logging
import weakref
from functools import partial

import pytest
import trio

from penstock.api import RuleViolation, UsageError
from penstock.core import CLEANUP_SECONDS, Scope, log_violation, tell
from penstock.core._scope import check_cleanup_timeout, check_hook
from tests.core._helpers import ViolationSink, our_tasks, quiet, raised_by


def _raises(error: BaseException):
    async def work() -> None:
        raise error

    return work


# --- tasks


async def test_a_task_has_the_name_it_was_given_and_is_counted_until_it_ends(nursery) -> None:
    """Whoever looks at the tree of tasks sees whose they are."""
    scope = ViolationSink(nursery).scope
    first = scope.spawn(trio.sleep_forever, name="penstock first")
    scope.spawn(trio.sleep_forever, name="penstock second")
    assert scope.running == 2
    await quiet()
    assert our_tasks() == ["penstock first", "penstock second"]
    first.cancel()
    await quiet()
    assert our_tasks() == ["penstock second"]
    assert scope.running == 1


async def test_cancelling_one_scope_leaves_its_neighbours_in_the_nursery_alone(nursery) -> None:
    """Two subscriptions may share a nursery."""
    mine, other = ViolationSink(nursery).scope, ViolationSink(nursery).scope
    mine.spawn(trio.sleep_forever, name="mine")
    mine.spawn(trio.sleep_forever, name="mine too")
    other.spawn(trio.sleep_forever, name="other")
    mine.cancel()
    mine.cancel()
    await quiet()
    assert (mine.running, other.running) == (0, 1)


async def test_a_task_that_has_its_own_way_to_stop_is_asked_and_not_cancelled(nursery) -> None:
    """A generator that rests is closed, not cancelled: the scope leaves it to the task."""
    asked = trio.Event()
    seen: list[str] = []

    async def work() -> None:
        await asked.wait()
        await trio.lowlevel.checkpoint()
        seen.append("ended by itself")

    scope = ViolationSink(nursery).scope
    scope.spawn(work, name="polite", stop=asked.set)
    scope.cancel()
    await scope.wait_stopped()
    assert seen == ["ended by itself"]


async def test_waiting_ends_when_the_last_task_has_ended(nursery, autojump_clock) -> None:
    """However many wait, and even where a task starts another one."""
    scope = ViolationSink(nursery).scope

    async def parent() -> None:
        await trio.sleep(1)
        scope.spawn(partial(trio.sleep, 2), name="child")

    scope.spawn(parent, name="parent")
    started = trio.current_time()
    async with trio.open_nursery() as waiters:
        waiters.start_soon(scope.wait_stopped)
        waiters.start_soon(scope.wait_stopped)
    assert trio.current_time() - started == 3
    assert scope.running == 0


async def test_waiting_for_nothing_checkpoints(nursery) -> None:
    """Each async function checkpoints, always."""
    with trio.testing.assert_checkpoints():
        await ViolationSink(nursery).scope.wait_stopped()


async def test_a_nursery_that_has_closed_is_told_by_name(nursery) -> None:
    """The subscription outlived what was to run it: the message says what to keep open."""
    async with trio.open_nursery() as closed:
        scope = Scope(closed)
    with pytest.raises(UsageError) as caught:
        scope.spawn(trio.sleep_forever, name="penstock pump of x")
    assert str(caught.value) == (
        "penstock pump of x cannot start: the nursery that this publisher was bound to has closed. "
        "Keep that nursery open for as long as its subscribers live, or use `async with subscribe(...)`"
    )
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert scope.running == 0


# --- what a task may raise into its nursery


async def test_a_failure_goes_to_the_hook_and_not_to_the_nursery() -> None:
    """Somebody else's tasks live in that nursery."""
    error = ValueError("boom")
    async with trio.open_nursery() as nursery:
        told = ViolationSink(nursery)
        told.scope.spawn(_raises(error), name="bad")
        await quiet()
    assert not nursery.cancel_scope.cancel_called
    assert told.failures == [error]
    assert told.violations == []


async def test_a_group_of_failures_goes_to_the_hook_as_it_is() -> None:
    """What a user's own nursery has wrapped stays wrapped."""
    group = ExceptionGroup("two", [ValueError(1), KeyError(2)])
    async with trio.open_nursery() as nursery:
        told = ViolationSink(nursery)
        told.scope.spawn(_raises(group), name="bad")
    assert told.failures == [group]


async def test_failures_beside_a_cancellation_are_told_and_only_the_cancellation_goes_on() -> None:
    """A child task that fails while everything is cancelled must not turn the cancellation into a crash."""

    async def work() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(_fails_when_cancelled)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        told = ViolationSink(nursery)
        told.scope.spawn(work, name="bad")
        await quiet()
        nursery.cancel_scope.cancel()
    (failure,) = told.failures
    assert isinstance(failure, ExceptionGroup)
    assert [repr(each) for each in failure.exceptions] == ["ValueError('late')"]


async def _fails_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("late")


async def test_failures_beside_the_own_cancellation_are_told_too() -> None:
    """The same where only this task was cancelled: the nursery hears of nothing."""
    async with trio.open_nursery() as nursery:
        told = ViolationSink(nursery)

        async def work() -> None:
            async with trio.open_nursery() as inner:
                inner.start_soon(_fails_when_cancelled)

        told.scope.spawn(work, name="bad")
        await quiet()
        told.scope.cancel()
        await quiet()
    assert not nursery.cancel_scope.cancel_called
    assert len(told.failures) == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_goes_through(interrupt: type[BaseException]) -> None:
    """Ctrl-C that strikes one of our tasks ends the program, not just the stream."""
    raised, cause = interrupt(), ValueError("why")
    raised.__cause__ = cause
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            ViolationSink(nursery).scope.spawn(_raises(raised), name="struck")
    assert caught.value.exceptions == (raised,)
    assert raised.__cause__ is cause


async def test_an_interrupt_in_a_group_goes_on_alone() -> None:
    """What failed beside it is told; the group that goes on holds the interrupt."""
    failure, interrupt = ValueError("beside"), KeyboardInterrupt()
    heard: list[Exception] = []

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            Scope(nursery, on_violation=heard.append).spawn(_raises(BaseExceptionGroup("both", [interrupt, failure])), name="struck")

    group = await raised_by(scenario)
    assert isinstance(group, BaseExceptionGroup)
    (inner,) = group.exceptions
    assert isinstance(inner, BaseExceptionGroup)
    assert inner.exceptions == (interrupt,)
    (told,) = heard
    assert isinstance(told, ExceptionGroup)
    assert told.exceptions == (failure,)


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_stray_cancellation_stays_inside(grouped: bool) -> None:
    """A task that has left a cancel scope of its own in disorder must not cancel a nursery that nobody has cancelled."""
    strays: list[trio.Cancelled] = []

    async def work() -> None:
        with trio.CancelScope() as inner:
            inner.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                strays.append(cancelled)
        raise BaseExceptionGroup("stray", strays) if grouped else strays[0]

    async with trio.open_nursery() as nursery:
        told = ViolationSink(nursery)
        told.scope.spawn(work, name="stray")
        await quiet()
        assert len(strays) == 1
    assert not nursery.cancel_scope.cancel_called
    assert told.failures == []
    strays.clear()


# --- hooks


def _tell_of_nothing(error: Exception) -> None:
    """A hook."""


async def test_a_violation_and_a_failure_go_to_their_hooks(nursery) -> None:
    """A rule that was broken is one thing, a cleanup that failed another."""
    told = ViolationSink(nursery)
    violation, failure = RuleViolation("broken", rule="1.1"), ValueError("boom")
    told.scope.violation(violation)
    told.scope.fail(failure)
    assert (told.violations, told.failures) == ([violation], [failure])


async def test_failures_go_to_the_violation_hook_where_there_is_no_other(nursery) -> None:
    """Whoever gives one hook hears of everything."""
    heard: list[Exception] = []
    failure = ValueError("boom")
    Scope(nursery, on_violation=heard.append).fail(failure)
    assert heard == [failure]


def test_by_default_a_violation_is_logged_with_its_traceback(caplog) -> None:
    """Nothing is lost in silence: the logger `penstock` has the line and the reason."""
    violation = RuleViolation("a subscriber raised", rule="2.13")
    violation.__cause__ = ValueError("boom")
    log_violation(violation)
    ((name, level, message),) = caplog.record_tuples
    assert (name, level, message) == ("penstock", logging.ERROR, "a subscriber raised")
    assert "ValueError: boom" in caplog.text


def test_a_hook_that_raises_is_logged_and_harms_nobody(caplog) -> None:
    """The hook is the user's; its own fault must not take down the stream that reports to it."""

    def hook(error: Exception) -> None:
        raise KeyError("hook")

    tell(hook, ValueError("boom"))
    assert "the on_violation hook raised while it was told of: boom" in caplog.text
    assert "KeyError: 'hook'" in caplog.text


def test_a_hook_must_be_a_function() -> None:
    """The mistake is told at once, not when there is something to tell."""
    assert check_hook(_tell_of_nothing) is _tell_of_nothing
    with pytest.raises(UsageError, match=r"^on_violation is None; give a function of one argument, the exception to tell of$"):
        check_hook(None)  # type: ignore[arg-type]  # a mistake on purpose


def test_a_cleanup_timeout_is_a_finite_time() -> None:
    """Cleanup has a deadline, always: for ever is refused, no time at all is not."""
    assert check_cleanup_timeout(0) == 0
    assert check_cleanup_timeout(CLEANUP_SECONDS) == 5
    with pytest.raises(UsageError, match=r"^cleanup_timeout is inf; it is a time in seconds, 0 or more, and finite$"):
        check_cleanup_timeout(float("inf"))


async def test_a_task_that_is_cancelled_from_outside_keeps_nothing_that_it_held() -> None:
    """Not until the next collection either: what is passed on does not refer to the frame that passes it on."""
    held: list[weakref.ref[set[str]]] = []

    async def work() -> None:
        element = set("an element")
        held.append(weakref.ref(element))
        await trio.sleep_forever()

    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            Scope(nursery).spawn(work, name="work")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [each() for each in held] == [None]
    finally:
        gc.enable()
