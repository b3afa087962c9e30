"""Tests of the recording subscriber: what it records, judges and expects."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from penstock.testing import DRAFT, ExpectationFailed, ManualPublisher, ManualSubscriber, Signal, run_virtual


class Line:
    """A subscription that only notes what was called, or raises what it is given."""

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


def subscribed(line: Line | None = None, **options: Any) -> ManualSubscriber:
    probe = ManualSubscriber(**options)
    probe.on_subscribe(line or Line())
    return probe


def rules(probe: ManualSubscriber) -> list[str]:
    return [violation.rule for violation in probe.violations]


def test_it_records_elements_and_the_end() -> None:
    """What arrived can be read afterwards, and what is due."""
    probe = subscribed()
    probe.request(3)
    probe.on_next("a")
    probe.on_next("b")
    assert (probe.elements, probe.outstanding, probe.ended) == (["a", "b"], 1, False)
    probe.on_complete()
    assert (probe.ended, probe.violations) == (True, [])


@pytest.mark.parametrize(
    ("signals", "broken"),
    [
        (lambda probe: probe.on_next(1), "1.1"),
        (lambda probe: probe.on_subscribe(Line()), "2.12"),
        (lambda probe: (probe.on_complete(), probe.on_complete()), "1.7"),
        (lambda probe: (probe.on_error(ValueError()), probe.on_complete()), "1.7"),
        (lambda probe: probe.on_error("not an exception"), "1.4"),
        (lambda probe: (probe.cancel(), probe.silence(), probe.on_complete()), "1.8"),
    ],
)
def test_each_breach_is_recorded_under_its_rule(signals: Callable[[ManualSubscriber], object], broken: str) -> None:
    """One illegal signal, one violation."""
    probe = subscribed()
    signals(probe)
    assert rules(probe) == [broken]


def test_signals_on_their_way_after_a_cancel_are_legal_until_silence() -> None:
    """Rule 2.8 until the test says that "eventually" is over."""
    probe = subscribed()
    probe.request(2)
    probe.cancel()
    probe.on_next(1)
    assert probe.violations == []


def test_a_signal_before_on_subscribe_is_a_breach_and_in_the_draft_an_end_is_none() -> None:
    """Rule 1.9, and what the draft has in its place."""
    modern, draft = ManualSubscriber(), ManualSubscriber(dialect=DRAFT)
    modern.on_complete()
    draft.on_complete()
    assert (rules(modern), rules(draft)) == (["1.9"], [])


@pytest.mark.parametrize("method", ["on_subscribe", "on_next", "on_error"])
def test_none_is_refused_with_a_type_error(method: str) -> None:
    """The probe is a lawful subscriber itself (rule 2.13), and records who called it so."""
    probe = ManualSubscriber()
    with pytest.raises(TypeError):
        getattr(probe, method)(None)
    assert rules(probe) == ["2.13"]


@pytest.mark.parametrize(("act", "broken"), [(lambda probe: probe.request(1), "3.16"), (lambda probe: probe.cancel(), "3.15")])
def test_what_request_and_cancel_raise_is_a_breach_and_goes_no_further(act: Callable[[ManualSubscriber], None], broken: str) -> None:
    """They must return normally."""
    probe = subscribed(Line(ValueError("no")))
    act(probe)
    assert rules(probe) == [broken]


def test_in_the_draft_the_errors_of_the_draft_come_through() -> None:
    """There a ValueError from request_more is the answer, not a breach."""
    probe = subscribed(Line(ValueError("no")), dialect=DRAFT)
    with pytest.raises(ValueError, match="no"):
        probe.request(0)
    assert probe.violations == []


def test_a_call_without_a_subscription_says_so() -> None:
    """The likeliest mistake in a test has a message of its own."""
    with pytest.raises(ExpectationFailed, match="has no subscription yet"):
        ManualSubscriber().request(1)


def test_hooks_act_inside_signals_and_receive_the_probe() -> None:
    """Requests from inside signals, without a closure over the probe."""
    line = Line()
    probe = ManualSubscriber(when_subscribed=lambda asking: asking.request(2), when_next=lambda asking, element: asking.request(element))
    probe.on_subscribe(line)
    probe.on_next(7)
    assert line.calls == [2, 7]


class Recursing(Line):
    """Answers each request with an element, before it returns."""

    probe: ManualSubscriber

    def request(self, n: int, /) -> None:
        self.probe.on_next(n)


def test_recursion_past_the_bound_is_a_breach() -> None:
    """on_next, request and on_next again, where no nesting is declared."""
    line = Recursing()
    line.probe = subscribed(line, recursion_bound=1, when_next=lambda asking, _: len(asking.elements) < 2 and asking.request(1))
    line.probe.request(1)
    assert rules(line.probe) == ["3.3"]
    assert line.probe.ledger.deepest == 2


def test_an_element_inside_an_element_is_a_breach() -> None:
    """on_next that is called from inside on_next, and not by a request, overlaps (rule 1.3)."""
    probe = subscribed(when_next=lambda again, element: again.on_next(element - 1) if element else None)
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


def test_expectations_pass_where_they_are_met() -> None:
    """Elements in order, then the end, then silence; the subscription is passed over or asked for."""

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
        (lambda probe, source: (source.emit(1), probe.expect_next(2))[-1], r"expected on_next\(2\), but got on_next\(1\)"),
        (lambda probe, source: probe.expect_next(1), "expected on_next, but nothing arrived"),
        (lambda probe, source: (source.complete(), probe.expect_next(1))[-1], r"expected on_next, but got on_complete\(\)"),
        (lambda probe, source: (source.emit(1), probe.expect_complete())[-1], r"expected on_complete, but got on_next\(1\)"),
        (lambda probe, source: (source.fail(ValueError()), probe.expect_error(KeyError))[-1], r"expected on_error\(KeyError\), but got"),
        (lambda probe, source: (source.emit(1), probe.expect_nothing())[-1], r"expected nothing, but got on_next\(1\)"),
        (lambda probe, source: (source.misbehave("on_subscribe", Line()), probe.expect_nothing())[-1], "rule 2.12"),
    ],
)
def test_expectations_fail_in_words(act: Callable[[ManualSubscriber, ManualPublisher], Awaitable[object]], words: str) -> None:
    """What was expected, and what came instead; a recorded violation fails every expectation."""
    with pytest.raises(ExpectationFailed, match=words):
        expectation(act)


def test_an_expectation_waits_in_virtual_time() -> None:
    """An element that comes within the allowed seconds is found, and no real time passes."""

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
    """What comes later by the clock breaks a silence that quiescence alone would have confirmed."""

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


def test_draining_forgets_what_is_unread() -> None:
    """A test that does not care for the past goes on from here."""

    async def act(probe: ManualSubscriber, source: ManualPublisher) -> object:
        source.emit(1)
        drained = await probe.drain()
        await probe.expect_nothing()
        return drained[-1]

    assert expectation(act) == (Signal.NEXT, 1)
