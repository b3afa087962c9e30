"""The plan of a streaming query: where it begins, and how far each batch goes.

Rules of this file:

* The batch that an offset ends may have been planned by another process:
  the state of this one only saves requests.
* Spark gives one limit to a source. The others are kept here: bytes by the mean size of a sample,
  and the least number of elements by not going on until `maxTriggerDelay` is over.
* A loss moves a position only in an offset that Spark keeps, so it happens once: such an offset is
  returned also if its batch is empty.
* `Trigger.AvailableNow` reads up to the positions at its beginning, and no further;
  `minElementsPerTrigger` does not hold it back.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from penstock.api import PenstockError, UsageError
from penstock_spark.source._offsets import (
    Facts,
    Key,
    Offset,
    Range,
    ranges_between,
    read_places,
    share,
    share_bytes,
)
from penstock_spark.source._servers import QueryServers
from penstock_spark.source._settings import EARLIEST, LATEST, SourceSettings

_log: Final = logging.getLogger("penstock.spark")


class Plan:
    """The part of the source that runs in the driver:
    it decides which elements the next batch of a query has.
    """

    def __init__(
        self,
        settings: SourceSettings,
        publisher: QueryServers | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._publisher = QueryServers(settings) if publisher is None else publisher
        self._clock = clock
        self._facts: dict[Key, Facts] = {}
        self._target: Mapping[Key, int] | None = None
        self._epoch = 0
        self._holds_back = False
        self._last_batch_at: float | None = None
        self._first: Offset | None = None
        self._warned: set[str] = set()
        self._newest_end: Offset | None = None

    # --- where a query begins, and where a batch ends

    def initial(self, default: str) -> Offset:
        """Return where a new query begins. Spark asks twice, and the answer is the same."""
        if self._first is None:
            facts = self._ask()
            starting = self._settings.starting or default
            otherwise = starting if isinstance(starting, str) else EARLIEST
            time = self._settings.starting_time
            self._first = Offset(
                self._places(starting, facts, "startingOffsets", otherwise)
                if time is None
                else self._places_at(time)
            )
        return self._first

    def latest(self, start: Offset, *, is_limited: bool = True) -> Offset:
        """Return where the next batch ends: at `start` without new elements. Without `is_limited`
        it takes all that is there.
        """
        self._check_owner(start)
        self._check_selected(start)
        facts = self._ask(
            after=self._seen(start),
            wait=0.0 if self._target is not None else self._settings.long_poll,
        )
        begins = {key: self._begin(start, key, each) for key, each in facts.items()}
        begins |= {key: facts[key].earliest for key in self._changed(start, begins)}
        is_moved = any(
            begins.get(key, position) != position for key, position in start.positions.items()
        )
        backlog = {key: self._end(key, each.latest) - begins[key] for key, each in facts.items()}
        backlog = {key: count for key, count in backlog.items() if count > 0}
        counts = self._limited(backlog, begins) if is_limited else backlog
        self._holds_back = is_limited and not is_moved and self._is_held_back(sum(backlog.values()))
        if not is_moved and (not counts or self._holds_back):
            return start
        self._last_batch_at = self._clock()
        # Partitions of a server that is left out stay where they are.
        positions = dict(start.positions) if not self._publisher.is_complete else {}
        positions |= {key: begins[key] + counts.get(key, 0) for key in begins}
        digests = self._publisher.digests({key: positions[key] for key in counts}) | {
            key: digest
            for key, digest in start.digests.items()
            if key not in counts and start.positions.get(key) == positions.get(key)
        }
        if self._publisher.epoch != self._epoch:
            # The connection was made again meanwhile, so the digests may be those of other elements
            # than the examined ones.
            return self.latest(start, is_limited=is_limited)
        moved = {key: begin for key, begin in begins.items() if begin != start.positions.get(key)}
        known = {key: digest for key, digest in digests.items() if digest}
        self._newest_end = Offset(positions, known, moved, self._settings.subscription or "")
        return self._newest_end

    def fix_target(self) -> None:
        """Read only the elements that are there now: `Trigger.AvailableNow`."""
        self._target = {key: each.latest for key, each in self._ask().items()}

    def newest(self) -> Offset | None:
        """Return the newest positions that are known. Spark shows them beside the end of a
        batch: the difference is the lag.
        """
        return (
            Offset({key: each.latest for key, each in self._facts.items()}) if self._facts else None
        )

    # --- what a batch reads

    def ranges(self, start: Offset, end: Offset) -> list[tuple[Range, tuple[str, ...]]]:
        """Return the ranges of a batch, each with the addresses where it can be read."""
        self._check_owner(end)
        is_own = end == self._newest_end
        if not self._facts or not is_own:
            self._ask()
        found = ranges_between(start, end, self._settings.min_partitions)
        if not is_own:
            # The batch was planned by a process before this one,
            # and the publisher may have begun anew since.
            digests = self._publisher.digests(
                {each.key: each.stop for each in found if self._is_there(each) and each.digest}
            )
            gone = {each.key for each in found if self._is_gone(each, digests)}
            found = [each for each in found if each.key not in gone]
        return self._with_addresses(found)

    def whole(self, default: str) -> list[tuple[Range, tuple[str, ...]]]:
        """Return the ranges of a batch query: from `startingOffsets` to `endingOffsets`."""
        start = self.initial(default)
        ending = self._settings.ending
        time = self._settings.ending_time
        stop = (
            self._places(
                ending, self._facts, "endingOffsets", ending if isinstance(ending, str) else LATEST
            )
            if time is None
            else self._places_at(time)
        )
        for key, position in stop.items():
            facts = self._facts[key]
            for where, option in (
                (start.positions[key], "startingOffsets"),
                (position, "endingOffsets"),
            ):
                self._kept(key, where, facts, option)
        begins = {
            key: max(position, self._facts[key].earliest)
            for key, position in start.positions.items()
        }
        end = Offset(
            {key: min(position, self._facts[key].latest) for key, position in stop.items()}
        )
        return self._with_addresses(
            ranges_between(Offset(begins), end, self._settings.min_partitions)
        )

    def close(self) -> None:
        """Leave the connection."""
        self._publisher.close()

    # --- inside

    def _streams(self) -> tuple[str, ...]:
        pattern = self._settings.pattern
        if pattern is None:
            return self._settings.streams
        found = self._publisher.names(pattern)
        if not found:
            raise UsageError(
                f"option streamPattern={pattern}: the server at {self._settings.uri} describes no "
                "publisher of such a name"
            )
        return found

    def _ask(self, after: Mapping[Key, int] | None = None, wait: float = 0.0) -> dict[Key, Facts]:
        facts = self._publisher.facts(self._streams(), after=after, wait=wait)
        assigned = self._settings.assigned
        if assigned is not None:
            wanted = {
                (stream, partition)
                for stream, partitions in assigned.items()
                for partition in partitions
            }
            if missing := sorted(wanted - facts.keys()):
                raise UsageError(
                    f"option assign: {missing[0][0]!r} has no partition {missing[0][1]!r}; there "
                    f"are {sorted(facts)}"
                )
            facts = {key: each for key, each in facts.items() if key in wanted}
        self._facts = facts
        return facts

    def _seen(self, start: Offset) -> dict[Key, int]:
        """Return the positions beyond which something is new: those that are read. While a batch
        is held back, those that were seen.
        """
        if not self._holds_back:
            return dict(start.positions)
        return {
            key: max(position, self._facts[key].latest if key in self._facts else 0)
            for key, position in start.positions.items()
        }

    def _places(
        self,
        value: str | Mapping[str, Any],
        facts: Mapping[Key, Facts],
        option: str,
        otherwise: str,
    ) -> dict[Key, int]:
        every = {
            key: each.latest if otherwise == LATEST else each.earliest
            for key, each in facts.items()
        }
        return every if isinstance(value, str) else every | read_places(value, facts, option)

    def _places_at(self, time: float) -> dict[Key, int]:
        """Return the positions of a time."""
        found = self._publisher.positions_at(self._facts, time)
        # Asked again: elements that were appended or dropped meanwhile must not look like a loss.
        facts = self._ask()
        return {key: max(place, facts[key].earliest) for key, place in found.items()}

    def _check_owner(self, offset: Offset) -> None:
        if any(not partition for _, partition in offset.positions):
            raise UsageError(
                "the checkpoint belongs to a query with delivery=atMostOnce, which counts "
                "elements and has no positions. Give this query a "
                "checkpointLocation of its own"
            )
        # A checkpoint without an id takes the first one that a query gives. So the option can be
        # set for a query that has run before.
        own = self._settings.subscription
        if offset.subscription not in ("", own):
            raise UsageError(
                f"the checkpoint belongs to the query with subscriptionId={offset.subscription}, "
                f"and this one {'has none' if own is None else f'has subscriptionId={own}'}. Give "
                "this query a checkpointLocation of its own, or the same id"
            )

    def _check_selected(self, start: Offset) -> None:
        if not self._facts:
            self._ask()
        gone = sorted(start.positions.keys() - self._facts.keys())
        if gone and self._publisher.is_complete:
            self._lose(
                f"the checkpoint has {_shown(gone[0])}, and the publisher, or the options of this "
                "query, have it no more. Give a query over other streams a checkpointLocation of "
                "its own"
            )

    def _begin(self, start: Offset, key: Key, facts: Facts) -> int:
        # A partition that is new begins at its earliest element, so none of it is missed.
        position = start.positions.get(key)
        return (
            facts.earliest
            if position is None
            else self._kept(key, position, facts, "the checkpoint")
        )

    def _kept(self, key: Key, position: int, facts: Facts, what: str) -> int:
        if facts.earliest <= position <= facts.latest:
            return position
        # The server that had it is away, and the server that answers has less.
        if position > facts.latest and not self._publisher.is_complete:
            return position
        reason = (
            "were dropped"
            if position < facts.earliest
            else "do not exist: the publisher has begun anew, or was restored from a backup"
        )
        self._lose(
            f"{what} has position {position:,} of {_shown(key)}, and the publisher has "
            f"{facts.earliest:,} up to, and not with, {facts.latest:,}: the elements between them "
            f"{reason}"
        )
        return facts.earliest

    def _lose(self, text: str) -> None:
        if self._settings.fail_on_loss:
            raise UsageError(
                f"{text}. To go on without them, with the earliest element that the publisher has, "
                "set failOnDataLoss=false"
            )
        if text not in self._warned:
            self._warned.add(text)
            _log.warning(
                (
                    "%s; going on with the earliest element that the publisher has, because "
                    "failOnDataLoss=false"
                ),
                text,
            )

    def _changed(self, start: Offset, begins: Mapping[Key, int]) -> list[Key]:
        """Return the partitions whose last element before the position is another one now,
        if the connection is new.
        """
        epoch = self._publisher.epoch
        if epoch == self._epoch:
            return []
        places = {
            key: start.positions[key]
            for key in start.digests
            if begins.get(key) == start.positions[key] > self._facts[key].earliest
        }
        found = []
        for key, digest in self._publisher.digests(places).items():
            if digest not in ("", start.digests[key]):
                self._lose(
                    f"the element at position {places[key] - 1:,} of {_shown(key)} is not the one "
                    "that this query has read: the publisher has come back with other elements at "
                    "the same positions"
                )
                found.append(key)
        self._epoch = epoch
        return found

    def _end(self, key: Key, latest: int) -> int:
        return latest if self._target is None else min(latest, self._target.get(key, latest))

    def _limited(self, backlog: Mapping[Key, int], begins: Mapping[Key, int]) -> dict[Key, int]:
        most, most_bytes = self._settings.max_elements, self._settings.max_bytes
        counts = dict(backlog) if most is None else share(backlog, most)
        if most_bytes is not None:
            counts = share_bytes(
                counts,
                {
                    key: self._mean(key, begins[key], count)
                    for key, count in counts.items()
                    if count
                },
                most_bytes,
            )
        return {key: count for key, count in counts.items() if count}

    def _mean(self, key: Key, start: int, count: int) -> float:
        try:
            return self._publisher.mean_size(*key, start, start + count)
        except PenstockError:
            return 0.0  # the task that reads the range says what is wrong with it

    def _is_held_back(self, available: int) -> bool:
        least = self._settings.min_elements
        if (
            least is None
            or self._target is not None
            or available >= least
            or self._last_batch_at is None
        ):
            return False
        return self._clock() - self._last_batch_at < self._settings.max_delay

    def _is_there(self, part: Range) -> bool:
        """Return whether the publisher has the last element of a range."""
        facts = self._facts.get(part.key)
        return facts is not None and facts.earliest < part.stop <= facts.latest

    def _is_gone(self, part: Range, digests: Mapping[Key, str]) -> bool:
        """Return whether the publisher has begun anew since a range was planned. The next batch
        then goes on with the earliest element.

        Elements that were dropped alone are left to the task: it reads the rest of its range.
        """
        key = part.key
        facts = self._facts.get(key)
        if not self._publisher.is_complete and (facts is None or part.stop > facts.latest):
            return False  # its server is away, and the task may find it
        if facts is None:
            reason = "the publisher has it no more"
        elif part.start < facts.earliest and self._settings.fail_on_loss:
            reason = (
                f"the publisher has dropped some of them, and has {facts.earliest:,} up to, and "
                f"not with, {facts.latest:,}"
            )
        elif part.stop > facts.latest:
            reason = (
                f"the publisher has begun anew, and has {facts.earliest:,} up to, and not with, "
                f"{facts.latest:,}"
            )
        elif part.digest and digests.get(key, "") not in ("", part.digest):
            reason = "the publisher has come back with other elements at the same positions"
        else:
            return False
        text = (
            f"a batch was planned with positions {part.start:,} up to, and not with, "
            f"{part.stop:,} of {_shown(key)}, and {reason}"
        )
        if self._settings.fail_on_loss:
            raise UsageError(
                f"{text}. To go on without them, set failOnDataLoss=false; or give this query a "
                "new checkpointLocation"
            )
        _log.warning("%s; leaving them out, because failOnDataLoss=false", text)
        return True

    def _with_addresses(self, parts: Sequence[Range]) -> list[tuple[Range, tuple[str, ...]]]:
        return [(each, self._addresses(each)) for each in parts]

    def _addresses(self, part: Range) -> tuple[str, ...]:
        facts = self._facts.get(part.key)
        # The server that has its end may be away.
        if facts is None or part.stop > facts.latest:
            return self._settings.uris
        return facts.addresses or self._settings.uris


def _shown(key: Key) -> str:
    return f"partition {key[1]!r} of {key[0]!r}"
