"""`ManualPublisher`: demand, breaches of its subscriber, and rules broken on command."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.api import UNBOUNDED, IllegalDemand, InvalidStateError, UsageError
from penstock.testing import DRAFT, ExpectationFailed, ManualPublisher, run_virtual


class Scripted:
    """A subscriber that runs a function of the script in each signal, with its subscription."""

    def __init__(self, **script: Callable[[Any], object]) -> None:
        self.script = script
        self.subscription: Any = None
        self.errors: list[BaseException] = []

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        self._act("on_subscribe")

    def on_next(self, element: Any) -> None:
        self._act("on_next")

    def on_error(self, error: BaseException) -> None:
        self.errors.append(error)
        self._act("on_error")

    def on_complete(self) -> None:
        self._act("on_complete")

    def _act(self, signal: str) -> None:
        self.script.get(signal, lambda subscription: None)(self.subscription)


def pair(
    rule_set: Any = None, **script: Callable[[Any], object]
) -> tuple[ManualPublisher, Scripted]:
    source = ManualPublisher(**({"rule_set": rule_set} if rule_set else {}))
    subscriber = Scripted(**script)
    source.subscribe(subscriber)
    return source, subscriber


def rules(source: ManualPublisher) -> list[str]:
    return [violation.rule for violation in source.violations]


def _raise(subscription: Any) -> None:
    raise RuntimeError("scripted")


def test_demand_adds_up_and_elements_use_it() -> None:
    """Requested and outstanding demand; unbounded demand is never used up."""
    source, subscriber = pair()
    subscriber.subscription.request(2)
    subscriber.subscription.request(3)
    source.emit("a")
    assert (source.requested, source.outstanding) == (5, 4)
    subscriber.subscription.request(UNBOUNDED)
    source.emit("b")
    assert source.outstanding == UNBOUNDED


def test_emit_complete_and_fail_refuse_to_break_the_rules() -> None:
    """A test that emits without demand, or after the end, is itself wrong."""
    source, _ = pair()
    with pytest.raises(UsageError, match="without demand"):
        source.emit(1)
    source.complete()
    for act in (lambda: source.emit(1), source.complete, lambda: source.fail(ValueError())):
        with pytest.raises(UsageError, match="after the end"):
            act()


def test_misbehave_delivers_signals_unchecked() -> None:
    """Elements without demand, and two ends."""
    source, subscriber = pair()
    source.misbehave("on_next", 1)
    source.misbehave("on_complete")
    source.misbehave("on_error", ValueError())
    assert len(subscriber.errors) == 1


@pytest.mark.parametrize(
    ("script", "act", "broken_rules"),
    [
        (
            {"on_complete": lambda subscription: subscription.request(1)},
            lambda source, one: source.complete(),
            ["2.3"],
        ),
        (
            {"on_error": lambda subscription: subscription.cancel()},
            lambda source, one: source.fail(ValueError()),
            ["2.3"],
        ),
        ({}, lambda source, one: (source.complete(), one.subscription.cancel()), ["2.4"]),
        ({}, lambda source, one: one.subscription.request(0), ["3.9"]),
    ],
)
def test_breaches_of_the_subscriber_are_recorded(
    script: dict[str, Callable[[Any], object]],
    act: Callable[[ManualPublisher, Scripted], object],
    broken_rules: list[str],
) -> None:
    """Calls inside and after the end, and illegal demand."""
    source, subscriber = pair(**script)
    act(source, subscriber)
    assert rules(source) == broken_rules


def test_illegal_demand_is_answered_with_an_error() -> None:
    """on_error(IllegalDemand) ends the stream (rule 3.9)."""
    source, subscriber = pair()
    subscriber.subscription.request(-1)
    assert isinstance(subscriber.errors[0], IllegalDemand)
    assert source.subscription.over


def test_an_exception_of_the_subscriber_is_recorded_and_passed_on() -> None:
    """Rule 2.13: a subscriber returns normally."""
    source, subscriber = pair(on_next=_raise)
    subscriber.subscription.request(1)
    with pytest.raises(RuntimeError):
        source.emit(1)
    assert rules(source) == ["2.13"]


def test_a_type_error_at_none_is_not_a_breach() -> None:
    """Rule 2.13 demands it."""

    class Strict(Scripted):
        def on_next(self, element: Any) -> None:
            raise TypeError("None")

    source = ManualPublisher()
    source.subscribe(Strict())
    with pytest.raises(TypeError):
        source.misbehave("on_next", None)
    assert rules(source) == []


def test_a_call_from_another_thread_is_a_breach() -> None:
    """Rule 2.7: calls must be serial, and one run has one thread."""
    source, subscriber = pair()
    thread = threading.Thread(target=subscriber.subscription.request, args=(1,))
    thread.start()
    thread.join()
    assert rules(source) == ["2.7"]


def test_draft_calls_after_the_end_raise_and_are_breaches() -> None:
    """Rules D7.3, D7.4 and D5.2, and the errors that the draft names."""
    source, subscriber = pair(DRAFT, on_subscribe=lambda subscription: subscription.request_more(1))
    subscriber.subscription.cancel()
    with pytest.raises(InvalidStateError):
        subscriber.subscription.request_more(1)
    with pytest.raises(InvalidStateError):
        subscriber.subscription.cancel()
    assert rules(source) == ["D5.2", "D7.3", "D7.4"]


def test_a_subscription_has_the_methods_of_its_rule_set_only() -> None:
    """A draft subscriber that calls request, or a modern one that calls request_more, fails."""
    assert not hasattr(pair(DRAFT)[1].subscription, "request")
    assert not hasattr(pair()[1].subscription, "request_more")


def test_illegal_demand_raises_in_the_draft() -> None:
    """Rule D2.4: the publisher also notes the violation."""
    source, subscriber = pair(DRAFT)
    with pytest.raises(IllegalDemand):
        subscriber.subscription.request_more(0)
    assert rules(source) == ["D2.4"]


def test_none_and_a_missing_subscriber_are_refused() -> None:
    """Rule 1.9, and a command before the first subscriber."""
    with pytest.raises(TypeError):
        ManualPublisher().subscribe(None)
    with pytest.raises(ExpectationFailed, match="it has no subscriber"):
        ManualPublisher().emit(1)


def test_a_runaway_subscriber_is_stopped() -> None:
    """After 10,000 unread calls the next one raises, so that the record is bounded."""
    _, subscriber = pair()
    for _ in range(10_001):
        subscriber.subscription.request(1)
    with pytest.raises(UsageError, match="no expectation has read"):
        subscriber.subscription.request(1)


def test_it_records_where_it_was_called_from() -> None:
    """Inside which signal, or outside any."""
    source, subscriber = pair(on_subscribe=lambda subscription: subscription.request(1))
    subscriber.subscription.request(1)
    subscriber.subscription.request(1)
    assert source.subscription.call_places == ["inside on_subscribe", "outside any signal"]


def expectation(act: Callable[[ManualPublisher, Any], Awaitable[object]]) -> object:
    async def scenario() -> object:
        source, subscriber = pair()
        return await act(source, subscriber.subscription)

    return run_virtual(scenario)


def test_expectations_pass_if_they_are_met() -> None:
    """Single requests, total demand, a cancel after unread requests, and silence."""

    async def act(source: ManualPublisher, subscription: Any) -> object:
        subscription.request(3)
        subscription.request(4)
        subscription.request(5)
        first = await source.expect_request()
        await source.expect_demand(12)
        subscription.cancel()
        await source.expect_cancel()
        await source.expect_no_calls()
        return first, source.cancelled

    assert expectation(act) == (3, True)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda source, subscription: source.expect_request(),
            "expected request, but the subscriber did not call",
        ),
        (
            lambda source, subscription: (subscription.cancel(), source.expect_request())[-1],
            "expected request, but got cancel",
        ),
        (
            lambda source, subscription: (subscription.request(1), source.expect_cancel())[-1],
            "expected cancel, but the subscriber did not call",
        ),
        (
            lambda source, subscription: (subscription.request(1), source.expect_demand(2))[-1],
            "expected a demand of 2 in all, but only 1",
        ),
        (
            lambda source, subscription: (subscription.request(1), source.expect_no_calls())[-1],
            r"expected no calls, but got request\(1\)",
        ),
        (
            lambda source, subscription: (subscription.request(0), source.expect_no_calls())[-1],
            "rule 3.9",
        ),
    ],
)
def test_a_failed_expectation_says_what_was_called(
    act: Callable[[ManualPublisher, Any], Awaitable[object]], words: str
) -> None:
    """The text has the expectation and the call; a recorded violation fails every expectation."""
    with pytest.raises(ExpectationFailed, match=words):
        expectation(act)


def test_the_transcript_shows_both_directions() -> None:
    """Signals to the subscriber and calls from it."""
    source, subscriber = pair()
    subscriber.subscription.request(1)
    source.emit("a")
    assert "<- request(1)" in source.transcript()
    assert "-> on_next('a')" in source.transcript()


def test_the_hook_signals_inside_a_request() -> None:
    """The element comes before request() returns; an illegal request does not call the hook."""
    seen: list[Any] = []
    source = ManualPublisher(when_requested=lambda asked, n: (seen.append(n), asked.emit("inside")))
    subscriber = Scripted(on_next=lambda _: seen.append("on_next"))
    source.subscribe(subscriber)
    subscriber.subscription.request(2)
    seen.append("returned")
    subscriber.subscription.request(0)
    assert seen == [2, "on_next", "returned"]


@pytest.mark.parametrize(
    ("any_thread", "overlap", "broken"),
    [(False, False, ["2.7"]), (True, False, []), (True, True, ["2.7"])],
)
def test_calls_from_declared_threads_must_be_serial(
    any_thread: bool, overlap: bool, broken: list[str]
) -> None:
    """Undeclared, each breaks rule 2.7.
    Declared, a call breaks it that comes while another thread is inside one.
    """
    inside, over = threading.Event(), threading.Event()

    def hold(_: ManualPublisher, n: int) -> None:
        if n == 7:
            inside.set()
            over.wait()

    source = ManualPublisher(any_thread=any_thread, when_requested=hold)
    subscriber = Scripted()
    source.subscribe(subscriber)
    caller = threading.Thread(target=subscriber.subscription.request, args=(7,))
    caller.start()
    inside.wait()
    if not overlap:
        over.set()
        caller.join()
    subscriber.subscription.request(1)
    over.set()
    caller.join()
    assert [violation.rule for violation in source.violations] == broken
