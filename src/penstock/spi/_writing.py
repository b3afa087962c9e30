"""What a writer says to a receiver (`penstock.receive`): the names of its requests, and their
payloads. `penstock.open_writer` and Spark's sink are such writers.
"""

from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

import attrs

ROWS: Final = "rows"
"""The name under which a writer publishes its elements."""

MissingBatches: TypeAlias = Literal["refuse", "accept"]
"""What a receiver does with a batch if the log does not have the one before."""

ChangedBatches: TypeAlias = Literal["refuse", "recount", "accept"]
"""What a receiver does with a batch that the log has already: "refuse" one that cannot be the same,
because a later one is there or the number of elements differs; "recount" looks at the number alone,
for a writer that repeats all of its batches; "accept" looks at neither.
"""


@attrs.frozen
class BatchCommit:
    """The payload of ``NAME/commit``: for each partition the attempt that counts, with its number
    of elements. An empty batch names no attempt.
    """

    query: str
    batch: int
    attempts: list[tuple[int, str, int]]
    missing_batches: MissingBatches = "refuse"
    changed_batches: ChangedBatches = "accept"

    @property
    def count(self) -> int:
        """The elements of the batch."""
        return sum(count for _, _, count in self.attempts)

    def as_json(self) -> dict[str, Any]:
        """Return the payload to send."""
        return attrs.asdict(self)


@attrs.frozen
class BatchAbort:
    """The payload of ``NAME/abort``: the batch that failed."""

    query: str
    batch: int
    run: str

    def as_json(self) -> dict[str, Any]:
        """Return the payload to send."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class TaskAttempt:
    """One attempt of one task of a batch: the parameters of ``NAME/stage``."""

    query: str
    batch: int
    run: str
    partition: int
    attempt: str
    into: str = ""
    """The partition of the receiver's log. Without it the receiver chooses."""
    exact: bool = False
    """A receiver that cannot take each element once refuses."""
    routed: bool = False
    """The elements are packed `Record` objects."""

    def request_name(self, name: str) -> str:
        """Return the name of the request that stages the task: `name` is ``NAME/stage``."""
        words: dict[str, Any] = {
            each: getattr(self, each) for each in ("query", "batch", "run", "partition", "attempt")
        }
        if self.into:
            words["into"] = self.into
        for flag in ("exact", "routed"):
            if getattr(self, flag):
                words[flag] = "true"
        return f"{name}?{urlencode(words)}"
