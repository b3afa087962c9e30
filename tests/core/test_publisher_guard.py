"""The guard makes a foreign publisher keep the promises of a pipe, or ends its stream with the
number of the rule that it broke.
"""

import gc
import weakref
from math import inf
from typing import Any

import pytest

from penstock.api import UNBOUNDED, Publisher, RuleViolation
from penstock.core._publisher_guard import PublisherGuard
from tests.core._foreign import CallRecorder, CountingPublisher, Recorder, ScriptedPublisher, boom
from tests.core._helpers import Reports, Unprintable


class GuardHarness:
    """A scripted publisher, the guard that subscribes to it, and the recording subscriber below."""

    def __init__(self, nursery=None, subscribe=lambda subscriber: None, **hooks) -> None:
        self.reports = Reports(nursery)
        self.recorder = Recorder(**hooks)
        self.publisher = ScriptedPublisher(subscribe)
        PublisherGuard.insert_between(
            self.publisher, self.recorder, self.reports.scope.on_violation
        )

    @property
    def guard(self) -> PublisherGuard[int]:
        return self.publisher.subscriber

    @property
    def violation(self) -> RuleViolation:
        """The error that was signalled, which is a violation."""
        assert isinstance(self.recorder.error, RuleViolation)
        return self.recorder.error


def answered(**hooks) -> tuple[GuardHarness, CallRecorder]:
    """Return a harness whose publisher has called on_subscribe, and the subscription
    that it gave.
    """
    calls = CallRecorder(**hooks)
    return GuardHarness(subscribe=lambda subscriber: subscriber.on_subscribe(calls)), calls


# --- the start


def test_on_subscribe_comes_before_the_publisher_is_subscribed_to() -> None:
    """A publisher that answers late, or never, does not delay the pipe."""
    order: list[str] = []
    harness = GuardHarness(
        subscribe=lambda _: order.append("publisher"), on_subscribe=lambda: order.append("pipe")
    )
    assert order == ["pipe", "publisher"]
    assert harness.recorder.log == [("on_subscribe",)]


def test_early_demand_waits_for_the_publishers_on_subscribe() -> None:
    """It adds up, and goes up in one request (rule 3.8)."""
    recorder, publisher, calls = (
        Recorder(on_subscribe=lambda: recorder.subscription.request(3)),
        ScriptedPublisher(),
        CallRecorder(),
    )
    PublisherGuard.insert_between(publisher, recorder, Reports(None).scope.on_violation)
    recorder.subscription.request(4)
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("request", 7)]
    recorder.subscription.request(5)
    assert calls.log == [("request", 7), ("request", 5)]


def test_cancel_inside_on_subscribe_never_calls_the_publisher() -> None:
    """Its elements are not wanted."""
    recorder = Recorder(on_subscribe=lambda *_: recorder.subscription.cancel())
    publisher = ScriptedPublisher()
    PublisherGuard.insert_between(publisher, recorder, Reports(None).scope.on_violation)
    assert publisher.subscriber is None


def test_a_subscription_after_the_cancel_is_cancelled() -> None:
    """Rule 2.5: it is not needed any more, and must not be left open."""
    harness, late = GuardHarness(), CallRecorder()
    harness.recorder.subscription.cancel()
    harness.guard.on_subscribe(late)
    assert late.log == [("cancel",)]


def test_a_second_subscription_is_cancelled_and_the_first_goes_on() -> None:
    """Rule 2.5: a subscriber has one subscription."""
    harness, first = answered()
    second = CallRecorder()
    harness.guard.on_subscribe(second)
    harness.recorder.subscription.request(1)
    harness.guard.on_next(7)
    assert (first.log, second.log, harness.recorder.elements) == (
        [("request", 1)],
        [("cancel",)],
        [7],
    )


def test_the_same_subscription_twice_ends_the_stream() -> None:
    """Rule 2.12: cancelling the second cancels the first,
    and the subscriber below must learn that.
    """
    harness, calls = answered()
    harness.guard.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    assert harness.violation.rule == "2.12"


# --- demand


def test_demand_is_passed_on_call_by_call() -> None:
    """The requested elements are passed down."""
    harness, calls = answered()
    for n in (1, UNBOUNDED):
        harness.recorder.subscription.request(n)
    for number in range(10):
        harness.guard.on_next(number)
    assert calls.log == [("request", 1), ("request", UNBOUNDED)]
    assert harness.recorder.elements == list(range(10))


