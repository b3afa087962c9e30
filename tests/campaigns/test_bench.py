"""The benchmarks judge their bars correctly, and every contender works. The figures themselves
are judged by `nox -s bench` only.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from campaigns.bench import __main__ as bench
from campaigns.bench import (
    _amounts,
    _bulk,
    _idle,
    _inprocess,
    _mixed,
    _network,
    _pages,
    _plot,
    _raised,
    _reactivesocket,
    _report,
    _round_trips,
)
from campaigns.bench._measure import Bar, Group, Measured, Opening, Timer, measure
from tests._heavy import all_but

MEASURED = Measured(3, {"slow": [30.0, 40.0, 20.0], "fast": [10.0, 10.0, 10.0]})
EASY = Bar("the easy", "slow", "fast", at_most=100)
IMPOSSIBLE = Bar("the impossible", "slow", "fast", at_most=0.1)


@contextmanager
def _costing(nanoseconds: float) -> Iterator[Timer]:
    yield lambda: nanoseconds


def _fakes(short: bool) -> dict[str, Opening]:
    def opening(nanoseconds: float) -> Opening:
        def fake() -> AbstractContextManager[Timer]:
            return _costing(nanoseconds)

        return fake

    return {"slow": opening(30), "fast": opening(10)}


def _group(*bars: Bar, key: str = "small", needs: dict[str, str] | None = None) -> Group:
    return Group(key, "Fakes", "element", "fast", _fakes, bars, needs or {})


def test_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    """Noise that slows all contenders of a round does not change the ratio."""
    assert Measured(3, {"a": [2.0, 20.0, 9.0], "b": [1.0, 10.0, 3.0]}).ratio("a", "b") == 2.0


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (Bar("b", "slow", "fast", at_most=3), True),
        (Bar("b", "slow", "fast", at_most=2.9), False),
        (Bar("b", "fast", "slow", at_least=3), True),
        (Bar("b", "fast", "slow", at_least=3.1), False),
        (Bar("b", "slow", "fast", at_least=1, or_under=30), True),
        (Bar("b", "slow", "fast", at_least=1, or_under=29), False),
        (Bar("b", "slow", "missing", at_least=0.001), False),
    ],
)
def test_bar_is_kept_up_to_its_number(bar: Bar, kept: bool) -> None:
    """Each kind of bar can be kept and missed.
    A bar with a contender that did not run is missed.
    """
    assert MEASURED.judge(bar).kept is kept


def test_short_run_relaxes_each_bar_by_two() -> None:
    """A short run allows twice the cost, half the advantage, and twice the memory."""
    assert Bar("b", "x", "y", at_most=4).relaxed(2).at_most == 8
    assert Bar("b", "x", "y", at_least=12, or_under=50).relaxed(2)[4:6] == (6, 100)
    assert _amounts.Ceiling("c", "MB", 400).relaxed(2).at_most == 800


def test_contender_whose_package_is_missing_is_omitted() -> None:
    """If a package is not installed, its contender is omitted and the others are measured."""
    measured = measure(_group(needs={"fast": "no_such_package"}), short=True, rounds=2)
    assert measured.costs == {"slow": [30, 30]}
    assert math.isnan(measured.judge(EASY).seen)
    assert measure(_group(), short=True, rounds=2).ratio("slow", "fast") == 3


@pytest.mark.parametrize("key", ["inprocess", "small", "requested", "responses"])
def test_missed_bar_is_named_and_exits_with_1(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missed bar makes the program exit with 1 and print its name; a kept bar is not printed.
    This holds for groups of each kind.
    """
    monkeypatch.setattr(bench, "GROUPS", (_group(EASY, IMPOSSIBLE, key=key),))
    assert bench.main(["--short", "--only", key]) == 1
    printed = capsys.readouterr()
    assert "bar missed: the impossible: at most 0.2 ×, seen 3.00 ×" in printed.err
    assert "the easy" not in printed.err


