"""A modern publisher as a publisher of the draft:
the points where the rules differ, and the guards on both sides.
"""

import gc
import weakref
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock import (
    UNBOUNDED,
    RuleViolation,
    Topic,
    UsageError,
    empty,
    failed,
    from_iterable,
    from_publisher,
    generate,
    single,
)
from penstock.api import IllegalDemand, InvalidStateError
from penstock.draft import as_draft
from tests.core._foreign import CallRecorder, CountingPublisher, Recorder, ScriptedPublisher, boom


async def _numbers(count):
    for number in range(count):
        yield number


async def _open(source, nursery, **options):
    """Subscribe a new recorder to `source` through `as_draft`."""
    recorder = Recorder()
    as_draft(source.publisher(nursery), **options).subscribe(recorder)
    await wait_all_tasks_blocked()
    return recorder


# --- the end without on_subscribe


async def test_a_completed_publisher_signals_its_end_alone(nursery) -> None:
    """D1.1, D1.2: without on_subscribe."""
    assert (await _open(empty(), nursery)).log == [("on_complete",)]


async def test_a_failed_publisher_signals_its_failure_alone(nursery) -> None:
    """D1.3, D1.4, D1.6: the same error object, without on_subscribe."""
    error = ValueError("refused")
    assert [("on_error", error)] == (await _open(failed(error), nursery)).log


async def test_a_live_publisher_signals_on_subscribe_first(nursery) -> None:
    """D1.5: when the publisher's subscribe() has returned; and no other signal without demand."""
    assert (await _open(generate(_numbers, 3), nursery)).log == [("on_subscribe",)]


async def test_on_subscribe_waits_until_the_publisher_has_returned() -> None:
    """Only when subscribe() has returned without an end is the stream accepted."""
    recorder = Recorder()
    at_that_time = []

    def subscribe(subscriber):
        subscriber.on_subscribe(CallRecorder())
        at_that_time.extend(recorder.log)

    as_draft(ScriptedPublisher(subscribe)).subscribe(recorder)
    assert at_that_time == []
    assert recorder.log == [("on_subscribe",)]


# --- early completion


async def test_completion_comes_with_the_last_element_of_a_generator(nursery) -> None:
    """D4.5: exact demand is enough, because the pull after the last element has been made
    already.
    """
    recorder = await _open(generate(_numbers, 3), nursery)
    recorder.subscription.request_more(3)
    await wait_all_tasks_blocked()
    assert recorder.log == [
        ("on_subscribe",),
        ("on_next", 0),
        ("on_next", 1),
        ("on_next", 2),
        ("on_complete",),
    ]


async def test_the_element_held_back_is_signalled_inside_the_next_request(nursery) -> None:
    """D2.5: it is available, so request_more may signal it at once.
    It is never lost and never early.
    """
    recorder = await _open(generate(_numbers, 3), nursery)
    recorder.subscription.request_more(2)
    await wait_all_tasks_blocked()
    assert recorder.elements == [0, 1]
    recorder.subscription.request_more(1)
    assert recorder.elements == [0, 1, 2]
    await wait_all_tasks_blocked()
    assert recorder.log[-2:] == [("on_next", 2), ("on_complete",)]


async def test_the_end_waits_behind_an_element_that_was_held_back() -> None:
    """The publisher completed while an element was held back:
    demand brings the element and the end.
    """
    recorder = Recorder()
    as_draft(CountingPublisher(3)).subscribe(recorder)
    recorder.subscription.request_more(2)
    assert recorder.elements == [0, 1]
    recorder.subscription.request_more(1)
    assert recorder.log[-2:] == [("on_next", 2), ("on_complete",)]


async def test_a_failure_overtakes_the_element_that_was_held_back() -> None:
    """D8.4: errors do not wait behind elements."""
    recorder, publisher, error = (
        Recorder(),
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder())),
        ValueError("broken"),
    )
    as_draft(publisher).subscribe(recorder)
    recorder.subscription.request_more(1)
    for element in "ab":
        publisher.subscriber.on_next(element)
    publisher.subscriber.on_error(error)
    assert [("on_subscribe",), ("on_next", "a"), ("on_error", error)] == recorder.log


