"""The costs of a connection are judged correctly, and the page shows every row. The figures
themselves are judged by `nox -s costs`, whose short form makes each attack in a plain `nox`.
"""

from pathlib import Path

import pytest

from campaigns.costs import __main__ as costs
from campaigns.costs import crowd, idle
from campaigns.costs._rows import KIB, ROWS, Row

RECORDED = Path(__file__).parents[2] / "docs/explanation" / costs.PAGE


def _row(title: str, at_most: int) -> Row:
    return Row(title, lambda: b"\x01\x00\x00", at_most)


def test_the_page_has_every_row_and_its_bar() -> None:
    """The table is generated; `python -m campaigns costs --docs docs/explanation` generates it again."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == costs.HEAD.splitlines()
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert [cells[0] for cells in shown] == [row.title for row in ROWS]
    for cells, row in zip(shown, ROWS, strict=True):
        assert cells[-1].split(" ")[0] == f"{row.at_most / KIB:,.0f}", row.title
        assert int(cells[2].replace(",", "")) * KIB <= row.at_most, row.title


def test_a_row_above_its_bar_is_named_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The row below its bar is only printed."""
    monkeypatch.setattr(costs, "ROWS", (_row("dear", 1), _row("cheap", 1 << 20)))
    monkeypatch.setattr(costs, "SECONDS", 0.3)
    assert costs.main(["--docs", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "missed: dear: " in printed.err
    assert "cheap" not in printed.err
    assert "| cheap | " in (tmp_path / costs.PAGE).read_text(encoding="utf-8")
    monkeypatch.setattr(costs, "ROWS", (_row("cheap", 1 << 20),))
    assert costs.main(["--short"]) == 0


@pytest.mark.heavy
def test_a_crowd_that_comes_and_goes_is_measured() -> None:
    """Beside a bare trio server, and with both settings of the collector.
    The test judges no time.
    """
    lines = crowd.table(40, 1, with_streams=2).splitlines()
    assert "\n".join(lines[:2]) == crowd.HEAD
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(crowd.ROWS.values())
    cells = [cell for line in lines[2:] for cell in line.split("|")[2:-1]]
    assert cells[3].isspace()  # the bare server knows no streams
    assert all(int(cell) >= 0 for cell in cells if not cell.isspace())


@pytest.mark.heavy
def test_connections_that_do_nothing_are_measured() -> None:
    """The other rows need the plugins. The test judges no size: 20 connections are too few."""
    lines = idle.table(20, ["TCP", "TLS"]).splitlines()
    assert "\n".join(lines[:2]) == idle.HEAD
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["TCP", "TLS"]
    assert all(int(line.split("|")[2]) < 1_000 for line in lines[2:])
