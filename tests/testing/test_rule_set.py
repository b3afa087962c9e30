"""Tests of the grammar: every state with every signal is either in the table or a breach with a rule."""

from itertools import product

import pytest

from penstock.testing import DRAFT, MODERN, Signal, SubscriberState
from penstock.testing._rule_set import breach

LEGAL = {
    "FRESH": "SUBSCRIBE",
    "ACTIVE": "NEXT ERROR COMPLETE CANCEL",
    "CANCELLED": "NEXT ERROR COMPLETE CANCEL SILENCE",
    "SILENCED": "CANCEL SILENCE",
    "ENDED": "CANCEL SILENCE",
}
BROKEN = {"FRESH": "1.9", "ACTIVE": "2.12", "CANCELLED": "2.12", "SILENCED": "1.8", "ENDED": "1.7"}


@pytest.mark.parametrize(("state", "signal"), list(product(SubscriberState, Signal)), ids=lambda each: each.name)
def test_every_pair_is_legal_or_breaks_a_rule(state: SubscriberState, signal: Signal) -> None:
    """on_subscribe on_next* (on_error | on_complete)?, and what may follow a cancel."""
    assert ((state, signal) in MODERN.moves) == (signal.name in LEGAL[state.name].split())
    assert breach(state, signal)[0] == BROKEN[state.name]


def test_the_draft_allows_an_end_alone_and_a_second_life_after_cancel() -> None:
    """These four pairs are all that the draft's table has more."""
    assert set(DRAFT.moves) - set(MODERN.moves) == {
        (SubscriberState.FRESH, Signal.ERROR),
        (SubscriberState.FRESH, Signal.COMPLETE),
        (SubscriberState.CANCELLED, Signal.SUBSCRIBE),
        (SubscriberState.SILENCED, Signal.SUBSCRIBE),
    }


def test_the_draft_has_numbers_of_its_own() -> None:
    """A breach is reported under the number of the generation that is spoken."""
    assert (MODERN.rule("1.1"), DRAFT.rule("1.1"), DRAFT.rule("2.13")) == ("1.1", "D4.1", "2.13")
