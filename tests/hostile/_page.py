"""The table as the reference prints it: ``python -m tests.hostile`` from the root of the repository says what belongs on the page."""

from tests.hostile._row import SILENCE, Answer, Row, To
from tests.hostile._table import CHAPTERS

HEAD = ["| what a peer does | answer | what it is told | by when |", "|---|---|---|---|"]


def render() -> str:
    """Return all chapters with their tables."""
    return "\n\n".join("\n".join((f"### {title}", "", *HEAD, *map(line, rows))) for title, rows in CHAPTERS.items()) + "\n"


def line(row: Row) -> str:
    """Return a row as the page has it."""
    return f"| {row.what} | {row.answer.value} | {told(row)} | {deadline(row)} |"


def told(row: Row) -> str:
    if row.answer is Answer.TOLERATED:
        return "nothing"
    if row.answer is Answer.STREAM:
        return f'onError "{row.says}"' if row.to is To.SERVER else f"{'cancel' if row.cancels else 'nothing'}; the program gets the error"
    if row.says == SILENCE:
        return "nothing: closed"
    return f"goodbye `{row.says}`" if row.says else "goodbye, without a reason"


def deadline(row: Row) -> str:
    return " + ".join(f"`{name}`" for name in row.within) or "at once"
