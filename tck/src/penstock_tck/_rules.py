"""A rule: its number, its level, its text in the kit's words, and how the kit accounts for it.

The 43 modern rules are in `_modern_rules.py`, the 43 rules of the early draft in `_draft_rules.py`.
Modern rules have the numbers of the standard (1.1 to 4.2). Rules of the draft are numbered D1.1 to
D9.1, in the order in which it states them.
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
    """One rule. If it has no check, `reason` says why."""

    id: str
    level: Level
    text: str
    account: Account = Account.CHECK
    reason: str = ""


def must(rule_id: str, text: str) -> Rule:
    """Make a rule that binds."""
    return Rule(id=rule_id, level=Level.MUST, text=text)


def should(rule_id: str, text: str) -> Rule:
    """Make a rule that recommends."""
    return Rule(id=rule_id, level=Level.SHOULD, text=text)


def may(rule_id: str, text: str) -> Rule:
    """Make a rule that permits something and still can be broken, by the conditions
    that it sets.
    """
    return Rule(id=rule_id, level=Level.MAY, text=text)


def observed(rule_id: str, text: str, *, level: Level, reason: str) -> Rule:
    """Make a rule that cannot be seen to be broken from outside: the kit reports what it saw."""
    return Rule(id=rule_id, level=level, text=text, account=Account.OBSERVATION, reason=reason)


def reasoned(rule_id: str, text: str, *, level: Level, reason: str) -> Rule:
    """Make a rule that is neither checked nor observed, with the reason."""
    return Rule(id=rule_id, level=level, text=text, account=Account.REASON, reason=reason)


def table(*rules: Rule) -> Mapping[str, Rule]:
    """Return the rules by id, in their order. Raises ValueError if an id occurs twice."""
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
    """Return the name of the chapter of a rule."""
    return CHAPTERS[rule_id.split(".", maxsplit=1)[0]]
