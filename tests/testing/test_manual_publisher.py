"""Tests of the publisher that emits on command: demand, breaches of its subscriber, misbehaviour on request."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.api import UNBOUNDED, IllegalDemand, InvalidStateError, UsageError
from penstock.testing import DRAFT, ExpectationFailed, ManualPublisher, run_virtual


class Scripted:
    """A subscriber that does in each signal what a script says."""

    def __init__(self, **script: Callable[[Any], object]) -> None:
        self.script = script
        self.line: Any = None
        self.errors: list[BaseException] = []

    def on_subscribe(self, line: Any) -> None:
        self.line = line
        self._act("on_subscribe")

    def on_next(self, element: Any) -> None:
        self._act("on_next")

    def on_error(self, error: BaseException) -> None:
        self.errors.append(error)
        self._act("on_error")

    def on_complete(self) -> None:
        self._act("on_complete")

    def _act(self, signal: str) -> None:
        self.script.get(signal, lambda line: None)(self.line)


def pair(dialect: Any = None, **script: Callable[[Any], object]) -> tuple[ManualPublisher, Scripted]:
    source = ManualPublisher(**({"dialect": dialect} if dialect else {}))
    subscriber = Scripted(**script)
    source.subscribe(subscriber)
    return source, subscriber


def rules(source: ManualPublisher) -> list[str]:
    return [violation.rule for violation in source.violations]


def _raise(line: Any) -> None:
    raise RuntimeError("I cannot")


def test_demand_adds_up_and_elements_use_it() -> None:
    """What is requested, what is outstanding, and that unbounded demand is never used up."""
    source, subscriber = pair()
    subscriber.line.request(2)
    subscriber.line.request(3)
    source.emit("a")
    assert (source.requested, source.outstanding) == (5, 4)
    subscriber.line.request(UNBOUNDED)
    source.emit("b")
    assert source.outstanding == UNBOUNDED


def test_lawful_acts_refuse_to_break_the_rules() -> None:
    """A test that emits without demand, or after the end, is itself mistaken."""
    source, _ = pair()
    with pytest.raises(UsageError, match="without demand"):
        source.emit(1)
    source.complete()
    for act in (lambda: source.emit(1), source.complete, lambda: source.fail(ValueError())):
        with pytest.raises(UsageError, match="after the end"):
            act()


def test_misbehaviour_is_delivered_as_it_is() -> None:
    """Elements without demand, two ends: whatever a guard must stand."""
    source, subscriber = pair()
    source.misbehave("on_next", 1)
    source.misbehave("on_complete")
    source.misbehave("on_error", ValueError())
    assert len(subscriber.errors) == 1


@pytest.mark.parametrize(
    ("script", "act", "broken"),
    [
        ({"on_complete": lambda line: line.request(1)}, lambda source, one: source.complete(), ["2.3"]),
        ({"on_error": lambda line: line.cancel()}, lambda source, one: source.fail(ValueError()), ["2.3"]),
        ({}, lambda source, one: (source.complete(), one.line.cancel()), ["2.4"]),
        ({}, lambda source, one: one.line.request(0), ["3.9"]),
    ],
)
def test_breaches_of_the_subscriber_are_recorded(
    script: dict[str, Callable[[Any], object]], act: Callable[[ManualPublisher, Scripted], object], broken: list[str]
) -> None:
    """Calls inside and after the end, and illegal demand."""
    source, subscriber = pair(**script)
    act(source, subscriber)
    assert rules(source) == broken


def test_illegal_demand_is_answered_as_the_rules_say() -> None:
    """on_error(IllegalDemand), and the end (rule 3.9)."""
    source, subscriber = pair()
    subscriber.line.request(-1)
    assert isinstance(subscriber.errors[0], IllegalDemand)
    assert source.subscription.over


def test_a_subscriber_that_raises_is_recorded_and_its_exception_goes_on() -> None:
    """Rule 2.13; a TypeError at None is what the rule asks for."""
    source, subscriber = pair(on_next=_raise)
    subscriber.line.request(1)
    with pytest.raises(RuntimeError):
        source.emit(1)
    assert rules(source) == ["2.13"]


def test_the_lawful_type_error_at_none_is_no_breach() -> None:
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
    """Rule 2.7, in one run loop."""
    source, subscriber = pair()
    thread = threading.Thread(target=subscriber.line.request, args=(1,))
    thread.start()
    thread.join()
    assert rules(source) == ["2.7"]


def test_in_the_draft_calls_on_what_is_over_raise_and_are_breaches() -> None:
    """D7.3, D7.4, D5.2 and the errors that the draft names."""
    source, subscriber = pair(DRAFT, on_subscribe=lambda line: line.request_more(1))
    subscriber.line.cancel()
    with pytest.raises(InvalidStateError):
        subscriber.line.request_more(1)
    with pytest.raises(InvalidStateError):
        subscriber.line.cancel()
    assert rules(source) == ["D5.2", "D7.3", "D7.4"]


def test_a_line_speaks_one_language() -> None:
    """A subscriber of the draft that calls request, or a modern one that calls request_more, is found out."""
    assert not hasattr(pair(DRAFT)[1].line, "request")
    assert not hasattr(pair()[1].line, "request_more")


def test_in_the_draft_illegal_demand_raises() -> None:
    """D2.4."""
    source, subscriber = pair(DRAFT)
    with pytest.raises(IllegalDemand):
        subscriber.line.request_more(0)
    assert rules(source) == ["D2.4"]


def test_none_and_nobody_are_refused() -> None:
    """Rule 1.9, and an act before anybody has subscribed."""
    with pytest.raises(TypeError):
        ManualPublisher().subscribe(None)
    with pytest.raises(ExpectationFailed, match="nobody has subscribed"):
        ManualPublisher().emit(1)


def test_a_runaway_subscriber_is_stopped() -> None:
    """More calls than anybody will read are refused; the record of them is bounded."""
    _, subscriber = pair()
    for _ in range(10_001):
        subscriber.line.request(1)
    with pytest.raises(UsageError, match="no expectation has read"):
        subscriber.line.request(1)


def test_it_knows_from_where_it_was_called() -> None:
    """Inside which signal, or outside any."""
    source, subscriber = pair(on_subscribe=lambda line: line.request(1))
    subscriber.line.request(1)
    subscriber.line.request(1)
    assert source.subscription.call_places == ["inside on_subscribe", "outside any signal"]


def expectation(act: Callable[[ManualPublisher, Any], Awaitable[object]]) -> object:
    async def scenario() -> object:
        source, subscriber = pair()
        return await act(source, subscriber.line)

    return run_virtual(scenario)


def test_expectations_pass_where_they_are_met() -> None:
    """Requests one by one, demand in all, a cancel after unread requests, and silence."""

    async def act(source: ManualPublisher, line: Any) -> object:
        line.request(3)
        line.request(4)
        line.request(5)
        first = await source.expect_request()
        await source.expect_demand(12)
        line.cancel()
        await source.expect_cancel()
        await source.expect_no_calls()
        return first, source.cancelled

    assert expectation(act) == (3, True)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda source, line: source.expect_request(), "expected request, but the subscriber did not call"),
        (lambda source, line: (line.cancel(), source.expect_request())[-1], "expected request, but got cancel"),
        (lambda source, line: (line.request(1), source.expect_cancel())[-1], "expected cancel, but the subscriber did not call"),
        (lambda source, line: (line.request(1), source.expect_demand(2))[-1], "expected a demand of 2 in all, but only 1"),
        (lambda source, line: (line.request(1), source.expect_no_calls())[-1], r"expected no calls, but got request\(1\)"),
        (lambda source, line: (line.request(0), source.expect_no_calls())[-1], "rule 3.9"),
    ],
)
def test_expectations_fail_in_words(act: Callable[[ManualPublisher, Any], Awaitable[object]], words: str) -> None:
    """What was expected and what was called instead; a recorded violation fails every expectation."""
    with pytest.raises(ExpectationFailed, match=words):
        expectation(act)


def test_the_transcript_shows_both_directions() -> None:
    """Signals down, calls up."""
    source, subscriber = pair()
    subscriber.line.request(1)
    source.emit("a")
    assert "<- request(1)" in source.transcript()
    assert "-> on_next('a')" in source.transcript()
