"""A callback subscriber calls plain functions and renews its demand in halves. An exception of a
function never reaches the publisher.
"""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, RuleViolation, Subscriber, UsageError, shown
from penstock.reader import DEFAULT_DEMAND
from penstock.streams import CallbackSubscriber
from penstock.testing import ManualPublisher
from tests.core._foreign import CallRecorder, boom
from tests.core._helpers import Token, Unprintable


class CallbackHarness:
    """A callback subscriber, and the calls that it made."""

    def __init__(self, demand: int = DEFAULT_DEMAND, **functions) -> None:
        self.log: list[tuple[object, ...]] = []
        self.reported: list[Exception] = []
        self.subscriber: CallbackSubscriber[object] = CallbackSubscriber(
            functions.get("next", lambda element: self.log.append(("next", element))),
            error=functions.get("error", lambda error: self.log.append(("error", error))),
            complete=functions.get("complete", lambda: self.log.append(("complete",))),
            demand=demand,
            on_violation=self.reported.append,
        )
        self.publisher = ManualPublisher()

    def open(self) -> "CallbackHarness":
        self.publisher.subscribe(self.subscriber)
        return self


def test_it_is_a_subscriber() -> None:
    """It has the methods of the interface, for any publisher."""
    assert isinstance(CallbackSubscriber(boom), Subscriber)


def test_elements_and_completion_are_called() -> None:
    """In order; after completion no method of the subscription is called."""
    harness = CallbackHarness().open()
    harness.publisher.emit(1, 2)
    harness.publisher.complete()
    assert harness.log == [("next", 1), ("next", 2), ("complete",)]
    harness.subscriber.cancel()
    harness.publisher.check()
    assert harness.publisher.subscription.cancels == 0


def test_a_failure_is_passed_as_the_same_exception_object() -> None:
    """No function is called after it."""
    harness, error = CallbackHarness().open(), KeyError("failed")
    harness.publisher.fail(error)
    harness.publisher.misbehave("on_next", 1)
    harness.publisher.misbehave("on_complete")
    harness.publisher.misbehave("on_error", error)
    assert harness.log == [("error", error)]


def test_only_the_first_function_is_needed() -> None:
    """Without functions for them, the ends just end the stream."""
    for end in ("complete", "fail"):
        seen: list[int] = []
        subscriber: CallbackSubscriber[int] = CallbackSubscriber(seen.append)
        publisher = ManualPublisher()
        publisher.subscribe(subscriber)
        publisher.emit(1)
        publisher.complete() if end == "complete" else publisher.fail(KeyError())
        assert seen == [1]
        assert repr(subscriber) == "<callback subscriber over>"


@given(demand=st.integers(min_value=1, max_value=40), count=st.integers(min_value=0, max_value=200))
def test_no_more_than_the_demand_is_ever_outstanding(demand: int, count: int) -> None:
    """It is requested at once, renewed in halves, and never gets stuck."""
    harness = CallbackHarness(demand).open()
    for number in range(count):
        harness.publisher.emit(number)
        assert 0 < harness.publisher.outstanding <= demand
    assert harness.log == [("next", number) for number in range(count)]
    renewals = harness.publisher.subscription.requests[1:]
    assert set(renewals) <= {max(1, demand // 2)}
    harness.publisher.check()


def test_an_unbounded_demand_is_requested_once() -> None:
    """As 2^63-1 (rule 3.17)."""
    harness = CallbackHarness(2**70).open()
    harness.publisher.emit(*range(1000))
    assert harness.publisher.subscription.requests == [UNBOUNDED]


def test_a_publisher_that_signals_inside_request_does_not_nest() -> None:
    """The request is the last act of a signal, and is made for half the demand."""
    depth = deepest = 0
    sent: list[int] = []

    class Eager:
        def request(self, n: int, /) -> None:
            nonlocal depth, deepest
            depth += 1
            deepest = max(deepest, depth)
            for _ in range(n):
                if len(sent) < 100:
                    sent.append(len(sent))
                    subscriber.on_next(sent[-1])
            depth -= 1

        def cancel(self) -> None:
            """Do nothing."""

    seen: list[int] = []
    subscriber: CallbackSubscriber[int] = CallbackSubscriber(seen.append, demand=64)
    subscriber.on_subscribe(Eager())
    assert seen == list(range(100))
    assert deepest <= 4


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, None, -(10**5000)], ids=shown)
def test_a_demand_is_at_least_one(wrong) -> None:
    """A callback subscriber has no request() for manual demand."""
    with pytest.raises(UsageError) as caught:
        CallbackSubscriber(boom, demand=wrong)
    assert (
        str(caught.value)
        == f"demand={shown(wrong)}; give how many elements may be under way at a time, at least 1"
    )


@pytest.mark.parametrize("wrong", [None, 5, "print"])
def test_the_functions_are_functions(wrong) -> None:
    """The error names the argument; the functions for the two ends may be left out."""
    with pytest.raises(
        UsageError, match=r"^`next` is .*; give a function of one argument, the element$"
    ):
        CallbackSubscriber(wrong)
    with pytest.raises(UsageError, match=r"^on_violation is "):
        CallbackSubscriber(boom, on_violation=wrong)
    if wrong is not None:
        with pytest.raises(
            UsageError, match=r"^`error` is .*; give a function of one argument, the exception$"
        ):
            CallbackSubscriber(boom, error=wrong)
        with pytest.raises(UsageError, match=r"^`complete` is .*; give a function of no argument$"):
            CallbackSubscriber(boom, complete=wrong)


async def _async(*_: object) -> None:
    """A function that needs an await."""


