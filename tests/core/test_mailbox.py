"""The mailbox subscriber: signals that only schedule, one task that handles them, and what each policy does about a second subscription."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    IllegalDemand,
    InvalidStateError,
    MailboxPolicy,
    MailboxSubscriber,
    RuleViolation,
    UsageError,
    as_draft,
    from_iterable,
    generate,
)
from tests.core._foreign import Calls, Counting, Script, boom

REQUEST = {MailboxPolicy.MODERN: "request", MailboxPolicy.DRAFT: "request_more"}
BOTH = pytest.mark.parametrize("policy", MailboxPolicy, ids=lambda policy: policy.value)


class Box:
    """A mailbox subscriber whose functions write down what they get."""

    def __init__(self, nursery, **options):
        self.seen = []
        self.told = []
        handlers = {"error": self.seen.append, "complete": lambda: self.seen.append("done")}
        self.box = MailboxSubscriber(
            nursery, options.pop("next", self.seen.append), **{**handlers, "on_violation": self.told.append, **options}
        )


# --- signals schedule, the task acts


@BOTH
async def test_a_signal_calls_nothing_before_the_task_has_its_turn(nursery, policy) -> None:
    """Rule 2.2, D5.1, D5.2, D6.1, D6.2: inside a signal neither the subscription nor a function is called; afterwards they are."""
    it, calls = Box(nursery, policy=policy, demand=2), Calls()
    it.box.on_subscribe(calls)
    assert calls.log == []
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], 2)] == calls.log
    it.box.on_next("a")
    assert it.seen == []
    await wait_all_tasks_blocked()
    assert it.seen == ["a"]
    it.box.on_complete()
    assert it.seen == ["a"]
    await wait_all_tasks_blocked()
    assert it.seen == ["a", "done"]


@BOTH
async def test_demand_is_renewed_in_halves_as_elements_are_handled(nursery, policy) -> None:
    """At most `demand` elements are under way, and they are paid for when they have been handled."""
    it, calls = Box(nursery, policy=policy, demand=4), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abc":
        it.box.on_next(element)
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (4, 2)] == calls.log
    it.box.on_next("d")
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (4, 2, 2)] == calls.log


async def test_functions_may_be_async_and_run_one_at_a_time(nursery) -> None:
    """While one waits, elements gather, never more than were requested, and the next one runs only afterwards."""
    gate, running = trio.Semaphore(0), []

    async def slow(element):
        running.append(element)
        await gate.acquire()

    it, calls = Box(nursery, next=slow, demand=3), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abc":
        it.box.on_next(element)
    it.box.on_complete()
    await wait_all_tasks_blocked()
    assert running == ["a"]
    assert "3 waiting, 0 due" in repr(it.box)
    for _ in range(3):
        gate.release()
    await wait_all_tasks_blocked()
    assert running == ["a", "b", "c"]
    assert it.seen == ["done"]


@BOTH
async def test_the_mailbox_never_holds_more_than_the_demand_and_two(nursery, policy) -> None:
    """The bound, measured over a publisher that signals all that it may, and its end, inside the request: beginning, demand, end."""
    sizes, seen = [], []

    class Measured(MailboxSubscriber):
        def _post(self, mail):
            super()._post(mail)
            sizes.append(len(self._mail))

    box = Measured(nursery, seen.append, demand=5, policy=policy)

    def serve(n):
        for element in range(n):
            box.on_next(element)
        if len(calls.log) == 4:
            box.on_complete()

    calls = Calls(**{REQUEST[policy]: serve})
    box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], n) for n in (5, 2, 2, 2)] == calls.log
    assert len(seen) == 5 + 2 + 2 + 2
    assert sizes[0] == 1
    assert 5 <= max(sizes) <= 5 + 2


@BOTH
async def test_beginning_elements_and_end_fit_in_together(nursery, policy) -> None:
    """A publisher that signals an end before the task had its turn: demand is remembered to have been nothing, so only two waited."""
    it = Box(nursery, policy=policy)
    it.box.on_subscribe(Calls())
    it.box.on_complete()
    assert "2 waiting" in repr(it.box)
    await wait_all_tasks_blocked()
    assert it.seen == ["done"]


async def test_a_busy_mailbox_gives_its_neighbours_a_turn(nursery) -> None:
    """Over a publisher that never runs dry the task checkpoints by the clock, so that others get in."""
    it = Box(nursery, demand=64, next=lambda _: None)
    Counting(10**9).subscribe(it.box)
    for _ in range(5):
        await trio.lowlevel.checkpoint()
    it.box.shutdown()
    await wait_all_tasks_blocked()
    assert "over" in repr(it.box)


async def test_the_task_lives_from_the_first_signal_to_the_end(nursery) -> None:
    """A mailbox that nobody has signalled costs no task, and keeps no nursery open; one that is over neither."""
    it = Box(nursery)
    assert not nursery.child_tasks
    it.box.on_subscribe(Calls())
    assert len(nursery.child_tasks) == 1
    it.box.on_complete()
    await wait_all_tasks_blocked()
    assert not nursery.child_tasks


async def test_it_drives_a_whole_stream(nursery) -> None:
    """From our own sources, under both policies."""
    modern, draft = Box(nursery, demand=3), Box(nursery, demand=3, policy=MailboxPolicy.DRAFT)
    from_iterable(range(10)).publisher(nursery).subscribe(modern.box)
    as_draft(generate(lambda: iter(range(10))).publisher(nursery)).subscribe(draft.box)
    await wait_all_tasks_blocked()
    assert [[*range(10), "done"]] * 2 == [modern.seen, draft.seen]


# --- the end


@BOTH
@pytest.mark.parametrize("end", [("on_complete",), ("on_error", ValueError("broken"))], ids=lambda end: end[0])
async def test_nothing_is_called_on_a_subscription_that_has_ended(nursery, policy, end) -> None:
    """Rule 2.4, D6.3: neither by demand that falls due, nor by a later shutdown, though the task handles the end only afterwards."""
    it, calls = Box(nursery, policy=policy, demand=1), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    getattr(it.box, end[0])(*end[1:])
    await wait_all_tasks_blocked()
    it.box.shutdown()
    assert [(REQUEST[policy], 1)] == calls.log
    assert ["a", end[1] if end[1:] else "done"] == it.seen


async def test_an_end_alone_is_handled(nursery) -> None:
    """D1.1, D1.3: the draft's publishers signal it without on_subscribe; so no subscription can follow."""
    for signal, expected in ((lambda box: box.on_complete(), "done"), (lambda box: box.on_error(error), error := ValueError("x"))):
        it = Box(nursery, policy=MailboxPolicy.DRAFT)
        signal(it.box)
        await wait_all_tasks_blocked()
        assert [expected] == it.seen
        with pytest.raises(InvalidStateError):
            it.box.on_subscribe(Calls())