@pytest.mark.parametrize("asked", [0, 1, 5])
def test_an_element_beyond_demand_ends_the_stream(asked: int) -> None:
    """Rule 1.1: the element is dropped, the publisher is cancelled, and the error names the
    rule. Requested elements were delivered.
    """
    harness, calls = answered()
    if asked:
        harness.recorder.subscription.request(asked)
    for number in range(asked + 1):
        harness.guard.on_next(number)
    assert harness.recorder.elements == list(range(asked))
    assert calls.log[-1] == ("cancel",)
    assert harness.violation.rule == "1.1"
    assert str(harness.violation) == (
        "the publisher signalled an element that was not requested; that breaks rule 1.1, so its "
        "stream was cancelled. The author of the publisher must act: the test kit shows where"
    )


def test_an_element_before_on_subscribe_ends_the_stream() -> None:
    """Demand that waits in the guard does not count:
    the publisher has not got any yet (rules 1.1, 1.9).
    """
    harness = GuardHarness()
    harness.recorder.subscription.request(10)
    harness.guard.on_next(1)
    assert harness.violation.rule == "1.1"


def test_a_publisher_may_signal_inside_request() -> None:
    """Rule 3.10; also inside the request for early demand."""
    recorder = Recorder(on_subscribe=lambda: recorder.subscription.request(5))
    PublisherGuard.insert_between(CountingPublisher(3), recorder, Reports(None).scope.on_violation)
    assert recorder.log == [
        ("on_subscribe",),
        ("on_next", 0),
        ("on_next", 1),
        ("on_next", 2),
        ("on_complete",),
    ]


# --- None


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_a_type_error_for_the_publisher(signal: str) -> None:
    """Rule 2.13: the subscriber below gets no signal."""
    harness, _ = answered()
    harness.recorder.subscription.request(1)
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(harness.guard, signal)(None)
    assert harness.recorder.log == [("on_subscribe",)]


def test_an_error_that_is_not_an_exception_is_a_type_error() -> None:
    """The publisher gets it."""
    harness, _ = answered()
    with pytest.raises(
        TypeError, match=r"^on_error\('boom'\): an exception is needed \(rule 2\.13\)$"
    ):
        harness.guard.on_error("boom")  # type: ignore[arg-type]  # a mistake on purpose


# --- ends


@pytest.mark.parametrize("end", ["on_error", "on_complete"])
@pytest.mark.parametrize("early", [True, False])
def test_signals_after_the_end_do_nothing(end: str, early: bool) -> None:
    """Rules 2.4, 2.8: one end, and no call on the subscription after it.
    An end may come before on_subscribe.
    """
    harness, calls = (GuardHarness(), CallRecorder()) if early else answered()
    error = KeyError("publisher")
    arguments = (error,) if end == "on_error" else ()
    getattr(harness.guard, end)(*arguments)
    assert harness.recorder.log[1:] == [(end, *arguments)]
    seen = list(harness.recorder.log)
    harness.guard.on_next(1)
    harness.guard.on_complete()
    harness.guard.on_error(error)
    harness.recorder.subscription.request(1)
    harness.recorder.subscription.cancel()
    assert (harness.recorder.log, calls.log, harness.reports.violations) == (seen, [], [])


def test_signals_after_the_cancel_do_nothing() -> None:
    """Rule 2.8; the cancel goes up once (rule 3.7)."""
    harness, calls = answered()
    harness.recorder.subscription.request(5)
    harness.recorder.subscription.cancel()
    harness.recorder.subscription.cancel()
    harness.recorder.subscription.request(1)
    harness.guard.on_next(1)
    harness.guard.on_complete()
    harness.guard.on_error(KeyError())
    assert calls.log == [("request", 5), ("cancel",)]
    assert harness.recorder.log == [("on_subscribe",)]


def test_a_signal_inside_the_cancel_does_nothing() -> None:
    """Rule 2.8 permits the publisher to signal then; the subscriber below gets nothing."""
    harness, _ = answered(cancel=lambda *_: harness.guard.on_complete())
    harness.recorder.subscription.cancel()
    assert harness.recorder.log == [("on_subscribe",)]


# --- a publisher that raises


@pytest.mark.parametrize("answers_first", [True, False])
def test_subscribe_that_raises_breaks_rule_1_9(answers_first: bool) -> None:
    """The stream fails with the cause, and a subscription
    that the publisher gave before is cancelled.
    """
    calls = CallRecorder()

    def subscribe(subscriber) -> None:
        if answers_first:
            subscriber.on_subscribe(calls)
        boom()

    harness = GuardHarness(subscribe=subscribe)
    assert harness.violation.rule == "1.9"
    assert "the publisher raised ValueError('boom') in subscribe()" in str(harness.violation)
    assert isinstance(harness.violation.__cause__, ValueError)
    assert calls.log == ([("cancel",)] if answers_first else [])


