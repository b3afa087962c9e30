"""The messages of a task, and its errors when it cannot send. Without Spark:
the receiver runs in a thread.
"""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _receiver import Receiver
from penstock_spark._client import MOST_ELEMENT_BYTES
from penstock_spark.sink import SinkSettings, Staged, StreamWriter
from penstock_spark.sink._elements import all_elements, check_columns, encoder_of
from penstock_spark.sink._staging import TaskId, abort, commit, stage

import penstock
from penstock.api import ConnectionLost, PublisherFailed, Rejected, StreamTimeout, UsageError


def settings(receiver: Receiver | str, **options: str) -> SinkSettings:
    url = receiver if isinstance(receiver, str) else receiver.url
    return SinkSettings.of({"uri": url, "stream": "orders"} | options)


def task(partition: int = 0, attempt: str = "a", batch: int = 0) -> TaskId:
    return TaskId("q", batch, "r", partition, attempt)


def test_a_batch_is_staged_and_committed(tmp_path: Path) -> None:
    """By two tasks, one of which has no rows and connects to nothing."""
    with Receiver(tmp_path) as receiver:
        to = settings(receiver)
        assert stage(to, task(), iter([[b"1", b"2"], [b"3"]])) == (3, True)
        assert stage(to, task(1), iter([])) == (0, True)
        commit(to, "q", 0, [(0, "a", 3)])
        assert receiver.contents() == [b"1", b"2", b"3"]
        assert len(receiver.staged_by) == 1


def test_an_aborted_batch_is_forgotten(tmp_path: Path) -> None:
    """A commit of it fails, with what to do."""
    with Receiver(tmp_path) as receiver:
        to = settings(receiver)
        stage(to, task(), iter([[b"1"]]))
        abort(to, "q", 0, "r")
        with pytest.raises(PublisherFailed, match="Start the query again: it repeats the batch"):
            commit(to, "q", 0, [(0, "a", 1)])


def test_a_failed_batch_of_a_query_is_forgotten(tmp_path: Path) -> None:
    """Spark makes a new writer to abort, which has another run than that of the tasks. A task that
    failed has no message.
    """
    with Receiver(tmp_path) as receiver:
        to = settings(receiver)
        answer = stage(to, task(), iter([[b"1"]]))
        message = Staged("q", 0, task().run, 0, "a", *answer)
        StreamWriter(to, "another run").abort([None, message], 0)
        with pytest.raises(PublisherFailed, match="is not staged here"):
            StreamWriter(to, "another run").commit([message], 0)


def test_a_batch_without_rows_is_committed(tmp_path: Path) -> None:
    """No task has connected. A receiver with a function needs no commit."""
    got = []

    async def take(received: penstock.Received) -> None:
        got.append(received)

    empty = Staged("q", 0, "r", 0, "a", 0, is_staged=True)
    with Receiver(tmp_path) as receiver:
        StreamWriter(settings(receiver), "r").commit([empty], 0)
        assert receiver.log.is_published("q/0")
    with Receiver(tmp_path, target=take) as receiver:
        StreamWriter(settings(receiver), "r").commit([empty], 1)
    assert got == []


def test_a_batch_is_refused_if_the_log_lacks_the_one_before(tmp_path: Path) -> None:
    """With the name of the option that goes on."""
    with Receiver(tmp_path) as receiver:
        stage(settings(receiver), task(batch=3), iter([[b"1"]]))
        with pytest.raises(PublisherFailed, match=r"does not have batches 0 to 2.*missingBatches"):
            commit(settings(receiver), "q", 3, [(0, "a", 1)])
        commit(settings(receiver, missingBatches="accept"), "q", 3, [(0, "a", 1)])
        assert receiver.contents() == [b"1"]


def test_a_failure_of_the_rows_is_the_one_that_is_raised(tmp_path: Path) -> None:
    """And not what the receiver says about it. Nothing is staged."""

    def rows() -> Iterator[Sequence[bytes]]:
        yield [b"1"]
        raise ZeroDivisionError("of the query")

    with Receiver(tmp_path) as receiver:
        with pytest.raises(ZeroDivisionError, match="of the query"):
            stage(settings(receiver), task(), rows())
        with pytest.raises(PublisherFailed, match="is not staged here"):
            commit(settings(receiver), "q", 0, [(0, "a", 1)])


