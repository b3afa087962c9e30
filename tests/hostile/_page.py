"""Renders the table of answers for the reference. ``python -m tests.hostile`` prints it, from
the root of the repository.
"""

from collections.abc import Mapping, Sequence

from tests.hostile._attacker_protocol import RSIO
from tests.hostile._row import SILENCE, Answer, Row, Target

HEAD = ["| what a peer does | answer | what it is told | by when |", "|---|---|---|---|"]


def render(chapters: Mapping[str, Sequence[Row]]) -> str:
    """Return all chapters with their tables."""
    return (
        "\n\n".join(
            "\n".join((f"### {title}", "", *HEAD, *map(line, rows)))
            for title, rows in chapters.items()
        )
        + "\n"
    )


def line(row: Row) -> str:
    """Return a row in Markdown."""
    return f"| {row.title} | {row.answer.value} | {told(row)} | {deadline(row)} |"


def told(row: Row) -> str:
    if row.answer is Answer.TOLERATED:
        return "nothing"
    if row.answer is Answer.STREAM and row.target is Target.CLIENT:
        return f"{_cancel(row) if row.cancels else 'nothing'}; the program gets the error"
    error, goodbye = (
        ("onError", "goodbye") if row.protocol is RSIO else ("ERROR", "ERROR on stream 0")
    )
    if row.answer is Answer.STREAM:
        return f'{error} "{row.says}"'
    if row.says == SILENCE:
        return "nothing: closed"
    return f"{goodbye} `{row.says}`" if row.says else "goodbye, without a reason"


def deadline(row: Row) -> str:
    return " + ".join(f"`{name}`" for name in row.within) or "at once"


def _cancel(row: Row) -> str:
    return "cancel" if row.protocol is RSIO else "CANCEL"
