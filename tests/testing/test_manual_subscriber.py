"""`ManualSubscriber`: its record, its checks and its expectations."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from penstock.testing import (
    DRAFT,
    ExpectationFailed,
    ManualPublisher,
    ManualSubscriber,
    Signal,
    run_virtual,
)


class RecordingSubscription:
    """Records the calls, and raises the given error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self.error = error

    def request(self, n: Any) -> None:
        self.calls.append(n)
        if self.error:
            raise self.error

    request_more = request

    def cancel(self) -> None:
        self.request("cancel")


def subscribed(
    subscription: RecordingSubscription | None = None, **options: Any
) -> ManualSubscriber:
    probe = ManualSubscriber(**options)
    probe.on_subscribe(subscription or RecordingSubscription())
    return probe


def rules(probe: ManualSubscriber) -> list[str]:
    return [violation.rule for violation in probe.violations]


def test_it_records_elements_and_the_end() -> None:
    """Elements, outstanding demand and the end can be read afterwards."""
    probe = subscribed()
    probe.request(3)
    probe.on_next("a")
    probe.on_next("b")
    assert (probe.elements, probe.outstanding, probe.ended) == (["a", "b"], 1, False)
    probe.on_complete()
    assert (probe.ended, probe.violations) == (True, [])


@pytest.mark.parametrize(
    ("signals", "broken_rule"),
    [
        (lambda probe: probe.on_next(1), "1.1"),
        (lambda probe: probe.on_subscribe(RecordingSubscription()), "2.12"),
        (lambda probe: (probe.on_complete(), probe.on_complete()), "1.7"),
        (lambda probe: (probe.on_error(ValueError()), probe.on_complete()), "1.7"),
        (lambda probe: probe.on_error("not an exception"), "1.4"),
        (lambda probe: (probe.cancel(), probe.silence(), probe.on_complete()), "1.8"),
    ],
)
def test_each_breach_is_recorded_under_its_rule(
    signals: Callable[[ManualSubscriber], object], broken_rule: str
) -> None:
    """One illegal signal gives one violation."""
    probe = subscribed()
    signals(probe)
    assert rules(probe) == [broken_rule]


def test_late_signals_after_a_cancel_are_legal_until_silence() -> None:
    """Rule 2.8 allows them until the test calls silence()."""
    probe = subscribed()
    probe.request(2)
    probe.cancel()
    probe.on_next(1)
    assert probe.violations == []


def test_an_end_before_on_subscribe_is_legal_in_the_draft_only() -> None:
    """Modern rule 1.9 forbids it."""
    modern, draft = ManualSubscriber(), ManualSubscriber(rule_set=DRAFT)
    modern.on_complete()
    draft.on_complete()
    assert (rules(modern), rules(draft)) == (["1.9"], [])


@pytest.mark.parametrize("method", ["on_subscribe", "on_next", "on_error"])
def test_none_is_refused_with_a_type_error(method: str) -> None:
    """The probe obeys rule 2.13 itself, and records the breach of its caller."""
    probe = ManualSubscriber()
    with pytest.raises(TypeError):
        getattr(probe, method)(None)
    assert rules(probe) == ["2.13"]


@pytest.mark.parametrize(
    ("act", "broken_rule"),
    [(lambda probe: probe.request(1), "3.16"), (lambda probe: probe.cancel(), "3.15")],
)
def test_an_exception_of_request_or_cancel_is_recorded_and_not_raised(
    act: Callable[[ManualSubscriber], None], broken_rule: str
) -> None:
    """Both must return normally."""
    probe = subscribed(RecordingSubscription(ValueError("no")))
    act(probe)
    assert rules(probe) == [broken_rule]


def test_errors_of_the_draft_are_raised() -> None:
    """There a ValueError from request_more is legal."""
    probe = subscribed(RecordingSubscription(ValueError("no")), rule_set=DRAFT)
    with pytest.raises(ValueError, match="no"):
        probe.request(0)
    assert probe.violations == []


def test_a_call_without_a_subscription_says_so() -> None:
    """The most likely mistake in a test has its own message."""
    with pytest.raises(ExpectationFailed, match="has no subscription yet"):
        ManualSubscriber().request(1)


def test_hooks_act_inside_signals_and_receive_the_probe() -> None:
    """A hook can request without a reference to the probe."""
    subscription = RecordingSubscription()
    probe = ManualSubscriber(
        when_subscribed=lambda probe: probe.request(2),
        when_next=lambda probe, element: probe.request(element),
    )
    probe.on_subscribe(subscription)
    probe.on_next(7)
    assert subscription.calls == [2, 7]


class AnsweringSubscription(RecordingSubscription):
    """Answers each request with an element before it returns."""

    probe: ManualSubscriber

    def request(self, n: int, /) -> None:
        self.probe.on_next(n)


def test_recursion_beyond_the_bound_is_a_breach() -> None:
    """on_next, request and on_next again, with a bound of 1."""
    subscription = AnsweringSubscription()
    subscription.probe = subscribed(
        subscription,
        recursion_bound=1,
        when_next=lambda probe, _: len(probe.elements) < 2 and probe.request(1),
    )
    subscription.probe.request(1)
    assert rules(subscription.probe) == ["3.3"]
    assert subscription.probe.ledger.deepest == 2


