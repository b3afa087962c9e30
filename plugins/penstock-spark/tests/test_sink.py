"""The sink on Spark itself: each batch is in the log once, also if a process is killed; and
mistakes are told.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _receiver import Receiver
from _sink_query import query_into

KILLS = int(os.environ.get("PENSTOCK_SPARK_KILLS", "1"))


@pytest.fixture
def receiver(tmp_path: Path) -> Any:
    """A receiver with a log."""
    with Receiver(tmp_path) as running:
        yield running


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root can mount a disk here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def lines(folder: Path, files: int, each: int) -> list[bytes]:
    """Write text files with different lines, and return all lines."""
    folder.mkdir()
    every = []
    for file in range(files):
        rows = [f"{file}:{row}" for row in range(each)]
        (folder / f"{file:03}.txt").write_text("\n".join(rows) + "\n")
        every += rows
    return sorted(row.encode() for row in every)


def write_all(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """Write the files to the receiver, one a batch."""
    query_into(spark, receiver.url, tmp_path).awaitTermination()


def check(receiver: Receiver, expected: list[bytes]) -> None:
    """Compare the log with the lines: each of them once."""
    found = receiver.contents()
    lost, repeated = len(set(expected) - set(found)), len(found) - len(set(found))
    sys.stdout.write(f"rows {len(found):,}; lost {lost}, repeated {repeated}\n")
    assert (len(found), lost, repeated) == (len(expected), 0, 0)


def test_a_streaming_query_is_in_the_log_once(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """Two batches of two tasks; started again from its checkpoint the query appends nothing."""
    every = lines(tmp_path / "in", 2, 1_000)
    write_all(spark, tmp_path, receiver)
    check(receiver, every)
    write_all(spark, tmp_path, receiver)
    check(receiver, every)


def test_a_worker_that_is_killed_loses_and_repeats_nothing(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """Spark repeats its task, which stages under another name."""
    every = lines(tmp_path / "in", KILLS + 1, 1_000)
    receiver.kill_writer_at = [2 + 3 * kill for kill in range(KILLS)]
    write_all(spark, tmp_path, receiver)
    check(receiver, every)
    assert len(receiver.staged_by) >= 2 * (KILLS + 1) + KILLS


def test_a_sink_that_is_killed_after_the_commit_of_the_log_repeats_nothing(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """The batch is in the log, and Spark does not know it:
    it repeats the batch with the same id.
    """
    every = lines(tmp_path / "in", KILLS + 1, 100)
    receiver.kill_committer_at = list(range(1, KILLS + 1))
    for _ in range(KILLS):
        with pytest.raises(Exception, match="FAILED"):
            write_all(spark, tmp_path, receiver)
    write_all(spark, tmp_path, receiver)
    check(receiver, every)
    assert receiver.commits == KILLS + 1


@pytest.mark.many_kills
def test_a_driver_that_is_killed_after_the_commit_of_the_log_repeats_nothing(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """A kill -9 of its whole process group: the tasks of the next batch die with it."""
    every = lines(tmp_path / "in", KILLS + 1, 1_000)
    receiver.kill_committer_at = list(range(1, KILLS + 1))
    for kill in range(KILLS):
        program = [
            sys.executable,
            str(Path(__file__).with_name("_sink_query.py")),
            receiver.url,
            str(tmp_path),
        ]
        driver = subprocess.Popen(program, start_new_session=True, stderr=subprocess.DEVNULL)
        receiver.kill = lambda _, driver=driver: os.killpg(driver.pid, signal.SIGKILL)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        assert driver.wait(300) == -signal.SIGKILL
        assert receiver.commits == kill + 1
    write_all(spark, tmp_path, receiver)
    check(receiver, every)


def test_batches_without_rows_are_committed(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """Of an empty file, and of a query whose plan Spark has reduced to nothing, without partitions:
    the receiver would refuse the batch after one that it does not have.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    for number, text in enumerate(("", "1\n", "", "3\n")):
        (folder / f"{number}.txt").write_text(text)
    write_all(spark, tmp_path, receiver)
    assert receiver.contents() == [b"1", b"3"]
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)).where("false")
    writer = rows.writeStream.format("penstock").option("stream", "orders")
    query = writer.option("checkpointLocation", str(tmp_path / "none")).trigger(availableNow=True)
    query.start(receiver.url).awaitTermination()
    queries = Counter(each.partition("/")[0] for each in receiver.log._published)
    assert sorted(queries.values()) == [4, 4]


