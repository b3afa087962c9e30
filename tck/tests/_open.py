"""What is still open: it shrinks to nothing, and then goes. A rule or a check that is closed but listed fails test_accounts.

One block for each part of the kit, so that two people who close something do not meet.
"""

# ---------------------------------------------------------------------- publishers: chapters 1 and 3

_PUBLISHER_RULES: set[str] = set()
_PUBLISHER_CHECKS: set[str] = set()

# ---------------------------------------------------------------------- subscribers and processors: chapters 2 and 4

_SUBSCRIBER_RULES = {
    "2.2",
    "2.3",
    "2.4",
    "2.6",
    "2.7",
    "2.8",
    "2.9",
    "2.10",
    "4.1",
}
_SUBSCRIBER_CHECKS: set[str] = set()

RULES_WITHOUT_CHECK = _PUBLISHER_RULES | _SUBSCRIBER_RULES
CHECKS_WITHOUT_SABOTEUR: set[str] = _PUBLISHER_CHECKS | _SUBSCRIBER_CHECKS
