"""A profile: which generation of the standard is verified, and which of two expectations applies
where the two generations differ.

They differ at nine points. The code that serves both reads points 2, 5, 7 and 8 from
`self.profile`. At the other points each generation has separate checks, because their steps differ
too; these points are here so that a user can look them up.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs

from penstock.api import InvalidStateError
from penstock.testing import DRAFT as DRAFT_DIALECT
from penstock.testing import MODERN as MODERN_DIALECT
from penstock.testing import RuleSet
from penstock_tck._draft_rules import DRAFT_RULES
from penstock_tck._modern_rules import MODERN_RULES
from penstock_tck._rules import Rule


class SecondSubscription(Enum):
    """The reaction of a subscriber to a second subscription."""

    CANCELLED = "it is cancelled"
    REPORTED = "an error is reported, and it is left alone"


@attrs.frozen(kw_only=True)
class Profile:
    """The name and the rules of a generation, and the nine points at
    which the two generations differ.
    """

    name: str
    dialect: RuleSet
    rules: Mapping[str, Rule]
    completed_calls_on_subscribe: bool
    """Point 1 (1.9, D1.1): whether a completed publisher calls on_subscribe before on_complete."""
    failed_calls_on_subscribe: bool
    """Point 2 (1.9, D1.3): whether a failed publisher calls on_subscribe before on_error."""
    refusal_calls_on_subscribe: bool
    """Point 3 (1.9, D1.6): whether a refused subscriber gets on_subscribe before on_error."""
    same_subscriber_refused: bool
    """Point 4 (1.10, D1.7): whether the same object is refused while it is subscribed,
    with InvalidStateError.
    """
    request_when_over_raises: type[Exception] | None
    """Point 5 (3.6, D2.1): the exception of a request on a cancelled subscription."""
    overflow_error: type[Exception] | None
    """Point 6 (3.17, D2.3): the on_error that answers a total demand above 2^63-1."""
    illegal_demand_raises: type[Exception] | None
    """Point 7 (3.9, D2.4): the exception of a request that is not positive; None:
    on_error(ValueError) answers it.
    """
    second_cancel_raises: type[Exception] | None
    """Point 8 (3.7, D3.1): the exception of a second cancel."""
    second_subscription: SecondSubscription
    """Point 9 (2.5, D7.1): the reaction of a subscriber to a second subscription."""


MODERN: Final = Profile(
    name="modern",
    dialect=MODERN_DIALECT,
    rules=MODERN_RULES,
    completed_calls_on_subscribe=True,
    failed_calls_on_subscribe=True,
    refusal_calls_on_subscribe=True,
    same_subscriber_refused=False,
    request_when_over_raises=None,
    overflow_error=None,
    illegal_demand_raises=None,
    second_cancel_raises=None,
    second_subscription=SecondSubscription.CANCELLED,
)
"""Today's rules: the default profile."""

DRAFT: Final = Profile(
    name="draft",
    dialect=DRAFT_DIALECT,
    rules=DRAFT_RULES,
    completed_calls_on_subscribe=False,
    failed_calls_on_subscribe=False,
    refusal_calls_on_subscribe=False,
    same_subscriber_refused=True,
    request_when_over_raises=InvalidStateError,
    overflow_error=InvalidStateError,
    illegal_demand_raises=ValueError,
    second_cancel_raises=InvalidStateError,
    second_subscription=SecondSubscription.REPORTED,
)
"""The rules of the early draft."""


def find_rule(rule_id: str) -> Rule:
    """Return the rule of either generation by its id. Raises KeyError for an unknown id."""
    return MODERN_RULES[rule_id] if rule_id in MODERN_RULES else DRAFT_RULES[rule_id]