def test_a_receiver_that_was_put_back_from_a_backup_loses_no_batch_silently(
    spark: Any, tmp_path: Path
) -> None:
    """The query is told what is missing. It can go back to there: then all rows are there once. Or
    it goes on without them.
    """
    every = lines(tmp_path / "in", 2, 10)
    log = tmp_path / "orders.log"
    with Receiver(tmp_path) as receiver:
        write_all(spark, tmp_path, receiver)
    shutil.copy(log, tmp_path / "backup")
    for number in (2, 3):
        (tmp_path / "in" / f"00{number}.txt").write_text(f"{number}\n")
    with Receiver(tmp_path) as receiver:
        write_all(spark, tmp_path, receiver)
    shutil.copy(tmp_path / "backup", log)
    (tmp_path / "in" / "004.txt").write_text("4\n")
    with Receiver(tmp_path) as receiver:
        with pytest.raises(Exception, match=r"does not have batches 2 to 3.*option missingBatches"):
            write_all(spark, tmp_path, receiver)
        check(receiver, every)
        for name in ("offsets", "commits"):
            for file in (tmp_path / "checkpoint" / name).iterdir():
                if int(file.name.strip(".").partition(".")[0]) >= 2:
                    file.unlink()
        write_all(spark, tmp_path, receiver)
        check(receiver, sorted([*every, b"2", b"3", b"4"]))
    shutil.copy(tmp_path / "backup", log)
    (tmp_path / "in" / "005.txt").write_text("5\n")
    with Receiver(tmp_path) as receiver:
        query_into(spark, receiver.url, tmp_path, missingBatches="accept").awaitTermination()
        check(receiver, sorted([*every, b"5"]))


