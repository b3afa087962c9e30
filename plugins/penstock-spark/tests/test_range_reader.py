"""A task without Spark: it reads its range over a real connection, in large batches,
and goes on after a loss.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _server import Served, element_at, served
from penstock_spark._client import ProcessSettings
from penstock_spark._connection import ServerConnection
from penstock_spark.source import _range_reader
from penstock_spark.source._names import positions_name, range_name
from penstock_spark.source._offsets import Range
from penstock_spark.source._publisher import QueryServer, digest_of
from penstock_spark.source._range_reader import LEAST_ROWS, LONGEST_WAIT, Batches, Task
from penstock_spark.source._readers import PenstockReader
from penstock_spark.source._settings import SourceSettings
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.api import ConnectionLost, ProtocolError, UsageError

METADATA = [
    pa.field("stream", pa.string()),
    pa.field("partition", pa.string()),
    pa.field("offset", pa.int64()),
]
RAW = pa.schema([*METADATA, pa.field("value", pa.binary())])
PART = Range("orders", "1", 0, 10_000)


def settings(uri: str = "tcp://127.0.0.1:1", **options: str) -> SourceSettings:
    return SourceSettings.of({"uri": uri, "stream": "orders"} | options)


def task(server: Served, part: Range = PART, **options: str) -> Task:
    return Task(settings(server.uri, **options), RAW, (part,), (server.uri,))


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Served]:
    """20,000 elements in each of two partitions."""
    with served(tmp_path_factory.mktemp("log"), count=20_000) as running:
        yield running


def test_a_range_arrives_whole_in_few_batches(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each element is at its position, and each batch but the last has at least 16,384 elements,
    if they come quickly enough.
    """
    monkeypatch.setattr(_range_reader, "LONGEST_WAIT", 3600.0)
    batches = list(task(server, demandWindow="500").read())
    assert all(batch.num_rows >= LEAST_ROWS for batch in batches[:-1])
    table = pa.Table.from_batches(batches)
    assert table.schema.equals(RAW)
    assert table["offset"].to_pylist() == list(range(10_000))
    assert table["value"].to_pylist() == [
        element_at("fixed", 1, position) for position in range(10_000)
    ]
    assert set(table["stream"].to_pylist()) == {"orders"}
    assert set(table["partition"].to_pylist()) == {"1"}


def test_the_server_is_told_the_id_of_the_query(server: Served) -> None:
    """Each name has it behind the words of the range; the log reads as without it."""
    assert (
        range_name("orders", "1", 0, 9, "nightly")
        == "orders?partition=1&start=0&stop=9&subscription=nightly"
    )
    assert (
        positions_name("orders", {"1": 5}, 0.5, "nightly")
        == "orders?positions&after=1:5&timeout=0.500&subscription=nightly"
    )
    assert positions_name("orders", {}, 0.5) == "orders?positions"
    assert sum(batch.num_rows for batch in task(server, subscriptionId="nightly").read()) == 10_000
    publisher = QueryServer(server.uri, settings().client, "nightly")
    try:
        assert publisher.facts(["orders"])["orders", "1"].latest == 20_000
    finally:
        publisher.close()


def test_a_batch_is_due_by_number_time_or_bytes() -> None:
    """The limits are 16,384 elements, 50 ms and 8 MiB:
    one batch an element would take minutes for a million rows.
    """
    batches = Batches(settings(), RAW, PART)
    assert not batches.add([b"x"] * (LEAST_ROWS - 1), 1.0)
    assert batches.add([b"x"], 1.0)
    assert batches.take().num_rows == LEAST_ROWS  # type: ignore[union-attr]  # there is one
    assert batches.take() is None
    assert not batches.add([b"x"], 2.0)
    assert not batches.add([b"x"], 2.0 + LONGEST_WAIT / 2)
    assert batches.add([b"x"], 2.001 + LONGEST_WAIT)
    assert batches.take().num_rows == 3  # type: ignore[union-attr]  # there is one
    assert batches.add([bytes(_range_reader.MOST_BYTES)], 3.0)


