"""The draft's view of a publisher of today's rules: the points at which the two differ, and what holds the foreign sides apart."""

import gc
import weakref
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    IllegalDemand,
    InvalidStateError,
    RuleViolation,
    Topic,
    UsageError,
    as_draft,
    empty,
    failed,
    from_iterable,
    from_publisher,
    generate,
    single,
)
from tests.core._foreign import Calls, Counting, Heard, Script, boom


async def _numbers(count):
    for number in range(count):
        yield number


async def _open(source, nursery, **options):
    """Subscribe a new listener to `source` after the draft."""
    heard = Heard()
    as_draft(source.publisher(nursery), **options).subscribe(heard)
    await wait_all_tasks_blocked()
    return heard


# --- the end alone


async def test_a_completed_publisher_signals_its_end_alone(nursery) -> None:
    """D1.1, D1.2: no on_subscribe where there is nothing to subscribe to."""
    assert (await _open(empty(), nursery)).log == [("on_complete",)]


async def test_a_failed_publisher_signals_its_failure_alone(nursery) -> None:
    """D1.3, D1.4, D1.6: the very error, and no on_subscribe before it."""
    error = ValueError("refused")
    assert [("on_error", error)] == (await _open(failed(error), nursery)).log


async def test_a_publisher_that_is_live_accepts_first(nursery) -> None:
    """D1.5: on_subscribe comes when subscribe() of the publisher has returned, and nothing else without demand."""
    assert (await _open(generate(_numbers, 3), nursery)).log == [("on_subscribe",)]


async def test_on_subscribe_waits_until_the_publisher_has_returned() -> None:
    """Whether a stream was accepted is known only when subscribe() has returned without an end."""
    heard = Heard()
    at_that_time = []

    def subscribe(subscriber):
        subscriber.on_subscribe(Calls())
        at_that_time.extend(heard.log)

    as_draft(Script(subscribe)).subscribe(heard)
    assert at_that_time == []
    assert heard.log == [("on_subscribe",)]


# --- completion at the earliest point


async def test_completion_comes_with_the_last_element_of_a_generator(nursery) -> None:
    """D4.5: exact demand is enough, because the pull after the last element has been made already."""
    heard = await _open(generate(_numbers, 3), nursery)
    heard.subscription.request_more(3)
    await wait_all_tasks_blocked()
    assert heard.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1), ("on_next", 2), ("on_complete",)]


async def test_one_element_waits_for_demand_and_goes_out_inside_the_next_request(nursery) -> None:
    """D2.5: the element held back is available, so request_more may signal it at once; it is never lost, and never early."""
    heard = await _open(generate(_numbers, 3), nursery)
    heard.subscription.request_more(2)
    await wait_all_tasks_blocked()
    assert heard.elements == [0, 1]
    heard.subscription.request_more(1)
    assert heard.elements == [0, 1, 2]
    await wait_all_tasks_blocked()
    assert heard.log[-2:] == [("on_next", 2), ("on_complete",)]


async def test_the_end_waits_behind_an_element_that_was_held_back() -> None:
    """The publisher completed while an element waited: demand brings the element, and the end with it."""
    heard = Heard()
    as_draft(Counting(3)).subscribe(heard)
    heard.subscription.request_more(2)
    assert heard.elements == [0, 1]
    heard.subscription.request_more(1)
    assert heard.log[-2:] == [("on_next", 2), ("on_complete",)]


async def test_a_failure_overtakes_the_element_that_was_held_back() -> None:
    """D8.4: errors are not kept waiting behind elements."""
    heard, publisher, error = Heard(), Script(lambda subscriber: subscriber.on_subscribe(Calls())), ValueError("broken")
    as_draft(publisher).subscribe(heard)
    heard.subscription.request_more(1)
    for element in "ab":
        publisher.subscriber.on_next(element)
    publisher.subscriber.on_error(error)
    assert [("on_subscribe",), ("on_next", "a"), ("on_error", error)] == heard.log