def test_a_checkpoint_from_an_older_copy_is_refused(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """The batches that the query would plan again have other rows, and the log would leave them out
    as repeated. With the newest checkpoint the query goes on, and each row is there once.
    """
    every = lines(tmp_path / "in", 2, 10)
    write_all(spark, tmp_path, receiver)
    checkpoint, copy, newest = (tmp_path / name for name in ("checkpoint", "copy", "newest"))
    shutil.copytree(checkpoint, copy)
    for number in (2, 3):
        (tmp_path / "in" / f"00{number}.txt").write_text(f"{number}\n")
    write_all(spark, tmp_path, receiver)
    checkpoint.rename(newest)
    shutil.copytree(copy, checkpoint)
    for _ in range(2):  # a second start says the same
        with pytest.raises(Exception, match=r"a batch of this number already, and batch 3 after"):
            write_all(spark, tmp_path, receiver)
    shutil.rmtree(checkpoint)
    newest.rename(checkpoint)
    (tmp_path / "in" / "004.txt").write_text("4\n")
    write_all(spark, tmp_path, receiver)
    check(receiver, sorted([*every, b"2", b"3", b"4"]))


def test_of_two_queries_with_copies_of_one_checkpoint_one_is_refused(
    spark: Any, tmp_path: Path, receiver: Receiver
) -> None:
    """Batch 1 of the other one has other rows. With a new checkpoint it writes them."""
    lines(tmp_path / "in", 1, 10)
    write_all(spark, tmp_path, receiver)
    checkpoint, copy, row = (tmp_path / name for name in ("checkpoint", "copy", "in/001.txt"))
    shutil.copytree(checkpoint, copy)
    row.write_text("one\n")
    write_all(spark, tmp_path, receiver)
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    row.write_text("other\nother\n")
    with pytest.raises(Exception, match=r"elements: 1, and this commit has 2.*changedBatches"):
        write_all(spark, tmp_path, receiver)
    shutil.rmtree(checkpoint)
    write_all(spark, tmp_path, receiver)
    found = Counter(receiver.contents())
    assert (found[b"one"], found[b"other"], found[b"0:0"]) == (1, 2, 2)


def test_two_queries_write_to_one_log(spark: Any, tmp_path: Path, receiver: Receiver) -> None:
    """They run at the same time, with two checkpoints: each row of both is there once."""
    folders = [tmp_path / name for name in ("one", "other")]
    every = []
    for folder in folders:
        folder.mkdir()
        every += [b"%b %b" % (folder.name.encode(), each) for each in lines(folder / "in", 3, 50)]
        for file in (folder / "in").iterdir():
            rows = file.read_text().splitlines()
            file.write_text("".join(f"{folder.name} {row}\n" for row in rows))
    queries = [query_into(spark, receiver.url, folder) for folder in folders]
    for query in queries:
        query.awaitTermination()
    check(receiver, sorted(every))


def test_a_dataframe_is_written_once_with_an_id(spark: Any, receiver: Receiver) -> None:
    """And each time without one."""
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    writer = rows.write.format("penstock").mode("append").option("stream", "orders")
    for _ in range(2):
        writer.option("writeId", "january").save(receiver.url)
    assert sorted(receiver.contents()) == sorted(b"%d" % number for number in range(100))


def test_a_write_with_an_id_that_was_written_with_other_rows_is_refused(
    spark: Any, receiver: Receiver
) -> None:
    """The rows would be left out silently."""
    for count in (3, 4):
        rows = spark.range(count).selectExpr("CAST(id AS STRING) AS value")
        writer = rows.write.format("penstock").mode("append").option("stream", "orders")
        writer = writer.option("writeId", "january")
        if count == 3:
            writer.save(receiver.url)
            continue
        with pytest.raises(Exception, match="elements: 3, and this commit has 4"):
            writer.save(receiver.url)
        writer.option("changedBatches", "accept").save(receiver.url)
    assert sorted(receiver.contents()) == [b"0", b"1", b"2"]


def test_a_write_that_is_refused_is_told(spark: Any, receiver: Receiver) -> None:
    """With what to do; nothing is appended."""
    rows = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(Exception, match=r"Its service needs penstock\.receive"):
        rows.write.format("penstock").mode("append").option("stream", "bills").save(receiver.url)
    with pytest.raises(Exception, match="the nearest one is stream"):
        rows.write.format("penstock").mode("append").option("steam", "orders").save(receiver.url)
    assert receiver.contents() == []


def fill(disk: Path) -> None:
    """Leave no byte on a disk, as another program does."""
    with suppress(OSError), (disk / "other").open("ab", 0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("full", [pytest.param("stage", marks=pytest.mark.heavy), "commit"])
def test_a_receiver_whose_disk_is_full_loses_nothing(
    spark: Any, tmp_path: Path, disk: Path, full: str
) -> None:
    """The query fails with what to do: room, and a new start. Then each row is there once."""
    every = lines(tmp_path / "in", 2, 5_000)
    with Receiver(disk) as receiver:
        (disk / "other").write_bytes(b"")
        if full == "stage":
            fill(disk)
        else:
            receiver.log.before_publish = lambda: fill(disk)
        with pytest.raises(Exception, match=r"no room on the disk.*start the query again"):
            write_all(spark, tmp_path, receiver)
        assert receiver.contents() == []
        receiver.log.before_publish = lambda: None
        (disk / "other").unlink()
        write_all(spark, tmp_path, receiver)
        check(receiver, every)