def test_subscribe_that_raises_after_its_end_is_reported() -> None:
    """To the scope, because the subscriber below has already got its end."""

    def subscribe(subscriber) -> None:
        subscriber.on_subscribe(CallRecorder())
        subscriber.on_complete()
        boom()

    harness = GuardHarness(subscribe=subscribe)
    assert harness.recorder.log == [("on_subscribe",), ("on_complete",)]
    assert [violation.rule for violation in harness.reports.violations] == ["1.9"]


def test_request_that_raises_breaks_rule_3_16() -> None:
    """It returns normally to the pipe, which gets an error signal."""
    harness, calls = answered(request=boom)
    harness.recorder.subscription.request(1)
    assert harness.violation.rule == "3.16"
    assert calls.log == [("request", 1), ("cancel",)]


def test_cancel_that_raises_breaks_rule_3_15() -> None:
    """It returns normally to the pipe.
    The scope gets the report, because the subscriber below is gone.
    """
    harness, _ = answered(cancel=boom)
    harness.recorder.subscription.cancel()
    assert harness.recorder.log == [("on_subscribe",)]
    (violation,) = harness.reports.violations
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "3.15"
    assert "the publisher raised ValueError('boom') in cancel()" in str(violation)


def test_a_request_and_a_cancel_that_raise_are_both_reported() -> None:
    """The first is signalled, the second goes to the scope."""
    harness, _ = answered(request=boom, cancel=boom)
    harness.recorder.subscription.request(1)
    assert harness.violation.rule == "3.16"
    assert [violation.rule for violation in harness.reports.violations] == ["3.15"]


def test_a_late_subscription_whose_cancel_raises_is_reported() -> None:
    """The exception does not reach the publisher."""
    harness = GuardHarness()
    harness.recorder.subscription.cancel()
    harness.guard.on_subscribe(CallRecorder(cancel=boom))
    assert [violation.rule for violation in harness.reports.violations] == ["3.15"]


def test_an_exception_that_cannot_be_printed_is_signalled() -> None:
    """The message about an error must not raise another one."""

    def raising(*_: object) -> None:
        raise Unprintable

    harness, _ = answered(request=raising)
    harness.recorder.subscription.request(1)
    assert "the publisher raised an unprintable 'Unprintable' in request()" in str(
        harness.violation
    )


@pytest.mark.parametrize("place", ["subscribe", "request", "cancel"])
def test_an_interrupt_is_not_caught(place: str) -> None:
    """Ctrl-C may strike inside a foreign publisher."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    if place == "subscribe":
        with pytest.raises(KeyboardInterrupt):
            GuardHarness(subscribe=interrupted)
        return
    harness, _ = answered(**{place: interrupted})
    with pytest.raises(KeyboardInterrupt):
        getattr(harness.recorder.subscription, place)(*([1] if place == "request" else []))
    assert harness.reports.violations == []


# --- references


@pytest.mark.parametrize("how", ["cancel", "on_error", "on_complete", "violation"])
def test_a_publisher_that_keeps_the_guard_keeps_no_subscriber(how: str) -> None:
    """Rule 3.13: a leak in the publisher stays small."""
    recorder = Recorder()
    ref, publisher = (
        weakref.ref(recorder),
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder())),
    )
    PublisherGuard.insert_between(publisher, recorder, Reports(None).scope.on_violation)
    guard = publisher.subscriber
    if how == "violation":
        guard.on_next(1)
    elif how == "cancel":
        recorder.subscription.cancel()
    else:
        getattr(guard, how)(*([KeyError()] if how == "on_error" else []))
    del recorder
    gc.collect()
    assert ref() is None


def test_the_repr_shows_the_outstanding_demand() -> None:
    """Requested and not yet signalled, whether it has been passed to the publisher or not."""
    harness = GuardHarness()
    harness.recorder.subscription.request(3)
    assert repr(harness.guard) == "<publisher guard live, outstanding 3>"
    harness.guard.on_subscribe(CallRecorder())
    harness.guard.on_next(1)
    assert repr(harness.guard) == "<publisher guard live, outstanding 2>"
    harness.recorder.subscription.cancel()
    assert repr(harness.guard) == "<publisher guard over, outstanding 2>"


def test_a_scripted_publisher_is_a_publisher() -> None:
    """The tests subscribe to an object with the methods of the interface."""
    assert isinstance(ScriptedPublisher(), Publisher)


def test_a_publisher_of_many_reads_how_long_the_pipe_may_hold_it_up() -> None:
    """The guard is the subscriber that it sees."""
    seen: list[float] = []

    class Many:
        def subscribe(self, subscriber: Any, /) -> None:
            seen.append(subscriber.max_hold_up)

    PublisherGuard.insert_between(Many(), Recorder(), boom, max_hold_up=5.0)
    PublisherGuard.insert_between(Many(), Recorder(), boom)
    assert seen == [5.0, inf]
