"""The mailbox subscriber: signals only schedule, one task handles them, and each policy treats a
second subscription in its own way.
"""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    MailboxSubscriber,
    RuleViolation,
    UsageError,
    from_iterable,
    generate,
)
from penstock.api import IllegalDemand, InvalidStateError
from penstock.draft import MailboxPolicy, as_draft
from tests.core._foreign import CallRecorder, CountingPublisher, ScriptedPublisher, boom

REQUEST = {MailboxPolicy.MODERN: "request", MailboxPolicy.DRAFT: "request_more"}
BOTH = pytest.mark.parametrize("policy", MailboxPolicy, ids=lambda policy: policy.value)


class MailboxHarness:
    """A mailbox subscriber whose functions record their arguments."""

    def __init__(self, nursery, **options):
        self.seen = []
        self.reported = []
        handlers = {"error": self.seen.append, "complete": lambda: self.seen.append("done")}
        self.mailbox = MailboxSubscriber(
            nursery,
            options.pop("next", self.seen.append),
            **{**handlers, "on_violation": self.reported.append, **options},
        )


# --- signals only schedule; the task handles them


@BOTH
async def test_a_signal_calls_nothing_before_the_task_runs(nursery, policy) -> None:
    """Rule 2.2, D5.1, D5.2, D6.1, D6.2:
    inside a signal neither the subscription nor a function is called; later they are.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=2), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    assert calls.log == []
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], 2)] == calls.log
    harness.mailbox.on_next("a")
    assert harness.seen == []
    await wait_all_tasks_blocked()
    assert harness.seen == ["a"]
    harness.mailbox.on_complete()
    assert harness.seen == ["a"]
    await wait_all_tasks_blocked()
    assert harness.seen == ["a", "done"]


@BOTH
async def test_demand_is_renewed_in_halves_as_elements_are_handled(nursery, policy) -> None:
    """At most `demand` elements are under way, and they are requested anew
    when they have been handled.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=4), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abc":
        harness.mailbox.on_next(element)
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (4, 2)] == calls.log
    harness.mailbox.on_next("d")
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (4, 2, 2)] == calls.log


async def test_functions_may_be_async_and_run_one_at_a_time(nursery) -> None:
    """While one waits, at most the requested elements gather, and the next one runs afterwards."""
    gate, running = trio.Semaphore(0), []

    async def slow(element):
        running.append(element)
        await gate.acquire()

    harness, calls = MailboxHarness(nursery, next=slow, demand=3), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abc":
        harness.mailbox.on_next(element)
    harness.mailbox.on_complete()
    await wait_all_tasks_blocked()
    assert running == ["a"]
    assert "3 waiting, 0 due" in repr(harness.mailbox)
    for _ in range(3):
        gate.release()
    await wait_all_tasks_blocked()
    assert running == ["a", "b", "c"]
    assert harness.seen == ["done"]


@BOTH
async def test_the_mailbox_never_holds_more_than_the_demand_and_two(nursery, policy) -> None:
    """With a publisher that signals all requested elements and its end inside the request: one
    beginning, the demand, one end.
    """
    sizes, seen = [], []

    class Measured(MailboxSubscriber):
        def _post(self, mail):
            super()._post(mail)
            sizes.append(len(self._mail))

    mailbox = Measured(nursery, seen.append, demand=5, policy=policy)

    def serve(n):
        for element in range(n):
            mailbox.on_next(element)
        if len(calls.log) == 4:
            mailbox.on_complete()

    calls = CallRecorder(**{REQUEST[policy]: serve})
    mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (5, 2, 2, 2)] == calls.log
    assert len(seen) == 5 + 2 + 2 + 2
    assert sizes[0] == 1
    assert 5 <= max(sizes) <= 5 + 2


@BOTH
async def test_an_end_before_the_task_runs_is_handled(nursery, policy) -> None:
    """The mailbox holds the beginning and the end, because nothing was requested yet."""
    harness = MailboxHarness(nursery, policy=policy)
    harness.mailbox.on_subscribe(CallRecorder())
    harness.mailbox.on_complete()
    assert "2 waiting" in repr(harness.mailbox)
    await wait_all_tasks_blocked()
    assert harness.seen == ["done"]


async def test_a_busy_mailbox_lets_other_tasks_run(nursery) -> None:
    """With a publisher that always has elements, the task checkpoints by the clock."""
    harness = MailboxHarness(nursery, demand=64, next=lambda _: None)
    CountingPublisher(10**9).subscribe(harness.mailbox)
    for _ in range(5):
        await trio.lowlevel.checkpoint()
    harness.mailbox.shutdown()
    await wait_all_tasks_blocked()
    assert "over" in repr(harness.mailbox)


