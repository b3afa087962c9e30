"""The plan of a query over publishers that keep no elements: `delivery=atMostOnce`.

Rules of this file:

* An offset counts the elements that were asked for. It is not a position: an element that was
  signalled while no task read is gone.
* A publisher with positions is refused: each batch would subscribe from its beginning, and give the
  same elements again and again.
* Each batch is a separate subscription, and asks for `maxElementsPerTrigger` elements of all
  streams together. It ends with fewer if `longPollMs` is over.
"""

from penstock.api import UsageError
from penstock_spark.source._offsets import Offset, Range
from penstock_spark.source._publisher import QueryServer
from penstock_spark.source._settings import SourceSettings


class CountedPlan:
    """The part that runs in the driver, for a query that may lose elements
    (`delivery=atMostOnce`): a batch has a number of elements.
    """

    def __init__(self, settings: SourceSettings, publisher: QueryServer | None = None) -> None:
        self._settings = settings
        self._publisher = (
            QueryServer(settings.uris[0], settings.client) if publisher is None else publisher
        )
        self._is_checked = False
        self._most = max(1, (settings.max_elements or 1) // len(settings.streams))

    def initial(self, default: str) -> Offset:
        """Return the beginning of the count."""
        self._refuse_logs()
        return Offset({(stream, ""): 0 for stream in self._settings.streams})

    def latest(self, start: Offset, *, is_limited: bool = True) -> Offset:
        """Return the next count. Each trigger makes a batch:
        a task learns whether there are elements.
        """
        _refuse_positions(start)
        self._refuse_logs()
        return Offset(
            {
                (stream, ""): start.positions.get((stream, ""), 0) + self._most
                for stream in self._settings.streams
            }
        )

    def fix_target(self) -> None:
        """Raise UsageError."""
        raise UsageError(
            "Trigger.AvailableNow reads what is there, and with delivery=atMostOnce the publisher "
            "keeps nothing: use another trigger, or let penstock.Spool write the stream to a log"
        )

    def newest(self) -> Offset | None:
        """Return None: such a publisher has no newest position."""
        return None

    def ranges(self, start: Offset, end: Offset) -> list[tuple[Range, tuple[str, ...]]]:
        """Return one range for each stream."""
        _refuse_positions(end)
        self._refuse_logs()
        return [
            (Range(*key, start.positions.get(key, stop - self._most), stop), self._settings.uris)
            for key, stop in end.positions.items()
        ]

    def whole(self, default: str) -> list[tuple[Range, tuple[str, ...]]]:
        """Return the ranges of a batch query: one batch."""
        start = self.initial(default)
        return self.ranges(start, self.latest(start))

    def close(self) -> None:
        """Leave the connection."""
        self._publisher.close()

    # --- inside

    def _refuse_logs(self) -> None:
        if self._is_checked:
            return
        for stream in self._settings.streams:
            if self._publisher.has_positions(stream):
                raise UsageError(
                    f"delivery=atMostOnce reads publishers that keep no elements, and {stream!r} "
                    "is a log: each batch would begin at its first element again. Leave delivery "
                    "out, and each element is read exactly once"
                )
        self._publisher.close()  # no other question is asked
        self._is_checked = True


def _refuse_positions(offset: Offset) -> None:
    if any(partition for _, partition in offset.positions):
        raise UsageError(
            "the checkpoint has the positions of a log, and delivery=atMostOnce has none. Leave "
            "delivery out, or give this query a checkpointLocation of its own"
        )
