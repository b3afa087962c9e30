"""The target of the checks: its offers and its times."""

import re
from pathlib import Path

import pytest
from penstock_tck.wire import OFFERS, Target

from penstock.api import UsageError

PAGE = Path(__file__).parents[3] / "docs/how-to/check-a-peer.md"


@pytest.mark.parametrize(
    "wrong", [{"quiet": 0}, {"patience": -1.0}, {"quiet": 2.0, "patience": 1.0}]
)
def test_impossible_times_are_refused(wrong: dict[str, float]) -> None:
    """The error says what to give instead."""
    with pytest.raises(UsageError, match=r"greater than zero|greater than quiet"):
        Target(**wrong)


def test_the_how_to_page_lists_each_offer() -> None:
    """Option, default and description, word for word."""
    rows = re.findall(
        r"^\| `--([a-z]+)` \| `(.+?)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [(name, getattr(Target(), name), text) for name, text in OFFERS.items()]
