"""A requirement: a sentence of the specification with its line, and the check that a target is put through for it.

Rules of this file:

* The sentence is the specification's own; what the check does, and how it reads the sentence where that leaves a choice, is the check's
  docstring.
* A table may hold several requirements of one sentence; it holds no name twice.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from penstock_tck.wire._check_context import CheckContext


class Level(Enum):
    """How strongly the specification says it."""

    MUST = "MUST"
    """With that word, or another of its force."""

    SHOULD = "SHOULD"
    """With that word."""

    SAYS = "says"
    """As a plain statement of what is sent, and when."""

    READING = "reading"
    """The specification leaves it open; this is how it is read here, and on the reference page of the protocol."""


Check: TypeAlias = "Callable[[CheckContext], Awaitable[str]]"
"""Puts a target through something, and returns what was seen, for people."""


@attrs.frozen(kw_only=True)
class Requirement:
    """One row of a table."""

    name: str
    """What it is called, and chosen by: ``demand-initial``."""

    line: int
    """Where the sentence begins in the draft, counted from 1."""

    sentence: str
    """The draft's own words."""

    level: Level
    """How strongly it says so."""

    needs: tuple[str, ...]
    """Fields of `Target` that must be given."""

    reading: str
    """What the check does, in words."""

    check: Check
    """Puts a target through it; returns what was seen, and raises where the requirement is broken."""


class Table:
    """Requirements of one theme, in the making."""

    def __init__(self) -> None:
        self.rows: list[Requirement] = []

    def row(self, name: str, line: int, sentence: str, *, level: Level = Level.SAYS, needs: Iterable[str] = ()) -> Callable[[Check], Check]:
        """Make the decorated check the one of a requirement."""

        def add(check: Check) -> Check:
            reading = " ".join((check.__doc__ or "").split())
            self.rows.append(
                Requirement(name=name, line=line, sentence=sentence, level=level, needs=tuple(needs), reading=reading, check=check)
            )
            return check

        return add


def join_tables(*tables: Table) -> Sequence[Requirement]:
    """Return the rows of all tables."""
    return tuple(row for table in tables for row in table.rows)