async def test_the_task_lives_from_the_first_signal_to_the_end(nursery) -> None:
    """Before and after, a mailbox costs no task and keeps no nursery open."""
    harness = MailboxHarness(nursery)
    assert not nursery.child_tasks
    harness.mailbox.on_subscribe(CallRecorder())
    assert len(nursery.child_tasks) == 1
    harness.mailbox.on_complete()
    await wait_all_tasks_blocked()
    assert not nursery.child_tasks


async def test_it_handles_a_whole_stream(nursery) -> None:
    """From penstock's own sources, under both policies."""
    modern, draft = (
        MailboxHarness(nursery, demand=3),
        MailboxHarness(nursery, demand=3, policy=MailboxPolicy.DRAFT),
    )
    from_iterable(range(10)).publisher(nursery).subscribe(modern.mailbox)
    as_draft(generate(lambda: iter(range(10))).publisher(nursery)).subscribe(draft.mailbox)
    await wait_all_tasks_blocked()
    assert [[*range(10), "done"]] * 2 == [modern.seen, draft.seen]


# --- the end


@BOTH
@pytest.mark.parametrize(
    "end", [("on_complete",), ("on_error", ValueError("broken"))], ids=lambda end: end[0]
)
async def test_no_method_of_an_ended_subscription_is_called(nursery, policy, end) -> None:
    """Rule 2.4, D6.3: neither for renewed demand nor by a later shutdown,
    although the task handles the end later.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=1), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    getattr(harness.mailbox, end[0])(*end[1:])
    await wait_all_tasks_blocked()
    harness.mailbox.shutdown()
    assert [(REQUEST[policy], 1)] == calls.log
    assert ["a", end[1] if end[1:] else "done"] == harness.seen


async def test_an_end_alone_is_handled(nursery) -> None:
    """D1.1, D1.3: publishers of the draft signal it without on_subscribe,
    and no subscription can follow.
    """
    for signal, expected in (
        (lambda mailbox: mailbox.on_complete(), "done"),
        (lambda mailbox: mailbox.on_error(error), error := ValueError("x")),
    ):
        harness = MailboxHarness(nursery, policy=MailboxPolicy.DRAFT)
        signal(harness.mailbox)
        await wait_all_tasks_blocked()
        assert [expected] == harness.seen
        with pytest.raises(InvalidStateError):
            harness.mailbox.on_subscribe(CallRecorder())


async def test_only_the_first_end_counts(nursery) -> None:
    """A later element or end does nothing."""
    harness = MailboxHarness(nursery)
    harness.mailbox.on_complete()
    harness.mailbox.on_error(ValueError("late"))
    harness.mailbox.on_next("late")
    await wait_all_tasks_blocked()
    assert harness.seen == ["done"]


async def test_an_end_without_a_function_for_it_just_ends(nursery) -> None:
    """`error` and `complete` may be left out."""
    for signal in (
        lambda mailbox: mailbox.on_complete(),
        lambda mailbox: mailbox.on_error(ValueError("x")),
    ):
        harness = MailboxHarness(nursery, error=None, complete=None)
        signal(harness.mailbox)
        await wait_all_tasks_blocked()
        assert "over" in repr(harness.mailbox)
        assert harness.reported == []


# --- shutdown


@BOTH
async def test_a_shutdown_cancels_once_and_drops_the_mail(nursery, policy) -> None:
    """Rule 2.6, D7.2, D7.4: one cancel, however often it is called; no mail is handled
    afterwards, and late elements are dropped.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=3), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    harness.mailbox.shutdown()
    harness.mailbox.shutdown()
    harness.mailbox.on_next("late")
    harness.mailbox.on_complete()
    await wait_all_tasks_blocked()
    harness.mailbox.shutdown()
    assert [(REQUEST[policy], 3), ("cancel",)] == calls.log
    assert harness.seen == []
    assert not nursery.child_tasks


@BOTH
async def test_a_shutdown_before_the_task_runs_requests_nothing(nursery, policy) -> None:
    """D7.3: demand is not sent after the cancel."""
    harness, calls = MailboxHarness(nursery, policy=policy), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    harness.mailbox.shutdown()
    await wait_all_tasks_blocked()
    assert calls.log == [("cancel",)]


async def test_a_subscription_after_a_shutdown_is_refused(nursery) -> None:
    """Under the modern rules it is cancelled, under the draft its on_subscribe raises.
    Nothing is requested of it.
    """
    modern, draft, calls = (
        MailboxHarness(nursery),
        MailboxHarness(nursery, policy=MailboxPolicy.DRAFT),
        CallRecorder(),
    )
    for harness in (modern, draft):
        harness.mailbox.shutdown()
    modern.mailbox.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    with pytest.raises(InvalidStateError):
        draft.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert calls.log == [("cancel",)]
    assert not nursery.child_tasks


