"""The intake makes a foreign publisher keep the promises of a pipe, or ends its stream with the name of the rule that it broke."""

import gc
import weakref

import pytest

from penstock.api import UNBOUNDED, Publisher, RuleViolation
from penstock.core._publisher_guard import PublisherGuard
from tests.core._foreign import Calls, Counting, Heard, Script, boom
from tests.core._helpers import Unprintable, ViolationSink


class Taken:
    """A scripted publisher, the intake that listens to it, and the listener below."""

    def __init__(self, nursery=None, subscribe=lambda subscriber: None, **hooks) -> None:
        self.told = ViolationSink(nursery)
        self.heard = Heard(**hooks)
        self.publisher = Script(subscribe)
        PublisherGuard.between(self.publisher, self.heard, self.told.scope)

    @property
    def intake(self) -> PublisherGuard[int]:
        return self.publisher.subscriber

    @property
    def violation(self) -> RuleViolation:
        """The error below, which is a violation."""
        assert isinstance(self.heard.error, RuleViolation)
        return self.heard.error


def answered(**hooks) -> tuple[Taken, Calls]:
    """A publisher that has answered with a scripted subscription."""
    calls = Calls(**hooks)
    return Taken(subscribe=lambda subscriber: subscriber.on_subscribe(calls)), calls


# --- beginning


def test_the_pipe_is_greeted_before_the_publisher_is_asked() -> None:
    """A publisher that answers late, or never, holds nobody up."""
    order: list[str] = []
    taken = Taken(subscribe=lambda _: order.append("publisher"), on_subscribe=lambda: order.append("pipe"))
    assert order == ["pipe", "publisher"]
    assert taken.heard.log == [("on_subscribe",)]


def test_demand_from_before_the_answer_waits_for_it() -> None:
    """It adds up, and goes up in one request (rule 3.8)."""
    heard, publisher, calls = Heard(on_subscribe=lambda: heard.subscription.request(3)), Script(), Calls()
    PublisherGuard.between(publisher, heard, ViolationSink(None).scope)
    heard.subscription.request(4)
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("request", 7)]
    heard.subscription.request(5)
    assert calls.log == [("request", 7), ("request", 5)]


def test_cancelled_inside_on_subscribe_the_publisher_never_hears_of_us() -> None:
    """Nobody wants its elements."""
    heard = Heard(on_subscribe=lambda *_: heard.subscription.cancel())
    publisher = Script()
    PublisherGuard.between(publisher, heard, ViolationSink(None).scope)
    assert publisher.subscriber is None


def test_a_subscription_that_comes_too_late_is_cancelled() -> None:
    """Rule 2.5: what is not needed any more must not be left open."""
    taken, late = Taken(), Calls()
    taken.heard.subscription.cancel()
    taken.intake.on_subscribe(late)
    assert late.log == [("cancel",)]


def test_a_second_subscription_is_cancelled_and_the_first_goes_on() -> None:
    """Rule 2.5."""
    taken, first = answered()
    second = Calls()
    taken.intake.on_subscribe(second)
    taken.heard.subscription.request(1)
    taken.intake.on_next(7)
    assert (first.log, second.log, taken.heard.elements) == ([("request", 1)], [("cancel",)], [7])


def test_the_same_subscription_twice_ends_the_stream() -> None:
    """Rule 2.12: to cancel the second is to cancel the first, and somebody waits below."""
    taken, calls = answered()
    taken.intake.on_subscribe(calls)
    assert calls.log == [("cancel",)]
    assert taken.violation.rule == "2.12"


# --- demand


def test_demand_is_passed_on_as_it_comes() -> None:
    """Portion by portion; what was asked for may come."""
    taken, calls = answered()
    for n in (1, UNBOUNDED):
        taken.heard.subscription.request(n)
    for number in range(10):
        taken.intake.on_next(number)
    assert calls.log == [("request", 1), ("request", UNBOUNDED)]
    assert taken.heard.elements == list(range(10))


