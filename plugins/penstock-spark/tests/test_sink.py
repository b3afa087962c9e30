"""The sink on Spark itself: each batch is in the log once, whatever is killed; and mistakes are told."""

from pathlib import Path
from typing import Any

import pytest
from _receiver import Receiver

import penstock


@pytest.fixture
def receiver(tmp_path: Path) -> Any:
    """A receiver with a log."""
    with Receiver(tmp_path) as running:
        yield running


def lines(folder: Path, files: int, each: int) -> list[bytes]:
    """Write text files with different lines, and return all lines."""
    folder.mkdir()
    every = []
    for file in range(files):
        rows = [f"{file}:{row}" for row in range(each)]
        (folder / f"{file:03}.txt").write_text("\n".join(rows) + "\n")
        every += rows
    return sorted(row.encode() for row in every)


def write_all(spark: Any, tmp_path: Path, receiver: Receiver, **options: str) -> None:
    """Write the files to the receiver, one a batch."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    writer = rows.repartition(2).writeStream.format("penstock").option("stream", "orders").options(**options)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start(receiver.url)
    query.awaitTermination()


def test_a_streaming_query_is_in_the_log_once(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """Three batches of two tasks; started again from its checkpoint the query appends nothing."""
    every = lines(tmp_path / "in", 3, 1_000)
    write_all(spark, tmp_path, receiver)
    assert sorted(receiver.contents()) == every
    write_all(spark, tmp_path, receiver)
    assert len(receiver.contents()) == 3_000


def test_a_worker_that_is_killed_loses_and_repeats_nothing(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """Spark repeats its task, which stages under another name."""
    every = lines(tmp_path / "in", 3, 1_000)
    receiver.kill_writer_at = [2, 5]
    write_all(spark, tmp_path, receiver)
    assert sorted(receiver.contents()) == every
    assert len(receiver.staged_by) >= 8


def test_a_dataframe_is_written_once_with_an_id(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """And each time without one."""
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    writer = rows.write.format("penstock").mode("append").option("stream", "orders")
    for _ in range(2):
        writer.option("writeId", "january").save(receiver.url)
    assert sorted(receiver.contents()) == sorted(b"%d" % number for number in range(100))
    rows.write.format("penstock").mode("append").option("stream", "orders").save(receiver.url)
    assert len(receiver.contents()) == 200


def test_a_receiver_without_a_log_gets_the_ids_with_the_elements(spark: Any, tmp_path: Path) -> None:
    """At least once; exactlyOnce is refused before an element is sent."""
    got: list[penstock.Received] = []

    async def take(received: penstock.Received) -> None:
        got.append(received)

    every = lines(tmp_path / "in", 2, 100)
    with Receiver(tmp_path, target=take) as receiver:
        write_all(spark, tmp_path, receiver)
        assert sorted(element for each in got for element in each.elements) == every
        assert {(each.batch, each.partition) for each in got} == {(0, 0), (0, 1), (1, 0), (1, 1)}
        assert len({each.query for each in got}) == 1
        with pytest.raises(Exception, match="each comes at least once"):
            spark.range(1).selectExpr("'x' AS value").write.format("penstock").mode("append").options(
                stream="orders", delivery="exactlyOnce"
            ).save(receiver.url)


@pytest.mark.parametrize(
    ("column", "mode", "options", "text"),
    [
        ("id", "append", {"stream": "orders"}, "the sink writes one column, value"),
        ("'x' AS value", "overwrite", {"stream": "orders"}, 'use mode\\("append"\\)'),
        ("'x' AS value", "append", {}, "give the name that the server receives under"),
        ("'x' AS value", "append", {"steam": "orders"}, "the nearest one is stream"),
        ("'x' AS value", "append", {"stream": "bills"}, "Its service needs penstock.receive"),
        ("CAST(NULL AS STRING) AS value", "append", {"stream": "orders"}, "an element is never null"),
        ("'x' AS value", "append", {"stream": "orders", "partition": "9"}, "the log has no partition '9'"),
    ],
)
def test_a_write_that_cannot_be_done_is_told(
    spark: Any, receiver: Receiver, column: str, mode: str, options: dict[str, str], text: str
) -> None:
    """With what to do. Nothing is appended."""
    with pytest.raises(Exception, match=text):
        spark.range(3).selectExpr(column).write.format("penstock").mode(mode).options(**options).save(receiver.url)
    assert receiver.contents() == []


def test_a_failure_of_the_rows_is_the_one_that_is_raised(spark: Any, receiver: Receiver) -> None:
    """And not what the receiver says about it."""
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO|Division by zero"):
        spark.range(30_000).selectExpr("CAST(1 DIV (id - 29999) AS STRING) AS value").write.format("penstock").mode("append").options(
            stream="orders"
        ).save(receiver.url)
    assert receiver.contents() == []
