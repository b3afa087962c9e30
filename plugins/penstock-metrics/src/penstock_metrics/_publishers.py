"""Streams by publisher, counted from the events of streams.

Rules of this file:

* A label is the name or pattern under which the service offers a publisher (`quotes/{symbol}`), and
  never a name that a peer has chosen.
* There are at most `MOST_LABELS` labels. Each further publisher is counted under `OTHER`, together
  with requests that have no name.
* The table never shrinks. So a stream that was counted under a label
  when it began is counted under the same one when it ends.
"""

from collections import Counter
from typing import Final

import attrs

from penstock.spi import Outcome, StreamEnded, StreamOpened

MOST_LABELS: Final = 200
"""Publishers that have a label of their own."""

OTHER: Final = "other"
"""The label of all other publishers."""


@attrs.define
class PublisherCounts:
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
    """The durations of the streams that have ended, added up."""


class Publishers:
    """The counts of all publishers of a process."""

    def __init__(self, most: int = MOST_LABELS) -> None:
        self._most = most
        self.counts: dict[str, PublisherCounts] = {}
        """By label; bounded by `most`, and one more for `OTHER`."""

    def open(self, event: StreamOpened) -> None:
        """Count a stream that begins."""
        # A stream of a peer has no pattern here, and the statistics of the connections have its
        # elements.
        if event.outbound:
            self._of(event.pattern).open += 1

    def end(self, event: StreamEnded) -> None:
        """Count a stream that has ended."""
        if event.outbound:
            counts = self._of(event.pattern)
            counts.open -= 1
            counts.ended[event.outcome] += 1
            counts.elements += event.elements
            counts.bytes += event.bytes
            counts.seconds += event.duration

    def _of(self, pattern: str) -> PublisherCounts:
        # OTHER takes none of the places: without it in the sum, the label that comes first would
        # decide whether there is one place more.
        is_full = len(self.counts.keys() - {OTHER}) >= self._most
        label = OTHER if not pattern or (is_full and pattern not in self.counts) else pattern
        found = self.counts.get(label)
        if found is None:
            found = self.counts[label] = PublisherCounts()
        return found
