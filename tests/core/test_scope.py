"""A scope owns tasks: it starts them, stops one or all, waits for them,
and keeps their failures from its nursery.
"""

import gc
import logging
import weakref
from functools import partial

import pytest
import trio

from penstock.api import RuleViolation, UsageError
from penstock.core import CLEANUP_SECONDS, ChildScope, Scope, log_violation, report
from penstock.core._scope import check_cleanup_timeout, check_hook
from tests.core._helpers import Reports, our_tasks, quiet, raised_by


def _raises(error: BaseException):
    async def work() -> None:
        raise error

    return work


# --- tasks


async def test_a_task_has_its_name_and_is_counted_until_it_ends(nursery) -> None:
    """A tree of tasks shows which subscription a task belongs to."""
    scope = Reports(nursery).scope
    first = scope.spawn(trio.sleep_forever, name="penstock first")
    scope.spawn(trio.sleep_forever, name="penstock second")
    assert scope.running == 2
    await quiet()
    assert our_tasks() == ["penstock first", "penstock second"]
    first.cancel()
    await quiet()
    assert our_tasks() == ["penstock second"]
    assert scope.running == 1


async def test_cancelling_one_scope_leaves_others_in_the_nursery_alone(nursery) -> None:
    """Two subscriptions may share a nursery."""
    mine, other = Reports(nursery).scope, Reports(nursery).scope
    mine.spawn(trio.sleep_forever, name="mine")
    mine.spawn(trio.sleep_forever, name="mine too")
    other.spawn(trio.sleep_forever, name="other")
    mine.cancel()
    mine.cancel()
    await quiet()
    assert (mine.running, other.running) == (0, 1)


async def test_cancel_calls_a_tasks_own_stop_instead_of_cancelling_it(nursery) -> None:
    """A suspended generator must be closed and not cancelled, so its task decides."""
    asked = trio.Event()
    seen: list[str] = []

    async def work() -> None:
        await asked.wait()
        await trio.lowlevel.checkpoint()
        seen.append("ended by itself")

    scope = Reports(nursery).scope
    scope.spawn(work, name="polite", stop=asked.set)
    scope.cancel()
    await scope.wait_stopped()
    assert seen == ["ended by itself"]


async def test_waiting_ends_when_the_last_task_has_ended(nursery, autojump_clock) -> None:
    """For any number of waiting tasks, and also if a task starts another one."""
    scope = Reports(nursery).scope

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
    """Every async function checkpoints."""
    with trio.testing.assert_checkpoints():
        await Reports(nursery).scope.wait_stopped()


async def test_a_closed_nursery_is_a_usage_error(nursery) -> None:
    """The subscription has outlived its nursery. The message says what to keep open."""
    async with trio.open_nursery() as closed:
        scope = Scope(closed)
    with pytest.raises(UsageError) as caught:
        scope.spawn(trio.sleep_forever, name="penstock pump of x")
    assert str(caught.value) == (
        "penstock pump of x cannot start: the nursery that this publisher was bound to has closed. "
        "Keep that nursery open for as long as its subscribers live, or use `async with "
        "subscribe(...)`"
    )
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert scope.running == 0


# --- a scope inside a scope


async def test_the_outer_scope_stops_the_tasks_of_a_child_in_their_own_way(nursery) -> None:
    """A generator of one stream of many is closed, and not cancelled, when the server stops all."""
    asked = trio.Event()
    seen: list[str] = []

    async def work() -> None:
        await asked.wait()
        await trio.lowlevel.checkpoint()
        seen.append("ended by itself")

    outer = Reports(nursery).scope
    child = ChildScope(outer, on_violation=log_violation, on_drained=lambda: seen.append("drained"))
    child.spawn(work, name="polite", stop=asked.set)
    child.spawn(trio.sleep_forever, name="cancelled")
    assert (outer.running, child.running, outer.begun) == (1, 2, 2)
    outer.cancel()
    await outer.wait_stopped()
    assert seen == ["ended by itself", "drained"]
    assert (outer.running, child.running) == (0, 0)