@pytest.mark.parametrize("asked", [0, 1, 5])
def test_an_element_beyond_demand_ends_the_stream(asked: int) -> None:
    """Rule 1.1: it is cancelled, not delivered, and named; what was asked for was delivered."""
    taken, calls = answered()
    if asked:
        taken.heard.subscription.request(asked)
    for number in range(asked + 1):
        taken.intake.on_next(number)
    assert taken.heard.elements == list(range(asked))
    assert calls.log[-1] == ("cancel",)
    assert taken.violation.rule == "1.1"
    assert str(taken.violation) == (
        "the publisher signalled an element that was not requested; that breaks rule 1.1, so its stream was cancelled. "
        "Whoever wrote the publisher must act: the test kit shows where"
    )


def test_an_element_before_on_subscribe_was_not_asked_for() -> None:
    """However much demand waits here: the publisher has not heard of any (rules 1.1, 1.9)."""
    taken = Taken()
    taken.heard.subscription.request(10)
    taken.intake.on_next(1)
    assert taken.violation.rule == "1.1"


def test_a_publisher_that_signals_inside_request_is_within_its_rights() -> None:
    """Rule 3.10: also when the request is the one that was waiting for it."""
    heard = Heard(on_subscribe=lambda: heard.subscription.request(5))
    PublisherGuard.between(Counting(3), heard, ViolationSink(None).scope)
    assert heard.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1), ("on_next", 2), ("on_complete",)]


# --- None


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_answered_to_the_publisher(signal: str) -> None:
    """Rule 2.13: a TypeError, and nothing below."""
    taken, _ = answered()
    taken.heard.subscription.request(1)
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(taken.intake, signal)(None)
    assert taken.heard.log == [("on_subscribe",)]


def test_what_is_no_exception_is_answered_to_the_publisher() -> None:
    """An error is an exception."""
    taken, _ = answered()
    with pytest.raises(TypeError, match=r"^on_error\('boom'\): an exception is needed \(rule 2\.13\)$"):
        taken.intake.on_error("boom")  # type: ignore[arg-type]  # a mistake on purpose


# --- ends


@pytest.mark.parametrize("end", ["on_error", "on_complete"])
@pytest.mark.parametrize("early", [True, False])
def test_after_the_end_the_publisher_is_not_heard(end: str, early: bool) -> None:
    """Rules 2.4, 2.8: one end, and no call on the subscription after it; an end may come before the answer."""
    taken, calls = (Taken(), Calls()) if early else answered()
    error = KeyError("publisher")
    arguments = (error,) if end == "on_error" else ()
    getattr(taken.intake, end)(*arguments)
    assert taken.heard.log[1:] == [(end, *arguments)]
    seen = list(taken.heard.log)
    taken.intake.on_next(1)
    taken.intake.on_complete()
    taken.intake.on_error(error)
    taken.heard.subscription.request(1)
    taken.heard.subscription.cancel()
    assert (taken.heard.log, calls.log, taken.told.violations) == (seen, [], [])


def test_after_the_cancel_the_publisher_is_not_heard() -> None:
    """What is still on its way is nothing (rule 2.8); the cancel goes up once (rule 3.7)."""
    taken, calls = answered()
    taken.heard.subscription.request(5)
    taken.heard.subscription.cancel()
    taken.heard.subscription.cancel()
    taken.heard.subscription.request(1)
    taken.intake.on_next(1)
    taken.intake.on_complete()
    taken.intake.on_error(KeyError())
    assert calls.log == [("request", 5), ("cancel",)]
    assert taken.heard.log == [("on_subscribe",)]


def test_a_publisher_that_answers_a_cancel_with_a_signal_finds_nobody() -> None:
    """It may, for a while (rule 2.8); what is below hears nothing."""
    taken, _ = answered(cancel=lambda *_: taken.intake.on_complete())
    taken.heard.subscription.cancel()
    assert taken.heard.log == [("on_subscribe",)]


# --- a publisher that raises


@pytest.mark.parametrize("answers_first", [True, False])
def test_subscribe_that_raises_breaks_rule_1_9(answers_first: bool) -> None:
    """The stream below fails with the cause, whatever came before; what it had answered is cancelled."""
    calls = Calls()

    def subscribe(subscriber) -> None:
        if answers_first:
            subscriber.on_subscribe(calls)
        boom()

    taken = Taken(subscribe=subscribe)
    assert taken.violation.rule == "1.9"
    assert "the publisher raised ValueError('boom') in subscribe()" in str(taken.violation)
    assert isinstance(taken.violation.__cause__, ValueError)
    assert calls.log == ([("cancel",)] if answers_first else [])


