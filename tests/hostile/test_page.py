"""The pages of answers show the rows that are tested,
and each reason in a row is explained on the page of its protocol.
"""

import re
from pathlib import Path

import pytest

from penstock.api import Limits
from penstock.session import CONNECTION_REASONS
from tests.hostile._page import HEAD, render
from tests.hostile._row import SCALED, SILENCE, Answer, Row
from tests.hostile._table import CHAPTERS, ROWS, RS_CHAPTERS

REFUSAL = "not you"
"""The text of the setup function of these tests, which no page explains."""
REFERENCE = Path(__file__).parents[2] / "docs/reference"


PAGES = [
    ("answers.md", "rsio.md", CHAPTERS),
    ("reactivesocket.md", "reactivesocket.md", RS_CHAPTERS),
]


@pytest.mark.parametrize(("page", "_", "chapters"), PAGES)
def test_the_page_of_answers_is_the_table_that_is_tested(
    page: str, _: str, chapters: dict[str, list[Row]]
) -> None:
    """`python -m tests.hostile` prints the tables of one page;
    with `reactivesocket` those of the other.
    """
    text = (REFERENCE / page).read_text(encoding="utf-8")
    assert render(chapters) in text
    assert text.count(HEAD[0]) == len(chapters)


@pytest.mark.parametrize(("_", "wire", "chapters"), PAGES)
def test_each_reason_is_explained_on_the_page_of_its_protocol(
    _: str, wire: str, chapters: dict[str, list[Row]]
) -> None:
    """The token of each reason is in the table of reasons, or stands on the page of the
    protocol, outside of the table of answers.
    """
    text = (REFERENCE / wire).read_text(encoding="utf-8").replace(render(chapters), "")
    explained = set(re.findall(r"`([a-z-]+(?::[a-z]+)?)[^`]*`", text)) | {
        reason.token for reason in CONNECTION_REASONS
    }
    rows = [row for rows in chapters.values() for row in rows]
    given = {
        row.says.split()[0]
        for row in rows
        if row.answer is Answer.FATAL and row.says not in ("", SILENCE, REFUSAL)
    }
    assert given - explained == set()


def test_each_deadline_is_a_limit() -> None:
    """Each name in backticks, in the first and the last column, is a field of `Limits`."""
    named = {name for row in ROWS for name in (*row.within, *re.findall(r"`(\w+)`", row.title))}
    assert all(hasattr(Limits(), name) for name in named)


def test_no_two_rows_of_a_table_are_the_same() -> None:
    """No two rows have the same id, so a failed test can be run again by its id."""
    for rows in (*CHAPTERS.values(), *RS_CHAPTERS.values()):
        assert len({row.id for row in rows}) == len(rows)


def test_the_limits_of_the_tests_are_the_defaults_scaled_down() -> None:
    """No limit of the tests is above its default, so the answers hold for the defaults too."""
    defaults = Limits()
    larger = [
        name
        for name in SCALED.__dataclass_fields__
        if (getattr(SCALED, name) or 0) > (getattr(defaults, name) or 0)
    ]
    assert larger == []