def test_missed_ceiling_is_named_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missed ceiling on memory makes the program exit with 1 and print its name."""
    monkeypatch.setattr(
        _amounts,
        "CEILINGS",
        (_amounts.Ceiling("a stream", "bytes", 400), _amounts.Ceiling("another", "bytes", 400)),
    )
    monkeypatch.setattr(
        _amounts, "measure_amounts", lambda short: {"a stream": 401.0, "another": 400.0}
    )
    assert bench.main(["--only", "amounts"]) == 1
    assert capsys.readouterr().err == "bar missed: a stream: at most 400 bytes, seen 401\n"


def test_kept_bars_exit_with_0_and_pages_render_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run whose bars are kept exits with 0 and writes figures, pages and plot. The figures
    alone render the same pages.
    """
    monkeypatch.setattr(bench, "GROUPS", (_group(EASY, key="inprocess"), _group(EASY)))
    assert bench.main(["--only", "inprocess,small", "--docs", str(tmp_path)]) == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(written) == {
        "_speed_measured.json",
        "_speed_measured.md",
        "_speed_network.md",
        "speed.svg",
    }
    assert "| slow | 30 ns | 33,333,333 | 3.0 × |" in written["_speed_network.md"]
    assert "nox -s bench -- --full" in written["_speed_measured.md"]
    for page in tmp_path.glob("*.*[dg]"):
        page.unlink()
    assert bench.main(["--render", str(tmp_path)]) == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == written
    assert "the easy" in capsys.readouterr().out


def test_partial_run_keeps_figures_of_other_parts(tmp_path: Path) -> None:
    """If one part is measured again, the stored figures of the other parts stay."""
    _pages.store(
        _pages.Run("before", "where", {"small": MEASURED, "large": MEASURED}, {"a stream": 400.0}),
        tmp_path,
    )
    again = MEASURED._replace(rounds=9)
    _pages.store(_pages.Run("after", "where", {"small": again}, {}), tmp_path)
    stored = _pages.Run.from_json((tmp_path / _pages.FIGURES).read_text(encoding="utf-8"))
    assert stored == _pages.Run(
        "after", "where", {"small": again, "large": MEASURED}, {"a stream": 400.0}
    )


def test_request_bars_have_the_promised_numbers() -> None:
    """Streams must be 20 times as fast as those of rsocket-py, and answers 5 times; one at a
    time is compared with a bare echo.
    """
    bars = {bar.name: bar for group in _reactivesocket.GROUPS for bar in group.bars}
    assert {name: (bar.at_least, bar.at_most) for name, bar in bars.items()} == {
        "64 B by request_stream, beside rsocket-py": (20, None),
        "1 in flight, beside a bare echo": (None, 1.35),
        "1 in flight, both sides awake": (3, None),
        "16 in flight, beside rsocket-py": (5, None),
        "256 in flight, beside rsocket-py": (5, None),
    }
    assert bars["16 in flight, beside rsocket-py"].relaxed(1).at_least == 5


def test_table_shows_each_contender_with_a_bar() -> None:
    """The contender with the highest cost has the longest bar."""
    rows = _report.table(MEASURED, "fast").splitlines()
    assert rows[1].count("█") == _report.WIDTH
    assert 0 < rows[2].count("█") < _report.WIDTH


def test_longest_bar_of_the_plot_is_the_fastest() -> None:
    """The plot shows elements per second, so the fast contender has the longer bar."""
    rows = [
        line for line in _plot.svg([(_group(), MEASURED)]).splitlines() if line.startswith("<rect")
    ]
    slow, fast = (float(row.split('width="')[1].split('"')[0]) for row in rows)
    assert 0 < slow < fast


def test_every_bar_names_contenders_of_its_group() -> None:
    """Each group has bars, and its bars and its baseline name contenders of the group."""
    for group in (*bench.GROUPS, *bench.BY_NAME):
        names = set(group.contenders(True))
        assert {bar.cost_of for bar in group.bars} | {bar.relative_to for bar in group.bars} | {
            group.baseline
        } <= names
        assert group.bars


async def test_contenders_inside_one_process_move_all_elements() -> None:
    """Each contender returns the number of elements that it was asked to move. A contender that
    stopped early would look fast.
    """
    for name, (contender, _) in _inprocess.contenders(1).items():
        if name != "chain of operators":
            assert await contender(300) == 300