def test_an_element_that_is_too_large_is_told(tmp_path: Path) -> None:
    """With its place and what to do. The receiver learns only that the writer failed, and the
    text does not send the user there.
    """
    with Receiver(tmp_path) as receiver, pytest.raises(UsageError) as told:
        stage(
            settings(receiver),
            task(3, batch=7),
            iter([[b"1"], [b"2", bytes(MOST_ELEMENT_BYTES), bytes(MOST_ELEMENT_BYTES + 1)]]),
        )
    assert str(told.value).startswith(
        "element 3 (from 0) of partition 3 of batch 7 has 4,194,305 bytes, and a peer takes at "
        "most 4,194,304 (Limits.max_element): divide"
    )
    assert 'df.where("octet_length(value) <= 4194304")' in str(told.value)


def test_arrow_rows_of_unequal_size_are_divided() -> None:
    """The mean of a batch says nothing about its largest rows: 1,000 small ones and 12 of 1 MB."""
    batch = _batch(value=["x"] * 1_000 + ["y" * 1_000_000] * 12)
    elements = encoder_of("arrow")(batch)
    assert max(map(len, elements)) <= MOST_ELEMENT_BYTES
    assert (
        pa.concat_tables(pa.ipc.open_stream(each).read_all() for each in elements)[
            "value"
        ].to_pylist()
        == batch["value"].to_pylist()
    )
    assert len(encoder_of("arrow")(_batch(value=["y" * 5_000_000]))) == 1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"stream": "bills"},
            Rejected,
            r"Its service needs penstock\.receive\(service, 'bills', log\)",
        ),
        ({"partition": "9"}, PublisherFailed, "the log has no partition '9'"),
    ],
)
def test_a_refusal_of_the_receiver_is_told(
    tmp_path: Path, options: dict[str, str], error: type[Exception], text: str
) -> None:
    """With the address, and what to do."""
    with Receiver(tmp_path) as receiver, pytest.raises(error, match=text):
        stage(settings(receiver, **options), task(), iter([[b"1"]]))


