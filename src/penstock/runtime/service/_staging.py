"""What writers have published and not committed yet: which attempts there are, how many bytes they
hold, and which of them go when room is missing. Plain code: no task, no clock.

Rules of this file:

* An attempt is what one task of a writer has published for one partition of a log. It counts once
  it is whole; a part of one is never committed.
* A batch belongs to the principal of its writer: no other peer can commit it or drop it.
* All attempts together are bounded in bytes. If room is missing, attempts go that no commit will
  name: those of an earlier run of the same batch first, then those that are older than
  `max_seconds`. Then a writer that has less than its share takes the room of the writer that holds
  most: with n writers a share is an n-th of the bound.
* An attempt that is being committed does not go.
* Where the elements are is the matter of `_staged_rows.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final, NamedTuple

import attrs

from penstock.api import LimitExceeded, PublicError
from penstock.spi import UnixCredentials

ELEMENT_BYTES: Final = 48
"""Bytes that Python needs for an element beside its content."""

ATTEMPT_BYTES: Final = 1_024
"""What an attempt counts beside its elements, so that empty ones are bounded as well."""

LONGEST_ID: Final = 200
"""Bytes of the id of a query: with the number of the batch and the writer it is the id of a
transaction, which has 255 bytes at most.
"""

WRITER_LETTERS: Final = 16
"""Letters of the digest of a principal."""


class BatchId(NamedTuple):
    """One batch of a writer. The writer repeats a batch that it has not seen committed,
    with the same id.
    """

    writer: str
    """`writer_of` its principal."""
    query: str
    batch: int

    @property
    def transaction(self) -> str:
        """The id of its transaction. The writer is part of it: the id outlives a restart, and what
        one principal has committed must not stand for the batch of another.
        """
        # A query may contain any sign. What follows the last '/' is a number, or a number, '@' and
        # a digest, so no two batches have one id.
        return f"{self.query}/{self.batch}" + (f"@{self.writer}" if self.writer else "")


def writer_of(principal: Any) -> str:
    """Return a text of 16 letters for a principal: the same one after a restart. It is empty
    without a principal. Raises PublicError if the principal has no such text.
    """
    if principal is None:
        return ""
    if isinstance(principal, UnixCredentials):
        principal = f"uid {principal.uid}"  # the tasks of a writer are other processes
    text = principal if isinstance(principal, str) else repr(principal)
    if " at 0x" in text:
        raise PublicError(
            "this receiver cannot tell one writer from another after a restart, because its "
            f"authenticate() returns a {type(principal).__name__} without a __repr__ of its own: "
            "return a str"
        )
    return sha256(text.encode(errors="replace")).hexdigest()[:WRITER_LETTERS]


@attrs.define(eq=False)
class Attempt:
    """What one task has published for one partition of a log. `run` is that of the writer's
    process: a batch that is repeated has another one.
    """

    of: BatchId
    run: str
    partition: int
    name: str
    into: str
    """The partition of the log."""
    began: float
    log: str = ""
    """The name of the log."""
    number: int = 0
    """Its number in the log, if the log has its elements."""
    elements: list[bytes] = attrs.Factory(list)
    """The elements that are in memory."""
    count: int = 0
    """All of its elements."""
    length: int = 0
    """The sum of their lengths."""
    written: int = 0
    """The bytes of those that are not in memory any more."""
    is_whole: bool = False
    commits: int = 0
    """Commits of it that are under way."""

    @property
    def size(self) -> int:
        """The bytes that it takes of the room."""
        return ATTEMPT_BYTES + ELEMENT_BYTES * self.count + self.length


class Staging:
    """All attempts of one receiver."""

    def __init__(
        self, max_bytes: int, max_seconds: float, forget: Callable[[Attempt], None]
    ) -> None:
        """`forget` is called with each attempt that goes."""
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._forget = forget
        self._attempts: dict[Attempt, None] = {}  # in the order in which they began
        self.size: int = 0
        """Bytes of all attempts."""

    def restore(self, attempt: Attempt) -> None:
        """Add a whole attempt that was staged before a restart. If the bound is lower now, the
        oldest ones go.
        """
        self._attempts[attempt] = None
        self.size += attempt.size
        while self.size > self._max_bytes:
            self.drop(next(iter(self._attempts)))

    def begin(self, attempt: Attempt) -> None:
        """Add an attempt. Raises LimitExceeded if room is missing."""
        # An attempt has a price beside its elements, or empty ones would not be bounded.
        self._make_room(attempt, attempt.size)
        self._attempts[attempt] = None
        self.size += attempt.size

    def add(self, attempt: Attempt, elements: Sequence[bytes]) -> None:
        """Take elements of an attempt. Raises LimitExceeded if room is missing, and PublicError if
        the attempt was dropped.
        """
        self.check(attempt)
        length = sum(map(len, elements))
        size = length + ELEMENT_BYTES * len(elements)
        self._make_room(attempt, size)
        attempt.elements.extend(elements)
        attempt.count += len(elements)
        attempt.length += length
        self.size += size

    def check(self, attempt: Attempt) -> None:
        """Raise PublicError if the attempt was dropped."""
        if attempt not in self._attempts:
            raise PublicError(
                "this attempt was dropped while it was staged: its batch was committed meanwhile, "
                "or repeated, or another writer needed its share of the room. Write it again"
            )

    def finish(self, attempts: Collection[Attempt]) -> None:
        """Count the attempts of a task as whole, in the place of earlier ones with its name."""
        for each in attempts:
            each.is_whole = True
        names = {(each.of, each.partition, each.name) for each in attempts}
        self._drop_all(
            each
            for each in self._free()
            if each.is_whole
            and (each.of, each.partition, each.name) in names
            and each not in attempts
        )

    def drop(self, attempt: Attempt) -> None:
        """Forget an attempt, if it is still here."""
        if attempt in self._attempts:
            del self._attempts[attempt]
            self.size -= attempt.size
            self._forget(attempt)

    def find(self, batch: BatchId, names: Iterable[tuple[int, str, int]]) -> list[Attempt]:
        """Return the attempts of a batch that `names` lists: partition, name and count of all that
        the task has published. Raises PublicError if one is missing.
        """
        known: defaultdict[tuple[int, str], list[Attempt]] = defaultdict(list)
        for attempt in self._attempts:
            # Whole ones only: a part may have the right count, although its end has not come.
            if attempt.of == batch and attempt.is_whole:
                known[attempt.partition, attempt.name].append(attempt)
        found = []
        for partition, name, count in sorted(names):
            of_task = known[partition, name]
            # A writer that counts otherwise has lost elements on the way.
            if not of_task or sum(each.count for each in of_task) != count:
                raise PublicError(
                    f"partition {partition} of batch {batch.batch} is not staged here, so nothing "
                    "of the batch was committed: the receiver dropped it to make room, or was "
                    "restarted without a DiskLog, or another principal staged it. Start the query "
                    "again: it repeats the batch"
                )
            found += of_task
        return found

    @contextmanager
    def committing(self, attempts: Sequence[Attempt]) -> Iterator[None]:
        """Keep these attempts within the block, also if another writer needs room."""
        for each in attempts:
            each.commits += 1
        try:
            yield
        finally:
            for each in attempts:
                each.commits -= 1

    def commit(self, batch: BatchId) -> None:
        """Forget the attempts of a batch that was committed, and of earlier batches of the
        query.
        """
        # Earlier batches as well: a query commits its batches in order,
        # so no commit names them any more.
        self._drop_all(
            each
            for each in self._attempts
            if each.of[:2] == batch[:2] and each.of.batch <= batch.batch
        )

    def abort(self, batch: BatchId, run: str) -> None:
        """Forget the attempts of one run of a batch."""
        # Of this run only: one that has begun meanwhile keeps what it has staged.
        self._drop_all(
            each
            for each in self._attempts
            if each.of == batch and each.run == run and not each.commits
        )

    # --- inside

    def _make_room(self, attempt: Attempt, size: int) -> None:
        """Make room for `size` more bytes of `attempt`, or raise LimitExceeded."""
        if self.size + size <= self._max_bytes:
            return
        # A run that does not work any more staged these: the run of `attempt` has begun later.
        self._drop_all(
            each for each in self._free() if each.of == attempt.of and each.run != attempt.run
        )
        # Only now, and not by a timer: an old attempt may still be committed as long as there is
        # room.
        self._drop_all(
            each for each in self._free() if each.began <= attempt.began - self._max_seconds
        )
        self._take_share(attempt.of.writer, size)
        if self.size + size > self._max_bytes:
            raise LimitExceeded(
                f"batches that are not committed yet would take {self.size + size:,} bytes here, "
                "and "
                f"receive(max_staged_bytes={self._max_bytes:,}) are allowed: write smaller "
                "batches (maxElementsPerTrigger of the source) or several writes, or give the "
                "receiver a higher max_staged_bytes",
                limit="max_staged_bytes",
                value=self._max_bytes,
            )

    def _take_share(self, writer: str, size: int) -> None:
        """Make room for a writer that stays within its share, if others hold more than theirs."""
        held = Counter({writer: size})
        for each in self._attempts:
            held[each.of.writer] += each.size
        share = self._max_bytes // len(held)
        # All shares together are within the bound. So while room is missing and this writer is
        # within its share, the one that holds most is another, and has attempts.
        while held[writer] <= share and self.size + size > self._max_bytes:
            [(greatest, _)] = held.most_common(1)
            # Its oldest attempt: a batch that was staged last is nearer to its commit.
            oldest = next((each for each in self._free() if each.of.writer == greatest), None)
            if oldest is None:  # all of it is being committed, which frees the room
                return
            held[greatest] -= oldest.size
            self.drop(oldest)

    def _free(self) -> Iterator[Attempt]:
        return (each for each in self._attempts if not each.commits)

    def _drop_all(self, attempts: Iterable[Attempt]) -> None:
        # A copy: `drop` changes the table that `attempts` goes through.
        for attempt in list(attempts):
            self.drop(attempt)