def test_subscribe_that_raises_after_its_end_is_told_to_the_scope() -> None:
    """Nobody listens below any more."""

    def subscribe(subscriber) -> None:
        subscriber.on_subscribe(Calls())
        subscriber.on_complete()
        boom()

    taken = Taken(subscribe=subscribe)
    assert taken.heard.log == [("on_subscribe",), ("on_complete",)]
    assert [violation.rule for violation in taken.told.violations] == ["1.9"]


def test_request_that_raises_breaks_rule_3_16() -> None:
    """It returns normally to the pipe, which hears of it as an error."""
    taken, calls = answered(request=boom)
    taken.heard.subscription.request(1)
    assert taken.violation.rule == "3.16"
    assert calls.log == [("request", 1), ("cancel",)]


def test_cancel_that_raises_breaks_rule_3_15() -> None:
    """It returns normally to the pipe; the scope hears of it, because nobody listens below."""
    taken, _ = answered(cancel=boom)
    taken.heard.subscription.cancel()
    assert taken.heard.log == [("on_subscribe",)]
    (violation,) = taken.told.violations
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "3.15"
    assert "the publisher raised ValueError('boom') in cancel()" in str(violation)


def test_both_that_raise_are_both_told() -> None:
    """The first one below, the second to the scope: neither hides the other."""
    taken, _ = answered(request=boom, cancel=boom)
    taken.heard.subscription.request(1)
    assert taken.violation.rule == "3.16"
    assert [violation.rule for violation in taken.told.violations] == ["3.15"]


def test_a_late_subscription_whose_cancel_raises_is_told() -> None:
    """Even then nothing escapes."""
    taken = Taken()
    taken.heard.subscription.cancel()
    taken.intake.on_subscribe(Calls(cancel=boom))
    assert [violation.rule for violation in taken.told.violations] == ["3.15"]


def test_an_exception_that_cannot_be_printed_is_told_all_the_same() -> None:
    """The message about a fault must not be a fault of its own."""

    def raising(*_: object) -> None:
        raise Unprintable

    taken, _ = answered(request=raising)
    taken.heard.subscription.request(1)
    assert "the publisher raised an unprintable 'Unprintable' in request()" in str(taken.violation)


@pytest.mark.parametrize("place", ["subscribe", "request", "cancel"])
def test_an_interrupt_goes_through(place: str) -> None:
    """Ctrl-C may strike inside somebody's publisher."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    if place == "subscribe":
        with pytest.raises(KeyboardInterrupt):
            Taken(subscribe=interrupted)
        return
    taken, _ = answered(**{place: interrupted})
    with pytest.raises(KeyboardInterrupt):
        getattr(taken.heard.subscription, place)(*([1] if place == "request" else []))
    assert taken.told.violations == []


# --- references


@pytest.mark.parametrize("how", ["cancel", "on_error", "on_complete", "violation"])
def test_a_publisher_that_keeps_the_intake_keeps_nobody_else(how: str) -> None:
    """Rule 3.13 from our side: a leak of theirs stays small."""
    heard = Heard()
    ref, publisher = weakref.ref(heard), Script(lambda subscriber: subscriber.on_subscribe(Calls()))
    PublisherGuard.between(publisher, heard, ViolationSink(None).scope)
    intake = publisher.subscriber
    if how == "violation":
        intake.on_next(1)
    elif how == "cancel":
        heard.subscription.cancel()
    else:
        getattr(intake, how)(*([KeyError()] if how == "on_error" else []))
    del heard
    gc.collect()
    assert ref() is None


def test_an_intake_says_what_is_outstanding() -> None:
    """Asked for here and not yet signalled, whether the publisher has heard of it or not."""
    taken = Taken()
    taken.heard.subscription.request(3)
    assert repr(taken.intake) == "<intake live, outstanding 3>"
    taken.intake.on_subscribe(Calls())
    taken.intake.on_next(1)
    assert repr(taken.intake) == "<intake live, outstanding 2>"
    taken.heard.subscription.cancel()
    assert repr(taken.intake) == "<intake over, outstanding 2>"


def test_a_script_is_a_publisher() -> None:
    """What these tests subscribe to is what users would write."""
    assert isinstance(Script(), Publisher)
