"""A publisher of the draft as a modern publisher:
the points where the rules differ, and the guards on both sides.
"""

import gc
import weakref

import pytest
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    RuleViolation,
    UsageError,
    collect,
    empty,
    failed,
    from_iterable,
    generate,
    pipe,
)
from penstock import ops as operators
from penstock.api import IllegalDemand
from penstock.draft import as_draft, as_modern
from tests.core._foreign import CallRecorder, CountingPublisher, Recorder, ScriptedPublisher, boom


def _subscribed(calls, recorder=None, **options):
    """Return a recorder below a publisher of the draft that accepts, and the subscriber
    that the publisher got.
    """
    recorder = recorder or Recorder()
    publisher = ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls))
    as_modern(publisher, **options).subscribe(recorder)
    return recorder, publisher.subscriber


# --- on_subscribe


@pytest.mark.parametrize(
    ("signal", "value"), [("on_complete", ()), ("on_error", (ValueError("refused"),))]
)
def test_an_end_alone_gets_an_on_subscribe_first(signal, value) -> None:
    """Rule 1.9: completed, failed and refusing publishers of the draft signal their end alone."""
    recorder = Recorder()
    as_modern(ScriptedPublisher(lambda subscriber: getattr(subscriber, signal)(*value))).subscribe(
        recorder
    )
    assert [("on_subscribe",), (signal, *value)] == recorder.log
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    assert len(recorder.log) == 2


def test_early_demand_waits_for_the_publishers_on_subscribe() -> None:
    """A publisher of the draft may accept later. Demand until then is added up."""
    recorder, publisher, calls = (
        Recorder(on_subscribe=lambda: recorder.subscription.request(2)),
        ScriptedPublisher(),
        CallRecorder(),
    )
    as_modern(publisher).subscribe(recorder)
    recorder.subscription.request(3)
    assert recorder.log == [("on_subscribe",)]
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("request_more", 5)]


def test_a_request_inside_on_subscribe_goes_out_when_subscribe_has_returned() -> None:
    """D5.2: a subscriber of the draft does not call its subscription inside on_subscribe."""
    recorder, calls = (
        Recorder(on_subscribe=lambda: recorder.subscription.request(2)),
        CallRecorder(),
    )
    inside = []

    def subscribe(subscriber):
        subscriber.on_subscribe(calls)
        inside.extend(calls.log)

    as_modern(ScriptedPublisher(subscribe)).subscribe(recorder)
    assert inside == []
    assert calls.log == [("request_more", 2)]


def test_cancel_inside_on_subscribe_never_calls_the_publisher() -> None:
    """At that time the publisher has not given a subscription that could be cancelled."""
    recorder, publisher = (
        Recorder(on_subscribe=lambda: [recorder.subscription.cancel()]),
        ScriptedPublisher(),
    )
    as_modern(publisher).subscribe(recorder)
    assert publisher.subscriber is None


def test_a_subscription_after_the_cancel_is_cancelled() -> None:
    """D7.2: it is not needed any more, and nothing is requested of it."""
    recorder, publisher, calls = Recorder(), ScriptedPublisher(), CallRecorder()
    as_modern(publisher).subscribe(recorder)
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("cancel",)]


# --- calls that return normally


def test_calls_after_a_cancel_do_not_reach_the_publisher() -> None:
    """Rules 3.6, 3.7: in the draft they would raise (D2.1, D3.1)."""
    calls = CallRecorder()
    recorder, _ = _subscribed(calls)
    recorder.subscription.cancel()
    recorder.subscription.cancel()
    for n in (1, 0, -1):
        recorder.subscription.request(n)
    assert calls.log == [("cancel",)]
    assert recorder.log == [("on_subscribe",)]


@pytest.mark.parametrize(
    "end", [("on_complete",), ("on_error", ValueError("broken"))], ids=lambda end: end[0]
)
def test_calls_after_the_end_do_not_reach_the_publisher(end) -> None:
    """Rule 1.6, D6.3: after the end the subscription counts as cancelled, on both sides."""
    calls = CallRecorder()
    recorder, above = _subscribed(calls)
    getattr(above, end[0])(*end[1:])
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    assert calls.log == []
    assert [("on_subscribe",), end] == recorder.log


def test_a_request_that_waits_for_a_signal_is_dropped_by_the_end() -> None:
    """D6.3: requested inside the last element, it would reach the publisher after its
    on_complete.
    """

    def serve(_):
        above.on_next("last")
        above.on_complete()

    calls = CallRecorder(request_more=serve)
    recorder, above = _subscribed(
        calls, Recorder(on_next=lambda _: recorder.subscription.request(1))
    )
    recorder.subscription.request(1)
    assert calls.log == [("request_more", 1)]
    assert recorder.log == [("on_subscribe",), ("on_next", "last"), ("on_complete",)]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, None])
