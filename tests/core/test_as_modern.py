"""Today's view of a publisher of the draft: the points at which the two differ, and what holds the foreign sides apart."""

import gc
import weakref

import pytest
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    IllegalDemand,
    RuleViolation,
    UsageError,
    as_draft,
    as_modern,
    collect,
    empty,
    failed,
    from_iterable,
    generate,
    pipe,
)
from penstock import ops as operators
from tests.core._foreign import Calls, Counting, Heard, Script, boom


def _subscribed(calls, heard=None, **options):
    """Return a listener below a publisher of the draft that accepts, and the subscriber that this publisher got."""
    heard = heard or Heard()
    publisher = Script(lambda subscriber: subscriber.on_subscribe(calls))
    as_modern(publisher, **options).subscribe(heard)
    return heard, publisher.subscriber


# --- on_subscribe always


@pytest.mark.parametrize(("signal", "value"), [("on_complete", ()), ("on_error", (ValueError("refused"),))])
def test_an_end_that_came_alone_gets_its_on_subscribe_first(signal, value) -> None:
    """Rule 1.9: completed, failed and refusing publishers of the draft signal their end alone; below it never comes first."""
    heard = Heard()
    as_modern(Script(lambda subscriber: getattr(subscriber, signal)(*value))).subscribe(heard)
    assert [("on_subscribe",), (signal, *value)] == heard.log
    heard.subscription.request(1)
    heard.subscription.cancel()
    assert len(heard.log) == 2


def test_demand_from_before_the_answer_waits_for_it() -> None:
    """A publisher of the draft may accept later; what was requested meanwhile is asked of it then, added up."""
    heard, publisher, calls = Heard(on_subscribe=lambda: heard.subscription.request(2)), Script(), Calls()
    as_modern(publisher).subscribe(heard)
    heard.subscription.request(3)
    assert heard.log == [("on_subscribe",)]
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("request_more", 5)]


def test_a_request_inside_on_subscribe_goes_out_when_subscribe_has_returned() -> None:
    """D5.2: a subscriber of the draft does not call its subscription inside on_subscribe."""
    heard, calls = Heard(on_subscribe=lambda: heard.subscription.request(2)), Calls()
    inside = []

    def subscribe(subscriber):
        subscriber.on_subscribe(calls)
        inside.extend(calls.log)

    as_modern(Script(subscribe)).subscribe(heard)
    assert inside == []
    assert calls.log == [("request_more", 2)]


def test_cancelled_inside_on_subscribe_the_publisher_never_hears_of_it() -> None:
    """There is nothing to cancel above, so nothing is asked for."""
    heard, publisher = Heard(on_subscribe=lambda: [heard.subscription.cancel()]), Script()
    as_modern(publisher).subscribe(heard)
    assert publisher.subscriber is None


def test_cancelled_before_the_answer_the_late_subscription_is_cancelled() -> None:
    """D7.2: nobody needs it any more; its demand is never asked for."""
    heard, publisher, calls = Heard(), Script(), Calls()
    as_modern(publisher).subscribe(heard)
    heard.subscription.request(1)
    heard.subscription.cancel()
    publisher.subscriber.on_subscribe(calls)
    assert calls.log == [("cancel",)]


# --- calls that return normally


def test_calls_after_a_cancel_do_not_reach_the_publisher() -> None:
    """Rules 3.6, 3.7: above, the draft would raise (D2.1, D3.1)."""
    calls = Calls()
    heard, _ = _subscribed(calls)
    heard.subscription.cancel()
    heard.subscription.cancel()
    for n in (1, 0, -1):
        heard.subscription.request(n)
    assert calls.log == [("cancel",)]
    assert heard.log == [("on_subscribe",)]


@pytest.mark.parametrize("end", [("on_complete",), ("on_error", ValueError("broken"))], ids=lambda end: end[0])
def test_calls_after_the_end_do_not_reach_the_publisher(end) -> None:
    """Rule 1.6, D6.3: after the end the subscription counts as cancelled, on both sides."""
    calls = Calls()
    heard, above = _subscribed(calls)
    getattr(above, end[0])(*end[1:])
    heard.subscription.request(1)
    heard.subscription.cancel()
    assert calls.log == []
    assert [("on_subscribe",), end] == heard.log


def test_a_request_that_waits_for_a_signal_is_dropped_by_the_end() -> None:
    """D6.3: requested inside the last element, it would reach the publisher after its on_complete."""

    def serve(_):
        above.on_next("last")
        above.on_complete()

    calls = Calls(request_more=serve)
    heard, above = _subscribed(calls, Heard(on_next=lambda _: heard.subscription.request(1)))
    heard.subscription.request(1)
    assert calls.log == [("request_more", 1)]
    assert heard.log == [("on_subscribe",), ("on_next", "last"), ("on_complete",)]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, None])
