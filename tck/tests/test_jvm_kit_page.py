"""The table of docs/explanation/test-kits.md has each rule with the checks of both kits."""

import os
from pathlib import Path

from penstock_tck import MODERN, MODERN_RULES, ProcessorVerification, checks_of

tck_verifies_nothing = "it compares names"

PAGE = Path(__file__).parents[2] / "docs/explanation/test-kits.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"

THERE: dict[str, str] = {
    "1.3": "one, on real threads, by chance",
    "1.4": "optional",
    "1.7": "after on_complete only",
    "1.11": "optional: a failure is a skip",
    "2.8": "white box only",
    "2.13": "for arguments that are null",
    "3.8": "white box only, and with 1.1",
    "3.12": "passes a publisher that ignores cancel() and keeps to the demand",
    "3.13": "one garbage collection after 300 ms",
}
"""What limits the checks that the JVM's kit has for a rule."""

NONE_THERE = {
    "1.6",
    "1.8",
    "1.10",
    "2.2",
    "2.4",
    "2.6",
    "2.7",
    "2.11",
    "2.12",
    "3.1",
    "3.4",
    "3.5",
    "3.10",
    "3.11",
    "3.14",
    "3.15",
    "3.16",
}
"""The rules for which the JVM's kit has no check with a body."""


def _table() -> str:
    checks = checks_of(type("Everything", (ProcessorVerification,), {"profile": MODERN}))
    lines = ["| rule | JVM's kit | penstock-tck |", "|---|---|---|"]
    for rule in MODERN_RULES:
        names = ", ".join(f"`{check.name}`" for check in checks if rule in check.rules)
        lines.append(
            f"| {rule} | {'none' if rule in NONE_THERE else THERE.get(rule, 'checked')} | {names} |"
        )
    return "\n".join(lines) + "\n"


def test_the_table_of_the_page_is_current() -> None:
    """It is made of the checks. PENSTOCK_WRITE_OUT=1 writes it."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    now, _, after = rest.partition(END)
    if os.environ.get("PENSTOCK_WRITE_OUT"):
        PAGE.write_text(before + BEGIN + _table() + END + after, encoding="utf-8")
        return
    assert now == _table()


def test_the_two_lists_of_rules_do_not_overlap() -> None:
    """17 of the 43 rules have no check in the JVM's kit."""
    assert len(NONE_THERE) == 17
    assert not NONE_THERE & set(THERE)
    assert NONE_THERE | set(THERE) <= set(MODERN_RULES)