async def test_only_the_first_end_counts(nursery) -> None:
    """What comes after the end is nothing: no element, no second end."""
    it = Box(nursery)
    it.box.on_complete()
    it.box.on_error(ValueError("late"))
    it.box.on_next("late")
    await wait_all_tasks_blocked()
    assert it.seen == ["done"]


async def test_an_end_without_a_function_for_it_just_ends(nursery) -> None:
    """`error` and `complete` may be left out."""
    for signal in (lambda box: box.on_complete(), lambda box: box.on_error(ValueError("x"))):
        it = Box(nursery, error=None, complete=None)
        signal(it.box)
        await wait_all_tasks_blocked()
        assert "over" in repr(it.box)
        assert it.told == []


# --- shutdown


@BOTH
async def test_a_shutdown_cancels_once_and_drops_what_waits(nursery, policy) -> None:
    """Rule 2.6, D7.2, D7.4: one cancel, however often it is called; nothing is handled afterwards, late elements neither."""
    it, calls = Box(nursery, policy=policy, demand=3), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    it.box.shutdown()
    it.box.shutdown()
    it.box.on_next("late")
    it.box.on_complete()
    await wait_all_tasks_blocked()
    it.box.shutdown()
    assert [(REQUEST[policy], 3), ("cancel",)] == calls.log
    assert it.seen == []
    assert not nursery.child_tasks


@BOTH
async def test_a_shutdown_before_the_task_had_its_turn_asks_for_nothing(nursery, policy) -> None:
    """D7.3: demand is not sent after the cancel."""
    it, calls = Box(nursery, policy=policy), Calls()
    it.box.on_subscribe(calls)
    it.box.shutdown()
    await wait_all_tasks_blocked()
    assert calls.log == [("cancel",)]


