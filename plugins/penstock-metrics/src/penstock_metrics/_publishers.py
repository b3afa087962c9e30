"""Streams by publisher, added up over all servers and connections that are collected.

Rules of this file:

* A label is the name or pattern under which the service offers a publisher (`quotes/{symbol}`),
  and never a name that a peer has chosen.
* There are at most `MOST_LABELS` labels. Each further publisher is counted under `OTHER`, together
  with requests that have no name.
* A publisher that has a label keeps it: a counter must not move from one label to another.
"""

from collections import Counter
from typing import Final

import attrs

from penstock.spi import Outcome, PublisherStatistics

MOST_LABELS: Final = 200
"""Publishers that have a label of their own."""

OTHER: Final = "other"
"""The label of all other publishers."""


@attrs.define
class LabelCounts:
    """The streams of one publisher, or of all publishers without a label."""

    open: int = 0
    """Streams that are open now."""
    ended: Counter[Outcome] = attrs.field(factory=Counter)
    """Streams that have ended, by outcome."""
    elements: int = 0
    """Elements of the streams that have ended."""
    bytes: int = 0
    """Their bytes, without headers."""
    seconds: float = 0.0
    """The durations of the streams that have ended since the first record, added up."""

    def add(self, statistics: PublisherStatistics, *, is_over: bool = False) -> None:
        """Add what one server or one connection reports; one that `is_over` has no open stream."""
        self.open += 0 if is_over else statistics.streams
        for outcome, count in statistics.ended.items():
            # Without zeros: a page has a row for each outcome that was seen.
            if count:
                self.ended[outcome] += count
        self.elements += statistics.elements
        self.bytes += statistics.element_bytes
        self.seconds += statistics.seconds


class Labels:
    """Which publishers have a label of their own."""

    def __init__(self, most: int = MOST_LABELS) -> None:
        self._most = most
        self._given: set[str] = set()  # bounded by `most`

    def of(self, pattern: str) -> str:
        """Return the label of the publisher that is offered as `pattern`."""
        if not pattern or (pattern not in self._given and len(self._given) >= self._most):
            return OTHER
        self._given.add(pattern)
        return pattern
