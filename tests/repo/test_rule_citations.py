"""A cited rule exists: `rule 1.7` in a comment, a docstring, a message or a page,
and `D2.3` for a rule of the early draft.
"""

import re
from pathlib import Path

from tests.repo._tree import ROOT, files, refuse, text_of

# How many rules each chapter has: publisher, subscriber, subscription, processor.
MODERN_CHAPTERS = {1: 11, 2: 13, 3: 17, 4: 2}
MODERN = {
    f"{chapter}.{number}"
    for chapter, count in MODERN_CHAPTERS.items()
    for number in range(1, count + 1)
}
# The draft gives its rules no numbers. Ours count them in the order in which they stand.
DRAFT_CHAPTERS = {1: 7, 2: 6, 3: 4, 4: 7, 5: 2, 6: 3, 7: 7, 8: 6, 9: 1}
DRAFT = {
    f"D{chapter}.{number}"
    for chapter, count in DRAFT_CHAPTERS.items()
    for number in range(1, count + 1)
}

HERE = Path(__file__).relative_to(ROOT)  # the last test has a citation of no rule
CITING = [
    path
    for path in files("src", "tck", "tests", "docs", "examples", "README.md", "plugins")
    if path.suffix in {".py", ".md"}
]
LIST = re.compile(
    r"\brules?\s+(D?\d+\.\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+or\s+|\s*/\s*)D?\d+\.\d+)*)",
    re.IGNORECASE,
)
ID = re.compile(r"D?\d+\.\d+")
DRAFT_ID = re.compile(r"\bD\d+\.\d+\b")


def cited(text: str) -> set[str]:
    """Every rule id that a text cites."""
    return {rule for row in LIST.findall(text) for rule in ID.findall(row)} | set(
        DRAFT_ID.findall(text)
    )


def test_each_cited_rule_exists() -> None:
    """No citation has a number that is not among the rules."""
    unknown = {
        path: sorted(cited(text_of(path)) - MODERN - DRAFT) for path in CITING if path != HERE
    }
    refuse(
        (f"{path}: rule {rule}" for path, rules in unknown.items() for rule in rules),
        "these rules do not exist:",
    )


def test_there_are_43_rules_of_each_kind() -> None:
    """The modern rules and the rules of the draft are equally many, by chance."""
    assert len(MODERN) == 43
    assert len(DRAFT) == 43


def test_citations_are_found_in_all_their_forms() -> None:
    """One rule, two, a list over a line's end, a draft rule by its id alone;
    and one that does not exist.
    """
    text = "# rule 1.7: silence\n(rules 3.8, 3.17) Rules 2.3 and\n2.4; D7.1; see rule 3.99"
    assert cited(text) == {"1.7", "3.8", "3.17", "2.3", "2.4", "D7.1", "3.99"}