def test_an_illegal_demand_is_an_on_error_and_a_cancel_above(n) -> None:
    """Rule 3.9: the draft would raise to the caller (D2.4)."""
    calls = CallRecorder()
    recorder, _ = _subscribed(calls)
    recorder.subscription.request(n)
    assert isinstance(recorder.error, IllegalDemand)
    assert isinstance(recorder.error, ValueError)
    assert calls.log == [("cancel",)]


@pytest.mark.parametrize(
    ("requests", "asked"),
    [
        ((UNBOUNDED, 1), [UNBOUNDED]),
        ((2**62, 2**62, 5), [2**62, 2**62 - 1]),
        ((2**70,), [UNBOUNDED]),
        ((1, UNBOUNDED), [1, UNBOUNDED - 1]),
    ],
    ids=str,
)
def test_the_publisher_never_sees_an_overflow(requests, asked) -> None:
    """Rule 3.17, D2.3: from 2^63-1 in all on, the demand counts as unbounded
    and nothing more is requested.
    """
    calls = CallRecorder()
    recorder, above = _subscribed(calls)
    for n in requests:
        recorder.subscription.request(n)
    above.on_next("a")
    recorder.subscription.request(1)
    assert [("request_more", n) for n in asked] == calls.log
    assert recorder.log == [("on_subscribe",), ("on_next", "a")]


# --- nesting


def test_a_request_inside_on_next_waits_until_the_signal_has_returned() -> None:
    """Rules 3.2, 3.3: on_next is never inside on_next,
    although the publisher signals inside each request.
    """
    recorder = Recorder(on_next=lambda _: recorder.subscription.request(1))
    as_modern(CountingPublisher(5000)).subscribe(recorder)
    recorder.subscription.request(1)
    assert list(range(5000)) == recorder.elements
    assert recorder.log[-1] == ("on_complete",)
    assert recorder.deepest == 1


def test_requests_inside_a_signal_add_up() -> None:
    """Three requests inside one on_next become one of three elements."""
    calls = CallRecorder()
    recorder, above = _subscribed(
        calls, Recorder(on_next=lambda _: [recorder.subscription.request(1) for _ in range(3)])
    )
    recorder.subscription.request(1)
    above.on_next("a")
    assert calls.log == [("request_more", 1), ("request_more", 3)]


def test_a_cancel_inside_on_next_goes_up_at_once() -> None:
    """It cannot wait for the signal's end:
    a publisher that signals in a loop would go on to the end of the demand.
    """
    recorder = Recorder(
        on_next=lambda element: recorder.subscription.cancel() if element == 2 else None
    )
    as_modern(CountingPublisher(10**9)).subscribe(recorder)
    recorder.subscription.request(UNBOUNDED)
    assert recorder.elements == [0, 1, 2]


# --- foreign objects that break the rules


def test_a_second_on_subscribe_is_reported() -> None:
    """D7.1: it is an error, no method of the new subscription is called (D5.2),
    and the first stream goes on.
    """
    reported: list[Exception] = []
    calls, second = CallRecorder(), CallRecorder()
    recorder, above = _subscribed(calls, on_violation=reported.append)
    above.on_subscribe(second)
    recorder.subscription.request(1)
    above.on_next("a")
    assert [violation.rule for violation in reported] == ["D7.1"]
    assert second.log == []
    assert recorder.log == [("on_subscribe",), ("on_next", "a")]


def test_an_element_that_was_not_requested_ends_the_stream() -> None:
    """D4.1: the publisher is cancelled, the subscriber gets the error,
    and later signals do nothing.
    """
    calls = CallRecorder()
    recorder, above = _subscribed(calls)
    recorder.subscription.request(1)
    for element in "abc":
        above.on_next(element)
    above.on_complete()
    assert recorder.elements == ["a"]
    assert recorder.error.rule == "D4.1"
    assert calls.log == [("request_more", 1), ("cancel",)]


def test_a_publisher_that_raises_in_subscribe_has_failed() -> None:
    """Rule 1.9: subscribe returns normally, and on_error follows on_subscribe."""
    recorder = Recorder()
    as_modern(ScriptedPublisher(boom)).subscribe(recorder)
    assert recorder.error.rule == "D1.6"
    assert isinstance(recorder.error.__cause__, ValueError)
    assert len(recorder.log) == 2


def test_a_publisher_that_raises_in_request_more_has_failed() -> None:
    """Rule 3.16: request returns normally, on_error follows,
    and the publisher's subscription is cancelled.
    """
    calls = CallRecorder(request_more=boom)
    recorder, _ = _subscribed(calls)
    recorder.subscription.request(2)
    assert recorder.error.rule == "D2.2"
    assert calls.log == [("request_more", 2), ("cancel",)]


def test_a_publisher_that_raises_in_cancel_is_reported() -> None:
    """Rule 3.15: cancel returns normally, so only the hook can receive the error."""
    reported: list[Exception] = []
    recorder, _ = _subscribed(CallRecorder(cancel=boom), on_violation=reported.append)
    recorder.subscription.cancel()
    assert [violation.rule for violation in reported] == ["D3.2"]