async def test_a_shutdown_lets_a_running_function_end(nursery) -> None:
    """It is not interrupted, no other one is called after it, and nothing is requested."""
    gate, seen = trio.Event(), []

    async def slow(element):
        await gate.wait()
        seen.append(element)

    harness, calls = MailboxHarness(nursery, next=slow, demand=2), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    harness.mailbox.on_next("b")
    await wait_all_tasks_blocked()
    harness.mailbox.shutdown()
    gate.set()
    await wait_all_tasks_blocked()
    assert seen == ["a"]
    assert calls.log == [("request", 2), ("cancel",)]


@BOTH
async def test_a_cancelled_nursery_shuts_it_down(policy) -> None:
    """D7.2: cancelling the nursery cancels the subscription, once."""
    calls = CallRecorder()
    async with trio.open_nursery() as nursery:
        harness = MailboxHarness(nursery, policy=policy)
        harness.mailbox.on_subscribe(calls)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log


@BOTH
async def test_a_closed_nursery_is_reported_and_cancels_the_subscription(policy) -> None:
    """No task can run the functions. The signal returns normally, and the hook gets the reason."""
    async with trio.open_nursery() as nursery:
        harness = MailboxHarness(nursery, policy=policy)
    calls = CallRecorder()
    harness.mailbox.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    assert "nursery" in str(harness.reported[0])
    assert isinstance(harness.reported[0], UsageError)


# --- a second subscription


async def test_the_modern_policy_cancels_a_second_subscription(nursery) -> None:
    """Rule 2.5: at once; the first stream goes on."""
    harness, first, second = MailboxHarness(nursery, demand=1), CallRecorder(), CallRecorder()
    harness.mailbox.on_subscribe(first)
    harness.mailbox.on_subscribe(second)
    assert second.log == [("cancel",)]
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    await wait_all_tasks_blocked()
    assert harness.seen == ["a"]
    assert ("cancel",) not in first.log


async def test_a_second_subscription_that_raises_in_cancel_is_reported(nursery) -> None:
    """Rule 2.13: on_subscribe returns normally."""
    harness = MailboxHarness(nursery)
    harness.mailbox.on_subscribe(CallRecorder())
    harness.mailbox.on_subscribe(CallRecorder(cancel=boom))
    assert [violation.rule for violation in harness.reported] == ["3.15"]


async def test_the_draft_policy_raises_for_a_second_subscription(nursery) -> None:
    """D7.1: InvalidStateError. No method of the new subscription is called (D5.2),
    and the first stream goes on.
    """
    harness, first, second = (
        MailboxHarness(nursery, demand=1, policy=MailboxPolicy.DRAFT),
        CallRecorder(),
        CallRecorder(),
    )
    harness.mailbox.on_subscribe(first)
    with pytest.raises(InvalidStateError, match=r"D7\.1"):
        harness.mailbox.on_subscribe(second)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    await wait_all_tasks_blocked()
    assert second.log == []
    assert harness.seen == ["a"]
    assert ("cancel",) not in first.log


async def test_as_draft_cancels_the_second_subscription(nursery) -> None:
    """So nothing leaks: as_draft treats an on_subscribe that raises as a subscriber
    that cannot go on.
    """
    harness, reported, calls = (
        MailboxHarness(nursery, policy=MailboxPolicy.DRAFT),
        [],
        CallRecorder(),
    )
    harness.mailbox.on_subscribe(CallRecorder())
    as_draft(
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls)),
        on_violation=reported.append,
    ).subscribe(harness.mailbox)
    assert calls.log == [("cancel",)]
    assert isinstance(reported[0].__cause__, InvalidStateError)


# --- faults


@BOTH
@pytest.mark.parametrize("how", ["plain", "async"])
async def test_a_function_that_raises_cancels_and_is_reported(nursery, policy, how) -> None:
    """Rule 2.13: the exception reaches neither the publisher nor the nursery."""

    async def later(_):
        await trio.lowlevel.checkpoint()
        boom()

    harness, calls = (
        MailboxHarness(nursery, policy=policy, next=boom if how == "plain" else later),
        CallRecorder(),
    )
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    harness.mailbox.on_next("b")
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log
    (violation,) = harness.reported
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert "the `next` function raised ValueError('boom')" in str(violation)
    assert harness.seen == []
    assert not nursery.child_tasks


