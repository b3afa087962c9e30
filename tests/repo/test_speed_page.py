"""The page about speed shows the figures that are kept, all of them."""

from tests.bench import __main__ as bench
from tests.bench import _amounts, _pages
from tests.repo._tree import ROOT

DOCS = ROOT / "docs/explanation"
KEPT = _pages.Run.from_json((DOCS / _pages.FIGURES).read_text(encoding="utf-8"))


def test_the_pages_and_the_plot_are_made_from_the_figures_that_are_kept() -> None:
    """Nobody has edited one of them by hand; `python tests/bench --render docs/explanation` makes them again."""
    for name, text in _pages.pages(KEPT, bench.GROUPS).items():
        assert (DOCS / name).read_text(encoding="utf-8") == text


def test_every_contender_and_every_amount_is_among_the_figures() -> None:
    """A table from which somebody is missing would hide who is ahead."""
    assert {group.key: set(group.contenders(False)) for group in bench.GROUPS} == {
        key: set(measured.costs) for key, measured in KEPT.measured.items()
    }
    assert set(KEPT.amounts) == {each.name for each in _amounts.CEILINGS}
