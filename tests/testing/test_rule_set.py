"""`RuleSet`: every pair of state and signal is either in the table or breaks a rule."""

from itertools import product

import pytest

from penstock.testing import DRAFT, MODERN, Signal, SubscriberState
from penstock.testing._rule_set import broken_rule

LEGAL = {
    "FRESH": "SUBSCRIBE",
    "ACTIVE": "NEXT ERROR COMPLETE CANCEL",
    "CANCELLED": "NEXT ERROR COMPLETE CANCEL SILENCE",
    "SILENCED": "CANCEL SILENCE",
    "ENDED": "CANCEL SILENCE",
}
BROKEN = {"FRESH": "1.9", "ACTIVE": "2.12", "CANCELLED": "2.12", "SILENCED": "1.8", "ENDED": "1.7"}


@pytest.mark.parametrize(
    ("state", "signal"), list(product(SubscriberState, Signal)), ids=lambda each: each.name
)
def test_every_pair_is_legal_or_breaks_a_rule(state: SubscriberState, signal: Signal) -> None:
    """on_subscribe on_next* (on_error | on_complete)?, and the signals that may follow a cancel."""
    assert ((state, signal) in MODERN.moves) == (signal.name in LEGAL[state.name].split())
    assert broken_rule(state, signal)[0] == BROKEN[state.name]


def test_the_draft_also_allows_four_other_pairs() -> None:
    """An end without on_subscribe, and on_subscribe after a cancel."""
    assert set(DRAFT.moves) - set(MODERN.moves) == {
        (SubscriberState.FRESH, Signal.ERROR),
        (SubscriberState.FRESH, Signal.COMPLETE),
        (SubscriberState.CANCELLED, Signal.SUBSCRIBE),
        (SubscriberState.SILENCED, Signal.SUBSCRIBE),
    }


def test_the_draft_has_its_own_rule_numbers() -> None:
    """A breach is reported under the number of the rule set.
    A rule without one keeps the modern number.
    """
    assert (MODERN.rule("1.1"), DRAFT.rule("1.1"), DRAFT.rule("2.13")) == ("1.1", "D4.1", "2.13")
