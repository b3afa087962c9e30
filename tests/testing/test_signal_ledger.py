"""Tests of the ledger: demand against arrivals, caps, recursion, threads."""

import threading

import pytest

from penstock.api import UNBOUNDED
from penstock.testing import MODERN, RunawaySignals, Signal, SignalLedger, Transcript


def ledger(**caps: int | None) -> SignalLedger:
    options: dict[str, int | None] = {"recursion_bound": None, "excess_cap": 5, "signal_cap": 50, **caps}
    made = SignalLedger("s1", Transcript(), MODERN, **options)  # type: ignore[arg-type]  # a table of caps
    made.arrived(Signal.SUBSCRIBE, "")
    return made


def rules(of: SignalLedger) -> list[str]:
    return [violation.rule for violation in of.transcript.violations]


def test_each_element_is_held_against_the_demand_of_that_moment() -> None:
    """The third element of two requested ones is a breach of rule 1.1, even if demand comes later."""
    book = ledger()
    book.granted(2)
    for _ in range(3):
        book.arrived(Signal.NEXT, "x")
    book.granted(10)
    assert rules(book) == ["1.1"]


def test_a_demand_without_bound_is_never_used_up() -> None:
    """2^63-1 means without bound (rule 3.17), and demand saturates there."""
    book = ledger()
    book.granted(UNBOUNDED)
    book.granted(UNBOUNDED)
    book.received = UNBOUNDED
    book.arrived(Signal.NEXT, "x")
    assert (book.requested, rules(book)) == (UNBOUNDED, [])


@pytest.mark.parametrize("nothing", [0, -1, True, 1.5, None, "1"])
def test_what_is_no_demand_grants_nothing(nothing: object) -> None:
    """An illegal request does not permit an element (rule 3.9)."""
    book = ledger()
    book.granted(nothing)
    assert book.requested == 0


def test_too_many_illegal_signals_stop_the_publisher() -> None:
    """Past the cap the ledger raises what `except Exception` does not catch."""
    book = ledger(excess_cap=5)
    for _ in range(5):
        book.arrived(Signal.NEXT, "x")
    with pytest.raises(RunawaySignals, match="more than 5 illegal signals"):
        book.arrived(Signal.NEXT, "x")
    assert not issubclass(RunawaySignals, Exception)


def test_too_many_signals_at_all_stop_the_publisher() -> None:
    """An endless publisher keeps every rule of demand and is stopped all the same."""
    book = ledger(signal_cap=50)
    book.granted(UNBOUNDED)
    for _ in range(49):
        book.arrived(Signal.NEXT, "x")
    with pytest.raises(RunawaySignals):
        book.arrived(Signal.NEXT, "x")
    assert rules(book) == ["3.4"]


def test_recursion_is_held_against_the_declared_bound() -> None:
    """on_next inside on_next is a breach only past the bound (rule 3.3)."""
    book = ledger(recursion_bound=2)
    book.granted(3)
    for _ in range(3):
        book.call()
        book.arrived(Signal.NEXT, "x")
        book.enter(Signal.NEXT)
    assert (rules(book), book.deepest) == (["3.3"], 3)


def test_a_signal_inside_a_signal_is_a_breach() -> None:
    """Until on_next has returned nothing else may arrive (rule 1.3)."""
    book = ledger()
    book.granted(1)
    book.arrived(Signal.NEXT, "x")
    book.enter(Signal.NEXT)
    book.arrived(Signal.COMPLETE, "")
    assert rules(book) == ["1.3"]


def test_a_signal_inside_a_call_of_the_subscriber_is_none() -> None:
    """A request inside on_next may be answered before it returns (rules 3.10, 3.11), and afterwards the signal goes on."""
    book = ledger()
    book.granted(1)
    book.arrived(Signal.NEXT, "x")
    book.enter(Signal.NEXT)
    book.call()
    book.arrived(Signal.COMPLETE, "")
    book.leave()
    book.leave()
    assert (rules(book), book.depth) == ([], 0)


def test_a_signal_from_another_thread_is_a_breach() -> None:
    """Everything happens in the run's thread (rule 2.11)."""
    book = ledger()
    thread = threading.Thread(target=book.arrived, args=(Signal.COMPLETE, ""))
    thread.start()
    thread.join()
    assert rules(book) == ["2.11"]


def test_a_signal_from_another_thread_overlaps_even_inside_a_call() -> None:
    """What answers a request from another thread is not on the stack of that request: on_next has not returned (rule 1.3)."""
    book = ledger()
    book.granted(2)
    book.arrived(Signal.NEXT, "x")
    book.enter(Signal.NEXT)
    book.call()
    thread = threading.Thread(target=book.arrived, args=(Signal.NEXT, "y"))
    thread.start()
    thread.join()
    assert rules(book) == ["2.11", "1.3"]


def test_an_open_subscription_is_told() -> None:
    """Neither ended nor cancelled: somebody forgot to clean up."""
    book = ledger()
    assert book.is_open
    book.move(Signal.CANCEL)
    assert not book.is_open