@pytest.mark.parametrize("name", ["next", "error", "complete"])
def test_an_async_function_is_refused(name: str) -> None:
    """It would never run, because a signal cannot await it."""
    functions = {"next": boom, name: _async}
    with pytest.raises(UsageError) as caught:
        CallbackSubscriber(functions.pop("next"), **functions)
    assert str(caught.value) == (
        f"`{name}` is _async, which is async; a signal cannot wait. For async work there is "
        "for_each()"
    )


@pytest.mark.parametrize("name", ["next", "error", "complete"])
def test_a_function_that_raises_is_reported_and_cancels(name: str) -> None:
    """Rule 2.13: the publisher gets a cancel and no exception,
    and no function is called any more.
    """
    harness = CallbackHarness(**{name: boom}).open()
    if name == "next":
        harness.publisher.emit(1)
        harness.publisher.misbehave("on_next", 2)
        assert harness.publisher.cancelled
    elif name == "error":
        harness.publisher.fail(KeyError())
    else:
        harness.publisher.complete()
    harness.publisher.misbehave("on_complete")
    assert harness.log == []
    (violation,) = harness.reported
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert str(violation) == (
        f"the `{name}` callback raised ValueError('boom'); its subscription was cancelled. "
        "Handle the error inside the callback, or use `async for`, where it is yours to catch"
    )
    assert isinstance(violation.__cause__, ValueError)
    harness.publisher.check()


def test_an_exception_that_cannot_be_printed_is_reported() -> None:
    """The message about an error must not raise another one."""

    def raising(_: object) -> None:
        raise Unprintable

    harness = CallbackHarness(next=raising).open()
    harness.publisher.emit(1)
    assert str(harness.reported[0]).startswith(
        "the `next` callback raised an unprintable 'Unprintable';"
    )


def test_an_interrupt_is_not_caught() -> None:
    """Ctrl-C is not a fault of the callback."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    harness = CallbackHarness(next=interrupted)
    harness.subscriber.on_subscribe(CallRecorder())
    with pytest.raises(KeyboardInterrupt):
        harness.subscriber.on_next(1)
    assert harness.reported == []


def test_a_callback_may_cancel() -> None:
    """No function is called after that, and nothing is requested."""
    harness = CallbackHarness(
        2, next=lambda element: (harness.log.append(("next", element)), harness.subscriber.cancel())
    ).open()
    harness.publisher.emit(1)
    harness.publisher.misbehave("on_next", 2)
    harness.publisher.misbehave("on_complete")
    assert harness.log == [("next", 1)]
    assert (harness.publisher.subscription.requests, harness.publisher.subscription.cancels) == (
        [2],
        1,
    )


def test_cancel_goes_up_once() -> None:
    """However often it is called.
    Before on_subscribe, it refuses the subscription that comes later.
    """
    harness = CallbackHarness().open()
    harness.subscriber.cancel()
    harness.subscriber.cancel()
    assert harness.publisher.subscription.cancels == 1
    early, late = CallbackHarness(), CallRecorder()
    early.subscriber.cancel()
    early.subscriber.on_subscribe(late)
    assert late.log == [("cancel",)]


def test_a_second_subscription_is_cancelled() -> None:
    """Rule 2.5; the first goes on. A subscription after the end is refused too."""
    harness, second, third = CallbackHarness().open(), CallRecorder(), CallRecorder()
    harness.subscriber.on_subscribe(second)
    harness.publisher.emit(1)
    harness.publisher.complete()
    harness.subscriber.on_subscribe(third)
    assert (second.log, third.log, harness.log) == (
        [("cancel",)],
        [("cancel",)],
        [("next", 1), ("complete",)],
    )


def test_the_same_subscription_twice_is_cancelled_and_reported() -> None:
    """Rule 2.12: cancelling the second cancels the first, so the hook must be called."""
    harness, calls = CallbackHarness(4), CallRecorder()
    harness.subscriber.on_subscribe(calls)
    harness.subscriber.on_subscribe(calls)
    harness.subscriber.on_next(1)
    assert (calls.log, harness.log) == ([("request", 4), ("cancel",)], [])
    assert [violation.rule for violation in harness.reported] == ["2.12"]


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_a_type_error_for_the_publisher(signal: str) -> None:
    """Rule 2.13: the handlers of the user are not called."""
    harness = CallbackHarness().open()
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(harness.subscriber, signal)(None)
    assert harness.log == []


def test_an_error_is_an_exception() -> None:
    """A text is refused."""
    with pytest.raises(
        TypeError, match=r"^on_error\('boom'\): an exception is needed \(rule 2\.13\)$"
    ):
        CallbackHarness().open().subscriber.on_error("boom")  # type: ignore[arg-type]  # a mistake on purpose


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_an_ended_subscriber_keeps_no_publisher(end: str) -> None:
    """A program may keep the subscriber."""
    subscriber: CallbackSubscriber[object] = CallbackSubscriber(
        lambda _: None, on_violation=lambda _: None
    )
    calls = CallRecorder()
    calls.token = Token()  # type: ignore[attr-defined]  # an attribute that only this test needs
    ref = weakref.ref(calls.token)  # type: ignore[attr-defined]  # the same
    subscriber.on_subscribe(calls)
    del calls
    if end == "complete":
        subscriber.on_complete()
    elif end == "fail":
        subscriber.on_error(KeyError())
    else:
        subscriber.cancel()
    gc.collect()
    assert ref() is None


def test_the_repr_shows_the_state() -> None:
    """A callback subscriber is new, live or over."""
    harness = CallbackHarness()
    assert repr(harness.subscriber) == "<callback subscriber new>"
    harness.open()
    assert repr(harness.subscriber) == "<callback subscriber live>"
    harness.publisher.complete()
    assert repr(harness.subscriber) == "<callback subscriber over>"