def test_a_publisher_that_raises_after_the_end_is_reported() -> None:
    """Its subscribe() signalled an end and then raised.
    The subscriber has its end, so the hook gets the error.
    """
    reported: list[Exception] = []

    def subscribe(subscriber):
        subscriber.on_complete()
        boom()

    recorder = Recorder()
    as_modern(ScriptedPublisher(subscribe), on_violation=reported.append).subscribe(recorder)
    assert recorder.log == [("on_subscribe",), ("on_complete",)]
    assert [violation.rule for violation in reported] == ["D1.6"]


def test_a_subscriber_that_raises_is_cancelled_and_reported() -> None:
    """Rule 2.13: the publisher's subscription is cancelled, the hook is called, and the
    publisher does not see the exception.
    """
    reported: list[Exception] = []
    calls = CallRecorder()
    recorder, above = _subscribed(calls, Recorder(on_next=boom), on_violation=reported.append)
    recorder.subscription.request(1)
    above.on_next("a")
    assert [violation.rule for violation in reported if isinstance(violation, RuleViolation)] == [
        "2.13"
    ]
    assert calls.log == [("request_more", 1), ("cancel",)]


def test_an_interrupt_is_not_caught_and_leaves_the_adapter_usable() -> None:
    """After a KeyboardInterrupt in a signal, the next request still reaches the publisher."""
    calls = CallRecorder()

    def interrupt(_):
        raise KeyboardInterrupt

    recorder, above = _subscribed(calls, Recorder(on_next=interrupt))
    recorder.subscription.request(1)
    with pytest.raises(KeyboardInterrupt):
        above.on_next("a")
    recorder.subscription.request(1)
    assert calls.log == [("request_more", 1)] * 2


@pytest.mark.parametrize(
    "call",
    [("on_subscribe", None), ("on_next", None), ("on_error", None), ("on_error", "text")],
    ids=str,
)
def test_an_illegal_argument_of_a_signal_is_a_type_error(call) -> None:
    """Rule 2.13: only this raises to the publisher, and the stream does not change."""
    recorder, above = _subscribed(CallRecorder())
    with pytest.raises(TypeError):
        getattr(above, call[0])(call[1])
    assert recorder.log == [("on_subscribe",)]


def test_a_signal_after_the_cancel_does_nothing() -> None:
    """D7.5: elements may still be on their way."""
    recorder, above = _subscribed(CallRecorder())
    recorder.subscription.request(2)
    recorder.subscription.cancel()
    above.on_next("late")
    above.on_error(ValueError("late"))
    assert recorder.log == [("on_subscribe",)]


def test_a_subscriber_is_forgotten_after_its_cancel() -> None:
    """Rule 3.13, although the publisher keeps its own subscriber."""
    publisher = ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder()))

    def subscribed():
        recorder = Recorder()
        as_modern(publisher).subscribe(recorder)
        return weakref.ref(recorder), recorder.subscription

    gone, subscription = subscribed()
    subscription.cancel()
    gc.collect()
    assert gone() is None


# --- to the draft and back, and usage


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (from_iterable(range(600)), list(range(600))),
        (empty(), []),
        (generate(lambda: iter("abc")), list("abc")),
    ],
)
async def test_to_the_draft_and_back_is_the_same_stream(nursery, source, expected) -> None:
    """as_modern(as_draft(x)) gives the elements of x and its end, and can be piped."""
    back = as_modern(as_draft(source.publisher(nursery)))
    assert expected == await collect(back)
    assert expected[:2] == await collect(pipe(back, operators.take(2)))


async def test_to_the_draft_and_back_keeps_the_error_object(nursery) -> None:
    """Not a copy, and not wrapped."""
    error = KeyError("mine")
    recorder = Recorder()
    as_modern(as_draft(failed(error).publisher(nursery))).subscribe(recorder)
    await wait_all_tasks_blocked()
    assert recorder.error is error


def test_a_class_or_a_wrong_hook_is_refused() -> None:
    """A forgotten call, and a mistake that would otherwise show only with the first report."""
    with pytest.raises(UsageError, match="'type', which has no subscribe"):
        as_modern(CountingPublisher)  # type: ignore[type-var]  # a mistake on purpose
    with pytest.raises(UsageError, match="on_violation is 5"):
        as_modern(CountingPublisher(1), on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose


def test_an_object_that_is_not_a_publisher_is_refused() -> None:
    """The message names its type."""
    with pytest.raises(UsageError, match="'list', which has no subscribe"):
        as_modern([])


def test_an_object_that_is_not_a_subscriber_is_a_type_error() -> None:
    """Rule 1.9: on_error cannot be signalled."""
    with pytest.raises(TypeError):
        as_modern(ScriptedPublisher()).subscribe(None)


def test_the_repr_shows_the_state() -> None:
    """That of the adapter names the publisher, and that of its guard the demand."""
    _, above = _subscribed(CallRecorder())
    assert repr(above) == "<draft publisher guard live, due 0>"
    above.on_complete()
    assert repr(above) == "<draft publisher guard over, due 0>"
    assert repr(as_modern(ScriptedPublisher())).startswith("<modern form of <")
