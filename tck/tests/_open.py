"""What is still open: it shrinks to nothing, and then goes. A rule or a check that is closed but listed fails test_accounts.

One block for each part of the kit, so that two people who close something do not meet.
"""

# ---------------------------------------------------------------------- publishers: chapters 1 and 3

_PUBLISHER_RULES = {
    "1.2",
    "1.3",
    "1.4",
    "1.5",
    "1.6",
    "1.8",
    "1.9",
    "1.10",
    "1.11",
    "2.12",
    "3.2",
    "3.3",
    "3.4",
    "3.5",
    "3.6",
    "3.7",
    "3.12",
    "3.15",
    "3.16",
    "3.17",
}
_PUBLISHER_CHECKS: set[str] = set()

# ---------------------------------------------------------------------- subscribers and processors: chapters 2 and 4

_SUBSCRIBER_RULES: set[str] = set()
_SUBSCRIBER_CHECKS: set[str] = set()

RULES_WITHOUT_CHECK = _PUBLISHER_RULES | _SUBSCRIBER_RULES
CHECKS_WITHOUT_SABOTEUR: set[str] = _PUBLISHER_CHECKS | _SUBSCRIBER_CHECKS
