"""A callback subscriber calls plain functions, asks anew in halves, and lets nothing that they raise reach the publisher."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, RuleViolation, Subscriber, UsageError, shown
from penstock.core import DEFAULT_DEMAND, CallbackSubscriber
from penstock.testing import ManualPublisher
from tests.core._foreign import Calls, boom
from tests.core._helpers import Token, Unprintable


class Called:
    """A callback subscriber, and what it called."""

    def __init__(self, demand: int = DEFAULT_DEMAND, **functions) -> None:
        self.log: list[tuple[object, ...]] = []
        self.told: list[Exception] = []
        self.subscriber: CallbackSubscriber[object] = CallbackSubscriber(
            functions.get("next", lambda element: self.log.append(("next", element))),
            error=functions.get("error", lambda error: self.log.append(("error", error))),
            complete=functions.get("complete", lambda: self.log.append(("complete",))),
            demand=demand,
            on_violation=self.told.append,
        )
        self.publisher = ManualPublisher()

    def open(self) -> "Called":
        self.publisher.subscribe(self.subscriber)
        return self


def test_it_is_a_subscriber() -> None:
    """Anybody's publisher may have it."""
    assert isinstance(CallbackSubscriber(boom), Subscriber)


def test_elements_and_completion_are_called() -> None:
    """In order; then it is over, and the subscription is not touched."""
    called = Called().open()
    called.publisher.emit(1, 2)
    called.publisher.complete()
    assert called.log == [("next", 1), ("next", 2), ("complete",)]
    called.subscriber.cancel()
    called.publisher.check()
    assert called.publisher.subscription.cancels == 0


def test_a_failure_is_called_with_the_very_exception() -> None:
    """And nothing after it."""
    called, error = Called().open(), KeyError("failed")
    called.publisher.fail(error)
    called.publisher.misbehave("on_next", 1)
    called.publisher.misbehave("on_complete")
    called.publisher.misbehave("on_error", error)
    assert called.log == [("error", error)]


def test_only_the_first_function_is_needed() -> None:
    """An end that nobody cares for is an end."""
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
    """Asked for at once, renewed in halves, never stuck."""
    called = Called(demand).open()
    for number in range(count):
        called.publisher.emit(number)
        assert 0 < called.publisher.outstanding <= demand
    assert called.log == [("next", number) for number in range(count)]
    renewals = called.publisher.subscription.requests[1:]
    assert set(renewals) <= {max(1, demand // 2)}
    called.publisher.check()


def test_an_unbounded_demand_is_asked_for_once() -> None:
    """Held at the top (rule 3.17)."""
    called = Called(2**70).open()
    called.publisher.emit(*range(1000))
    assert called.publisher.subscription.requests == [UNBOUNDED]


def test_a_publisher_that_signals_inside_request_does_not_nest() -> None:
    """The request is the last thing that happens in a signal, and there is one for half the demand."""
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
            """Nothing to stop."""

    seen: list[int] = []
    subscriber: CallbackSubscriber[int] = CallbackSubscriber(seen.append, demand=64)
    subscriber.on_subscribe(Eager())
    assert seen == list(range(100))
    assert deepest <= 4


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, None, -(10**5000)], ids=shown)
def test_a_demand_is_at_least_one(wrong) -> None:
    """There is nobody here to ask by hand."""
    with pytest.raises(UsageError) as caught:
        CallbackSubscriber(boom, demand=wrong)
    assert str(caught.value) == f"demand={shown(wrong)}; give how many elements may be under way at a time, at least 1"


@pytest.mark.parametrize("wrong", [None, 5, "print"])
def test_the_functions_are_functions(wrong) -> None:
    """Told at once, and which; the two at the end may be left out."""
    with pytest.raises(UsageError, match=r"^`next` is .*; give a function of one argument, the element$"):
        CallbackSubscriber(wrong)
    with pytest.raises(UsageError, match=r"^on_violation is "):
        CallbackSubscriber(boom, on_violation=wrong)
    if wrong is not None:
        with pytest.raises(UsageError, match=r"^`error` is .*; give a function of one argument, the exception$"):
            CallbackSubscriber(boom, error=wrong)
        with pytest.raises(UsageError, match=r"^`complete` is .*; give a function of no argument$"):
            CallbackSubscriber(boom, complete=wrong)


async def _async(*_: object) -> None:
    """A function that nobody would await."""


@pytest.mark.parametrize("name", ["next", "error", "complete"])
def test_an_async_function_is_refused(name: str) -> None:
    """It would never run, and nobody would hear of it but the collector."""
    functions = {"next": boom, name: _async}
    with pytest.raises(UsageError) as caught:
        CallbackSubscriber(functions.pop("next"), **functions)
    assert str(caught.value) == f"`{name}` is _async, which is async; a signal cannot wait. For async work there is for_each()"


