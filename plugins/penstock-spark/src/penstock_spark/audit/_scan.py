"""The exact look at one chunk, row by row, with what came before it: which rule was breached first, and how often."""

from typing import Final

import attrs

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

AROUND: Final = 5
"""Rows before and behind a violation that are shown with it."""

NAMES: Final = {
    ON_SUBSCRIBE: "on_subscribe",
    REQUEST: "request",
    ON_NEXT: "on_next",
    CANCEL: "cancel",
    ON_COMPLETE: "on_complete",
    ON_ERROR: "on_error",
}


@attrs.define
class Carry:
    """What is known of a subscription before a row."""

    demand: int = 0
    elements: int = 0
    is_begun: bool = False
    """on_subscribe has come, or rows before were lost."""
    is_cancelled: bool = False
    is_terminated: bool = False
    is_lost: bool = False
    """Rows before were lost, so the demand is not known."""


@attrs.frozen
class Violation:
    """A breach of a rule by one subscription."""

    rule: str
    seq: int
    """Of the first row that breaches it."""
    count: int
    """How many rows breach it."""
    transcript: tuple[str, ...]
    """The rows around the first one; it begins with ``>``."""


def scan(rows: Columns, carry: Carry, *, is_answered_later: bool) -> list[Violation]:
    """Return the violations in the rows of one chunk. `carry` is moved on.

    `is_answered_later`: an on_error stands in a later chunk of the subscription, so no bad request stays without an answer.
    """
    found: dict[str, list[int]] = {}
    kinds, counts, seqs = rows["kind"].tolist(), rows["n"].tolist(), rows["seq"].tolist()
    last_error = len(kinds) if is_answered_later else max((at for at, kind in enumerate(kinds) if kind == ON_ERROR), default=-1)
    for position, (kind, n) in enumerate(zip(kinds, counts, strict=True)):
        for rule in _breached(kind, n, carry, is_answered=position < last_error):
            found.setdefault(rule, []).append(position)
        _move(kind, n, carry)
    return [
        Violation(rule, int(seqs[positions[0]]), len(positions), tuple(_transcript(rows, positions[0])))
        for rule, positions in found.items()
    ]


def _breached(kind: int, n: int, carry: Carry, *, is_answered: bool) -> list[str]:
    rules = []
    if kind == ON_SUBSCRIBE:
        if carry.is_begun:
            rules.append("1.9")
    elif not carry.is_begun:
        rules.append("1.9")
    if carry.is_terminated and kind in (ON_NEXT, ON_COMPLETE, ON_ERROR):
        rules.append("1.7")
    if kind == ON_NEXT and not carry.is_lost and carry.elements + n > carry.demand:
        rules.append("1.8" if carry.is_cancelled else "1.1")
    if kind == REQUEST and n <= 0 and not (is_answered or carry.is_cancelled or carry.is_terminated):
        rules.append("3.9")
    return rules


def _move(kind: int, n: int, carry: Carry) -> None:
    carry.is_begun = True
    if kind == REQUEST and n > 0 and not carry.is_cancelled:
        carry.demand += min(n, MOST_DEMAND)
    elif kind == ON_NEXT:
        carry.elements += n
    elif kind == CANCEL:
        carry.is_cancelled = True
    elif kind in (ON_COMPLETE, ON_ERROR):
        carry.is_terminated = True


def _transcript(rows: Columns, position: int) -> list[str]:
    begin, end = max(0, position - AROUND), position + AROUND + 1
    lines = []
    for at in range(begin, min(end, len(rows["seq"]))):
        kind, n = int(rows["kind"][at]), int(rows["n"][at])
        amount = f"({n})" if kind == REQUEST else f" x{n}" if kind == ON_NEXT else ""
        lines.append(f"{'>' if at == position else ' '} {int(rows['seq'][at])} {NAMES.get(kind, str(kind))}{amount}")
    return lines
