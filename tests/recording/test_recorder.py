"""A recorder writes what its taps got, whole and in order, and counts what it could not write."""

import json
import logging
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio

from penstock import operators as ops
from penstock.api import SignalKind, UsageError
from penstock.core import collect, subscribe
from penstock.plugins import build_registry
from penstock.recording import Recorder, _writer_thread, process_recorder
from penstock.recording._columns import MOST
from penstock.runtime import Service, connect, serve


def _rows(folder: Path) -> list[dict[str, int]]:
    """Return all recorded rows of a folder, in the order of their subscriptions."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("signals-*.parquet"))])
    rows: list[dict[str, int]] = table.to_pylist()
    return sorted(rows, key=lambda row: (row["subscription"], row["seq"]))


def _facts(folder: Path) -> dict[str, int]:
    (path,) = folder.glob("process-*.json")
    facts: dict[str, int] = json.loads(path.read_text())
    return facts


def _service() -> Service:
    service = Service()

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        for number in range(1_000):
            yield number

    return service


async def test_a_recorder_writes_the_streams_of_a_connection(tmp_path: Path) -> None:
    """Two rows at each end at least, with dense numbers; the index tells what each subscription was."""
    with Recorder(tmp_path) as recorder:
        async with serve(_service(), "memory://record", registry=build_registry([recorder])) as server:
            async with connect(server.addresses[0]) as peer, peer.subscribe("numbers") as stream:
                assert len([number async for number in stream]) == 1_000
    rows = _rows(tmp_path)
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert {row["process"] for row in rows} == {recorder.process}
    assert sum(row["n"] for row in rows if row["kind"] == SignalKind.ON_NEXT) == 1_000
    assert sum(row["size"] for row in rows) == sum(len(str(number)) for number in range(1_000))
    assert (rows[0]["kind"], rows[-1]["kind"]) == (SignalKind.ON_SUBSCRIBE, SignalKind.ON_COMPLETE)
    (index,) = [pq.read_table(path).to_pylist() for path in tmp_path.glob("subscriptions-*.parquet")]
    (told,) = index
    assert (told["publisher"], told["pattern"], told["outbound"], told["subscription"]) == ("numbers", "numbers", True, 1)
    assert told["peer"] != ""
    assert not list(tmp_path.glob("*.part"))
    facts = _facts(tmp_path)
    assert (facts["rows"], facts["dropped"], facts["pid"]) == (len(rows), 0, os.getpid())
    assert facts["ended"] > facts["began"]
    assert (recorder.rows, recorder.dropped, recorder.streams_left_out) == (len(rows), 0, 0)
    assert repr(recorder) == f"<Recorder {str(tmp_path)!r}: 1 streams, {len(rows)} rows, 0 dropped>"


async def test_serve_takes_a_folder_or_a_recorder(tmp_path: Path) -> None:
    """A folder is recorded until the server has ended; a recorder of the caller stays open."""
    with Recorder(tmp_path / "own") as recorder:
        for record in (tmp_path / "folder", recorder):
            async with serve(_service(), "memory://record", record=record) as server, connect(server.addresses[0]) as peer:
                async with peer.subscribe("numbers") as stream:
                    assert len([number async for number in stream]) == 1_000
        assert len(_rows(tmp_path / "folder")) > 2
        assert not list((tmp_path / "own").glob("signals-*.parquet"))
    assert len(_rows(tmp_path / "own")) > 2


async def test_the_operator_records_streams_inside_a_process(tmp_path: Path) -> None:
    """Each subscription is a stream of its own, under the name that it was given."""
    with Recorder(tmp_path, detail="signals") as recorder:
        for _ in range(2):
            assert await collect(ops.pipe(range(10), ops.record(recorder, "digits"), ops.map(str))) == list("0123456789")
        async with subscribe(ops.pipe(range(10), ops.record(recorder, "digits")), demand=2) as stream:
            assert await anext(stream) == 0
    rows = _rows(tmp_path)
    kinds = {number: [row["kind"] for row in rows if row["subscription"] == number] for number in (1, 2, 3)}
    assert kinds[1] == kinds[2]
    assert kinds[1].count(SignalKind.ON_NEXT) == 10
    assert kinds[3][-1] == SignalKind.CANCEL
    assert {row["connection"] for row in rows} == {0}


@pytest.mark.parametrize(("recorder", "name", "text"), [(object(), "x", "needs a penstock.recording.Recorder"), (None, "", "empty")])
def test_the_operator_refuses_what_cannot_be_meant(recorder: object, name: str, text: str, tmp_path: Path) -> None:
    """The mistake is told at once."""
    with pytest.raises(UsageError, match=text):
        ops.record(recorder or Recorder(tmp_path), name)  # type: ignore[arg-type]


async def test_a_sample_leaves_streams_out(tmp_path: Path) -> None:
    """A share is taken evenly; a function decides by itself; a stream that is left out has no object in front of it."""
    with Recorder(tmp_path, sample=0.25) as recorder:
        assert [recorder.tap("x") is not None for _ in range(8)] == [False, False, False, True] * 2
    with Recorder(tmp_path, sample=lambda event: event.publisher == "wanted") as recorder:
        assert recorder.tap("unwanted") is None
        assert recorder.tap("wanted") is not None
        assert await collect(ops.pipe(range(3), ops.record(recorder, "unwanted"))) == [0, 1, 2]


@pytest.mark.parametrize(
    "options", [{"sample": 2.0}, {"sample": -1}, {"detail": "all"}, {"rotate_seconds": 0}, {"rotate_bytes": 0}, {"max_rows": 0}]
)
def test_a_recorder_refuses_options_that_cannot_be_meant(options: dict[str, object], tmp_path: Path) -> None:
    """A mistake is told when the recorder is made."""
    with pytest.raises(UsageError, match="Recorder"):
        Recorder(tmp_path, **options)  # type: ignore[arg-type]


def test_rows_without_room_are_dropped_and_counted(tmp_path: Path, stopped: None) -> None:
    """The numbers of the rows show where some are missing."""
    with Recorder(tmp_path, max_rows=10) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        for number in range(15):
            tap.record(SignalKind.REQUEST, number, 0, 1, 2, 3)
        assert recorder.dropped == 5
    assert [row["seq"] for row in _rows(tmp_path)] == list(range(10))
    assert _facts(tmp_path)["dropped"] == 5


def test_streams_without_room_are_left_out_and_counted(tmp_path: Path, stopped: None) -> None:
    """As many new streams wait as rows."""
    with Recorder(tmp_path, max_rows=2) as recorder:
        assert [recorder.tap("x") is None for _ in range(3)] == [False, False, True]
        assert recorder.streams_left_out == 1
    assert _facts(tmp_path)["streams_left_out"] == 1


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread takes rows only at the end."""
    monkeypatch.setattr(_writer_thread, "INTERVAL", 3_600.0)