async def test_a_child_that_has_drained_may_start_tasks_again(nursery) -> None:
    """Also inside its hook; the outer scope waits for all of them."""
    outer = Reports(nursery).scope
    drained: list[int] = []

    def start_another() -> None:
        drained.append(outer.running)
        if len(drained) == 1:
            child.spawn(partial(trio.sleep, 0), name="second")

    child = ChildScope(outer, on_violation=log_violation, on_drained=start_another)
    child.spawn(partial(trio.sleep, 0), name="first")
    await outer.wait_stopped()
    assert (drained, outer.running) == ([1, 1], 0)


async def test_a_hook_of_a_child_that_raises_keeps_nobody_waiting() -> None:
    """The error is the caller's; the outer scope has forgotten the child."""

    def raise_error() -> None:
        raise ZeroDivisionError

    with pytest.RaisesGroup(pytest.RaisesExc(ZeroDivisionError)):
        async with trio.open_nursery() as nursery:
            outer = Reports(nursery).scope
            ChildScope(outer, on_violation=log_violation, on_drained=raise_error).spawn(
                partial(trio.sleep, 0), name="task"
            )
    assert outer.running == 0


async def test_a_failure_in_a_child_goes_to_its_own_hook(nursery) -> None:
    """The outer scope belongs to all streams of a server."""
    reports, failures = Reports(nursery), []
    ChildScope(reports.scope, on_violation=failures.append, on_drained=lambda: None).spawn(
        _raises(ValueError("mine")), name="task"
    )
    await reports.scope.wait_stopped()
    assert [str(each) for each in failures] == ["mine"]
    assert reports.failures == []


# --- exceptions that reach the nursery


async def test_a_failure_goes_to_the_hook_and_not_to_the_nursery() -> None:
    """Other tasks live in that nursery."""
    error = ValueError("boom")
    async with trio.open_nursery() as nursery:
        reports = Reports(nursery)
        reports.scope.spawn(_raises(error), name="bad")
        await quiet()
    assert not nursery.cancel_scope.cancel_called
    assert reports.failures == [error]
    assert reports.violations == []


async def test_a_group_of_failures_goes_to_the_hook_unchanged() -> None:
    """A group that a user's nursery made stays a group."""
    group = ExceptionGroup("two", [ValueError(1), KeyError(2)])
    async with trio.open_nursery() as nursery:
        reports = Reports(nursery)
        reports.scope.spawn(_raises(group), name="bad")
    assert reports.failures == [group]


async def test_failures_beside_a_cancellation_are_reported() -> None:
    """Only the cancellation is raised.
    A child task that fails while everything is cancelled must not replace it.
    """

    async def work() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(_fails_when_cancelled)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        reports = Reports(nursery)
        reports.scope.spawn(work, name="bad")
        await quiet()
        nursery.cancel_scope.cancel()
    (failure,) = reports.failures
    assert isinstance(failure, ExceptionGroup)
    assert [repr(each) for each in failure.exceptions] == ["ValueError('late')"]


async def _fails_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("late")


async def test_failures_beside_the_tasks_own_cancellation_are_reported() -> None:
    """Only this task was cancelled, so nothing is raised in the nursery."""
    async with trio.open_nursery() as nursery:
        reports = Reports(nursery)

        async def work() -> None:
            async with trio.open_nursery() as inner:
                inner.start_soon(_fails_when_cancelled)

        reports.scope.spawn(work, name="bad")
        await quiet()
        reports.scope.cancel()
        await quiet()
    assert not nursery.cancel_scope.cancel_called
    assert len(reports.failures) == 1


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_is_raised_in_the_nursery(interrupt: type[BaseException]) -> None:
    """Ctrl-C in a task ends the program, and not just the stream."""
    raised, cause = interrupt(), ValueError("why")
    raised.__cause__ = cause
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            Reports(nursery).scope.spawn(_raises(raised), name="struck")
    assert caught.value.exceptions == (raised,)
    assert raised.__cause__ is cause