async def test_a_subscription_after_a_shutdown_is_turned_away(nursery) -> None:
    """By today's rules it is cancelled, by the draft's its on_subscribe raises; nothing is requested of it."""
    modern, draft, calls = Box(nursery), Box(nursery, policy=MailboxPolicy.DRAFT), Calls()
    for it in (modern, draft):
        it.box.shutdown()
    modern.box.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    with pytest.raises(InvalidStateError):
        draft.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert calls.log == [("cancel",)]
    assert not nursery.child_tasks


async def test_a_shutdown_lets_a_running_function_end(nursery) -> None:
    """It is not interrupted; none is called after it, and no demand follows."""
    gate, seen = trio.Event(), []

    async def slow(element):
        await gate.wait()
        seen.append(element)

    it, calls = Box(nursery, next=slow, demand=2), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    it.box.on_next("b")
    await wait_all_tasks_blocked()
    it.box.shutdown()
    gate.set()
    await wait_all_tasks_blocked()
    assert seen == ["a"]
    assert calls.log == [("request", 2), ("cancel",)]


@BOTH
async def test_a_cancelled_nursery_shuts_it_down(policy) -> None:
    """D7.2: whoever cancels the nursery cancels the subscription, too, once."""
    calls = Calls()
    async with trio.open_nursery() as nursery:
        it = Box(nursery, policy=policy)
        it.box.on_subscribe(calls)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log


@BOTH
async def test_a_nursery_that_has_closed_is_told_and_the_subscription_cancelled(policy) -> None:
    """There is no task to run the functions; the signal returns normally, and the hook hears why nothing happens."""
    async with trio.open_nursery() as nursery:
        it = Box(nursery, policy=policy)
    calls = Calls()
    it.box.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    assert "nursery" in str(it.told[0])
    assert isinstance(it.told[0], UsageError)


# --- a second subscription


async def test_a_second_subscription_is_cancelled_today(nursery) -> None:
    """Rule 2.5: at once; the first stream lives on."""
    it, first, second = Box(nursery, demand=1), Calls(), Calls()
    it.box.on_subscribe(first)
    it.box.on_subscribe(second)
    assert second.log == [("cancel",)]
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    await wait_all_tasks_blocked()
    assert it.seen == ["a"]
    assert ("cancel",) not in first.log


async def test_a_second_subscription_that_raises_in_cancel_is_told_of(nursery) -> None:
    """Rule 2.13 for us: on_subscribe returns normally."""
    it = Box(nursery)
    it.box.on_subscribe(Calls())
    it.box.on_subscribe(Calls(cancel=boom))
    assert [violation.rule for violation in it.told] == ["3.15"]


async def test_a_second_subscription_is_an_error_by_the_draft(nursery) -> None:
    """D7.1: on_subscribe raises InvalidStateError, the new subscription is left alone (D5.2), the first stream lives on."""
    it, first, second = Box(nursery, demand=1, policy=MailboxPolicy.DRAFT), Calls(), Calls()
    it.box.on_subscribe(first)
    with pytest.raises(InvalidStateError, match=r"D7\.1"):
        it.box.on_subscribe(second)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    await wait_all_tasks_blocked()
    assert second.log == []
    assert it.seen == ["a"]
    assert ("cancel",) not in first.log


async def test_what_the_second_subscription_raises_makes_our_publisher_cancel_it(nursery) -> None:
    """So nothing leaks: as_draft takes a raising on_subscribe for a subscriber that cannot go on."""
    it, told, calls = Box(nursery, policy=MailboxPolicy.DRAFT), [], Calls()
    it.box.on_subscribe(Calls())
    as_draft(Script(lambda subscriber: subscriber.on_subscribe(calls)), on_violation=told.append).subscribe(it.box)
    assert calls.log == [("cancel",)]
    assert isinstance(told[0].__cause__, InvalidStateError)


# --- faults


@BOTH
@pytest.mark.parametrize("how", ["plain", "async"])
async def test_a_function_that_raises_cancels_the_subscription_and_is_told_of(nursery, policy, how) -> None:
    """Rule 2.13: the exception reaches neither the publisher nor the nursery."""

    async def later(_):
        await trio.lowlevel.checkpoint()
        boom()

    it, calls = Box(nursery, policy=policy, next=boom if how == "plain" else later), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    it.box.on_next("b")
    await wait_all_tasks_blocked()
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log
    (violation,) = it.told
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert "the `next` function raised ValueError('boom')" in str(violation)
    assert it.seen == []
    assert not nursery.child_tasks


