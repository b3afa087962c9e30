"""The results of the checks as text for a terminal, and as values for a JSON file."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from penstock_tck.wire._requirement import Requirement
from penstock_tck.wire._verdict import Result, Verdict

MARKS: Final = {Verdict.PASS: "pass", Verdict.FAIL: "FAIL", Verdict.NOT_SUPPORTED: "not supported"}
NAME: Final = 30
INDENT: Final = " " * 15


def as_text(requirement: Requirement, result: Result, *, width: int = 120) -> str:
    """Return the block of one requirement:
    the verdict, the name, the place in the specification, the sentence, and the observation.
    """
    head = (
        f"{MARKS[result.verdict]:<14} {requirement.name:<{NAME}} {requirement.place}, "
        f"{requirement.level.value}"
    )
    sentence = textwrap.fill(
        requirement.sentence, width, initial_indent=INDENT, subsequent_indent=INDENT
    )
    seen = textwrap.fill(
        f"→ {_printable(result.seen)}",
        width,
        initial_indent=INDENT,
        subsequent_indent=INDENT + "  ",
    )
    return f"{head}\n{sentence}\n{seen}"


def summary(results: Sequence[Result]) -> str:
    """Return one line with the number of results of each verdict."""
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)


def lacking(results: Sequence[Result]) -> str:
    """Return a line about the publishers that the target was found to lack; "" if it lacks none."""
    counts = Counter(offer for result in results for offer in result.lacks)
    if not counts:
        return ""
    named = ", ".join(f"{offer} ({count} requirements)" for offer, count in counts.items())
    return (
        f"The target has no publisher for {named}. Name those that it has (--{next(iter(counts))} "
        "NAME), or say that it lacks them (--without OFFER). --help says what each of them does."
    )


def as_json(
    url: str, requirements: Sequence[Requirement], results: Sequence[Result]
) -> dict[str, Any]:
    """Return the whole report as plain values:
    the URL, the counts, and each requirement with its verdict.
    """
    by_name = {row.name: row for row in requirements}
    counts = Counter(result.verdict.value for result in results)
    return {
        "url": url,
        "counts": {verdict.value: counts[verdict.value] for verdict in Verdict},
        "requirements": [_row(by_name[result.name], result) for result in results],
    }


def _row(requirement: Requirement, result: Result) -> dict[str, Any]:
    return {
        "name": requirement.name,
        "specification": requirement.specification,
        "line": requirement.line,
        "section": requirement.section,
        "sentence": requirement.sentence,
        "level": requirement.level.value,
        "reading": requirement.reading,
        "needs": list(requirement.needs),
        "verdict": result.verdict.value,
        "seen": _printable(result.seen),
        "lacks": list(result.lacks),
    }


def _printable(text: str) -> str:
    """Escape characters that are not printable:
    a text that the target sent could otherwise control the terminal.
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