@pytest.mark.parametrize(("hold_back", "pulled"), [(True, [3, 2]), (False, [2, 2]), (None, [3, 2])])
async def test_one_more_than_requested_is_asked_for_once(hold_back, pulled) -> None:
    """The look ahead costs one element in all, not one for each request; it can be switched off."""
    heard, calls = Heard(), Calls()
    as_draft(Script(lambda subscriber: subscriber.on_subscribe(calls)), hold_back=hold_back).subscribe(heard)
    heard.subscription.request_more(2)
    heard.subscription.request_more(2)
    assert [("request", n) for n in pulled] == calls.log


async def test_nothing_is_pulled_before_the_first_request(nursery) -> None:
    """The look ahead begins with demand: a subscriber that asks for nothing starts nothing."""
    heard = await _open(generate(_numbers, 0), nursery)
    assert heard.log == [("on_subscribe",)]
    assert not nursery.child_tasks
    heard.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert heard.log[-1] == ("on_complete",)


async def test_a_topic_is_not_asked_ahead_and_starts_with_the_oldest_that_it_retains() -> None:
    """D4.6: a topic tells its end by itself, so nothing grows stale in the adapter."""
    topic: Topic[str] = Topic(retain=2)
    for element in "abc":
        await topic.publish(element)
    heard = Heard()
    as_draft(topic).subscribe(heard)
    heard.subscription.request_more(1)
    assert heard.elements == ["b"]
    assert topic.statistics().buffered == 1
    heard.subscription.request_more(1)
    topic.complete()
    assert heard.log[-2:] == [("on_next", "c"), ("on_complete",)]


async def test_elements_come_in_order_through_the_adapter_whatever_the_requests(nursery) -> None:
    """D2.2, D4.1: requests add up, exactly, however they are cut."""
    heard = await _open(from_iterable(range(20)), nursery)
    for count, expected in ((1, 1), (2, 3), (1, 4), (10, 14), (5, 19)):
        heard.subscription.request_more(count)
        await wait_all_tasks_blocked()
        assert list(range(expected)) == heard.elements
    heard.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert heard.log[-2:] == [("on_next", 19), ("on_complete",)]


async def test_a_request_from_inside_a_signal_does_not_nest() -> None:
    """Rule 3.3 on the draft's side, too: on_next is never inside on_next, though publisher and subscriber both answer at once."""
    heard = Heard(on_next=lambda _: heard.subscription.request_more(1))
    as_draft(Counting(5000)).subscribe(heard)
    heard.subscription.request_more(1)
    assert list(range(5000)) == heard.elements
    assert heard.log[-1] == ("on_complete",)
    assert heard.deepest == 1


# --- calls that raise


async def test_a_call_on_a_cancelled_subscription_raises(nursery) -> None:
    """D2.1, D3.1: where today's rules ignore it, the draft wants it refused; with any number, also one that is illegal."""
    heard = await _open(generate(_numbers, 3), nursery)
    heard.subscription.cancel()
    with pytest.raises(InvalidStateError, match=r"request_more\(1\) on a subscription that is over"):
        heard.subscription.request_more(1)
    with pytest.raises(InvalidStateError, match="on a subscription that is over"):
        heard.subscription.request_more(0)
    with pytest.raises(InvalidStateError, match=r"cancel\(\) on a subscription that is over"):
        heard.subscription.cancel()
    assert heard.log == [("on_subscribe",)]


@pytest.mark.parametrize("source", [from_iterable("a"), from_publisher(Counting(1))], ids=["with a task", "without one"])
async def test_a_call_after_the_end_raises(nursery, source) -> None:
    """D6.3: after the end a subscription counts as cancelled."""
    heard = await _open(source, nursery)
    heard.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert heard.log[-1] == ("on_complete",)
    with pytest.raises(InvalidStateError):
        heard.subscription.request_more(1)
    with pytest.raises(InvalidStateError):
        heard.subscription.cancel()


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "1", None])
async def test_a_demand_that_is_not_positive_raises_and_changes_nothing(nursery, n) -> None:
    """D2.4: a ValueError to the caller, no signal, and the stream lives on."""
    heard = await _open(generate(_numbers, 1), nursery)
    with pytest.raises(ValueError, match="request") as caught:
        heard.subscription.request_more(n)
    assert isinstance(caught.value, IllegalDemand)
    assert heard.log == [("on_subscribe",)]
    heard.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert heard.log == [("on_subscribe",), ("on_next", 0), ("on_complete",)]


