"""What a target offers, and how patient the check is."""

import re
from pathlib import Path

import pytest
from penstock_tck.wire import OFFERS, Target

from penstock.api import UsageError

PAGE = Path(__file__).parents[3] / "docs/how-to/check-a-peer.md"


@pytest.mark.parametrize("wrong", [{"quiet": 0}, {"patience": -1.0}, {"quiet": 2.0, "patience": 1.0}])
def test_times_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    """With what to write instead."""
    with pytest.raises(UsageError, match=r"above zero|more time"):
        Target(**wrong)


def test_the_page_shows_each_offer_with_its_default() -> None:
    """Option, default and meaning, word for word."""
    rows = re.findall(r"^\| `--([a-z]+)` \| `(.+?)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name, getattr(Target(), name), text) for name, text in OFFERS.items()]