def test_on_next_inside_on_next_is_a_breach() -> None:
    """on_next called inside on_next, and not inside a request, overlaps (rule 1.3)."""
    probe = subscribed(
        when_next=lambda probe, element: probe.on_next(element - 1) if element else None
    )
    probe.request(10)
    probe.on_next(1)
    assert rules(probe) == ["1.3"]


def expectation(act: Callable[[ManualSubscriber, ManualPublisher], Awaitable[object]]) -> object:
    async def scenario() -> object:
        source, probe = ManualPublisher(), ManualSubscriber(within=5)
        source.subscribe(probe)
        probe.request(10)
        return await act(probe, source)

    return run_virtual(scenario)


def test_expectations_pass_if_they_are_met() -> None:
    """Elements in order, the end, and silence.
    on_subscribe is skipped if no expectation asks for it.
    """

    async def act(probe: ManualSubscriber, source: ManualPublisher) -> object:
        await probe.expect_subscription()
        source.emit(1, 2, 3)
        await probe.expect_next(1, 2)
        assert await probe.expect_elements(1) == [3]
        error = ValueError()
        source.fail(error)
        assert await probe.expect_error(error) is error
        await probe.expect_nothing()
        return True

    assert expectation(act)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda probe, source: (source.emit(1), probe.expect_next(2))[-1],
            r"expected on_next\(2\), but got on_next\(1\)",
        ),
        (lambda probe, source: probe.expect_next(1), "expected on_next, but nothing arrived"),
        (
            lambda probe, source: (source.complete(), probe.expect_next(1))[-1],
            r"expected on_next, but got on_complete\(\)",
        ),
        (
            lambda probe, source: (source.emit(1), probe.expect_complete())[-1],
            r"expected on_complete, but got on_next\(1\)",
        ),
        (
            lambda probe, source: (source.fail(ValueError()), probe.expect_error(KeyError))[-1],
            r"expected on_error\(KeyError\), but got",
        ),
        (
            lambda probe, source: (source.emit(1), probe.expect_nothing())[-1],
            r"expected nothing, but got on_next\(1\)",
        ),
        (
            lambda probe, source: (
                source.misbehave("on_subscribe", RecordingSubscription()),
                probe.expect_nothing(),
            )[-1],
            "rule 2.12",
        ),
    ],
)
def test_a_failed_expectation_says_what_arrived(
    act: Callable[[ManualSubscriber, ManualPublisher], Awaitable[object]], words: str
) -> None:
    """The text has the expectation and the signal; a recorded violation fails every expectation."""
    with pytest.raises(ExpectationFailed, match=words):
        expectation(act)


def test_an_expectation_waits_in_virtual_time() -> None:
    """An element within the allowed seconds is found, and no real time passes."""

    async def act(probe: ManualSubscriber, source: ManualPublisher) -> object:
        async with trio.open_nursery() as nursery:

            async def later() -> None:
                await trio.sleep(4)  # of the MockClock
                source.emit("late")

            nursery.start_soon(later)
            await probe.expect_next("late")
        return trio.current_time()

    assert expectation(act) == 4


def test_silence_is_two_assertions() -> None:
    """An element that comes later by the clock fails a silence
    that holds while all tasks are blocked.
    """

    async def act(probe: ManualSubscriber, source: ManualPublisher) -> object:
        async with trio.open_nursery() as nursery:

            async def later() -> None:
                await trio.sleep(30)  # of the MockClock
                source.emit("late")

            nursery.start_soon(later)
            with pytest.raises(ExpectationFailed, match="expected nothing for 60 seconds"):
                await probe.expect_nothing()
        return True

    assert expectation(act)


def test_drain_marks_signals_as_read() -> None:
    """Later expectations begin after the drained signals."""

    async def act(probe: ManualSubscriber, source: ManualPublisher) -> object:
        source.emit(1)
        drained = await probe.drain()
        await probe.expect_nothing()
        return drained[-1]

    assert expectation(act) == (Signal.NEXT, 1)


def _signal_from_two_threads(*, any_thread: bool, overlap: bool) -> list[str]:
    """Signal two elements from two threads, the second inside the first or after it;
    return the rules that were broken.
    """
    inside, over = threading.Event(), threading.Event()

    def hold(probe: ManualSubscriber, element: int) -> None:
        if element == 1:
            inside.set()
            over.wait()

    probe = ManualSubscriber(any_thread=any_thread, when_next=hold)
    probe.on_subscribe(RecordingSubscription())
    probe.request(2)
    first, second = (threading.Thread(target=probe.on_next, args=(element,)) for element in (1, 2))
    first.start()
    inside.wait()
    if not overlap:
        over.set()
        first.join()
    second.start()
    second.join()
    over.set()
    first.join()
    return [violation.rule for violation in probe.violations]


def test_signals_from_other_threads_must_be_declared() -> None:
    """Otherwise each breaks rule 2.11."""
    assert _signal_from_two_threads(any_thread=False, overlap=False) == ["2.11", "2.11"]


def test_serial_signals_from_declared_threads_break_no_rule() -> None:
    """Rule 1.3 wants them one after the other, in any thread."""
    assert _signal_from_two_threads(any_thread=True, overlap=False) == []


def test_overlapping_signals_from_declared_threads_break_a_rule() -> None:
    """The second arrives before the first has returned: rule 1.3."""
    assert _signal_from_two_threads(any_thread=True, overlap=True) == ["1.3"]