@pytest.mark.parametrize("name", ["error", "complete"])
async def test_a_function_for_the_end_that_raises_is_reported(nursery, name) -> None:
    """At that time the subscription cannot be cancelled any more."""
    harness, calls = MailboxHarness(nursery, **{name: boom}), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_complete() if name == "complete" else harness.mailbox.on_error(KeyError("x"))
    await wait_all_tasks_blocked()
    assert [violation.rule for violation in harness.reported] == ["2.13"]
    assert calls.log == [("request", 256)]


@pytest.mark.parametrize(
    ("policy", "rule"), [(MailboxPolicy.MODERN, "1.1"), (MailboxPolicy.DRAFT, "D4.1")]
)
async def test_an_element_that_was_not_requested_ends_the_stream(nursery, policy, rule) -> None:
    """The mailbox's bound holds against a publisher that ignores demand.
    Requested elements are handled first.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=2), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abcde":
        harness.mailbox.on_next(element)
    assert "3 waiting" in repr(harness.mailbox)
    await wait_all_tasks_blocked()
    assert harness.seen[:2] == ["a", "b"]
    (violation,) = harness.seen[2:]
    assert isinstance(violation, RuleViolation)
    assert violation.rule == rule
    assert calls.log[-1] == ("cancel",)
    assert calls.log.count(("cancel",)) == 1


async def test_a_publisher_that_broke_a_rule_is_cancelled_before_error_is_called(nursery) -> None:
    """The function for errors may take long, and the publisher has stopped before."""
    at_that_time, calls = [], CallRecorder()
    harness = MailboxHarness(nursery, demand=1, error=lambda _: at_that_time.extend(calls.log))
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    harness.mailbox.on_next("a")
    harness.mailbox.on_next("one too many")
    await wait_all_tasks_blocked()
    assert at_that_time == [("request", 1), ("request", 1), ("cancel",)]


async def test_an_element_before_on_subscribe_ends_the_stream(nursery) -> None:
    """Nothing was requested yet. Without a function for errors the hook gets the violation."""
    harness = MailboxHarness(nursery, error=None)
    harness.mailbox.on_next("early")
    await wait_all_tasks_blocked()
    assert harness.seen == []
    assert [violation.rule for violation in harness.reported] == ["1.1"]


@pytest.mark.parametrize(
    ("policy", "rule"), [(MailboxPolicy.MODERN, "3.16"), (MailboxPolicy.DRAFT, "D2.2")]
)
async def test_a_subscription_that_raises_on_a_request_ends_the_stream(
    nursery, policy, rule
) -> None:
    """The function for errors gets the violation, and the subscription is cancelled."""
    harness, calls = (
        MailboxHarness(nursery, policy=policy),
        CallRecorder(request=boom, request_more=boom),
    )
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert [rule] == [violation.rule for violation in harness.seen]
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log


@pytest.mark.parametrize(
    ("policy", "rule"), [(MailboxPolicy.MODERN, "3.15"), (MailboxPolicy.DRAFT, "D3.2")]
)
async def test_a_subscription_that_raises_on_a_cancel_is_reported(nursery, policy, rule) -> None:
    """A shutdown returns normally."""
    harness = MailboxHarness(nursery, policy=policy)
    harness.mailbox.on_subscribe(CallRecorder(cancel=boom))
    harness.mailbox.shutdown()
    assert [rule] == [violation.rule for violation in harness.reported]


async def test_a_subscription_that_ends_the_stream_and_raises_is_reported(nursery) -> None:
    """The end came inside the request, so the exception that follows goes to the hook."""

    def end_and_raise(_):
        harness.mailbox.on_complete()
        boom()

    harness = MailboxHarness(nursery)
    harness.mailbox.on_subscribe(CallRecorder(request=end_and_raise))
    await wait_all_tasks_blocked()
    assert harness.seen == ["done"]
    assert [violation.rule for violation in harness.reported] == ["3.16"]


async def test_a_subscription_of_the_other_generation_ends_the_stream(nursery) -> None:
    """A wrong policy gives an error that names the missing method,
    and does not crash the nursery.
    """

    class OnlyModern:
        def request(self, n): ...

        def cancel(self): ...

    harness = MailboxHarness(nursery, policy=MailboxPolicy.DRAFT)
    harness.mailbox.on_subscribe(OnlyModern())
    await wait_all_tasks_blocked()
    assert "request_more" in str(harness.seen[0])


@BOTH
@pytest.mark.parametrize(
    "call",
    [("on_subscribe", None), ("on_next", None), ("on_error", None), ("on_error", "text")],
    ids=str,
)
async def test_an_illegal_argument_of_a_signal_is_a_type_error(nursery, policy, call) -> None:
    """Rule 2.13, the only exception that a signal may raise under the modern rules."""
    harness = MailboxHarness(nursery, policy=policy)
    with pytest.raises(TypeError):
        getattr(harness.mailbox, call[0])(call[1])
    assert "new" in repr(harness.mailbox)


# --- demand


@BOTH
async def test_manual_demand_is_passed_on(nursery, policy) -> None:
    """With demand=0: remembered before there is a subscription, passed on afterwards,
    and ignored after the end.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=0), CallRecorder()
    harness.mailbox.request(1)
    harness.mailbox.request(2)
    harness.mailbox.on_subscribe(calls)
    harness.mailbox.request(1)
    await wait_all_tasks_blocked()
    harness.mailbox.request(5)
    assert [(REQUEST[policy], 4), (REQUEST[policy], 5)] == calls.log
    for element in range(9):
        harness.mailbox.on_next(element)
    await wait_all_tasks_blocked()
    assert list(range(9)) == harness.seen
    harness.mailbox.shutdown()
    harness.mailbox.request(1)
    assert [(REQUEST[policy], 4), (REQUEST[policy], 5), ("cancel",)] == calls.log