def test_an_illegal_demand_is_an_on_error_and_a_cancel_above(n) -> None:
    """Rule 3.9: where the draft raises to the caller (D2.4), today's subscriber gets a signal."""
    calls = Calls()
    heard, _ = _subscribed(calls)
    heard.subscription.request(n)
    assert isinstance(heard.error, IllegalDemand)
    assert isinstance(heard.error, ValueError)
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
    """Rule 3.17, D2.3: from 2^63-1 in all on, the demand counts as without bound and nothing more is asked."""
    calls = Calls()
    heard, above = _subscribed(calls)
    for n in requests:
        heard.subscription.request(n)
    above.on_next("a")
    heard.subscription.request(1)
    assert [("request_more", n) for n in asked] == calls.log
    assert heard.log == [("on_subscribe",), ("on_next", "a")]


# --- nesting


def test_a_request_inside_on_next_waits_until_the_signal_has_returned() -> None:
    """Rules 3.2, 3.3: on_next is never inside on_next, over a publisher that signals inside each request without any guard."""
    heard = Heard(on_next=lambda _: heard.subscription.request(1))
    as_modern(Counting(5000)).subscribe(heard)
    heard.subscription.request(1)
    assert list(range(5000)) == heard.elements
    assert heard.log[-1] == ("on_complete",)
    assert heard.deepest == 1


def test_requests_inside_a_signal_add_up() -> None:
    """Three requests inside one on_next are one of three elements above."""
    calls = Calls()
    heard, above = _subscribed(calls, Heard(on_next=lambda _: [heard.subscription.request(1) for _ in range(3)]))
    heard.subscription.request(1)
    above.on_next("a")
    assert calls.log == [("request_more", 1), ("request_more", 3)]


def test_a_cancel_inside_on_next_goes_up_at_once() -> None:
    """It cannot wait for the signal's end: a publisher that signals what was requested in one go would go on to the end of the demand."""
    heard = Heard(on_next=lambda element: heard.subscription.cancel() if element == 2 else None)
    as_modern(Counting(10**9)).subscribe(heard)
    heard.subscription.request(UNBOUNDED)
    assert heard.elements == [0, 1, 2]


# --- foreign objects that break the rules


def test_a_second_on_subscribe_is_told_and_left_alone() -> None:
    """D7.1: it is an error, the new subscription is not touched (D5.2), and the first stream lives on."""
    told: list[Exception] = []
    calls, second = Calls(), Calls()
    heard, above = _subscribed(calls, on_violation=told.append)
    above.on_subscribe(second)
    heard.subscription.request(1)
    above.on_next("a")
    assert [violation.rule for violation in told] == ["D7.1"]
    assert second.log == []
    assert heard.log == [("on_subscribe",), ("on_next", "a")]


def test_an_element_that_was_not_requested_ends_the_stream() -> None:
    """D4.1: cancelled above, told below, and what comes after it is nothing."""
    calls = Calls()
    heard, above = _subscribed(calls)
    heard.subscription.request(1)
    for element in "abc":
        above.on_next(element)
    above.on_complete()
    assert heard.elements == ["a"]
    assert heard.error.rule == "D4.1"
    assert calls.log == [("request_more", 1), ("cancel",)]


def test_a_publisher_that_raises_in_subscribe_has_failed() -> None:
    """Rule 1.9 below: subscribe returns normally, and on_error follows on_subscribe."""
    heard = Heard()
    as_modern(Script(boom)).subscribe(heard)
    assert heard.error.rule == "D1.6"
    assert isinstance(heard.error.__cause__, ValueError)
    assert len(heard.log) == 2


def test_a_publisher_that_raises_in_request_more_has_failed() -> None:
    """Rule 3.16 below: request returns normally, and on_error follows; above, the subscription is cancelled."""
    calls = Calls(request_more=boom)
    heard, _ = _subscribed(calls)
    heard.subscription.request(2)
    assert heard.error.rule == "D2.2"
    assert calls.log == [("request_more", 2), ("cancel",)]


def test_a_publisher_that_raises_in_cancel_is_told_of() -> None:
    """Rule 3.15 below: cancel returns normally; only the hook is left to tell."""
    told: list[Exception] = []
    heard, _ = _subscribed(Calls(cancel=boom), on_violation=told.append)
    heard.subscription.cancel()
    assert [violation.rule for violation in told] == ["D3.2"]


def test_a_publisher_that_raises_after_the_end_is_told_of() -> None:
    """Its subscribe() signalled an end and then raised: the subscriber has its end, so the hook hears of the rest."""
    told: list[Exception] = []

    def subscribe(subscriber):
        subscriber.on_complete()
        boom()

    heard = Heard()
    as_modern(Script(subscribe), on_violation=told.append).subscribe(heard)
    assert heard.log == [("on_subscribe",), ("on_complete",)]
    assert [violation.rule for violation in told] == ["D1.6"]