@pytest.mark.parametrize(("hold_back", "pulled"), [(True, [3, 2]), (False, [2, 2]), (None, [3, 2])])
async def test_one_more_than_requested_is_pulled_once(hold_back, pulled) -> None:
    """It is one element in all, and not one for each request; `hold_back` switches it off."""
    recorder, calls = Recorder(), CallRecorder()
    as_draft(
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls)), hold_back=hold_back
    ).subscribe(recorder)
    recorder.subscription.request_more(2)
    recorder.subscription.request_more(2)
    assert [("request", n) for n in pulled] == calls.log


async def test_nothing_is_pulled_before_the_first_request(nursery) -> None:
    """A subscriber that requests nothing starts nothing."""
    recorder = await _open(generate(_numbers, 0), nursery)
    assert recorder.log == [("on_subscribe",)]
    assert not nursery.child_tasks
    recorder.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert recorder.log[-1] == ("on_complete",)


async def test_a_topic_is_not_pulled_ahead() -> None:
    """D4.6: a topic signals its end without demand, and starts with its oldest retained element."""
    topic: Topic[str] = Topic(retain=2)
    for element in "abc":
        await topic.publish(element)
    recorder = Recorder()
    as_draft(topic).subscribe(recorder)
    recorder.subscription.request_more(1)
    assert recorder.elements == ["b"]
    assert topic.statistics().buffered == 1
    recorder.subscription.request_more(1)
    topic.complete()
    assert recorder.log[-2:] == [("on_next", "c"), ("on_complete",)]


async def test_elements_come_in_order_for_any_portions_of_demand(nursery) -> None:
    """D2.2, D4.1: requests add up exactly."""
    recorder = await _open(from_iterable(range(20)), nursery)
    for count, expected in ((1, 1), (2, 3), (1, 4), (10, 14), (5, 19)):
        recorder.subscription.request_more(count)
        await wait_all_tasks_blocked()
        assert list(range(expected)) == recorder.elements
    recorder.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert recorder.log[-2:] == [("on_next", 19), ("on_complete",)]


async def test_a_request_from_inside_a_signal_does_not_nest() -> None:
    """Rule 3.3 also holds in the draft: on_next is never inside on_next, although publisher and
    subscriber both act at once.
    """
    recorder = Recorder(on_next=lambda _: recorder.subscription.request_more(1))
    as_draft(CountingPublisher(5000)).subscribe(recorder)
    recorder.subscription.request_more(1)
    assert list(range(5000)) == recorder.elements
    assert recorder.log[-1] == ("on_complete",)
    assert recorder.deepest == 1


# --- calls that raise


async def test_a_call_on_a_cancelled_subscription_raises(nursery) -> None:
    """D2.1, D3.1: the modern rules ignore it, the draft refuses it, also with an illegal number."""
    recorder = await _open(generate(_numbers, 3), nursery)
    recorder.subscription.cancel()
    with pytest.raises(
        InvalidStateError, match=r"request_more\(1\) on a subscription that is over"
    ):
        recorder.subscription.request_more(1)
    with pytest.raises(InvalidStateError, match="on a subscription that is over"):
        recorder.subscription.request_more(0)
    with pytest.raises(InvalidStateError, match=r"cancel\(\) on a subscription that is over"):
        recorder.subscription.cancel()
    assert recorder.log == [("on_subscribe",)]


@pytest.mark.parametrize(
    "source",
    [from_iterable("a"), from_publisher(CountingPublisher(1))],
    ids=["with a task", "without one"],
)
async def test_a_call_after_the_end_raises(nursery, source) -> None:
    """D6.3: after the end a subscription counts as cancelled."""
    recorder = await _open(source, nursery)
    recorder.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert recorder.log[-1] == ("on_complete",)
    with pytest.raises(InvalidStateError):
        recorder.subscription.request_more(1)
    with pytest.raises(InvalidStateError):
        recorder.subscription.cancel()


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "1", None])
async def test_a_demand_that_is_not_positive_raises_and_changes_nothing(nursery, n) -> None:
    """D2.4: a ValueError to the caller and no signal; the stream goes on."""
    recorder = await _open(generate(_numbers, 1), nursery)
    with pytest.raises(ValueError, match="request") as caught:
        recorder.subscription.request_more(n)
    assert isinstance(caught.value, IllegalDemand)
    assert recorder.log == [("on_subscribe",)]
    recorder.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert recorder.log == [("on_subscribe",), ("on_next", 0), ("on_complete",)]