# --- overflow


@pytest.mark.parametrize("requests", [(UNBOUNDED, 1), (2**62, 2**62), (2**63,), (2**70,)], ids=str)
async def test_a_demand_above_the_bound_ends_the_stream(requests) -> None:
    """D2.3: on_error with an InvalidStateError, and the publisher is cancelled."""
    heard, calls = Heard(), Calls()
    as_draft(Script(lambda subscriber: subscriber.on_subscribe(calls))).subscribe(heard)
    for n in requests:
        heard.subscription.request_more(n)
    assert [("on_subscribe",), ("on_error", heard.error)] == heard.log
    assert isinstance(heard.error, InvalidStateError)
    assert "above 2^63-1" in str(heard.error)
    assert calls.log[-1] == ("cancel",)


@pytest.mark.parametrize("requests", [(UNBOUNDED,), (2**62, 2**62 - 1)], ids=str)
async def test_a_demand_at_the_bound_is_served(nursery, requests) -> None:
    """D2.3: 2^63-1 is allowed, and what has been delivered makes room for more."""
    heard = await _open(generate(_numbers, 3), nursery)
    for n in requests:
        heard.subscription.request_more(n)
    await wait_all_tasks_blocked()
    assert heard.elements == [0, 1, 2]
    assert heard.log[-1] == ("on_complete",)


async def test_what_was_delivered_makes_room_for_more_demand() -> None:
    """The total that may not overflow is what is outstanding: after one element one more may be requested."""
    topic: Topic[str] = Topic()
    heard = Heard()
    as_draft(topic).subscribe(heard)
    heard.subscription.request_more(UNBOUNDED)
    await topic.publish("a")
    heard.subscription.request_more(1)
    assert heard.log == [("on_subscribe",), ("on_next", "a")]
    heard.subscription.request_more(1)
    assert isinstance(heard.error, InvalidStateError)


async def test_no_more_than_the_bound_is_asked_of_the_publisher() -> None:
    """The look ahead on top of 2^63-1 would be a number that no publisher has to understand."""
    heard, calls = Heard(), Calls()
    as_draft(Script(lambda subscriber: subscriber.on_subscribe(calls))).subscribe(heard)
    heard.subscription.request_more(UNBOUNDED)
    assert calls.log == [("request", UNBOUNDED)]


# --- one object, one subscription


async def test_the_same_object_is_refused_and_its_first_subscription_ends(nursery) -> None:
    """D1.7, as we read it: one on_error(InvalidStateError), after which nothing comes from either subscription."""
    publisher = as_draft(generate(_numbers, 3).publisher(nursery))
    heard = Heard()
    publisher.subscribe(heard)
    heard.subscription.request_more(1)
    publisher.subscribe(heard)
    assert [("on_subscribe",), ("on_error", heard.error)] == heard.log
    assert isinstance(heard.error, InvalidStateError)
    assert "subscribed to this publisher already" in str(heard.error)
    with pytest.raises(InvalidStateError):
        heard.subscription.cancel()
    await wait_all_tasks_blocked()
    assert len(heard.log) == 2


async def test_the_first_subscription_is_cancelled_above_when_the_second_is_refused() -> None:
    """The publisher must not serve on what has been ended."""
    calls, heard = Calls(), Heard()
    publisher = as_draft(Script(lambda subscriber: subscriber.on_subscribe(calls)))
    publisher.subscribe(heard)
    publisher.subscribe(heard)
    assert calls.log == [("cancel",)]