def test_a_subscriber_that_raises_is_cut_off_and_told_of() -> None:
    """Rule 2.13: above, the subscription is cancelled; the hook is told; the publisher does not see the exception."""
    told: list[Exception] = []
    calls = Calls()
    heard, above = _subscribed(calls, Heard(on_next=boom), on_violation=told.append)
    heard.subscription.request(1)
    above.on_next("a")
    assert [violation.rule for violation in told if isinstance(violation, RuleViolation)] == ["2.13"]
    assert calls.log == [("request_more", 1), ("cancel",)]


def test_what_is_no_failure_of_ours_passes_and_leaves_the_adapter_whole() -> None:
    """A KeyboardInterrupt out of a signal goes its way; the next request still reaches the publisher."""
    calls = Calls()

    def interrupt(_):
        raise KeyboardInterrupt

    heard, above = _subscribed(calls, Heard(on_next=interrupt))
    heard.subscription.request(1)
    with pytest.raises(KeyboardInterrupt):
        above.on_next("a")
    heard.subscription.request(1)
    assert calls.log == [("request_more", 1)] * 2


@pytest.mark.parametrize("call", [("on_subscribe", None), ("on_next", None), ("on_error", None), ("on_error", "text")], ids=str)
def test_what_no_signal_may_carry_is_a_type_error_to_the_publisher(call) -> None:
    """Rule 2.13: only this is answered to the caller itself, and the stream is as it was."""
    heard, above = _subscribed(Calls())
    with pytest.raises(TypeError):
        getattr(above, call[0])(call[1])
    assert heard.log == [("on_subscribe",)]


def test_a_signal_after_the_cancel_is_nothing() -> None:
    """D7.5: elements may still be on their way."""
    heard, above = _subscribed(Calls())
    heard.subscription.request(2)
    heard.subscription.cancel()
    above.on_next("late")
    above.on_error(ValueError("late"))
    assert heard.log == [("on_subscribe",)]


def test_a_subscriber_is_forgotten_after_its_cancel() -> None:
    """Rule 3.13, over a publisher that keeps its own subscriber for ever."""
    publisher = Script(lambda subscriber: subscriber.on_subscribe(Calls()))

    def subscribed():
        heard = Heard()
        as_modern(publisher).subscribe(heard)
        return weakref.ref(heard), heard.subscription

    gone, subscription = subscribed()
    subscription.cancel()
    gc.collect()
    assert gone() is None


# --- there and back, and usage


@pytest.mark.parametrize(
    ("source", "expected"), [(from_iterable(range(600)), list(range(600))), (empty(), []), (generate(lambda: iter("abc")), list("abc"))]
)
async def test_there_and_back_is_the_same_stream(nursery, source, expected) -> None:
    """as_modern(as_draft(x)) gives the elements of x and its end, and pipes like any other publisher."""
    back = as_modern(as_draft(source.publisher(nursery)))
    assert expected == await collect(back)
    assert expected[:2] == await collect(pipe(back, operators.take(2)))


async def test_there_and_back_keeps_the_error_itself(nursery) -> None:
    """Identity, not a copy, and not wrapped."""
    error = KeyError("mine")
    heard = Heard()
    as_modern(as_draft(failed(error).publisher(nursery))).subscribe(heard)
    await wait_all_tasks_blocked()
    assert heard.error is error


def test_a_class_and_a_hook_that_is_none_are_refused() -> None:
    """A forgotten call, and a mistake that would show only when there is something to tell."""
    with pytest.raises(UsageError, match="'type', which has no subscribe"):
        as_modern(Counting)  # type: ignore[type-var]  # a mistake on purpose
    with pytest.raises(UsageError, match="on_violation is 5"):
        as_modern(Counting(1), on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose


def test_what_is_no_publisher_is_refused() -> None:
    """The message names what was given."""
    with pytest.raises(UsageError, match="'list', which has no subscribe"):
        as_modern([])


def test_what_is_no_subscriber_is_a_type_error() -> None:
    """Rule 1.9: None has nobody to signal on_error to."""
    with pytest.raises(TypeError):
        as_modern(Script()).subscribe(None)


def test_the_adapter_shows_its_state() -> None:
    """A repr names the publisher, and the intake its demand."""
    _, above = _subscribed(Calls())
    assert repr(above) == "<draft intake live, due 0>"
    above.on_complete()
    assert repr(above) == "<draft intake over, due 0>"
    assert repr(as_modern(Script())).startswith("<today's form of <")