@pytest.mark.parametrize("name", ["error", "complete"])
async def test_a_function_for_the_end_that_raises_is_told_of(nursery, name) -> None:
    """There is nothing left to cancel."""
    it, calls = Box(nursery, **{name: boom}), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_complete() if name == "complete" else it.box.on_error(KeyError("x"))
    await wait_all_tasks_blocked()
    assert [violation.rule for violation in it.told] == ["2.13"]
    assert calls.log == [("request", 256)]


@pytest.mark.parametrize(("policy", "rule"), [(MailboxPolicy.MODERN, "1.1"), (MailboxPolicy.DRAFT, "D4.1")])
async def test_an_element_that_was_not_requested_ends_the_stream(nursery, policy, rule) -> None:
    """The bound of the mailbox holds against a publisher that ignores demand; what was legal is handled first."""
    it, calls = Box(nursery, policy=policy, demand=2), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for element in "abcde":
        it.box.on_next(element)
    assert "3 waiting" in repr(it.box)
    await wait_all_tasks_blocked()
    assert it.seen[:2] == ["a", "b"]
    (violation,) = it.seen[2:]
    assert isinstance(violation, RuleViolation)
    assert violation.rule == rule
    assert calls.log[-1] == ("cancel",)
    assert calls.log.count(("cancel",)) == 1


async def test_a_publisher_that_broke_a_rule_is_cancelled_before_the_user_hears_of_it(nursery) -> None:
    """However long the function for errors takes, the publisher has been stopped."""
    at_that_time, calls = [], Calls()
    it = Box(nursery, demand=1, error=lambda _: at_that_time.extend(calls.log))
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    it.box.on_next("a")
    it.box.on_next("one too many")
    await wait_all_tasks_blocked()
    assert at_that_time == [("request", 1), ("request", 1), ("cancel",)]


async def test_an_element_before_on_subscribe_ends_the_stream(nursery) -> None:
    """Nothing was requested yet, so nothing may come; without a function for errors the hook hears of it."""
    it = Box(nursery, error=None)
    it.box.on_next("early")
    await wait_all_tasks_blocked()
    assert it.seen == []
    assert [violation.rule for violation in it.told] == ["1.1"]


@pytest.mark.parametrize(("policy", "rule"), [(MailboxPolicy.MODERN, "3.16"), (MailboxPolicy.DRAFT, "D2.2")])
async def test_a_subscription_that_raises_on_a_request_ends_the_stream(nursery, policy, rule) -> None:
    """The function for errors gets the violation, and the subscription is cancelled."""
    it, calls = Box(nursery, policy=policy), Calls(request=boom, request_more=boom)
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert [rule] == [violation.rule for violation in it.seen]
    assert [(REQUEST[policy], 256), ("cancel",)] == calls.log


@pytest.mark.parametrize(("policy", "rule"), [(MailboxPolicy.MODERN, "3.15"), (MailboxPolicy.DRAFT, "D3.2")])
async def test_a_subscription_that_raises_on_a_cancel_is_told_of(nursery, policy, rule) -> None:
    """A shutdown returns normally, whatever the publisher does."""
    it = Box(nursery, policy=policy)
    it.box.on_subscribe(Calls(cancel=boom))
    it.box.shutdown()
    assert [rule] == [violation.rule for violation in it.told]


async def test_a_subscription_that_ends_the_stream_and_raises_is_told_of(nursery) -> None:
    """The end has been received inside the request; what the request raises afterwards goes to the hook."""

    def end_and_raise(_):
        it.box.on_complete()
        boom()

    it = Box(nursery)
    it.box.on_subscribe(Calls(request=end_and_raise))
    await wait_all_tasks_blocked()
    assert it.seen == ["done"]
    assert [violation.rule for violation in it.told] == ["3.16"]


async def test_a_subscription_of_the_other_generation_ends_the_stream(nursery) -> None:
    """The wrong policy is a fault with a name, not a crash of the nursery."""

    class OnlyModern:
        def request(self, n): ...

        def cancel(self): ...

    it = Box(nursery, policy=MailboxPolicy.DRAFT)
    it.box.on_subscribe(OnlyModern())
    await wait_all_tasks_blocked()
    assert "request_more" in str(it.seen[0])


