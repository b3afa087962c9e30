"""How much a log keeps: the bounds that a program declares,
and the decision about the oldest group.

Rules of this file:

* A log drops whole groups, oldest first. A group has at most an eighth of each bound, so a log that
  drops keeps at least seven eighths.
* No bound drops the newest group. One group alone is within `max_count` and `max_bytes`.
  For `max_age` it is an exception: the mark of a spool is one element, which would be lost
  after a pause that is longer than the age.
* A log on disk joins small groups to larger ones, within these bounds (`_group_runs.py`).
* With `acknowledged=True` no bound drops an element. `append` waits until `acknowledge` has made
  room. A named reader has other bounds (`_readers.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from penstock.api import UsageError, shown
from penstock.logs._work import NOBODY, PartitionState

PARTS: Final = 8
"""The least number of groups at a bound.
With eight, a log that drops one group keeps seven eighths of the bound.
"""

MOST_IN_GROUP: Final = 20_000
"""Elements of a group: the most that one commit of a log on disk takes.
A reader decodes a whole group at a time.
"""

MOST_BYTES_IN_GROUP: Final = 1_048_576
"""Bytes of a group, if no single element is longer.
A reader holds one group, so this bounds the memory of a reader.
"""


class GroupFacts(NamedTuple):
    """The facts by which `Retention` decides on a group. `end` is the position after its last
    element, `written` its time in seconds.
    """

    end: int
    size: int
    written: float


@attrs.frozen(kw_only=True)
class Retention:
    """The bounds of each partition of a log. Above a bound the oldest elements are dropped; the
    first bound that is reached counts.

    * `max_count`: elements. `max_bytes`: the sum of their lengths. One of the two is required,
      because a log without either grows without a bound.
    * `max_age`: seconds since an element was appended. A log looks at ages when elements are
      appended and when it is opened. It drops whole groups, so an element may stay for an eighth of
      the age longer. The newest elements stay at any age: those of the last group, at most an
      eighth of the other bounds.
    * `acknowledged`: elements are kept until they have been acknowledged, and the last two
      acknowledged ranges are kept as well. A log that is full of elements that it must keep makes
      `append` wait. With it `max_age` is refused: an age would drop elements that no reader has
      acknowledged. A log with named readers (`Log.add_reader`) keeps what the slowest of them has
      not acknowledged.

    Raises UsageError for bounds that are not positive, and for bounds that contradict each other.
    """

    max_count: int | None = None
    max_bytes: int | None = None
    max_age: float | None = None
    acknowledged: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("max_count", "max_bytes", "max_age"):
            bound = getattr(self, name)
            kinds = (int, float) if name == "max_age" else (int,)
            # `not bound > 0`, because `bound <= 0` is false for a NaN.
            if bound is not None and (
                isinstance(bound, bool) or not isinstance(bound, kinds) or not bound > 0
            ):
                raise UsageError(
                    f"Retention({name}=...) takes a positive number, not {shown(bound)}"
                )
        if self.max_count is None and self.max_bytes is None:
            raise UsageError(
                "Retention() without max_count and max_bytes would let a log grow without a bound: "
                "give one of the two"
            )
        if self.acknowledged and self.max_age is not None:
            raise UsageError(
                "Retention(acknowledged=True) keeps elements until they are acknowledged: leave "
                "max_age out, which would drop them"
            )

    @property
    def group_count(self) -> int:
        """The most elements of a group."""
        # At least one element: below eight, an eighth of `max_count` is 0.
        return (
            MOST_IN_GROUP
            if self.max_count is None
            else max(1, min(MOST_IN_GROUP, self.max_count // PARTS))
        )

    @property
    def group_bytes(self) -> int:
        """The most bytes of a group of several elements."""
        return (
            MOST_BYTES_IN_GROUP
            if self.max_bytes is None
            else max(1, min(MOST_BYTES_IN_GROUP, self.max_bytes // PARTS))
        )

    def exceeded_by(self, count: int, size: int) -> str | None:
        """Return the name of the bound that `count` elements of `size` bytes together exceed,
        or None.
        """
        if self.max_count is not None and count > self.max_count:
            return "max_count"
        if self.max_bytes is not None and size > self.max_bytes:
            return "max_bytes"
        return None

    def waits(self, state: PartitionState) -> bool:
        """Return whether elements are kept until they are acknowledged, and appends wait for
        that. They are not if all readers of the partition were dropped.
        """
        return self.acknowledged and state.held != NOBODY

    def keeps_all(self, state: PartitionState) -> bool:
        """Return whether nothing is dropped, with any groups.
        Asked with each commit, before the groups are read.
        """
        if self.waits(state):
            return state.floor <= state.earliest
        return (
            self.max_age is None
            and self.exceeded_by(state.latest - state.earliest, state.size) is None
        )

    def drops(self, oldest: GroupFacts, state: PartitionState, now: float) -> bool:
        """Return whether a partition in this state drops its oldest group at the time `now`."""
        if self.waits(state):
            return oldest.end <= state.floor
        if self.exceeded_by(state.latest - state.earliest, state.size) is not None:
            return True
        is_newest = oldest.end == state.latest
        return self.max_age is not None and not is_newest and oldest.written < now - self.max_age


DROPS_NOTHING: Final = Retention(max_count=2**63)
"""For a log that is read only, and for a copy."""


def split(elements: Sequence[bytes], retention: Retention) -> Iterator[Sequence[bytes]]:
    """Yield `elements` in parts that groups of a log may have. An element that is longer than a
    group is a part by itself.
    """
    most, most_bytes = retention.group_count, retention.group_bytes
    if len(elements) <= most and sum(map(len, elements)) <= most_bytes:
        if elements:
            yield elements  # most appends: one sum costs less than a comparison for each element
        return
    start = size = 0
    for index, element in enumerate(elements):
        if index - start == most or (index > start and size + len(element) > most_bytes):
            yield elements[start:index]
            start, size = index, 0
        size += len(element)
    yield elements[start:]
