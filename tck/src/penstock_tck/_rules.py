"""A rule: its number, how binding it is, what it says in our words, and how the kit accounts for it.

The 43 modern rules are in `_modern_rules.py`, the 43 of the early draft in `_draft_rules.py`.
Modern rules are numbered as the standard numbers them (1.1 to 4.2), the draft's D1.1 to D9.1 in the order in which it states them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs


class Level(Enum):
    """How binding a rule is."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Account(Enum):
    """How the kit accounts for a rule."""

    CHECK = "check"
    OBSERVATION = "observation"
    REASON = "reason"


@attrs.frozen(kw_only=True)
class Rule:
    """One rule; `reason` says why it is accounted for by something else than a check."""

    id: str
    level: Level
    text: str
    account: Account = Account.CHECK
    reason: str = ""


def must(rule_id: str, text: str) -> Rule:
    """A rule that binds."""
    return Rule(id=rule_id, level=Level.MUST, text=text)


def should(rule_id: str, text: str) -> Rule:
    """A rule that recommends."""
    return Rule(id=rule_id, level=Level.SHOULD, text=text)


def may(rule_id: str, text: str) -> Rule:
    """A rule that permits, and that can be broken all the same by what surrounds the permission."""
    return Rule(id=rule_id, level=Level.MAY, text=text)


def observed(rule_id: str, text: str, *, level: Level, reason: str) -> Rule:
    """A rule that nothing can break from outside: the kit reports what it saw."""
    return Rule(id=rule_id, level=level, text=text, account=Account.OBSERVATION, reason=reason)


def reasoned(rule_id: str, text: str, *, level: Level, reason: str) -> Rule:
    """A rule that is neither checked nor observed, with the reason."""
    return Rule(id=rule_id, level=level, text=text, account=Account.REASON, reason=reason)


def table(*rules: Rule) -> Mapping[str, Rule]:
    """Return the rules by id, in their order; two of one id are a mistake."""
    by_id = {rule.id: rule for rule in rules}
    if len(by_id) != len(rules):
        raise ValueError("a rule table names an id twice")
    return by_id


CHAPTERS: Final[Mapping[str, str]] = {
    "1": "Publisher",
    "2": "Subscriber",
    "3": "Subscription",
    "4": "Processor",
    "D1": "Draft: subscribe",
    "D2": "Draft: request_more",
    "D3": "Draft: cancel",
    "D4": "Draft: publisher",
    "D5": "Draft: on_subscribe and on_next",
    "D6": "Draft: on_complete and on_error",
    "D7": "Draft: subscriber",
    "D8": "Draft: processor",
    "D9": "Draft: generally",
}


def chapter(rule_id: str) -> str:
    """Return the name of the chapter that a rule is in."""
    return CHAPTERS[rule_id.split(".", maxsplit=1)[0]]