async def test_without_demand_nothing_is_requested(nursery) -> None:
    """demand=0 and no request: the subscription stays open."""
    harness, calls = MailboxHarness(nursery, demand=0), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert calls.log == []


@BOTH
async def test_no_more_than_the_bound_is_requested_in_all(nursery, policy) -> None:
    """D2.3: the publisher sees no overflow, whether it counts outstanding
    or all requested elements.
    """
    harness, calls = MailboxHarness(nursery, policy=policy, demand=0), CallRecorder()
    harness.mailbox.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for n in (1, 2**70, 1):
        harness.mailbox.request(n)
    harness.mailbox.on_next("a")
    harness.mailbox.request(1)
    assert [(REQUEST[policy], 1), (REQUEST[policy], UNBOUNDED - 1)] == calls.log


async def test_an_illegal_demand_raises_to_the_caller(nursery) -> None:
    """It is a call of the program, not a signal."""
    with pytest.raises(IllegalDemand):
        MailboxHarness(nursery, demand=0).mailbox.request(0)


async def test_a_request_on_automatic_demand_is_a_usage_error(nursery) -> None:
    """Both would request the same elements."""
    with pytest.raises(UsageError, match="demand=0"):
        MailboxHarness(nursery).mailbox.request(1)


@pytest.mark.parametrize("demand", [-1, True, 1.5, None])
async def test_a_demand_that_is_not_a_count_is_refused(nursery, demand) -> None:
    """The message explains automatic and manual demand."""
    with pytest.raises(UsageError, match="or 0 to call request"):
        MailboxHarness(nursery, demand=demand)


async def test_an_object_that_is_not_a_policy_is_refused(nursery) -> None:
    """The message lists the policies."""
    with pytest.raises(UsageError, match=r"MailboxPolicy\.MODERN, MailboxPolicy\.DRAFT"):
        MailboxHarness(nursery, policy="draft")


async def test_a_partial_names_the_task_after_its_function(nursery) -> None:
    """A partial has no qualified name."""
    seen = []
    harness = MailboxHarness(nursery, next=partial(seen.append))
    harness.mailbox.on_subscribe(CallRecorder())
    assert next(iter(nursery.child_tasks)).name == "penstock mailbox of list.append"


@pytest.mark.parametrize("wrong", [None, 5, "print"])
async def test_a_wrong_nursery_or_function_is_refused(nursery, wrong) -> None:
    """At the call, by name; the two functions for the ends may be left out."""
    with pytest.raises(
        UsageError,
        match=r"^a mailbox subscriber was given .*; give the nursery that shall run its task$",
    ):
        MailboxSubscriber(wrong, print)
    with pytest.raises(
        UsageError, match=r"^`next` is .*; give a function of one argument, the element$"
    ):
        MailboxSubscriber(nursery, wrong)
    with pytest.raises(
        UsageError,
        match=r"^on_violation is .*; give a function of one argument, the exception to report$",
    ):
        MailboxSubscriber(nursery, print, on_violation=wrong)
    if wrong is not None:
        with pytest.raises(
            UsageError, match=r"^`error` is .*; give a function of one argument, the exception$"
        ):
            MailboxSubscriber(nursery, print, error=wrong)
        with pytest.raises(UsageError, match=r"^`complete` is .*; give a function of no argument$"):
            MailboxSubscriber(nursery, print, complete=wrong)
