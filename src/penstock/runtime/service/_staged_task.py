"""What one task of a writer publishes: an attempt for each partition of a log that its elements go
to.

Rules of this file:

* All attempts of a task are whole, or none of them.
* One clock tells the age of all attempts of a receiver: that of a log on disk if there is one,
  because it goes on while no program runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from penstock.api import PublicError, UsageError, shown
from penstock.logs import DiskLog, Log
from penstock.runtime.service._staged_rows import StagedRows, staged_rows
from penstock.runtime.service._staging import Attempt, BatchId, Staging
from penstock.spi import Record


@attrs.frozen(eq=False)
class Home:
    """One log of a receiver, and where elements wait for it."""

    name: str
    log: Log
    rows: StagedRows


class Homes:
    """The logs of a receiver, by name."""

    def __init__(
        self, logs: Mapping[str, Log], owner: str, max_seconds: float, *, keeps_records: bool
    ) -> None:
        self.keeps_records: bool = keeps_records
        """Whether the logs have records, and not the values alone."""
        self._homes = {
            name: Home(name, log, staged_rows(log, owner, max_seconds))
            for name, log in logs.items()
        }
        homes = list(self._homes.values())
        self._clock = next((each for each in homes if isinstance(each.log, DiskLog)), homes[0])

    def __iter__(self) -> Iterator[Home]:
        return iter(self._homes.values())

    def now(self) -> float:
        """Return the time, in seconds."""
        return self._clock.rows.now()

    def kept(self, record: Record) -> bytes:
        """Return what a log keeps of a record. Raises PublicError for headers that it does not
        keep.
        """
        if self.keeps_records:
            return Record(record.value, record.key, record.headers).pack()
        if record.headers:
            raise PublicError(
                "a row has headers, and this receiver keeps the values alone: leave the column "
                "headers out, or receive with receive(..., records=True)"
            )
        return record.value

    def forget(self, attempt: Attempt) -> None:
        """Drop the elements of an attempt."""
        self._homes[attempt.log].rows.forget(attempt)

    def get(self, name: str | None) -> Home:
        """Return the log with a name; the only one needs none. Raises PublicError."""
        home = self._homes.get(name or "")
        if not name and len(self._homes) == 1:
            [home] = self
        if home is None:
            found = "a row has no name" if not name else f"a row has the name {shown(name)}"
            raise PublicError(
                f"{found}, and this receiver has logs for the names {shown(list(self._homes))}: "
                "give each row one of them, in the column name"
            )
        return home

    def check_partition(self, name: str) -> None:
        """Raise PublicError if one of the logs has no partition `name`."""
        for home in self:
            if name not in home.log.partitions:
                raise PublicError(
                    f"the log has no partition {shown(name)}; it has "
                    f"{shown(list(home.log.partitions))}"
                )


class StagedTask:
    """The attempts of one task."""

    def __init__(
        self,
        homes: Homes,
        staging: Staging,
        of: BatchId,
        *,
        run: str,
        partition: int,
        name: str,
        into: str,
    ) -> None:
        """`name` is that of the attempt, and `into` the partition of elements without a place; if
        it is empty, tasks are spread over all.
        """
        self._homes = homes
        self._staging = staging
        self._of = of
        self._run = run
        self._partition = partition
        self._name = name
        self._into = into
        self._began = homes.now()
        self._attempts: dict[tuple[str, str], Attempt] = {}

    @property
    def count(self) -> int:
        """All elements."""
        return sum(each.count for each in self._attempts.values())

    def add(self, elements: Sequence[bytes]) -> None:
        """Take elements without places. Raises LimitExceeded, or PublicError if an attempt was
        dropped.
        """
        home = self._homes.get(None)
        if self._homes.keeps_records:
            elements = [Record(each).pack() for each in elements]
        self._add(home, self._default(home), elements)

    def add_records(self, records: Sequence[Record]) -> None:
        """Take elements with places. Raises as `add`, and PublicError for a place that is not
        here, and for headers that the log does not keep.
        """
        parts: defaultdict[tuple[Home, str], list[bytes]] = defaultdict(list)
        for each in records:
            home = self._homes.get(each.name)
            try:
                place = each.partition_in(home.log.partitions, self._default(home))
            except UsageError as error:
                raise PublicError(f"a row has another place: {error}") from None
            parts[home, place].append(self._homes.kept(each))
        for (home, place), elements in parts.items():
            self._add(home, place, elements)

    async def keep(self) -> None:
        """Write elements to the disk if many are in memory. Raises LogError."""
        for home, attempts in self._by_home():
            await home.rows.keep(attempts)

    async def finish(self) -> None:
        """Keep what came: it is whole. Raises LogError, or PublicError if it was dropped."""
        # A commit names a task without rows as well.
        if not self._attempts:
            home = next(iter(self._homes))
            self._add(home, self._default(home), ())
        # Twice: another writer may have needed the room since the last element came, and while the
        # disk is waited for.
        self._check()
        for home, attempts in self._by_home():
            await home.rows.finish(attempts)
        self._check()
        self._staging.finish(self._attempts.values())

    def drop_parts(self) -> None:
        """Free the room of attempts that are not whole."""
        for each in self._attempts.values():
            if not each.is_whole:
                self._staging.drop(each)

    # --- inside

    def _default(self, home: Home) -> str:
        names = home.log.partitions
        return self._into or names[self._partition % len(names)]

    def _add(self, home: Home, place: str, elements: Sequence[bytes]) -> None:
        attempt = self._attempts.get((home.name, place))
        if attempt is None:
            attempt = Attempt(
                self._of, self._run, self._partition, self._name, place, self._began, home.name
            )
            self._staging.begin(attempt)
            self._attempts[home.name, place] = attempt
            home.rows.begin(attempt)
        self._staging.add(attempt, elements)

    def _by_home(self) -> list[tuple[Home, list[Attempt]]]:
        found = [
            (home, [each for each in self._attempts.values() if each.log == home.name])
            for home in self._homes
        ]
        return [(home, attempts) for home, attempts in found if attempts]

    def _check(self) -> None:
        for each in self._attempts.values():
            self._staging.check(each)
