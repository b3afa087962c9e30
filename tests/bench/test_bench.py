"""The benchmarks judge correctly, and each contender runs. `nox -s bench` measures; no speed is judged here."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import (
    _amounts,
    _bulk,
    _idle,
    _inprocess,
    _limits_and_memory,
    _network,
    _pages,
    _plot,
    _reactivesocket,
    _report,
    _round_trips,
)
from tests.bench._measure import Bar, Group, Measured, Opening, Timer, measure

MEASURED = Measured(3, {"ours": [30.0, 40.0, 20.0], "theirs": [10.0, 10.0, 10.0]})
EASY = Bar("the easy", "ours", "theirs", at_most=100)
IMPOSSIBLE = Bar("the impossible", "ours", "theirs", at_most=0.1)


@contextmanager
def _costing(nanoseconds: float) -> Iterator[Timer]:
    yield lambda: nanoseconds


def _fakes(short: bool) -> dict[str, Opening]:
    def opening(nanoseconds: float) -> Opening:
        def fake() -> AbstractContextManager[Timer]:
            return _costing(nanoseconds)

        return fake

    return {"ours": opening(30), "theirs": opening(10)}


def _group(*bars: Bar, key: str = "small", needs: dict[str, str] | None = None) -> Group:
    return Group(key, "Fakes", "element", "theirs", _fakes, bars, needs or {})


def test_a_ratio_is_the_median_of_the_ratios_within_a_round() -> None:
    """Noise of a whole round cancels out."""
    assert Measured(3, {"a": [2.0, 20.0, 9.0], "b": [1.0, 10.0, 3.0]}).ratio("a", "b") == 2.0


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (Bar("b", "ours", "theirs", at_most=3), True),
        (Bar("b", "ours", "theirs", at_most=2.9), False),
        (Bar("b", "theirs", "ours", at_least=3), True),
        (Bar("b", "theirs", "ours", at_least=3.1), False),
        (Bar("b", "ours", "theirs", at_least=1, or_under=30), True),
        (Bar("b", "ours", "theirs", at_least=1, or_under=29), False),
        (Bar("b", "ours", "nobody", at_least=0.001), False),
    ],
)
def test_a_bar_is_kept_up_to_its_number(bar: Bar, kept: bool) -> None:
    """Each kind of bar can be kept and missed. A bar beside a missing contender is missed."""
    assert MEASURED.judge(bar).kept is kept


def test_a_short_run_is_judged_by_half_of_each_bar() -> None:
    """Half of a bar is twice the cost, or half the advantage."""
    assert Bar("b", "x", "y", at_most=4).relaxed(2).at_most == 8
    assert Bar("b", "x", "y", at_least=12, or_under=50).relaxed(2)[4:6] == (6, 100)
    assert _amounts.Ceiling("c", "MB", 400).relaxed(2).at_most == 800


def test_a_contender_whose_package_is_missing_is_left_out() -> None:
    """The other contenders are measured, and a bar that needs the missing one has no value."""
    measured = measure(_group(needs={"theirs": "no_such_package"}), short=True, rounds=2)
    assert measured.costs == {"ours": [30, 30]}
    assert math.isnan(measured.judge(EASY).seen)
    assert measure(_group(), short=True, rounds=2).ratio("ours", "theirs") == 3


@pytest.mark.parametrize("key", ["inprocess", "small", "requested", "responses"])
def test_a_missed_bar_ends_the_run_with_1_and_is_named(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside one process and over the network, in both protocols."""
    monkeypatch.setattr(bench, "GROUPS", (_group(EASY, IMPOSSIBLE, key=key),))
    assert bench.main(["--short", "--only", key]) == 1
    said = capsys.readouterr()
    assert "bar missed: the impossible: at most 0.2 ×, seen 3.00 ×" in said.err
    assert "the easy" not in said.err


def test_a_missed_ceiling_ends_the_run_with_1_and_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bound on memory is named like a bar."""
    monkeypatch.setattr(_amounts, "CEILINGS", (_amounts.Ceiling("a stream", "bytes", 400), _amounts.Ceiling("another", "bytes", 400)))
    monkeypatch.setattr(_amounts, "amounts", lambda short: {"a stream": 401.0, "another": 400.0})
    assert bench.main(["--only", "amounts"]) == 1
    assert capsys.readouterr().err == "bar missed: a stream: at most 400 bytes, seen 401\n"


def test_kept_bars_end_the_run_with_0_and_the_pages_can_be_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run whose bars hold writes figures, pages and plot. `--render` makes the same pages from the figures alone."""
    monkeypatch.setattr(bench, "GROUPS", (_group(EASY, key="inprocess"), _group(EASY)))
    assert bench.main(["--only", "inprocess,small", "--docs", str(tmp_path)]) == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(written) == {"_speed_measured.json", "_speed_measured.md", "_speed_network.md", "speed.svg"}
    assert "| ours | 30 ns | 33,333,333 | 3.0 × |" in written["_speed_network.md"]
    assert "nox -s bench -- --full" in written["_speed_measured.md"]
    for page in tmp_path.glob("*.*[dg]"):
        page.unlink()
    assert bench.main(["--render", str(tmp_path)]) == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == written
    assert "the easy" in capsys.readouterr().out


def test_a_run_of_some_parts_keeps_the_figures_of_the_others(tmp_path: Path) -> None:
    """One part can be measured again, and the pages still show all parts."""
    _pages.store(_pages.Run("before", "where", {"small": MEASURED, "large": MEASURED}, {"a stream": 400.0}), tmp_path)
    again = MEASURED._replace(rounds=9)
    _pages.store(_pages.Run("after", "where", {"small": again}, {}), tmp_path)
    kept = _pages.Run.from_json((tmp_path / _pages.FIGURES).read_text(encoding="utf-8"))
    assert kept == _pages.Run("after", "where", {"small": again, "large": MEASURED}, {"a stream": 400.0})