OVER_THE_NETWORK: dict[str, Opening] = {
    "bytes": partial(_bulk.over_trio, "raw", _bulk.read_raw, 64, 3_000),
    "split": partial(_bulk.over_trio, "split", _bulk.read_split, 64, 3_000),
    "elements": partial(_bulk.over_trio, "penstock", _bulk.read_elements, 64, 3_000),
    "batches": partial(_bulk.over_trio, "penstock", _bulk.read_batches, 64, 3_000),
    "large elements": partial(_bulk.over_trio, "penstock", _bulk.read_elements, 256 << 10, 5),
    "mixed elements": partial(
        _bulk.over_trio, "mixed_penstock", _bulk.read_elements, 32, 3_000, "96"
    ),
    "mixed batches": partial(
        _bulk.over_trio, "mixed_penstock", _bulk.read_batches, 32, 3_000, "96"
    ),
    "mixed split": partial(_bulk.over_trio, "mixed_split", _bulk.read_split, 32, 3_000, "96"),
    "objects": partial(_bulk.over_trio, "objects", _mixed.read_objects, 100, 3_000),
    "objects in batches": partial(
        _bulk.over_trio, "objects", partial(_mixed.read_objects, batches=True), 100, 3_000
    ),
    "objects alone": partial(_mixed.coded_alone, 3_000),
    "buffers": partial(_bulk.over_trio, "penstock", _bulk.read_buffers, 8, 64 * 4096),
    "TLS": partial(_bulk.over_tls, "penstock", _bulk.read_elements_tls, 4096, 100),
    "raw TLS": partial(_bulk.over_tls, "raw", _bulk.read_raw, 4096, 100),
    "echo": partial(_bulk.over_trio, "echo", _round_trips.echo, 64, 20),
    "streams of one": partial(
        _bulk.over_trio, "penstock_raised", _round_trips.stream_of_one, 64, 20
    ),
    "requested stream": partial(
        _bulk.over_trio, "penstock", _reactivesocket.read_stream, 64, 3_000
    ),
    "one request at a time": partial(
        _bulk.over_trio, "penstock_raised", partial(_reactivesocket.request, in_flight=1), 64, 20
    ),
    "one at a time, awake": partial(
        _bulk.over_trio,
        "penstock_busy",
        partial(_reactivesocket.request, in_flight=1, busy_poll=_raised.BUSY_POLL_SECONDS),
        64,
        20,
    ),
    "one at a time, without polls": partial(
        _bulk.over_trio,
        "penstock_sleeping",
        partial(_reactivesocket.request, in_flight=1, busy_poll=0),
        64,
        20,
    ),
    "16 raw requests in flight": partial(
        _bulk.over_trio, "echo", partial(_reactivesocket.raw_requests, in_flight=16), 64, 64
    ),
    "16 requests in flight": partial(
        _bulk.over_trio, "penstock_raised", partial(_reactivesocket.request, in_flight=16), 64, 64
    ),
    "beside idle streams": partial(_idle.beside_idle, 50, 3_000),
}


@pytest.mark.parametrize("name", all_but(OVER_THE_NETWORK, [*OVER_THE_NETWORK][:6]))
def test_network_contender_runs_two_rounds(name: str) -> None:
    """Each contender that needs only penstock, trio
    or trustme runs two rounds against a real server process.
    """
    with OVER_THE_NETWORK[name]() as timer:
        assert timer() > 0
        assert timer() > 0


def test_server_process_that_cannot_serve_is_named() -> None:
    """If the server process ends before it prints a port, the error names its kind."""
    with (
        pytest.raises(RuntimeError, match="no_such_kind"),
        _bulk.over_trio("no_such_kind", _bulk.read_raw, 64, 1),
    ):
        pass


@pytest.mark.heavy
def test_memory_of_idle_streams_is_measured_in_both_processes() -> None:
    """Client and server allocate 100 to 1,000 bytes per idle stream;
    both processes hold 10 to 1,000 MB.
    """
    client, server = _idle.bytes_per_subscription(300)
    assert 100 < client < 1_000
    assert 100 < server < 1_000
    assert 10 < _idle.resident_megabytes(3, 10) < 1_000


def test_penstock_and_raw_contenders_need_no_package() -> None:
    """Contenders that use only penstock and trio run in every environment."""
    assert not any(
        name.startswith(("penstock, b", "raw b", "raw s"))
        for group in _network.GROUPS
        for name in group.needs
    )


def test_figures_are_the_same_after_json() -> None:
    """Reading the JSON of a run gives an equal run."""
    run = _pages.Run("command", "where", {"small": MEASURED}, {"a stream": 400.0})
    assert _pages.Run.from_json(run.to_json()) == run


def test_short_run_judges_a_missed_bar_by_the_reached_ratio() -> None:
    """A short run requires half of `reached`; a full run requires `at_least`."""
    bar = Bar("b", "x", "y", at_least=3, reached=0.8)
    assert bar.relaxed(2).at_least == 0.4
    assert bar.relaxed(1).at_least == 3