@pytest.mark.parametrize("name", ["next", "error", "complete"])
def test_what_a_function_raises_is_told_and_never_reaches_the_publisher(name: str) -> None:
    """Rule 2.13: the subscription is cancelled where it lives, and nothing is called any more."""
    called = Called(**{name: boom}).open()
    if name == "next":
        called.publisher.emit(1)
        called.publisher.misbehave("on_next", 2)
        assert called.publisher.cancelled
    elif name == "error":
        called.publisher.fail(KeyError())
    else:
        called.publisher.complete()
    called.publisher.misbehave("on_complete")
    assert called.log == []
    (violation,) = called.told
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert str(violation) == (
        f"the `{name}` callback raised ValueError('boom'); its subscription was cancelled. "
        "Handle the error inside the callback, or use `async for`, where it is yours to catch"
    )
    assert isinstance(violation.__cause__, ValueError)
    called.publisher.check()


def test_an_exception_that_cannot_be_printed_is_told_all_the_same() -> None:
    """The message about a fault must not be a fault of its own."""

    def raising(_: object) -> None:
        raise Unprintable

    called = Called(next=raising).open()
    called.publisher.emit(1)
    assert str(called.told[0]).startswith("the `next` callback raised an unprintable 'Unprintable';")


def test_an_interrupt_goes_through() -> None:
    """Ctrl-C is no fault of the callback's."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    called = Called(next=interrupted)
    called.subscriber.on_subscribe(Calls())
    with pytest.raises(KeyboardInterrupt):
        called.subscriber.on_next(1)
    assert called.told == []


def test_a_callback_may_cancel() -> None:
    """Nothing is called after that, and nothing asked for."""
    called = Called(2, next=lambda element: (called.log.append(("next", element)), called.subscriber.cancel())).open()
    called.publisher.emit(1)
    called.publisher.misbehave("on_next", 2)
    called.publisher.misbehave("on_complete")
    assert called.log == [("next", 1)]
    assert (called.publisher.subscription.requests, called.publisher.subscription.cancels) == ([2], 1)


def test_cancel_goes_up_once() -> None:
    """However often it is called; before there is a subscription it refuses the one that comes."""
    called = Called().open()
    called.subscriber.cancel()
    called.subscriber.cancel()
    assert called.publisher.subscription.cancels == 1
    early, late = Called(), Calls()
    early.subscriber.cancel()
    early.subscriber.on_subscribe(late)
    assert late.log == [("cancel",)]


def test_a_second_subscription_is_cancelled() -> None:
    """Rule 2.5; the first goes on, and one that comes after the end is refused too."""
    called, second, third = Called().open(), Calls(), Calls()
    called.subscriber.on_subscribe(second)
    called.publisher.emit(1)
    called.publisher.complete()
    called.subscriber.on_subscribe(third)
    assert (second.log, third.log, called.log) == ([("cancel",)], [("cancel",)], [("next", 1), ("complete",)])


def test_the_same_subscription_twice_is_cancelled_and_told() -> None:
    """Rule 2.12: to cancel the second is to cancel the first; nobody else would say so."""
    called, calls = Called(4), Calls()
    called.subscriber.on_subscribe(calls)
    called.subscriber.on_subscribe(calls)
    called.subscriber.on_next(1)
    assert (calls.log, called.log) == ([("request", 4), ("cancel",)], [])
    assert [violation.rule for violation in called.told] == ["2.12"]


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_a_type_error_for_the_publisher(signal: str) -> None:
    """Rule 2.13."""
    called = Called().open()
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(called.subscriber, signal)(None)
    assert called.log == []


def test_an_error_is_an_exception() -> None:
    """Not its text."""
    with pytest.raises(TypeError, match=r"^on_error\('boom'\): an exception is needed \(rule 2\.13\)$"):
        Called().open().subscriber.on_error("boom")  # type: ignore[arg-type]  # a mistake on purpose


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_what_is_over_keeps_no_publisher(end: str) -> None:
    """The subscriber may be kept by whoever likes."""
    subscriber: CallbackSubscriber[object] = CallbackSubscriber(lambda _: None, on_violation=lambda _: None)
    calls = Calls()
    calls.token = Token()  # type: ignore[attr-defined]  # something that can be watched
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


def test_it_says_what_state_it_is_in() -> None:
    """New, live, over."""
    called = Called()
    assert repr(called.subscriber) == "<callback subscriber new>"
    called.open()
    assert repr(called.subscriber) == "<callback subscriber live>"
    called.publisher.complete()
    assert repr(called.subscriber) == "<callback subscriber over>"