def test_the_bars_of_requests_are_those_of_the_documentation() -> None:
    """A stream 20 times as fast as that of rsocket-py, an answer three times as fast for any number in flight."""
    bars = {bar.name: bar for group in _reactivesocket.GROUPS for bar in group.bars}
    assert {name: bar.at_least for name, bar in bars.items()} == {
        "64 B by request_stream, beside rsocket-py": 20,
        "1 in flight, beside rsocket-py": 3,
        "1 in flight, both sides awake": 3,
        "16 in flight, beside rsocket-py": 3,
        "256 in flight, beside rsocket-py": 3,
    }
    assert bars["16 in flight, beside rsocket-py"].relaxed(1).at_least == 3


def test_the_longest_bar_of_the_table_is_the_slowest() -> None:
    """The table shows costs, with a bar for each contender."""
    rows = _report.table(MEASURED, "theirs").splitlines()
    assert rows[1].count("█") == _report.WIDTH
    assert 0 < rows[2].count("█") < _report.WIDTH


def test_the_longest_bar_of_the_plot_is_the_fastest() -> None:
    """The plot shows speeds; the tables show costs."""
    rows = [line for line in _plot.svg([(_group(), MEASURED)]).splitlines() if line.startswith("<rect")]
    ours, theirs = (float(row.split('width="')[1].split('"')[0]) for row in rows)
    assert 0 < ours < theirs


def test_every_bar_names_contenders_that_exist() -> None:
    """A bar with a misspelt name would be missed in each run."""
    for group in bench.GROUPS:
        names = set(group.contenders(True))
        assert {bar.cost_of for bar in group.bars} | {bar.relative_to for bar in group.bars} | {group.baseline} <= names
        assert group.bars


async def test_every_contender_inside_one_process_moves_what_it_says() -> None:
    """A contender that stopped early would appear fast."""
    for name, (contender, _) in _inprocess.contenders(1).items():
        if name != "chain of operators":
            assert await contender(300) == 300


OVER_THE_NETWORK: dict[str, Opening] = {
    "bytes": partial(_bulk.over_trio, "raw", _bulk.read_raw, 64, 3_000),
    "split": partial(_bulk.over_trio, "split", _bulk.read_split, 64, 3_000),
    "elements": partial(_bulk.over_trio, "penstock", _bulk.read_elements, 64, 3_000),
    "batches": partial(_bulk.over_trio, "penstock", _bulk.read_batches, 64, 3_000),
    "large elements": partial(_bulk.over_trio, "penstock", _bulk.read_elements, 256 << 10, 5),
    "buffers": partial(_bulk.over_trio, "penstock", _bulk.read_buffers, 8, 64 * 4096),
    "TLS": partial(_bulk.over_tls, "penstock", _bulk.read_elements_tls, 4096, 100),
    "raw TLS": partial(_bulk.over_tls, "raw", _bulk.read_raw, 4096, 100),
    "echo": partial(_bulk.over_trio, "echo", _round_trips.echo, 64, 20),
    "streams of one": partial(_bulk.over_trio, "penstock_raised", _round_trips.stream_of_one, 64, 20),
    "requested stream": partial(_bulk.over_trio, "penstock", _reactivesocket.read_stream, 64, 3_000),
    "one request at a time": partial(_bulk.over_trio, "penstock_raised", partial(_reactivesocket.ask, in_flight=1), 64, 20),
    "one at a time, awake": partial(
        _bulk.over_trio, "penstock_busy", partial(_reactivesocket.ask, in_flight=1, busy_poll=_limits_and_memory.BUSY_POLL_SECONDS), 64, 20
    ),
    "16 requests in flight": partial(_bulk.over_trio, "penstock_raised", partial(_reactivesocket.ask, in_flight=16), 64, 64),
    "beside idle streams": partial(_idle.beside_idle, 50, 3_000),
}


@pytest.mark.parametrize("name", OVER_THE_NETWORK)
def test_a_contender_over_the_network_runs_round_after_round(name: str) -> None:
    """Contenders of penstock and floors, with a real serving process. Each contender counts the elements that it gets."""
    with OVER_THE_NETWORK[name]() as timer:
        assert timer() > 0
        assert timer() > 0


def test_a_serving_process_that_fails_is_named() -> None:
    """The error names the kind of the process."""
    with pytest.raises(RuntimeError, match="no_such_kind"), _bulk.over_trio("no_such_kind", _bulk.read_raw, 64, 1):
        pass


def test_idle_streams_are_counted_on_both_sides() -> None:
    """The bytes for each stream are more than nothing, and of the same order as the bound."""
    here, there = _idle.bytes_a_side(300)
    assert 100 < here < 1_000
    assert 100 < there < 1_000
    assert 10 < _idle.megabytes_of_both(3, 10) < 1_000


def test_contenders_of_penstock_and_trio_need_no_package() -> None:
    """They take part in each environment."""
    assert not any(name.startswith(("penstock, b", "raw b", "raw s")) for group in _network.GROUPS for name in group.needs)


def test_the_figures_survive_a_round_trip_through_json() -> None:
    """Reading the JSON text gives the same run."""
    run = _pages.Run("command", "where", {"small": MEASURED}, {"a stream": 400.0})
    assert _pages.Run.from_json(run.to_json()) == run


def test_a_bar_that_was_never_reached_is_judged_by_the_reached_value_in_short_runs() -> None:
    """A short run asks for half of the measured value; a long run for the whole bar."""
    bar = Bar("b", "x", "y", at_least=3, reached=0.8)
    assert bar.relaxed(2).at_least == 0.4
    assert bar.relaxed(1).at_least == 3