async def test_a_refusal_from_inside_subscribe_is_the_only_signal() -> None:
    """Subscribed again before it was accepted, the object gets the refusal, and no on_subscribe after it."""
    heard, told = Heard(), []
    publisher = as_draft(Script(lambda _: publisher.subscribe(heard) if not heard.log else None), on_violation=told.append)
    publisher.subscribe(heard)
    assert [("on_error", heard.error)] == heard.log
    assert told == []


async def test_equal_subscribers_that_are_not_the_same_are_both_served(nursery) -> None:
    """D1.7 goes by identity."""

    class Equal(Heard):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    publisher = as_draft(generate(_numbers, 1).publisher(nursery))
    both = Equal(), Equal()
    for heard in both:
        publisher.subscribe(heard)
        heard.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert [heard.log for heard in both] == [[("on_subscribe",), ("on_next", 0), ("on_complete",)]] * 2


async def test_the_same_object_may_subscribe_again_right_after_its_cancel(nursery) -> None:
    """D3.4: a cancel takes effect before the next line; 100 times over, and without a checkpoint between."""
    publisher = as_draft(from_iterable(range(3)).publisher(nursery))
    heard = Heard()
    for _ in range(100):
        publisher.subscribe(heard)
        heard.subscription.request_more(1)
        heard.subscription.cancel()
    publisher.subscribe(heard)
    heard.subscription.request_more(3)
    await wait_all_tasks_blocked()
    assert [*[("on_subscribe",)] * 101, ("on_next", 0), ("on_next", 1), ("on_next", 2), ("on_complete",)] == heard.log


async def test_the_same_object_may_subscribe_again_inside_its_end(nursery) -> None:
    """When on_complete is called the subscription is over already, and so no refusal comes."""
    publisher = as_draft(single("a").publisher(nursery))
    heard = Heard(on_complete=lambda: publisher.subscribe(heard) if len(heard.log) < 6 else None)
    publisher.subscribe(heard)
    heard.subscription.request_more(1)
    heard.subscription.request_more(1)
    assert heard.log == [("on_subscribe",), ("on_next", "a"), ("on_complete",)] * 2


async def test_a_subscriber_is_forgotten_after_its_cancel(nursery) -> None:
    """D3.3: neither the publisher nor the subscription keeps it alive."""
    publisher = as_draft(generate(_numbers, 9).publisher(nursery))

    def subscribed():
        heard = Heard()
        publisher.subscribe(heard)
        heard.subscription.request_more(1)
        return weakref.ref(heard), heard.subscription

    gone, subscription = subscribed()
    subscription.cancel()
    await wait_all_tasks_blocked()
    gc.collect()
    assert gone() is None
    assert repr(publisher).endswith("0 subscribed>")


# --- foreign objects that break the rules


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error", "on_complete"])
async def test_a_subscriber_that_raises_is_cut_off_and_told_of(nursery, signal) -> None:
    """Rule 2.13: it hears nothing more, the publisher is cancelled, the hook is told; nobody else notices."""
    told: list[Exception] = []
    source = failed(KeyError("x")) if signal == "on_error" else from_iterable("a")
    publisher = as_draft(source.publisher(nursery), on_violation=told.append)
    heard, neighbour = Heard(**{signal: boom}), Heard()
    for each in (heard, neighbour):
        publisher.subscribe(each)
    for each in (heard, neighbour):
        if ("on_subscribe",) in each.log and not (each is heard and signal == "on_subscribe"):
            each.subscription.request_more(1)
    await wait_all_tasks_blocked()
    (violation,) = told
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert f"raised ValueError('boom') in {signal}" in str(violation)
    assert signal == heard.log[-1][0]
    assert neighbour.log[-1][0] in {"on_complete", "on_error"}
    assert "0 subscribed" in repr(publisher)


async def test_an_element_that_was_not_requested_ends_the_stream_as_a_violation() -> None:
    """The intake guards this side: the publisher is cancelled, and the subscriber is told which rule was broken."""
    calls, heard = Calls(), Heard()
    publisher = Script(lambda subscriber: subscriber.on_subscribe(calls))
    as_draft(publisher).subscribe(heard)
    publisher.subscriber.on_next("too early")
    assert isinstance(heard.error, RuleViolation)
    assert heard.error.rule == "1.1"
    assert calls.log == [("cancel",)]