@BOTH
@pytest.mark.parametrize("call", [("on_subscribe", None), ("on_next", None), ("on_error", None), ("on_error", "text")], ids=str)
async def test_what_no_signal_may_carry_is_a_type_error(nursery, policy, call) -> None:
    """Rule 2.13, the one exception that a signal may raise today."""
    it = Box(nursery, policy=policy)
    with pytest.raises(TypeError):
        getattr(it.box, call[0])(call[1])
    assert "new" in repr(it.box)


# --- demand


@BOTH
async def test_demand_can_be_given_by_hand(nursery, policy) -> None:
    """With demand=0: remembered before there is a subscription, passed on afterwards, nothing after the end."""
    it, calls = Box(nursery, policy=policy, demand=0), Calls()
    it.box.request(1)
    it.box.request(2)
    it.box.on_subscribe(calls)
    it.box.request(1)
    await wait_all_tasks_blocked()
    it.box.request(5)
    assert [(REQUEST[policy], 4), (REQUEST[policy], 5)] == calls.log
    for element in range(9):
        it.box.on_next(element)
    await wait_all_tasks_blocked()
    assert list(range(9)) == it.seen
    it.box.shutdown()
    it.box.request(1)
    assert [(REQUEST[policy], 4), (REQUEST[policy], 5), ("cancel",)] == calls.log


async def test_without_demand_nothing_is_requested(nursery) -> None:
    """demand=0 and no request: the subscription is open, and waits."""
    it, calls = Box(nursery, demand=0), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    assert calls.log == []


@BOTH
async def test_no_more_than_the_bound_is_requested_in_all(nursery, policy) -> None:
    """D2.3: the publisher never sees an overflow, whether it counts what is outstanding or all that was requested."""
    it, calls = Box(nursery, policy=policy, demand=0), Calls()
    it.box.on_subscribe(calls)
    await wait_all_tasks_blocked()
    for n in (1, 2**70, 1):
        it.box.request(n)
    it.box.on_next("a")
    it.box.request(1)
    assert [(REQUEST[policy], 1), (REQUEST[policy], UNBOUNDED - 1)] == calls.log


async def test_an_illegal_demand_raises_to_whoever_gave_it(nursery) -> None:
    """It is a call of the program's, not a signal."""
    with pytest.raises(IllegalDemand):
        Box(nursery, demand=0).box.request(0)


async def test_automatic_demand_is_not_given_by_hand(nursery) -> None:
    """The two would count each other's elements."""
    with pytest.raises(UsageError, match="demand=0"):
        Box(nursery).box.request(1)


@pytest.mark.parametrize("demand", [-1, True, 1.5, None])
async def test_a_demand_that_is_no_count_is_refused(nursery, demand) -> None:
    """The message tells both forms."""
    with pytest.raises(UsageError, match="or 0 to call request"):
        Box(nursery, demand=demand)


async def test_a_policy_that_is_none_is_refused(nursery) -> None:
    """The message names the policies there are."""
    with pytest.raises(UsageError, match=r"MailboxPolicy\.MODERN, MailboxPolicy\.DRAFT"):
        Box(nursery, policy="draft")


async def test_a_function_without_a_name_names_the_task_all_the_same(nursery) -> None:
    """A partial has no qualified name; what is inside it has."""
    seen = []
    it = Box(nursery, next=partial(seen.append))
    it.box.on_subscribe(Calls())
    assert next(iter(nursery.child_tasks)).name == "penstock mailbox of list.append"


@pytest.mark.parametrize("wrong", [None, 5, "print"])
async def test_what_is_no_nursery_or_no_function_is_refused(nursery, wrong) -> None:
    """At the call, by name; the two functions at the end may be left out."""
    with pytest.raises(UsageError, match=r"^a mailbox subscriber was given .*; give the nursery that shall run its task$"):
        MailboxSubscriber(wrong, print)
    with pytest.raises(UsageError, match=r"^`next` is .*; give a function of one argument, the element$"):
        MailboxSubscriber(nursery, wrong)
    with pytest.raises(UsageError, match=r"^on_violation is .*; give a function of one argument, the exception to tell of$"):
        MailboxSubscriber(nursery, print, on_violation=wrong)
    if wrong is not None:
        with pytest.raises(UsageError, match=r"^`error` is .*; give a function of one argument, the exception$"):
            MailboxSubscriber(nursery, print, error=wrong)
        with pytest.raises(UsageError, match=r"^`complete` is .*; give a function of no argument$"):
            MailboxSubscriber(nursery, print, complete=wrong)
