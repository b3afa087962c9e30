"""`penstock bench` measures this machine."""

import json

import pytest
import trio

from penstock.cli import _bench, main
from penstock.cli._bench_server import STAMP, timed
from tests._real_time import HANGS_AFTER


def test_each_transport_gets_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    """With elements per second, one by one and in batches."""
    assert main(["bench", "memory://a", "memory://b", "--count", "50", "--size", "8"]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["transport", "by", "element", "by", "batch"]
    assert first.startswith("memory://a ")
    assert second.startswith("memory://b ")
    assert first.count("/s") == 2


@pytest.mark.parametrize(
    "option", [("--count", "0"), ("--size", "-1"), ("--demand", "0")], ids=lambda option: option[0]
)
def test_a_number_below_1_is_refused(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """With an error of one line, before anything is served."""
    assert main(["bench", "memory://a", *option]) == 1
    assert f"{' '.join(option)}: give at least 1" in capsys.readouterr().err


async def test_a_request_that_waits_for_another_has_that_wait_in_its_latency(
    autojump_clock: object,
) -> None:
    """One of ten requests takes a second, and those planned meanwhile wait for it: a measure that
    sends one request after the other would show nine fast ones.
    """
    turn, asked = trio.Lock(), []

    async def ask() -> None:
        async with turn:
            asked.append(trio.current_time())
            await trio.sleep(1.0 if len(asked) == 1 else 0.0)

    found = await _bench.latencies(ask, 10, 1)
    assert found["max"] == pytest.approx(1.0)
    assert found["p50"] == pytest.approx(0.5)
    assert len(asked) == 10


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """The least one that the share is not above."""
    values = [float(number) for number in range(1_000, 0, -1)]
    assert _bench.percentiles(values) == {"p50": 500, "p99": 990, "p99.9": 999, "max": 1_000}
    assert set(_bench.percentiles([7.0]).values()) == {7.0}


@pytest.mark.slow
def test_json_has_latencies_and_the_bare_transport(capsys: pytest.CaptureFixture[str]) -> None:
    """With the server in a process of its own."""
    words = "--count 500 --rate 50 --seconds 0.2 --bare --json --processes"
    assert main(["bench", "tcp://127.0.0.1:0", *words.split()]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["by_element"] > 0
    assert figures["bare"] > 0
    for which in _bench.LATENCIES:
        assert set(figures[which]) == {"p50", "p99", "p99.9", "max"}
        assert 0 < figures[which]["p50"] < HANGS_AFTER


def test_the_table_has_a_line_for_each_kind_of_latency(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the row of the transport, and none is wider than 80 columns."""
    words = "--count 20 --rate 50 --seconds 0.1 --bare --size 1"
    assert main(["bench", "memory://a", *words.split()]) == 0
    heading, row, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[-1] == "bare"
    assert row.count("/s") == 3
    begin = ("  requests ", "  stream elements ", "  bare echoes ", "  bare elements ")
    assert [line.startswith(each) for line, each in zip(lines, begin, strict=True)] == [True] * 4
    assert all(line.count(" ms") == 4 and len(line) <= 80 for line in lines)


async def test_an_element_that_is_late_has_its_delay_in_its_latency() -> None:
    """Each has its planned time, also those that a reader kept waiting."""
    planned = [
        STAMP.unpack_from(element)[0]
        async for element in timed(count=3, size=20, rate=1e6)
        if len(element) == 20
    ]
    assert [each - planned[0] for each in planned] == [0, 1_000, 2_000]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "0"], "--rate 0: give a number above 0"),
        (["--rate", "1", "--seconds", "nan"], "--seconds nan: give a number above 0"),
        (["memory://a", "--processes"], "stays in one process"),
        (["nosuch://a"], "nosuch"),
        (["memory://a", "--rate", "inf"], "give a number above 0"),
        (["memory://a", "--rate", "1", "--seconds", "inf"], "give a number above 0"),
        (["memory://a", "--size", "999999999"], "an element has at most"),
        (["memory://a", "--rate", "1e6", "--seconds", "1e4"], "latencies are measured"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line."""
    assert main(["bench", *words]) == 1
    assert message in capsys.readouterr().err
