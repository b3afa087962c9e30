"""The benchmarks judge rightly: what they measure is for `nox -s bench`, that they can fail is for here."""

from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import _inprocess, _report
from tests.bench._measure import Bar, Measured

MEASURED = Measured(3, {"ours": [30.0, 40.0, 20.0], "theirs": [10.0, 10.0, 10.0]})


def test_a_ratio_is_the_median_of_the_ratios_within_a_round() -> None:
    """Noise that hits a whole round cancels out."""
    assert Measured(3, {"a": [2.0, 20.0, 9.0], "b": [1.0, 10.0, 3.0]}).ratio("a", "b") == 2.0


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (Bar("b", "ours", "theirs", at_most=3), True),
        (Bar("b", "ours", "theirs", at_most=2.9), False),
        (Bar("b", "theirs", "ours", at_least=3), True),
        (Bar("b", "theirs", "ours", at_least=3.1), False),
    ],
)
def test_a_bar_is_kept_up_to_its_number(bar: Bar, kept: bool) -> None:
    """Both kinds of bar can be kept and missed."""
    assert MEASURED.judge(bar).kept is kept


def test_a_short_run_forgives_half() -> None:
    """Half the bar is twice the cost, or half the advantage."""
    assert Bar("b", "x", "y", at_most=4).relaxed(2).at_most == 8
    assert Bar("b", "x", "y", at_least=12).relaxed(2).at_least == 6


def test_a_missed_bar_ends_the_run_with_1_and_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads the log sees which promise broke, and CI fails."""
    monkeypatch.setattr(bench, "measure", lambda contenders, rounds: MEASURED)
    monkeypatch.setattr(bench, "BASELINE", "theirs")
    monkeypatch.setattr(_inprocess, "BARS", (Bar("the impossible", "ours", "theirs", at_most=0.1),))
    assert bench.main(["--short"]) == 1
    assert "bar missed: the impossible" in capsys.readouterr().err


def test_kept_bars_end_the_run_with_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same run with a bar that holds succeeds, and writes its page."""
    monkeypatch.setattr(bench, "measure", lambda contenders, rounds: MEASURED)
    monkeypatch.setattr(bench, "BASELINE", "theirs")
    monkeypatch.setattr(_inprocess, "BARS", (Bar("the easy", "ours", "theirs", at_most=100),))
    page = tmp_path / "figures.md"
    assert bench.main(["--markdown", str(page)]) == 0
    assert "| ours | 30 ns | 3.0 × |" in page.read_text(encoding="utf-8")
    assert "nox -s bench -- --full" in page.read_text(encoding="utf-8")
    assert "the easy" in capsys.readouterr().out


def test_the_table_shows_each_contender_with_a_bar() -> None:
    """The longest bar is the dearest contender's."""
    rows = _report.table(MEASURED, "theirs").splitlines()
    assert rows[1].count("█") == _report.WIDTH
    assert 0 < rows[2].count("█") < _report.WIDTH


async def test_every_contender_moves_what_it_says() -> None:
    """A contender that stopped early would look fast."""
    for name, (contender, _) in _inprocess.contenders(1).items():
        if name != "chain of operators":
            assert await contender(300) == 300
