"""The page of answers says what the rows say, and the rows use the reasons that the page of the wire lists."""

import re
from pathlib import Path

import pytest

from penstock.api import Limits
from tests.hostile._page import HEAD, render
from tests.hostile._row import SCALED, SILENCE, Answer, Row
from tests.hostile._table import CHAPTERS, ROWS, RS_CHAPTERS

REFUSAL = "not you"
"""What a setup function of the tests says."""
REFERENCE = Path(__file__).parents[2] / "docs/reference"


PAGES = [("answers.md", "rsio.md", CHAPTERS), ("reactivesocket.md", "reactivesocket.md", RS_CHAPTERS)]


@pytest.mark.parametrize(("page", "_", "chapters"), PAGES)
def test_the_page_of_answers_is_the_table_that_is_tested(page: str, _: str, chapters: dict[str, list[Row]]) -> None:
    """Line for line; `python -m tests.hostile` prints what belongs there, with `reactivesocket` for the other protocol."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    assert render(chapters) in text
    assert text.count(HEAD[0]) == len(chapters)


@pytest.mark.parametrize(("_", "wire", "chapters"), PAGES)
def test_each_reason_is_one_that_the_page_of_the_wire_explains(_: str, wire: str, chapters: dict[str, list[Row]]) -> None:
    """Who reads a goodbye's reason finds its token there, outside of the tables of answers."""
    text = (REFERENCE / wire).read_text(encoding="utf-8").replace(render(chapters), "")
    explained = set(re.findall(r"`([a-z-]+(?::[a-z]+)?)[^`]*`", text))
    rows = [row for rows in chapters.values() for row in rows]
    given = {row.says.split()[0] for row in rows if row.answer is Answer.FATAL and row.says not in ("", SILENCE, REFUSAL)}
    assert given - explained == set()


def test_each_deadline_is_a_limit() -> None:
    """The names in the last column are those of fields, and those in the first column, too."""
    named = {name for row in ROWS for name in (*row.within, *re.findall(r"`(\w+)`", row.what))}
    assert all(hasattr(Limits(), name) for name in named)


def test_no_two_rows_of_a_table_are_the_same() -> None:
    """Each row has its name, by which a failure can be run again."""
    for rows in (*CHAPTERS.values(), *RS_CHAPTERS.values()):
        assert len({row.id for row in rows}) == len(rows)


def test_the_limits_of_the_tests_are_the_defaults_scaled_down() -> None:
    """None is above its default: what holds here holds there."""
    defaults = Limits()
    larger = [name for name in SCALED.__dataclass_fields__ if (getattr(SCALED, name) or 0) > (getattr(defaults, name) or 0)]
    assert larger == []