async def test_a_publisher_that_raises_in_subscribe_has_refused() -> None:
    """D1.6: on_error alone, with the cause."""
    heard = Heard()
    as_draft(Script(boom)).subscribe(heard)
    assert [("on_error", heard.error)] == heard.log
    assert isinstance(heard.error.__cause__, ValueError)


async def test_a_publisher_that_raises_in_cancel_is_told_of() -> None:
    """After the end there is only the hook to tell."""
    told: list[Exception] = []
    heard = Heard()
    as_draft(Script(lambda subscriber: subscriber.on_subscribe(Calls(cancel=boom))), on_violation=told.append).subscribe(heard)
    heard.subscription.cancel()
    assert [violation.rule for violation in told] == ["3.15"]


async def test_signals_after_the_end_are_nothing() -> None:
    """What a publisher still says after the cancel reaches nobody."""
    heard = Heard()
    publisher = Script(lambda subscriber: subscriber.on_subscribe(Calls()))
    as_draft(publisher).subscribe(heard)
    heard.subscription.request_more(3)
    heard.subscription.cancel()
    for signal in (partial(publisher.subscriber.on_next, "late"), publisher.subscriber.on_complete):
        signal()
    assert heard.log == [("on_subscribe",)]


async def test_a_cancel_inside_the_held_back_element_stops_there() -> None:
    """Cancelled while it is handed on, nothing follows: no end, and no further request above."""
    heard = Heard(on_next=lambda element: heard.subscription.cancel() if element else None)
    as_draft(Counting(9)).subscribe(heard)
    heard.subscription.request_more(1)
    heard.subscription.request_more(5)
    assert heard.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1)]


@pytest.mark.parametrize("when_next", [lambda heard: heard.subscription.cancel(), boom], ids=["cancels", "raises"])
async def test_leaving_inside_the_last_element_leaves_its_end_out(when_next) -> None:
    """The end that waited behind the element held back is not signalled to who has just left."""
    told: list[Exception] = []
    heard = Heard(on_next=lambda element: when_next(heard) if element == 1 else None)
    as_draft(Counting(2), on_violation=told.append).subscribe(heard)
    heard.subscription.request_more(1)
    heard.subscription.request_more(1)
    assert heard.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1)]
    assert len(told) == (when_next is boom)


async def test_a_cancelled_nursery_ends_the_stream(nursery) -> None:
    """What runs the publisher is visible; cancelling it is a failure to whoever listens."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            heard = await _open(generate(trio_forever), inner)
            heard.subscription.request_more(1)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert "was stopped" in str(heard.error)


async def trio_forever():
    """Never yields."""
    await trio.sleep_forever()
    yield


# --- usage


def test_a_source_that_is_not_bound_is_refused() -> None:
    """The message tells how to bind it."""
    with pytest.raises(UsageError, match=r"as_draft\(source\.publisher\(nursery\)\)"):
        as_draft(from_iterable("a"))


@pytest.mark.parametrize("subscriber", [None, object()])
def test_what_is_no_subscriber_is_a_type_error(subscriber) -> None:
    """There is nobody to signal on_error to."""
    with pytest.raises(TypeError, match="which is no subscriber"):
        as_draft(Topic()).subscribe(subscriber)


async def test_the_adapter_and_its_subscriptions_show_their_state(nursery) -> None:
    """A repr answers the question at three in the morning."""
    publisher = as_draft(generate(_numbers, 2).publisher(nursery))
    heard = Heard()
    publisher.subscribe(heard)
    heard.subscription.request_more(2)
    assert "1 subscribed" in repr(publisher)
    assert repr(heard.subscription) == "<draft subscription live, demand 2>"
    heard.subscription.cancel()
    assert repr(heard.subscription) == "<draft subscription over, demand 0>"
