"""A requirement is a demand of the specification, with the check that tests a target for it.

Rules of this file:

* The sentence says in the words of this project what the specification demands at that place.
  If the level is `Level.OWN`, it is quoted from the reference page of the protocol, to the letter.
  The docstring of the check says what the check does. If the specification can be read in several
  ways, the docstring also says which reading is checked.
* A table may hold several requirements of one place. All names in a table are different.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

if TYPE_CHECKING:
    from penstock_tck.wire._check_context import CheckContext

RSIO: Final = "RS.io draft"
REACTIVESOCKET: Final = "ReactiveSocket draft"


class Level(Enum):
    """How binding the requirement is."""

    MUST = "MUST"
    """The specification says MUST, or a word of the same force."""

    SHOULD = "SHOULD"
    """The specification says SHOULD."""

    SAYS = "says"
    """The specification states plainly what is sent, and when."""

    OWN = "own"
    """The draft does not mention it.
    The sentence is one of the reference page of the protocol, and the line is 0.
    """

    READING = "reading"
    """The specification leaves a choice.
    The reference page of the protocol says which reading is checked here.
    """


Check: TypeAlias = "Callable[[CheckContext], Awaitable[str]]"
"""Tests a target, and returns what was seen, as text for the report."""


@attrs.frozen(kw_only=True)
class Requirement:
    """One row of a table."""

    name: str
    """The name by which the requirement is selected, for example ``demand-initial``."""

    specification: str
    """The name of the specification."""

    line: int
    """The line of the specification that the requirement comes from, counted from 1;
    0 if the specification does not have it, or if `section` names the place.
    """

    sentence: str
    """The demand of the specification, in the words of this project."""

    level: Level
    """How binding the requirement is."""

    needs: tuple[str, ...]
    """Names of the fields of `Target` that the check uses and that must not be empty."""

    reading: str
    """The docstring of the check, on one line."""

    section: str = ""
    """The title of the section that the requirement comes from, for a specification whose lines
    change with its editions.
    """

    check: Check
    """The check. It returns what was seen, and raises if the target breaks the requirement."""

    @property
    def place(self) -> str:
        """Where the requirement comes from, for a report: ``RS.io draft, line 21``."""
        if self.section:
            return f"{self.specification}, {self.section}"
        return f"{self.specification}, line {self.line}" if self.line else "reference page"


class Table:
    """Collects the requirements of one theme, all of one specification."""

    def __init__(self, specification: str) -> None:
        self.specification = specification
        self.rows: list[Requirement] = []

    def row(
        self,
        name: str,
        place: int | str,
        sentence: str,
        *,
        level: Level = Level.SAYS,
        needs: Iterable[str] = (),
    ) -> Callable[[Check], Check]:
        """Add a requirement whose check is the decorated function. `place` is a line of the
        specification, or the title of a section.
        """

        def add(check: Check) -> Check:
            reading = " ".join((check.__doc__ or "").split())
            self.rows.append(
                Requirement(
                    name=name,
                    specification=self.specification,
                    line=place if isinstance(place, int) else 0,
                    section=place if isinstance(place, str) else "",
                    sentence=sentence,
                    level=level,
                    needs=tuple(needs),
                    reading=reading,
                    check=check,
                )
            )
            return check

        return add


def join_tables(*tables: Table) -> Sequence[Requirement]:
    """Return the rows of all tables, in order."""
    return tuple(row for table in tables for row in table.rows)