def test_a_task_that_is_closed_cancels_its_stream(server: Served) -> None:
    """Spark closes the generator when it stops a task; a later task reads the same range."""
    reading = task(server, demandWindow="100").read()
    assert next(reading)["offset"][0].as_py() == 0
    reading.close()
    assert sum(batch.num_rows for batch in task(server).read()) == 10_000


def test_large_elements_behind_small_ones_arrive(tmp_path: Path) -> None:
    """The demand is that for small ones then. More bytes than `Limits.unread_bytes` were asked
    for, and a task reads what arrives.
    """
    with served(tmp_path, count=64, partitions=1, kind="grown", in_memory=True) as server:
        for count in (104, 144):  # an append takes no more than 64 MiB
            server.grow(count)
        table = pa.Table.from_batches(list(task(server, Range("orders", "0", 0, 144)).read()))
    assert table.num_rows == 144
    assert table["value"].nbytes > 80 << 20


def test_a_task_reads_all_its_ranges_over_one_connection(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order. A task that is closed in between leaves the connection."""
    made: list[ServerConnection] = []

    class Kept(ServerConnection):
        def __init__(self, client: ProcessSettings) -> None:
            super().__init__(client)
            made.append(self)

    monkeypatch.setattr(_range_reader, "ServerConnection", Kept)
    parts = tuple(
        Range("orders", str(number % 2), 100 * number, 100 * number + 50) for number in range(40)
    )
    reading = Task(settings(server.uri), RAW, parts, (server.uri,))
    rows = [row for batch in reading.read() for row in batch.to_pylist()]
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (part.partition, position) for part in parts for position in range(part.start, part.stop)
    ]
    assert all(
        row["value"] == element_at("fixed", int(row["partition"]), row["offset"]) for row in rows
    )
    half = reading.read()
    next(half)
    half.close()
    assert [(each.made, each.is_open_to(server.uri)) for each in made] == [(1, False)] * 2


def test_a_connection_that_is_lost_between_two_ranges_is_made_again(tmp_path: Path) -> None:
    """Each range begins where it was planned to."""
    parts = tuple(Range("orders", "0", first, first + 500) for first in range(0, 20_000, 500))
    with served(tmp_path, count=20_000) as server:
        # On a busy machine a server takes long to start again.
        options = {"penstock.client.retries": "50"}
        reading = Task(settings(server.uri, **options), RAW, parts, (server.uri,)).read()
        offsets = next(reading)["offset"].to_pylist()
        server.kill()
        server.start()
        offsets += [at for batch in reading for at in batch["offset"].to_pylist()]
        assert offsets == list(range(20_000))


def test_a_query_over_many_partitions_has_few_tasks(tmp_path: Path) -> None:
    """With a task for each of them Spark would need minutes. Those of publishers that keep
    nothing wait, so they do not share one.
    """
    schema = from_arrow_schema(RAW)
    with served(tmp_path, count=5, partitions=100, in_memory=True) as server:
        whole = PenstockReader(settings(server.uri), schema)
        tasks = whole.partitions()
        assert len(tasks) == 34
        values = [
            value
            for each in tasks
            for batch in whole.read(each)
            for value in batch["value"].to_pylist()
        ]
        assert sorted(values) == sorted(
            element_at("fixed", partition, position)
            for partition in range(100)
            for position in range(5)
        )
        hot = {
            "uri": server.uri,
            "streams": ",".join(f"s{number}" for number in range(100)),
            "delivery": "atMostOnce",
        }
        reader = PenstockReader(SourceSettings.of(hot | {"maxElementsPerTrigger": "100"}), schema)
        assert len(reader.partitions()) == 100


def test_other_content_than_the_driver_has_seen_is_refused(server: Served) -> None:
    """The digest of the last element of the range decides."""
    digest = digest_of(element_at("fixed", 1, 9_999))
    assert (
        sum(batch.num_rows for batch in task(server, PART._replace(digest=digest)).read()) == 10_000
    )
    text = r"position 9,999 of partition '1' of 'orders' is not the one that the driver has seen.*failOnDataLoss=false"
    with pytest.raises(ProtocolError, match=text):
        list(task(server, PART._replace(digest="another")).read())
    lenient = task(server, PART._replace(digest="another"), failOnDataLoss="false")
    assert sum(batch.num_rows for batch in lenient.read()) == 10_000


def test_a_range_that_the_publisher_does_not_have_is_refused(server: Served) -> None:
    """The error has the figures of the publisher."""
    part = PART._replace(start=50_000, stop=60_000)
    text = r"'orders' does not give positions 50,000 to 60,000.*20,000.*failOnDataLoss=false.*new checkpointLocation"
    with pytest.raises(ProtocolError, match=text):
        list(task(server, part).read())
    assert list(task(server, part, failOnDataLoss="false").read()) == []
    # A log that has begun anew, and has the start of the range alone.
    half, options = (
        PART._replace(start=19_990, stop=60_000),
        {"penstock.client.readTimeoutMs": "1000"},
    )
    with pytest.raises(
        ProtocolError,
        match=r"no element came within penstock\.client\.readTimeoutMs=1000.*failOnDataLoss=false",
    ):
        list(task(server, half, **options).read())
    assert (
        sum(
            batch.num_rows for batch in task(server, half, failOnDataLoss="false", **options).read()
        )
        == 10
    )


def test_elements_that_were_dropped_after_planning_are_left_out_if_the_option_says_so(
    tmp_path: Path,
) -> None:
    """With failOnDataLoss=false the range begins at the earliest element
    that the publisher has when the task reads.
    """
    part = PART._replace(stop=30_000)
    with served(tmp_path, count=30_000, retains=24_000) as server:
        with pytest.raises(ProtocolError, match="It was dropped"):
            list(task(server, part).read())
        offsets = [
            at
            for batch in task(server, part, failOnDataLoss="false").read()
            for at in batch["offset"].to_pylist()
        ]
        assert offsets == list(range(offsets[0], 30_000))
        assert 6_000 <= offsets[0] < 10_000
        assert (
            list(task(server, PART._replace(stop=offsets[0]), failOnDataLoss="false").read()) == []
        )


def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    """The publisher is killed between two batches and comes back:
    the range goes on behind the last element.
    """
    with served(tmp_path, count=20_000) as server:
        # On a busy machine a server takes long to start again.
        options = {"demandWindow": "100", "penstock.client.retries": "50"}
        reading = task(server, PART._replace(stop=20_000), **options).read()
        offsets = next(reading)["offset"].to_pylist()
        server.kill()
        starter = threading.Timer(0.1, server.start)
        starter.start()
        try:
            for batch in reading:
                offsets += batch["offset"].to_pylist()
        finally:
            starter.join()
        assert offsets == list(range(20_000))


def test_a_task_gives_up_if_no_server_answers() -> None:
    """The error says where no server answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        uri = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        options = {"penstock.client.retries": "1"}
        with pytest.raises(ConnectionLost, match="no server answers"):
            list(Task(settings(uri, **options), RAW, (PART,), (uri,)).read())


@pytest.mark.parametrize("accepted", [1, 2, 3])
def test_the_driver_asks_a_server_again_that_was_killed_meanwhile(
    server: Served, *, accepted: int
) -> None:
    """A server that is being killed accepts some connections and answers none of them."""
    with socket.socket() as listening, socket.socket() as upstream:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            for _ in range(accepted):
                listening.accept()[0].close()
            client = listening.accept()[0]
            upstream.connect(("127.0.0.1", server.port))
            threading.Thread(target=_pass_on, args=(client, upstream)).start()
            _pass_on(upstream, client)

        threading.Thread(target=serve, daemon=True).start()
        publisher = QueryServer(f"tcp://127.0.0.1:{listening.getsockname()[1]}", settings().client)
        if accepted == 3:
            with pytest.raises(ConnectionLost, match="before the peer answered"):
                publisher.facts(["orders"])
        assert publisher.facts(["orders"])["orders", "0"].latest == 20_000
        publisher.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_the_driver_asks_for_positions_digests_and_sizes(server: Served) -> None:
    """Over one connection; a poll without anything new is held by the server."""
    publisher = QueryServer(server.uri, settings().client)
    facts = publisher.facts(["orders"])
    places = {key: (each.earliest, each.latest) for key, each in facts.items()}
    assert places == {("orders", "0"): (0, 20_000), ("orders", "1"): (0, 20_000)}
    assert publisher.facts(["orders"], after=dict.fromkeys(facts, 20_000), wait=0.01) == facts
    assert publisher.facts(["orders", "orders"], after={}, wait=0.01) == facts
    assert publisher.digests({("orders", "1"): 8, ("orders", "0"): 0}) == {
        ("orders", "1"): digest_of(element_at("fixed", 1, 7)),
        ("orders", "0"): "",
    }
    assert publisher.digests({}) == {}
    assert publisher.mean_size("orders", "1", 0, 20_000) == 32.0
    assert publisher.names(".*") == ("orders",)  # ticks have no positions
    assert publisher.epoch == 1
    publisher.close()
    assert publisher.facts(["orders"]) == facts
    assert publisher.epoch == 2
    publisher.close()


def test_a_publisher_without_positions_is_refused(server: Served) -> None:
    """The error names the two ways to read it."""
    publisher = QueryServer(server.uri, settings().client)
    for stream in ("ticks", "no-such-name"):
        with pytest.raises(UsageError, match=r"penstock\.Spool.*delivery=atMostOnce"):
            publisher.facts([stream])
        assert not publisher.has_positions(stream)
    assert publisher.has_positions("orders")
    publisher.close()


def test_refused_credentials_name_the_options(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the driver and in a task, and no other advice is given. The token is not shown."""
    monkeypatch.chdir(tmp_path)  # a long path would be shown in part
    Path("wrong").write_text("hunter2")
    wrong = {"penstock.client.tokenFile": "wrong"}
    with served(tmp_path, count=10, token="letmein", in_memory=True) as locked:
        for options, had in (
            (wrong, "the credentials of penstock.client.tokenFile='wrong'"),
            ({}, "a client without credentials"),
        ):
            publisher = QueryServer(locked.uri, settings(locked.uri, **options).client)
            calls = (
                lambda publisher=publisher: publisher.facts(["orders"]),
                lambda publisher=publisher: publisher.names(".*"),
                lambda publisher=publisher: publisher.has_positions("orders"),
                lambda options=options: list(task(locked, **options).read()),
                lambda options=options: list(
                    task(locked, delivery="atMostOnce", maxElementsPerTrigger="5", **options).read()
                ),
            )
            for call in calls:
                with pytest.raises(UsageError) as caught:
                    call()
                assert str(caught.value) == (
                    f"the server at {locked.uri} does not accept {had}. Give "
                    "penstock.client.tokenFile or penstock.client.tokenEnv, "
                    "or penstock.client.user with penstock.client.passwordFile or "
                    "penstock.client.passwordEnv, with what the server knows; "
                    "its log may say more"
                )
            publisher.close()
    with pytest.raises(
        UsageError,
        match=r"examines no credentials, and gets none: leave penstock\.client\.tokenFile='.*wrong' out",
    ):
        list(task(server, **wrong).read())


def test_elements_without_positions_are_read_if_the_option_says_so(server: Served) -> None:
    """Not more than the batch has, and without a digest."""
    hot = task(
        server,
        Range("ticks", "", 20, 520),
        delivery="atMostOnce",
        maxElementsPerTrigger="500",
        longPollMs="60000",
    )
    table = pa.Table.from_batches(list(hot.read()))
    assert table["value"].to_pylist() == [b"%d" % number for number in range(500)]
    assert table["offset"].to_pylist() == list(range(20, 520))