def test_refused_credentials_are_told_by_their_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name that the query writes under, and arguments of Python, have no part in it."""
    monkeypatch.chdir(tmp_path)  # a long path would be shown in part
    right, wrong = Path("right"), Path("wrong")
    right.write_text("of-writers\n")
    wrong.write_text("of-nobody\n")
    with Receiver(tmp_path, token="of-writers") as receiver:
        for options, text in (
            ({}, "a client without credentials"),
            (
                {"penstock.client.tokenFile": str(wrong)},
                f"the credentials of penstock.client.tokenFile='{wrong}'",
            ),
        ):
            with pytest.raises(UsageError) as refused:
                stage(settings(receiver, **options), task(), iter([[b"1"]]))
            with pytest.raises(UsageError, match="does not accept"):
                commit(settings(receiver, **options), "q", 0, [(0, "a", 1)])
            assert f"does not accept {text}. Give penstock.client.tokenFile or " in str(
                refused.value
            )
            assert "penstock.receive" not in str(refused.value)
            assert "credentials=" not in str(refused.value)
            assert "of-nobody" not in str(refused.value)
        assert stage(
            settings(receiver, **{"penstock.client.tokenFile": str(right)}), task(), iter([[b"1"]])
        ) == (1, True)


def test_a_full_receiver_is_told(tmp_path: Path) -> None:
    """With its bound and the option of the source that makes batches smaller."""
    refusal = pytest.raises(
        PublisherFailed, match=r"max_staged_bytes=10,000.*maxElementsPerTrigger"
    )
    with Receiver(tmp_path, max_staged_bytes=10_000) as receiver, refusal:
        stage(settings(receiver), task(), iter([[bytes(1_000)] * 100]))


def test_a_full_disk_is_told_and_the_batch_can_be_committed_later(tmp_path: Path) -> None:
    """The text of the log crosses the connection."""
    with Receiver(tmp_path) as receiver:
        to = settings(receiver)
        stage(to, task(), iter([[b"1"]]))

        def full() -> None:
            raise penstock.api.LogError("there is no room on the disk")

        receiver.log.before_publish = full
        with pytest.raises(
            PublisherFailed, match="batch 0 was not committed: there is no room on the disk"
        ):
            commit(to, "q", 0, [(0, "a", 1)])
        receiver.log.before_publish = lambda: None
        commit(to, "q", 0, [(0, "a", 1)])
        assert receiver.contents() == [b"1"]


def test_a_commit_that_takes_too_long_is_told(tmp_path: Path) -> None:
    """The text names the option that gives it more time. The batch is still appended once."""
    may_go_on = threading.Event()
    with Receiver(tmp_path) as receiver:
        stage(settings(receiver), task(), iter([[b"1"]]))
        receiver.log.before_publish = lambda: may_go_on.wait(30)
        with pytest.raises(
            StreamTimeout,
            match=r"did not answer a commit within 0\.2 s.*penstock\.client\.readTimeoutMs",
        ):
            commit(
                settings(receiver, **{"penstock.client.readTimeoutMs": "200"}),
                "q",
                0,
                [(0, "a", 1)],
            )
        may_go_on.set()
        commit(settings(receiver), "q", 0, [(0, "a", 1)])
        assert receiver.contents() == [b"1"]


def test_a_receiver_without_a_log_refuses_exactly_once(tmp_path: Path) -> None:
    """Before an element is sent."""
    got = []

    async def take(received: penstock.Received) -> None:
        got.append(received)

    with Receiver(tmp_path, target=take) as receiver:
        with pytest.raises(PublisherFailed, match="each comes at least once"):
            stage(settings(receiver, delivery="exactlyOnce"), task(), iter([[b"1"]]))
        assert got == []
        assert stage(settings(receiver), task(3, batch=7), iter([[b"1", b"2"]])) == (2, False)
        # One call or two: as the elements arrive.
        assert {(each.query, each.batch, each.partition) for each in got} == {("q", 7, 3)}
        assert [
            (each.first + at, element) for each in got for at, element in enumerate(each.elements)
        ] == [(0, b"1"), (1, b"2")]


def test_a_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """After the attempts of the options."""
    nowhere = settings(f"unix://{tmp_path}/none", **{"penstock.client.retries": "1"})
    with pytest.raises(ConnectionLost, match="no server answers"):
        stage(nowhere, task(), iter([[b"1"]]))


@pytest.mark.parametrize(
    ("columns", "value_format", "text"),
    [
        ([("id", "bigint")], "raw", "the sink writes one column, value"),
        ([("value", "bigint")], "raw", "value bigint"),
        ([("value", "string"), ("more", "string")], "raw", "to_json"),
        ([("a", "int"), ("A", "int")], "json", "different names"),
        ([], "arrow", "different names"),
    ],
)
def test_columns_that_cannot_be_written_are_told(
    columns: list[tuple[str, str]], value_format: str, text: str
) -> None:
    """With the expression that makes the column."""
    with pytest.raises(UsageError, match=text):
        check_columns(columns, value_format)


def _batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_become_elements_in_three_formats() -> None:
    """Plain values, JSON objects, and Arrow streams."""
    check_columns([("value", "string")], "raw")
    assert encoder_of("raw")(_batch(value=["a", "ü"])) == [b"a", "ü".encode()]
    assert encoder_of("json")(_batch(a=[1, 2], b=["x", None])) == [
        b'{"a":1,"b":"x"}',
        b'{"a":2,"b":null}',
    ]
    big = _batch(a=list(range(500_000)))
    parts = encoder_of("arrow")(big)
    assert len(parts) == 4
    assert max(map(len, parts)) < 1_100_000
    assert pa.concat_tables(pa.ipc.open_stream(each).read_all() for each in parts)[
        "a"
    ].to_pylist() == list(range(500_000))


def test_a_null_is_told() -> None:
    """An element is never null."""
    with pytest.raises(UsageError, match="leave such rows out"):
        list(all_elements(iter([_batch(value=["a", None])]), encoder_of("raw")))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"stream": "orders"}, "give the server"),
        ({"uri": "tcp://h:1"}, "give the name that the server receives under"),
        (
            {"uri": "tcp://h:1", "path": "tcp://h:1", "stream": "orders"},
            "the server is given twice",
        ),
        (
            {"uri": "tcp://h:1", "stream": "orders", "valueformat": "xml"},
            "give one of raw, json, arrow",
        ),
        (
            {"uri": "tcp://h:1", "stream": "orders", "penstock.client.token": "abc"},
            "would show the secret",
        ),
    ],
)
def test_options_that_cannot_be_meant_are_told(given: dict[str, str], text: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError, match=text):
        SinkSettings.of(given)
