"""The exact look at one chunk, with what came before it:
which row breaches which rule first, and how often.
"""

from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from penstock_spark.audit._chunks import (
    CANCEL,
    MOST_DEMAND,
    ON_COMPLETE,
    ON_ERROR,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    Columns,
)

Flags = npt.NDArray[np.bool_]

AROUND: Final = 5
"""Rows before and after a violation that are shown with it."""

NAMES: Final = {
    ON_SUBSCRIBE: "on_subscribe",
    REQUEST: "request",
    ON_NEXT: "on_next",
    CANCEL: "cancel",
    ON_COMPLETE: "on_complete",
    ON_ERROR: "on_error",
}


@attrs.define
class WindowState:
    """The state of a subscription before a row."""

    demand: int = 0
    elements: int = 0
    is_begun: bool = False
    """on_subscribe has come, or rows before were lost."""
    is_cancelled: bool = False
    is_terminated: bool = False
    is_lost: bool = False
    """Rows before were lost, so the demand is not known."""


@attrs.frozen
class Breach:
    """A breach of a rule by one subscription."""

    rule: str
    seq: int
    """The number of the first row that breaches it."""
    count: int
    """How many rows breach it."""
    transcript: tuple[str, ...]
    """The rows around the first one; it begins with ``>``."""


def scan(rows: Columns, carry: WindowState, *, is_answered_later: bool) -> list[Breach]:
    """Return the violations in the rows of one chunk, by the position of the first breach.
    `carry` is moved on.

    `is_answered_later`: an on_error stands in a later chunk of the subscription,
    so no bad request stays without an answer.
    """
    found = []
    for rule, breaches in _breaches(rows, carry, is_answered_later=is_answered_later):
        positions = np.flatnonzero(breaches)
        if len(positions):
            found.append((int(positions[0]), rule, len(positions)))
    # Two rules may be breached first by the same row:
    # a stable sort leaves them in the order of the rules.
    return [
        Breach(rule, int(rows["seq"][first]), count, tuple(_transcript(rows, first)))
        for first, rule, count in sorted(found, key=lambda each: each[0])
    ]


def _breaches(
    rows: Columns, carry: WindowState, *, is_answered_later: bool
) -> list[tuple[str, Flags]]:
    """Return for each rule which rows breach it, and move `carry` on."""
    kind, n = rows["kind"], rows["n"]
    count = len(kind)
    is_next, is_request, is_cancel, is_error = (
        kind == ON_NEXT,
        kind == REQUEST,
        kind == CANCEL,
        kind == ON_ERROR,
    )
    is_terminal = is_error | (kind == ON_COMPLETE)
    was_cancelled, was_terminated = (
        _before(is_cancel, carried=carry.is_cancelled),
        _before(is_terminal, carried=carry.is_terminated),
    )
    was_begun = np.ones(count, dtype=bool)
    was_begun[:1] = carry.is_begun
    demand = carry.demand + np.cumsum(
        np.where(is_request & (n > 0) & ~was_cancelled, np.minimum(n, MOST_DEMAND), 0)
    )
    elements = carry.elements + np.cumsum(np.where(is_next, n, 0))
    errors = np.flatnonzero(is_error)
    last_error = count if is_answered_later else int(errors[-1]) if len(errors) else -1
    is_answered = np.arange(count) < last_error
    too_many = is_next & (elements > demand) & (not carry.is_lost)
    found = [
        ("1.9", was_begun == (kind == ON_SUBSCRIBE)),
        ("1.7", was_terminated & (is_next | is_terminal)),
        ("1.8", too_many & was_cancelled),
        ("1.1", too_many & ~was_cancelled),
        ("3.9", is_request & (n <= 0) & ~is_answered & ~was_cancelled & ~was_terminated),
    ]
    if count:
        carry.demand, carry.elements, carry.is_begun = int(demand[-1]), int(elements[-1]), True
        carry.is_cancelled, carry.is_terminated = (
            carry.is_cancelled or bool(is_cancel.any()),
            carry.is_terminated or bool(is_terminal.any()),
        )
    return found


def _before(flags: Flags, *, carried: bool) -> Flags:
    """Return for each row whether one of `flags` was true before it."""
    seen = np.logical_or.accumulate(flags)
    return np.concatenate(([carried], carried | seen[:-1]))[: len(flags)]


def _transcript(rows: Columns, position: int) -> list[str]:
    begin, end = max(0, position - AROUND), position + AROUND + 1
    lines = []
    for at in range(begin, min(end, len(rows["seq"]))):
        kind, n = int(rows["kind"][at]), int(rows["n"][at])
        amount = f"({n})" if kind == REQUEST else f" x{n}" if kind == ON_NEXT else ""
        lines.append(
            f"{'>' if at == position else ' '} {int(rows['seq'][at])} "
            f"{NAMES.get(kind, str(kind))}{amount}"
        )
    return lines
