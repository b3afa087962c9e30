"""`SignalLedger`: demand and elements, caps, recursion, threads."""

import threading

import pytest

from penstock.api import UNBOUNDED
from penstock.testing import MODERN, RunawaySignals, Signal, SignalLedger, Transcript


def subscribed_ledger(**caps: int | None) -> SignalLedger:
    options: dict[str, int | None] = {
        "recursion_bound": None,
        "excess_cap": 5,
        "signal_cap": 50,
        **caps,
    }
    ledger = SignalLedger("s1", Transcript(), MODERN, **options)  # type: ignore[arg-type]  # a table of caps
    ledger.receive_signal(Signal.SUBSCRIBE, "")
    return ledger


def rules(ledger: SignalLedger) -> list[str]:
    return [violation.rule for violation in ledger.transcript.violations]


def test_each_element_is_compared_with_the_demand_at_its_arrival() -> None:
    """The third element of two requested ones breaks rule 1.1, even if demand comes later."""
    ledger = subscribed_ledger()
    ledger.add_requested(2)
    for _ in range(3):
        ledger.receive_signal(Signal.NEXT, "x")
    ledger.add_requested(10)
    assert rules(ledger) == ["1.1"]


def test_unbounded_demand_is_never_used_up() -> None:
    """2^63-1 is unbounded (rule 3.17), and demand saturates there."""
    ledger = subscribed_ledger()
    ledger.add_requested(UNBOUNDED)
    ledger.add_requested(UNBOUNDED)
    ledger.received = UNBOUNDED
    ledger.receive_signal(Signal.NEXT, "x")
    assert (ledger.requested, rules(ledger)) == (UNBOUNDED, [])


@pytest.mark.parametrize("illegal", [0, -1, True, 1.5, None, "1"])
def test_illegal_demand_adds_nothing(illegal: object) -> None:
    """An illegal request permits no element (rule 3.9)."""
    ledger = subscribed_ledger()
    ledger.add_requested(illegal)
    assert ledger.requested == 0


def test_too_many_illegal_signals_stop_the_publisher() -> None:
    """Beyond the cap the ledger raises an exception that `except Exception` does not catch."""
    ledger = subscribed_ledger(excess_cap=5)
    for _ in range(5):
        ledger.receive_signal(Signal.NEXT, "x")
    with pytest.raises(RunawaySignals, match="more than 5 illegal signals"):
        ledger.receive_signal(Signal.NEXT, "x")
    assert not issubclass(RunawaySignals, Exception)


@pytest.mark.parametrize("rule", ["3.4", "1.8"])
def test_too_many_signals_stop_the_publisher(rule: str) -> None:
    """An endless publisher that obeys demand is stopped too. After a cancel its fault is that it
    goes on.
    """
    ledger = subscribed_ledger(signal_cap=50)
    ledger.add_requested(UNBOUNDED)
    if rule == "1.8":
        ledger.move(Signal.CANCEL)
    for _ in range(49):
        ledger.receive_signal(Signal.NEXT, "x")
    with pytest.raises(RunawaySignals):
        ledger.receive_signal(Signal.NEXT, "x")
    assert rules(ledger) == [rule]


def test_recursion_beyond_the_declared_bound_is_a_breach() -> None:
    """on_next may nest up to the bound (rule 3.3)."""
    ledger = subscribed_ledger(recursion_bound=2)
    ledger.add_requested(3)
    for _ in range(3):
        ledger.enter_call()
        ledger.receive_signal(Signal.NEXT, "x")
        ledger.enter_signal(Signal.NEXT)
    assert (rules(ledger), ledger.deepest) == (["3.3"], 3)


def test_a_signal_inside_a_signal_is_a_breach() -> None:
    """No signal may arrive before on_next has returned (rule 1.3)."""
    ledger = subscribed_ledger()
    ledger.add_requested(1)
    ledger.receive_signal(Signal.NEXT, "x")
    ledger.enter_signal(Signal.NEXT)
    ledger.receive_signal(Signal.COMPLETE, "")
    assert rules(ledger) == ["1.3"]


def test_a_signal_inside_a_call_of_the_subscriber_is_legal() -> None:
    """A request inside on_next may be answered before it returns (rules 3.10, 3.11)."""
    ledger = subscribed_ledger()
    ledger.add_requested(1)
    ledger.receive_signal(Signal.NEXT, "x")
    ledger.enter_signal(Signal.NEXT)
    ledger.enter_call()
    ledger.receive_signal(Signal.COMPLETE, "")
    ledger.leave_innermost()
    ledger.leave_innermost()
    assert (rules(ledger), ledger.depth) == ([], 0)


def test_a_signal_from_another_thread_is_a_breach() -> None:
    """Signals must arrive in the thread of the run (rule 2.11)."""
    ledger = subscribed_ledger()
    thread = threading.Thread(target=ledger.receive_signal, args=(Signal.COMPLETE, ""))
    thread.start()
    thread.join()
    assert rules(ledger) == ["2.11"]


def test_a_signal_from_another_thread_overlaps_even_inside_a_call() -> None:
    """It is not on the call stack of that call, so on_next has not returned (rule 1.3)."""
    ledger = subscribed_ledger()
    ledger.add_requested(2)
    ledger.receive_signal(Signal.NEXT, "x")
    ledger.enter_signal(Signal.NEXT)
    ledger.enter_call()
    thread = threading.Thread(target=ledger.receive_signal, args=(Signal.NEXT, "y"))
    thread.start()
    thread.join()
    assert rules(ledger) == ["2.11", "1.3"]


def test_is_open_while_subscribed() -> None:
    """A subscription that has neither ended nor been cancelled is open."""
    ledger = subscribed_ledger()
    assert ledger.is_open
    ledger.move(Signal.CANCEL)
    assert not ledger.is_open
