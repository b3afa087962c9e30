"""The page about speed shows all figures of the recorded run, and no others."""

from pathlib import Path

from campaigns.bench import __main__ as bench
from campaigns.bench import _amounts, _pages
from tests.repo._tree import refuse, text_of

DOCS = Path("docs/explanation")
RECORDED = _pages.Run.from_json(text_of(DOCS / _pages.FIGURES))


def test_the_pages_and_the_plot_are_made_from_the_recorded_figures() -> None:
    """The pages are generated, not edited.
    `python -m campaigns bench --render docs/explanation` generates them again.
    """
    made = _pages.pages(RECORDED, bench.GROUPS)
    refuse(
        (DOCS / name for name, text in made.items() if text_of(DOCS / name) != text),
        "generate these files again:",
    )


def test_every_contender_and_every_amount_is_among_the_figures() -> None:
    """A table that lacks a contender could hide the fastest one."""
    found = {group.key: set(group.contenders(False)) for group in bench.GROUPS}
    recorded = {key: set(measured.costs) for key, measured in RECORDED.measured.items()}
    # As a whole table or not at all, and no longer than until its figures are there.
    assert recorded == found
    assert set(RECORDED.amounts) == {each.name for each in _amounts.CEILINGS}
