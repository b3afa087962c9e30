"""The rules of Reactive Streams: which of them a recorded trace shows,
and why the others cannot be judged from one.
"""

from typing import Final

import attrs


@attrs.frozen
class Rule:
    """One rule."""

    number: str
    """As the specification numbers it."""
    text: str
    """Its demand, in short."""
    how: str
    """The signals that the audit compares, or why a trace cannot show it."""
    is_shown: bool = attrs.field(kw_only=True)
    """True if a trace shows whether it was kept."""


RULES: Final = (
    Rule(
        "1.1",
        "no more elements than were requested",
        "the sum of elements never exceeds the sum of requests before it",
        is_shown=True,
    ),
    Rule(
        "1.3",
        "signals come one after the other",
        "a row has the times of its signals and not their ends",
        is_shown=False,
    ),
    Rule(
        "1.4",
        "a failure is signalled with on_error",
        "a failure that was not signalled leaves no row",
        is_shown=False,
    ),
    Rule(
        "1.5",
        "an end is signalled with on_complete",
        "as 1.4; streams without an end are listed as unterminated",
        is_shown=False,
    ),
    Rule(
        "1.7",
        "nothing follows the end",
        "no element, end or subscription after on_complete or on_error",
        is_shown=True,
    ),
    Rule(
        "1.8",
        "signals stop after a cancel",
        "after a cancel no element comes beyond what was requested before it",
        is_shown=True,
    ),
    Rule(
        "1.9",
        "on_subscribe comes first, and once",
        "the first row is on_subscribe, and no later one is",
        is_shown=True,
    ),
    Rule(
        "2.1",
        "a subscriber requests elements",
        "a subscriber may leave it; the time without demand is in the figures",
        is_shown=False,
    ),
    Rule(
        "2.12",
        "on_subscribe is called once",
        "as 1.9: the trace shows one stream, from both sides",
        is_shown=True,
    ),
    Rule("3.3", "recursion is bounded", "the depth of calls leaves no row", is_shown=False),
    Rule(
        "3.4",
        "request returns quickly",
        "the longest time of a signal is in the figures; it is not a violation",
        is_shown=True,
    ),
    Rule(
        "3.6",
        "after a cancel, requests do nothing",
        "a request after a cancel adds no demand, see 1.8",
        is_shown=True,
    ),
    Rule(
        "3.9",
        "a request of 0 or less is answered with on_error",
        "a row of on_error follows it",
        is_shown=True,
    ),
    Rule(
        "3.13", "references are dropped after a cancel", "references leave no row", is_shown=False
    ),
)


FINDINGS: Final = {
    "1.1": "more elements than were requested",
    "1.7": "a signal after the end",
    "1.8": "an element after a cancel, beyond the demand before it",
    "1.9": "the first signal is not on_subscribe, or on_subscribe came again",
    "3.9": "a request of 0 or less that no on_error answers",
}
"""The reports of the audit, by the rule."""