# --- overflow


@pytest.mark.parametrize("requests", [(UNBOUNDED, 1), (2**62, 2**62), (2**63,), (2**70,)], ids=str)
async def test_a_demand_above_the_bound_ends_the_stream(requests) -> None:
    """D2.3: on_error with an InvalidStateError, and the publisher is cancelled."""
    recorder, calls = Recorder(), CallRecorder()
    as_draft(ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls))).subscribe(
        recorder
    )
    for n in requests:
        recorder.subscription.request_more(n)
    assert [("on_subscribe",), ("on_error", recorder.error)] == recorder.log
    assert isinstance(recorder.error, InvalidStateError)
    assert "above 2^63-1" in str(recorder.error)
    assert calls.log[-1] == ("cancel",)


@pytest.mark.parametrize("requests", [(UNBOUNDED,), (2**62, 2**62 - 1)], ids=str)
async def test_a_demand_at_the_bound_is_served(nursery, requests) -> None:
    """D2.3: 2^63-1 is allowed."""
    recorder = await _open(generate(_numbers, 3), nursery)
    for n in requests:
        recorder.subscription.request_more(n)
    await wait_all_tasks_blocked()
    assert recorder.elements == [0, 1, 2]
    assert recorder.log[-1] == ("on_complete",)


async def test_a_delivered_element_makes_room_for_more_demand() -> None:
    """Outstanding demand may not overflow: after one element, one more may be requested."""
    topic: Topic[str] = Topic()
    recorder = Recorder()
    as_draft(topic).subscribe(recorder)
    recorder.subscription.request_more(UNBOUNDED)
    await topic.publish("a")
    recorder.subscription.request_more(1)
    assert recorder.log == [("on_subscribe",), ("on_next", "a")]
    recorder.subscription.request_more(1)
    assert isinstance(recorder.error, InvalidStateError)


async def test_no_more_than_the_bound_is_requested_of_the_publisher() -> None:
    """2^63-1 and the element to hold back would be a number
    that a publisher need not understand.
    """
    recorder, calls = Recorder(), CallRecorder()
    as_draft(ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls))).subscribe(
        recorder
    )
    recorder.subscription.request_more(UNBOUNDED)
    assert calls.log == [("request", UNBOUNDED)]


# --- one object, one subscription


async def test_the_same_object_is_refused_and_its_first_subscription_ends(nursery) -> None:
    """D1.7: one on_error(InvalidStateError), and no signal of either subscription after it."""
    publisher = as_draft(generate(_numbers, 3).publisher(nursery))
    recorder = Recorder()
    publisher.subscribe(recorder)
    recorder.subscription.request_more(1)
    publisher.subscribe(recorder)
    assert [("on_subscribe",), ("on_error", recorder.error)] == recorder.log
    assert isinstance(recorder.error, InvalidStateError)
    assert "subscribed to this publisher already" in str(recorder.error)
    with pytest.raises(InvalidStateError):
        recorder.subscription.cancel()
    await wait_all_tasks_blocked()
    assert len(recorder.log) == 2


async def test_the_first_subscription_is_cancelled_above_when_the_second_is_refused() -> None:
    """The publisher must not go on."""
    calls, recorder = CallRecorder(), Recorder()
    publisher = as_draft(ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls)))
    publisher.subscribe(recorder)
    publisher.subscribe(recorder)
    assert calls.log == [("cancel",)]


async def test_a_refusal_from_inside_subscribe_is_the_only_signal() -> None:
    """Subscribed again before it was accepted, the object gets the refusal,
    and no on_subscribe after it.
    """
    recorder, reported = Recorder(), []
    publisher = as_draft(
        ScriptedPublisher(lambda _: publisher.subscribe(recorder) if not recorder.log else None),
        on_violation=reported.append,
    )
    publisher.subscribe(recorder)
    assert [("on_error", recorder.error)] == recorder.log
    assert reported == []


