"""The state before each chunk, from the table of chunks alone: sums over the earlier chunks of its
subscription.

The table has some 200 bytes a chunk, so the driver holds it:
a chunk stands for a row group's worth of one subscription.
"""

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from penstock_spark.audit._chunks import NO_EXCESS, ON_SUBSCRIBE, Columns, Ints

Flags = npt.NDArray[np.bool_]


@attrs.frozen
class Carries:
    """For each chunk, in the order of subscriptions and numbers."""

    chunks: Columns
    """The table, in that order."""
    demand: Ints
    elements: Ints
    is_begun: Flags
    is_cancelled: Flags
    is_terminated: Flags
    is_lost: Flags
    is_answered_later: Flags
    """A later chunk of the subscription has an on_error."""
    lost: Ints
    """Rows that are missing right before the chunk."""
    is_first: Flags
    """The first chunk of its subscription that was recorded."""

    @property
    def suspects(self) -> npt.NDArray[np.int64]:
        """The chunks that may hold a violation. All others hold none."""
        chunks = self.chunks
        begins_well = ~self.is_begun & (chunks["first_kind"] == ON_SUBSCRIBE)
        wrong_begin = (~self.is_begun & (chunks["first_kind"] != ON_SUBSCRIBE)) | (
            chunks["subscribes"] > begins_well
        )
        after_end = (chunks["after_terminal"] > 0) | (
            self.is_terminated & (chunks["ends_and_elements"] > 0)
        )
        # If the stream was cancelled before, no request in the chunk counts: the excess is then
        # largest at its last element.
        excess = np.where(
            self.is_cancelled,
            np.where(chunks["elements"] > 0, chunks["elements"], NO_EXCESS),
            chunks["excess"],
        )
        too_many = ~self.is_lost & (excess > NO_EXCESS) & (self.elements - self.demand + excess > 0)
        unanswered = (
            (chunks["is_bad_open"] > 0)
            & ~self.is_answered_later
            & ~self.is_cancelled
            & ~self.is_terminated
        )
        return np.flatnonzero(wrong_begin | after_end | too_many | unanswered)


def carries_of(table: Columns) -> Carries:
    """Return what came before each chunk of `table`. No two chunks have the same row."""
    order = np.lexsort((table["first_seq"], table["subscription"], table["process"]))
    chunks = {name: column[order] for name, column in table.items()}
    count = len(order)
    is_first = np.ones(count, dtype=bool)
    if count:
        is_first[1:] = (chunks["process"][1:] != chunks["process"][:-1]) | (
            chunks["subscription"][1:] != chunks["subscription"][:-1]
        )
    starts = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1

    def before(values: npt.NDArray[Any]) -> Ints:
        """Return the sum of `values` over the earlier chunks of the same subscription."""
        total = (
            np.concatenate(([0], np.cumsum(values, dtype=np.int64)))[:-1]
            if count
            else np.zeros(0, dtype=np.int64)
        )
        return np.asarray(total - total[starts][group] if count else total, dtype=np.int64)

    expected = np.zeros(count, dtype=np.int64)
    if count:
        expected[1:] = chunks["last_seq"][:-1] + 1
        expected[starts] = 0
    lost = chunks["first_seq"] - expected
    is_cancelled = before(chunks["cancels"]) > 0
    errors = chunks["errors"]
    of_group = np.add.reduceat(errors, starts) if count else errors
    # The chunk after a gap is judged with an unknown demand, so its own gap also counts.
    is_lost = before(lost != 0) + (lost != 0) > 0
    return Carries(
        chunks=chunks,
        demand=before(np.where(is_cancelled, 0, chunks["demand"])),
        elements=before(chunks["elements"]),
        is_begun=~is_first | (lost != 0),
        is_cancelled=is_cancelled,
        is_terminated=before(chunks["terminals"]) > 0,
        is_lost=is_lost,
        is_answered_later=(of_group[group] - before(errors) - errors > 0)
        if count
        else np.zeros(0, dtype=bool),
        lost=lost,
        is_first=is_first,
    )