def test_numbers_that_no_column_holds_are_cut(tmp_path: Path, stopped: None) -> None:
    """A user's object may request any number."""
    with Recorder(tmp_path) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        tap.record(SignalKind.REQUEST, 1 << 70, 0, 1, 2, 3)
        tap.record(SignalKind.REQUEST, -(1 << 70), 0, 1, 2, 3)
    assert [row["n"] for row in _rows(tmp_path)] == [MOST, -MOST]


def test_the_rows_of_a_subscription_stand_together(tmp_path: Path, stopped: None) -> None:
    """Rows of several streams come mixed, and each stream has one piece in the row group."""
    with Recorder(tmp_path) as recorder:
        taps = [recorder.tap(name) for name in "abc"]
        for number in range(30):
            tap = taps[number % 3]
            assert tap is not None
            tap.record(SignalKind.REQUEST, number, 0, number, number, 0)
    table = pq.read_table(next(tmp_path.glob("signals-*.parquet")))
    assert table["subscription"].to_pylist() == [1] * 10 + [2] * 10 + [3] * 10


def test_a_disk_that_refuses_costs_rows_and_no_stream(tmp_path: Path, stopped: None, caplog: pytest.LogCaptureFixture) -> None:
    """The rows are counted as dropped, and one line names the folder and the cause."""
    folder = tmp_path / "record"
    folder.write_text("a file, where the folder should be")
    caplog.set_level(logging.ERROR)
    with Recorder(folder) as recorder:
        tap = recorder.tap("x")
        assert tap is not None
        tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
    assert (recorder.rows, recorder.dropped) == (0, 1)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"the recorder cannot write to {folder}: ")


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


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """The environment asks for a record; no recorder of another test is left."""
    monkeypatch.setattr("penstock.recording._process._recorders", {})
    monkeypatch.setenv("PENSTOCK_RECORD", str(tmp_path))
    yield monkeypatch
    recorder = process_recorder()
    if recorder is not None:
        recorder.close()


def test_the_environment_asks_for_the_recorder_of_a_process(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same one each time, in that folder; a share that is no number is told; without the variable there is none."""
    recorder = process_recorder()
    assert recorder is process_recorder() is not None
    assert recorder.folder == tmp_path
    environment.setattr("penstock.recording._process._recorders", {})
    environment.setenv("PENSTOCK_RECORD_SAMPLE", "some")
    with pytest.raises(UsageError, match="PENSTOCK_RECORD_SAMPLE is 'some'"):
        process_recorder()
    environment.delenv("PENSTOCK_RECORD")
    assert process_recorder() is None


async def test_files_end_after_a_time_and_after_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a number of its own, and is whole as soon as it has its name."""
    monkeypatch.setattr(_writer_thread, "INTERVAL", 0.001)
    with Recorder(tmp_path, rotate_seconds=1e-9) as recorder:
        for _ in range(3):
            tap = recorder.tap("x")
            assert tap is not None
            before = len(list(tmp_path.glob("signals-*.parquet")))
            tap.record(SignalKind.REQUEST, 1, 0, 1, 2, 3)
            while len(list(tmp_path.glob("signals-*.parquet"))) == before:
                await trio.sleep(0.001)  # for a thread, in real time
    assert len(list(tmp_path.glob("signals-*.parquet"))) == 3
    assert len(_rows(tmp_path)) == 3