async def test_equal_subscribers_that_are_not_the_same_are_both_served(nursery) -> None:
    """D1.7 compares by identity."""

    class Equal(Recorder):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    publisher = as_draft(generate(_numbers, 1).publisher(nursery))
    both = Equal(), Equal()
    for recorder in both:
        publisher.subscribe(recorder)
        recorder.subscription.request_more(1)
    await wait_all_tasks_blocked()
    assert [recorder.log for recorder in both] == [
        [("on_subscribe",), ("on_next", 0), ("on_complete",)]
    ] * 2


async def test_the_same_object_may_subscribe_again_right_after_its_cancel(nursery) -> None:
    """D3.4: a cancel takes effect before the next statement;
    100 times, without a checkpoint between.
    """
    publisher = as_draft(from_iterable(range(3)).publisher(nursery))
    recorder = Recorder()
    for _ in range(100):
        publisher.subscribe(recorder)
        recorder.subscription.request_more(1)
        recorder.subscription.cancel()
    publisher.subscribe(recorder)
    recorder.subscription.request_more(3)
    await wait_all_tasks_blocked()
    assert [
        *[("on_subscribe",)] * 101,
        ("on_next", 0),
        ("on_next", 1),
        ("on_next", 2),
        ("on_complete",),
    ] == recorder.log


async def test_the_same_object_may_subscribe_again_inside_its_end(nursery) -> None:
    """When on_complete is called the subscription is over, so it is not refused."""
    publisher = as_draft(single("a").publisher(nursery))
    recorder = Recorder(
        on_complete=lambda: publisher.subscribe(recorder) if len(recorder.log) < 6 else None
    )
    publisher.subscribe(recorder)
    recorder.subscription.request_more(1)
    recorder.subscription.request_more(1)
    assert recorder.log == [("on_subscribe",), ("on_next", "a"), ("on_complete",)] * 2


async def test_a_subscriber_is_forgotten_after_its_cancel(nursery) -> None:
    """D3.3: neither the publisher nor the subscription keeps it alive."""
    publisher = as_draft(generate(_numbers, 9).publisher(nursery))

    def subscribed():
        recorder = Recorder()
        publisher.subscribe(recorder)
        recorder.subscription.request_more(1)
        return weakref.ref(recorder), recorder.subscription

    gone, subscription = subscribed()
    subscription.cancel()
    await wait_all_tasks_blocked()
    gc.collect()
    assert gone() is None
    assert repr(publisher).endswith("0 subscribed>")


# --- foreign objects that break the rules


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error", "on_complete"])
async def test_a_subscriber_that_raises_is_cancelled_and_reported(nursery, signal) -> None:
    """Rule 2.13: it gets no further signal, the publisher is cancelled, the hook is called, and
    another subscriber goes on.
    """
    reported: list[Exception] = []
    source = failed(KeyError("x")) if signal == "on_error" else from_iterable("a")
    publisher = as_draft(source.publisher(nursery), on_violation=reported.append)
    recorder, neighbour = Recorder(**{signal: boom}), Recorder()
    for each in (recorder, neighbour):
        publisher.subscribe(each)
    for each in (recorder, neighbour):
        if ("on_subscribe",) in each.log and not (each is recorder and signal == "on_subscribe"):
            each.subscription.request_more(1)
    await wait_all_tasks_blocked()
    (violation,) = reported
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert f"raised ValueError('boom') in {signal}" in str(violation)
    assert signal == recorder.log[-1][0]
    assert neighbour.log[-1][0] in {"on_complete", "on_error"}
    assert "0 subscribed" in repr(publisher)


async def test_an_element_that_was_not_requested_ends_the_stream_as_a_violation() -> None:
    """The PublisherGuard cancels the publisher, and the error names the rule."""
    calls, recorder = CallRecorder(), Recorder()
    publisher = ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(calls))
    as_draft(publisher).subscribe(recorder)
    publisher.subscriber.on_next("too early")
    assert isinstance(recorder.error, RuleViolation)
    assert recorder.error.rule == "1.1"
    assert calls.log == [("cancel",)]


async def test_a_publisher_that_raises_in_subscribe_has_refused() -> None:
    """D1.6: on_error alone, with the cause."""
    recorder = Recorder()
    as_draft(ScriptedPublisher(boom)).subscribe(recorder)
    assert [("on_error", recorder.error)] == recorder.log
    assert isinstance(recorder.error.__cause__, ValueError)


