"""Which neighbouring groups of a log on disk become one group.

Rules of this file:

* A joined group keeps the bounds of `Retention`, as any group does. So a log drops as exactly as
  its documentation says.
* The first and the last element of a joined group were written within an eighth of `max_age`. The
  group has the time of its last one, so nothing is dropped early.
* The last group of a partition stays alone. A crash can tear only that one, and no bound drops it.
* With `acknowledged=True` nothing is joined. A group is dropped whole, so its first elements would
  be kept until its last one is acknowledged, and the log could be full of them.
"""

from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

from penstock.logs._retention import PARTS, Retention

MOST_JOINED: Final = 512
"""Groups that become one group. The work of one turn: about 5 ms for small elements, at most the
1 MiB of a group.
"""


class GroupAt(NamedTuple):
    """A group of a partition, without its elements."""

    key: int
    length: int
    size: int
    written: float


def joinable(retention: Retention) -> bool:
    """Return whether a log joins groups at all."""
    return not retention.acknowledged and retention.group_count > 1


def next_run(groups: Sequence[GroupAt], retention: Retention) -> tuple[int, int]:
    """Return where the next groups that become one begin and end in `groups`, which has at most
    MOST_JOINED of them. Equal numbers: the groups before them stay as they are.

    Groups that may get more neighbours wait for them: (0, 0).
    """
    span = inf if retention.max_age is None else retention.max_age / PARTS
    begin = 0
    count = size = 0
    for index, group in enumerate(groups):
        fits = (
            count + group.length <= retention.group_count
            and size + group.size <= retention.group_bytes
            and group.written - groups[begin].written <= span
        )
        if not fits and index - begin > 1:
            return begin, index
        if not fits:
            begin, count, size = index, 0, 0
        count, size = count + group.length, size + group.size
    if begin == 0 and len(groups) >= MOST_JOINED:
        return 0, len(groups)
    return begin, begin