async def test_an_interrupt_in_a_group_is_raised_without_the_failures() -> None:
    """The failures are reported, and the group that is raised holds the interrupt."""
    failure, interrupt = ValueError("beside"), KeyboardInterrupt()
    recorder: list[Exception] = []

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            Scope(nursery, on_violation=recorder.append).spawn(
                _raises(BaseExceptionGroup("both", [interrupt, failure])), name="struck"
            )

    group = await raised_by(scenario)
    assert isinstance(group, BaseExceptionGroup)
    (inner,) = group.exceptions
    assert isinstance(inner, BaseExceptionGroup)
    assert inner.exceptions == (interrupt,)
    (reported,) = recorder
    assert isinstance(reported, ExceptionGroup)
    assert reported.exceptions == (failure,)


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_cancellation_that_began_inside_the_task_is_dropped(grouped: bool) -> None:
    """A task that exited its own cancel scope in the wrong order must not cancel its nursery."""
    exits_in_the_wrong_order: list[trio.Cancelled] = []

    async def work() -> None:
        with trio.CancelScope() as inner:
            inner.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                exits_in_the_wrong_order.append(cancelled)
        raise (
            BaseExceptionGroup("stray", exits_in_the_wrong_order)
            if grouped
            else exits_in_the_wrong_order[0]
        )

    async with trio.open_nursery() as nursery:
        reports = Reports(nursery)
        reports.scope.spawn(work, name="stray")
        await quiet()
        assert len(exits_in_the_wrong_order) == 1
    assert not nursery.cancel_scope.cancel_called
    assert reports.failures == []
    exits_in_the_wrong_order.clear()


# --- hooks


def _ignore(error: Exception) -> None:
    """Do nothing."""


async def test_a_violation_and_a_failure_go_to_their_hooks(nursery) -> None:
    """A broken rule goes to one hook, a failure of cleanup to the other."""
    reports = Reports(nursery)
    violation, failure = RuleViolation("broken", rule="1.1"), ValueError("boom")
    report(reports.scope.on_violation, violation)
    reports.scope.report_failure(failure)
    assert (reports.violations, reports.failures) == ([violation], [failure])


async def test_failures_go_to_the_violation_hook_by_default(nursery) -> None:
    """A program with one hook gets every report."""
    recorder: list[Exception] = []
    failure = ValueError("boom")
    Scope(nursery, on_violation=recorder.append).report_failure(failure)
    assert recorder == [failure]


def test_by_default_a_violation_is_logged_with_its_traceback(caplog) -> None:
    """The logger `penstock` gets the line and the cause."""
    violation = RuleViolation("a subscriber raised", rule="2.13")
    violation.__cause__ = ValueError("boom")
    log_violation(violation)
    ((name, level, message),) = caplog.record_tuples
    assert (name, level, message) == ("penstock", logging.ERROR, "a subscriber raised")
    assert "ValueError: boom" in caplog.text


def test_a_hook_that_raises_is_logged(caplog) -> None:
    """An error in the user's hook must not end the stream that reports to it."""

    def hook(error: Exception) -> None:
        raise KeyError("hook")

    report(hook, ValueError("boom"))
    assert "the on_violation hook raised while it was told of: boom" in caplog.text
    assert "KeyError: 'hook'" in caplog.text


def test_a_hook_must_be_a_function() -> None:
    """The mistake raises at the call, and not when there is something to report."""
    assert check_hook(_ignore) is _ignore
    with pytest.raises(
        UsageError,
        match=r"^on_violation is None; give a function of one argument, the exception to report$",
    ):
        check_hook(None)  # type: ignore[arg-type]  # a mistake on purpose


def test_a_cleanup_timeout_is_a_finite_time() -> None:
    """Cleanup always has a deadline. 0 is allowed."""
    assert check_cleanup_timeout(0) == 0
    assert check_cleanup_timeout(CLEANUP_SECONDS) == 5
    with pytest.raises(
        UsageError,
        match=r"^cleanup_timeout is inf; it is a time in seconds, 0 or more, and finite$",
    ):
        check_cleanup_timeout(float("inf"))


async def test_a_task_cancelled_from_outside_keeps_no_references() -> None:
    """Not even until the next garbage collection:
    the exception does not refer to the frame that raised it again.
    """
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
