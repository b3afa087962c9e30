"""A recorder writes what its taps got, whole and in order, and counts what it could not write."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.api import SignalKind, UsageError
from penstock.recording import Recorder
from penstock.runtime import Service, connect, serve
from penstock.spi import build_registry
from penstock.streams import collect, ops
from tests.recording._record import facts_of, rows_of


def _service() -> Service:
    service = Service()

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        for number in range(1_000):
            yield number

    return service


async def _read_numbers(**options: Any) -> None:
    """Serve with these options, and read a stream."""
    async with (
        serve(_service(), "memory://record", **options) as server,
        connect(server.addresses[0]) as peer,
        peer.subscribe("numbers") as stream,
    ):
        assert len([number async for number in stream]) == 1_000


async def test_a_recorder_writes_the_streams_of_a_connection(tmp_path: Path) -> None:
    """Two rows at each end at least, with dense numbers;
    the index tells what each subscription was.
    """
    recorder = Recorder(tmp_path)
    await _read_numbers(registry=build_registry([recorder]))
    recorder.close()
    rows = rows_of(tmp_path)
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert {row["process"] for row in rows} == {recorder.process}
    assert sum(row["n"] for row in rows if row["kind"] == SignalKind.ON_NEXT) == 1_000
    assert sum(row["size"] for row in rows) == sum(len(str(number)) for number in range(1_000))
    assert (rows[0]["kind"], rows[-1]["kind"]) == (SignalKind.ON_SUBSCRIBE, SignalKind.ON_COMPLETE)
    (index,) = [
        pq.read_table(path).to_pylist() for path in tmp_path.glob("subscriptions-*.parquet")
    ]
    (told,) = index
    assert (told["publisher"], told["pattern"], told["outbound"], told["subscription"]) == (
        "numbers",
        "numbers",
        True,
        1,
    )
    assert told["peer"] != ""
    assert not list(tmp_path.glob("*.part"))
    facts = facts_of(tmp_path)
    assert (facts["rows"], facts["dropped"], facts["pid"]) == (len(rows), 0, os.getpid())
    assert facts["ended"] > facts["began"]
    assert (recorder.rows, recorder.dropped, recorder.streams_left_out) == (len(rows), 0, 0)
    assert repr(recorder) == f"<Recorder {str(tmp_path)!r}: 1 streams, {len(rows)} rows, 0 dropped>"


async def test_serve_takes_a_folder_or_a_recorder(tmp_path: Path) -> None:
    """A folder is recorded until the server has ended; a recorder of the caller stays open."""
    with Recorder(tmp_path / "own") as recorder:
        for record in (tmp_path / "folder", recorder):
            await _read_numbers(record=record)
        assert len(rows_of(tmp_path / "folder")) > 2
        assert not list((tmp_path / "own").glob("signals-*.parquet"))
    assert len(rows_of(tmp_path / "own")) > 2


async def test_a_sample_leaves_streams_out(tmp_path: Path) -> None:
    """A share is taken evenly; a function decides by itself;
    a stream that is left out gets no object for its rows.
    """
    with Recorder(tmp_path, sample=0.25) as recorder:
        assert [recorder.tap("x") is not None for _ in range(8)] == [False, False, False, True] * 2
    with Recorder(tmp_path, sample=lambda event: event.publisher == "wanted") as recorder:
        assert recorder.tap("unwanted") is None
        assert recorder.tap("wanted") is not None
        assert await collect(ops.pipe(range(3), ops.record(recorder, "unwanted"))) == [0, 1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"sample": 2.0},
        {"sample": -1},
        {"detail": "all"},
        {"rotate_seconds": 0},
        {"rotate_bytes": 0},
        {"max_rows": 0},
    ],
)
def test_a_recorder_refuses_options_that_cannot_be_meant(
    options: dict[str, object], tmp_path: Path
) -> None:
    """A mistake is told when the recorder is made."""
    with pytest.raises(UsageError, match="Recorder"):
        Recorder(tmp_path, **options)  # type: ignore[arg-type]  # each option has its own type


def test_nothing_is_written_without_a_stream(tmp_path: Path) -> None:
    """A recorder that recorded nothing makes no file and no thread."""
    with Recorder(tmp_path / "record"):
        pass
    assert not (tmp_path / "record").exists()


def test_a_closed_recorder_gives_no_tap(tmp_path: Path) -> None:
    """Streams that begin later are not recorded; closing twice does nothing."""
    recorder = Recorder(tmp_path)
    recorder.close()
    recorder.close()
    assert recorder.tap("x") is None