async def test_a_publisher_that_raises_in_cancel_is_reported() -> None:
    """After the end only the hook can receive the error."""
    reported: list[Exception] = []
    recorder = Recorder()
    as_draft(
        ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder(cancel=boom))),
        on_violation=reported.append,
    ).subscribe(recorder)
    recorder.subscription.cancel()
    assert [violation.rule for violation in reported] == ["3.15"]


async def test_signals_after_the_end_do_nothing() -> None:
    """Signals of the publisher after the cancel reach no subscriber."""
    recorder = Recorder()
    publisher = ScriptedPublisher(lambda subscriber: subscriber.on_subscribe(CallRecorder()))
    as_draft(publisher).subscribe(recorder)
    recorder.subscription.request_more(3)
    recorder.subscription.cancel()
    for signal in (partial(publisher.subscriber.on_next, "late"), publisher.subscriber.on_complete):
        signal()
    assert recorder.log == [("on_subscribe",)]


async def test_a_cancel_inside_the_element_held_back_stops_the_stream() -> None:
    """No end follows, and nothing more is requested of the publisher."""
    recorder = Recorder(on_next=lambda element: recorder.subscription.cancel() if element else None)
    as_draft(CountingPublisher(9)).subscribe(recorder)
    recorder.subscription.request_more(1)
    recorder.subscription.request_more(5)
    assert recorder.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1)]


@pytest.mark.parametrize(
    "when_next", [lambda recorder: recorder.subscription.cancel(), boom], ids=["cancels", "raises"]
)
async def test_a_subscriber_that_leaves_inside_the_last_element_gets_no_end(when_next) -> None:
    """The end waited behind the element held back."""
    reported: list[Exception] = []
    recorder = Recorder(on_next=lambda element: when_next(recorder) if element == 1 else None)
    as_draft(CountingPublisher(2), on_violation=reported.append).subscribe(recorder)
    recorder.subscription.request_more(1)
    recorder.subscription.request_more(1)
    assert recorder.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1)]
    assert len(reported) == (when_next is boom)


async def test_a_cancelled_nursery_ends_the_stream(nursery) -> None:
    """The subscriber gets an error that says so."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            recorder = await _open(generate(trio_forever), inner)
            recorder.subscription.request_more(1)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert "was stopped" in str(recorder.error)


async def trio_forever():
    await trio.sleep_forever()
    yield


# --- usage


def test_a_source_that_is_not_bound_is_refused() -> None:
    """The message says how to bind it."""
    with pytest.raises(UsageError, match=r"as_draft\(source\.publisher\(nursery\)\)"):
        as_draft(from_iterable("a"))


@pytest.mark.parametrize("subscriber", [None, object()])
def test_an_object_that_is_not_a_subscriber_is_a_type_error(subscriber) -> None:
    """on_error cannot be signalled to it."""
    with pytest.raises(TypeError, match="which is no subscriber"):
        as_draft(Topic()).subscribe(subscriber)


async def test_the_repr_shows_state_and_demand(nursery) -> None:
    """That of the publisher shows the number of subscribers."""
    publisher = as_draft(generate(_numbers, 2).publisher(nursery))
    recorder = Recorder()
    publisher.subscribe(recorder)
    recorder.subscription.request_more(2)
    assert "1 subscribed" in repr(publisher)
    assert repr(recorder.subscription) == "<draft subscription live, demand 2>"
    recorder.subscription.cancel()
    assert repr(recorder.subscription) == "<draft subscription over, demand 0>"


@pytest.mark.parametrize("wrong", [5, CountingPublisher], ids=["number", "class"])
def test_a_class_or_a_wrong_hook_is_refused(wrong) -> None:
    """A forgotten call, and a mistake that would otherwise show only with the first report."""
    with pytest.raises(UsageError, match="which has no subscribe"):
        as_draft(wrong)
    with pytest.raises(UsageError, match="on_violation is 5"):
        as_draft(CountingPublisher(1), on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose
    with pytest.raises(TypeError, match="which is no subscriber"):
        as_draft(CountingPublisher(1)).subscribe(Recorder)  # type: ignore[type-var]  # a mistake on purpose
