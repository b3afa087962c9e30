"""The order of signals as a table, and the two rule sets that have one:
today's rules and those of the early draft.

A subscriber gets ``on_subscribe on_next* (on_error | on_complete)?``. `MODERN_MOVES` says which
signal may follow in which state. A pair that is missing from it is a violation, and `_BREACHES`
names the rule.
In the draft, a publisher that has completed or failed signals only its end, and after a cancel the
same object may subscribe again.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs

from penstock.api import InvalidStateError


class SubscriberState(Enum):
    """The state of one subscriber towards its publisher."""

    FRESH = "before on_subscribe"
    ACTIVE = "subscribed"
    CANCELLED = "cancelled"
    SILENCED = "cancelled, and the time for late signals is over"
    ENDED = "ended"


class Signal(Enum):
    """An event of a subscriber: the four signals that arrive, and its two acts."""

    SUBSCRIBE = "on_subscribe"
    NEXT = "on_next"
    ERROR = "on_error"
    COMPLETE = "on_complete"
    CANCEL = "cancel"
    SILENCE = "silence"


_S, _E = SubscriberState, Signal

MODERN_MOVES: Final[Mapping[tuple[SubscriberState, Signal], SubscriberState]] = {
    (_S.FRESH, _E.SUBSCRIBE): _S.ACTIVE,
    (_S.ACTIVE, _E.NEXT): _S.ACTIVE,
    (_S.ACTIVE, _E.ERROR): _S.ENDED,
    (_S.ACTIVE, _E.COMPLETE): _S.ENDED,
    (_S.ACTIVE, _E.CANCEL): _S.CANCELLED,
    # rule 2.8: elements that were under way at the cancel may still arrive.
    (_S.CANCELLED, _E.NEXT): _S.CANCELLED,
    (_S.CANCELLED, _E.ERROR): _S.ENDED,
    (_S.CANCELLED, _E.COMPLETE): _S.ENDED,
    (_S.CANCELLED, _E.CANCEL): _S.CANCELLED,
    # rule 1.8: signals after a cancel must end "eventually".
    # The test calls silence() when that time is over.
    (_S.CANCELLED, _E.SILENCE): _S.SILENCED,
    (_S.SILENCED, _E.CANCEL): _S.SILENCED,
    (_S.SILENCED, _E.SILENCE): _S.SILENCED,
    (_S.ENDED, _E.CANCEL): _S.ENDED,
    (_S.ENDED, _E.SILENCE): _S.ENDED,
}

DRAFT_MOVES: Final[Mapping[tuple[SubscriberState, Signal], SubscriberState]] = {
    **MODERN_MOVES,
    # draft rules D1.1 to D1.4, D1.6: an end may come without on_subscribe.
    (_S.FRESH, _E.ERROR): _S.ENDED,
    (_S.FRESH, _E.COMPLETE): _S.ENDED,
    # draft rule D3.4: after a cancel the same object may subscribe again.
    (_S.CANCELLED, _E.SUBSCRIBE): _S.ACTIVE,
    (_S.SILENCED, _E.SUBSCRIBE): _S.ACTIVE,
}

_BREACHES: Final[Mapping[SubscriberState, tuple[str, str]]] = {
    _S.FRESH: (
        "1.9",
        "{signal} arrived before on_subscribe; on_subscribe must be the first signal",
    ),
    _S.ACTIVE: ("2.12", "{signal} arrived a second time; a subscriber is subscribed at most once"),
    _S.CANCELLED: ("2.12", "{signal} arrived after the subscription was cancelled"),
    _S.SILENCED: ("1.8", "{signal} arrived although the subscription was cancelled long ago"),
    _S.ENDED: ("1.7", "{signal} arrived after the end; nothing may follow on_error or on_complete"),
}


def broken_rule(state: SubscriberState, signal: Signal) -> tuple[str, str]:
    """Return the modern rule that `signal` breaks in `state`, and the text of the violation."""
    rule, words = _BREACHES[state]
    return rule, words.format(signal=signal.value)


@attrs.frozen(kw_only=True)
class RuleSet:
    """The names, numbers and permissions of one generation of the standard."""

    name: str
    request: str
    """The name of the method that requests elements."""
    moves: Mapping[tuple[SubscriberState, Signal], SubscriberState]
    call_errors: tuple[type[Exception], ...]
    """What `request` and `cancel` may raise. Any other exception from them is a violation."""
    calls_inside_signals: bool
    """Whether a subscriber may call its subscription inside a signal."""
    end_ends_calls: bool
    """Whether `request` and `cancel` raise InvalidStateError after the end or after a cancel."""
    rule_names: Mapping[str, str]

    def rule(self, modern: str) -> str:
        """Return the number of a modern rule in this rule set, or the modern number if the set does
        not have the rule.
        """
        return self.rule_names.get(modern, modern)


MODERN: Final = RuleSet(
    name="modern",
    request="request",
    moves=MODERN_MOVES,
    call_errors=(),
    calls_inside_signals=True,
    end_ends_calls=False,
    rule_names={},
)
"""Today's rules, chapters 1 to 4."""

DRAFT: Final = RuleSet(
    name="draft",
    request="request_more",
    moves=DRAFT_MOVES,
    call_errors=(InvalidStateError, ValueError),
    calls_inside_signals=False,
    end_ends_calls=True,
    rule_names={
        "1.1": "D4.1",
        "1.7": "D4.2",
        "1.8": "D3.2",
        "1.9": "D1.5",
        "2.3": "D6.2",
        "2.4": "D6.3",
        "2.12": "D1.7",
        "3.2": "D5.2",
        "3.4": "D9.1",
        "3.6": "D7.3",
        "3.7": "D7.4",
        "3.9": "D2.4",
        "3.15": "D3.1",
        "3.16": "D2.2",
    },
)
"""The early draft, whose rules are numbered D1.1 to D9.1."""
