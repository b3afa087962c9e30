"""Streams by publisher: plain numbers, kept while streams begin and end, and read when a plugin
asks.

Rules of this file:

* The numbers are kept only if a plugin of the registry reads them (`penstock.spi.Fact.PUBLISHERS`).
  Without such a plugin no object of this file exists.
* A stream has no object here: the streams of one publisher share one. An end costs one call.
* A duration needs a clock, which costs as much as all the rest. So durations are added up from the
  first time on that a plugin reads.
* A label is the name or pattern under which the service offers a publisher, and never a name that
  a peer has chosen. So there are as many labels as the service has names, and one for requests
  without a name.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import trio

from penstock.session import SendingEvent, SendingStream, WhenOver
from penstock.spi import Outcome, PublisherStatistics

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_FLUSHED: Final = SendingEvent.FLUSHED
_FAILED: Final = SendingEvent.FAILED
_CANCELLED: Final = SendingEvent.CANCELLED


def outcome_of(stream: SendingStream, event: SendingEvent) -> Outcome:
    """Return how a stream of this side has ended."""
    # The end of the publisher counts, also if its connection has ended before it was sent.
    if event is _FLUSHED:
        return Outcome.COMPLETED
    if event is _FAILED:
        return Outcome.FAILED
    if stream.is_connection_closing:
        return Outcome.LOST
    return Outcome.CANCELLED if event is _CANCELLED else Outcome.FAILED


class PublisherCounts:
    """The numbers of one publisher."""

    __slots__ = (
        "bytes",
        "cancelled",
        "completed",
        "elements",
        "failed",
        "lost",
        "opened",
        "seconds",
    )

    def __init__(self) -> None:
        self.opened: int = 0
        self.completed: int = 0
        self.failed: int = 0
        self.cancelled: int = 0
        self.lost: int = 0
        self.elements: int = 0  # of the streams that have ended, as are the two that follow
        self.bytes: int = 0
        self.seconds: float = 0.0

    def end(self, outcome: Outcome) -> None:
        """Count how a stream has ended."""
        if outcome is Outcome.COMPLETED:
            self.completed += 1
        elif outcome is Outcome.FAILED:
            self.failed += 1
        elif outcome is Outcome.CANCELLED:
            self.cancelled += 1
        else:
            self.lost += 1

    def take(self) -> PublisherStatistics:
        """Return the record of now."""
        return PublisherStatistics(
            streams=self.opened - self.completed - self.failed - self.cancelled - self.lost,
            ended=MappingProxyType(
                {
                    Outcome.COMPLETED: self.completed,
                    Outcome.FAILED: self.failed,
                    Outcome.CANCELLED: self.cancelled,
                    Outcome.LOST: self.lost,
                }
            ),
            elements=self.elements,
            element_bytes=self.bytes,
            seconds=self.seconds,
        )


class _Timing:
    """Whether durations are added up. It is a separate object: else a circle of references."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: Callable[[], float] | None = None


class PublisherTable:
    """The numbers of all publishers of one server, or of one client."""

    __slots__ = ("_timing", "by_label")

    def __init__(self) -> None:
        self.by_label: dict[str, tuple[PublisherCounts, WhenOver]] = {}
        """By label: the numbers, and the function that is called when a stream of the publisher is
        over.
        """
        self._timing = _Timing()

    def add(self, label: str) -> tuple[PublisherCounts, WhenOver]:
        """Return the entry of a publisher that has had no stream yet."""
        counts = PublisherCounts()
        found = self.by_label[label] = counts, _when_over(counts, self._timing)
        return found

    def begin_hosted(self, label: str) -> Callable[[Outcome, int, int, float], None]:
        """Count a stream that belongs to no connection. The result is called at its end, with
        the outcome, the elements, their bytes, and the time of its beginning.
        """
        counts, _ = self.by_label.get(label) or self.add(label)
        counts.opened += 1
        timing = self._timing

        def end(outcome: Outcome, elements: int, size: int, began_at: float) -> None:
            counts.end(outcome)
            counts.elements += elements
            counts.bytes += size
            if timing.now is not None:
                counts.seconds += timing.now() - began_at

        return end

    def take(self) -> Mapping[str, PublisherStatistics]:
        """Return the records of now, by label. From now on durations are added up."""
        self._timing.now = trio.current_time
        # A copy: a record does not change after the call.
        return MappingProxyType(
            {label: counts.take() for label, (counts, _) in self.by_label.items()}
        )


def _when_over(counts: PublisherCounts, timing: _Timing) -> WhenOver:
    # A function and no method: a method that the table keeps beside its object would be a circle.
    def end(stream: SendingStream, event: SendingEvent) -> None:
        counts.elements += stream.sent
        counts.bytes += stream.sent_bytes
        if event is _FLUSHED:  # most streams, without a further call
            counts.completed += 1
        else:
            counts.end(outcome_of(stream, event))
        if timing.now is not None:
            counts.seconds += timing.now() - stream.began_at

    return end
