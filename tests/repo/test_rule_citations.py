"""A rule that is cited exists: `rule 1.7` in a comment, a docstring, a message or a page, and `D2.3` of the draft."""

import re
from pathlib import Path

import pytest

from tests.repo._tree import files, text_of

# How many rules each chapter has: publisher, subscriber, subscription, processor.
MODERN_CHAPTERS = {1: 11, 2: 13, 3: 17, 4: 2}
MODERN = {f"{chapter}.{number}" for chapter, count in MODERN_CHAPTERS.items() for number in range(1, count + 1)}
# The draft gives its rules no numbers; ours count them in the order in which they stand.
DRAFT_CHAPTERS = {1: 7, 2: 6, 3: 4, 4: 7, 5: 2, 6: 3, 7: 7, 8: 6, 9: 1}
DRAFT = {f"D{chapter}.{number}" for chapter, count in DRAFT_CHAPTERS.items() for number in range(1, count + 1)}

CITING = [path for path in files("src", "tck", "tests", "docs", "examples", "README.md", "plugins") if path.suffix in {".py", ".md"}]
LIST = re.compile(r"\brules?\s+(D?\d+\.\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+or\s+|\s*/\s*)D?\d+\.\d+)*)", re.IGNORECASE)
ID = re.compile(r"D?\d+\.\d+")
DRAFT_ID = re.compile(r"\bD\d+\.\d+\b")


def cited(text: str) -> set[str]:
    """Every rule id that a text cites."""
    return {rule for row in LIST.findall(text) for rule in ID.findall(row)} | set(DRAFT_ID.findall(text))


@pytest.mark.parametrize("path", CITING, ids=str)
def test_each_cited_rule_exists(path: Path) -> None:
    """A citation leads to a rule, not to a slip of the pen."""
    if path.name == Path(__file__).name:
        return  # the example below
    assert cited(text_of(path)) - MODERN - DRAFT == set()


def test_there_are_43_rules_of_each_kind() -> None:
    """The modern rules and the draft's happen to be equally many."""
    assert len(MODERN) == 43
    assert len(DRAFT) == 43


def test_citations_are_found_in_all_their_forms() -> None:
    """One rule, two, a list over a line's end, a draft rule by its id alone; and one that does not exist."""
    text = "# rule 1.7: silence\n(rules 3.8, 3.17) Rules 2.3 and\n2.4; D7.1; see rule 3.99"
    assert cited(text) == {"1.7", "3.8", "3.17", "2.3", "2.4", "D7.1", "3.99"}
