"""The source on Spark itself: batch and streaming queries, options that Spark acts on, and
errors as a user sees them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _query import into_parquet
from _server import Served, element_at, served
from pyspark.errors import StreamingQueryException


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Served]:
    """1,000 JSON elements in each of two partitions."""
    with served(tmp_path_factory.mktemp("log"), count=1_000, kind="json") as running:
        yield running


def reading(spark: Any, server: Served, **options: str) -> Any:
    return spark.read.format("penstock").options(stream="orders", **options).load(server.uri)


def test_a_batch_query_reads_what_is_there(spark: Any, server: Served) -> None:
    """Without register(): Spark finds the source by itself. JSON becomes columns."""
    rows = reading(
        spark, server, valueFormat="json", schema="id DECIMAL(20), name STRING", minPartitions="3"
    )
    assert rows.columns == ["stream", "partition", "offset", "id", "name"]
    found = sorted((row.partition, row.offset, row.id, row.name) for row in rows.collect())
    assert found == sorted(
        (str(part), at, at * 10 + part, f"name {(at * 10 + part) % 7}")
        for part in range(2)
        for at in range(1_000)
    )


def test_a_query_does_not_get_the_rows_of_an_earlier_filter(spark: Any, server: Served) -> None:
    """Spark keeps the partitions of the first query on a DataFrame, also
    if it pushes filters down.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = reading(spark, server)
        assert rows.where("partition = '1' AND offset >= 990").count() == 10
        assert rows.count() == 2_000
        assert rows.where("offset < 10").union(rows.where("offset >= 995")).count() == 30
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_a_streaming_query_reads_in_batches_and_shows_its_lag(spark: Any, tmp_path: Path) -> None:
    """The option maxElementsPerTrigger bounds each batch, in proportion; after new elements the
    query goes on from its checkpoint.
    """
    with served(tmp_path, count=1_000) as server:
        query = into_parquet(spark, server.uri, tmp_path, 1_200).trigger(availableNow=True).start()
        query.awaitTermination()
        [first, last] = [
            each["sources"][0] for each in query.recentProgress if each["numInputRows"]
        ]
        assert (first["numInputRows"], last["numInputRows"]) == (1_200, 800)
        assert json.loads(first["endOffset"])["positions"] == {"orders": {"0": 600, "1": 600}}
        assert json.loads(first["latestOffset"])["positions"] == {
            "orders": {"0": 1_000, "1": 1_000}
        }
        server.grow(1_100)
        into_parquet(spark, server.uri, tmp_path, 1_200).trigger(
            availableNow=True
        ).start().awaitTermination()
    values = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in values) == sorted(
        (str(part), at, element_at("fixed", part, at)) for part in range(2) for at in range(1_100)
    )


def failure(query: Any) -> str:
    """Return the error that ends a query, as its user sees it."""
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    return str(caught.value)


def test_a_hot_publisher_is_refused_and_read_on_request(
    spark: Any, server: Served, tmp_path: Path
) -> None:
    """The error names Spool and delivery=atMostOnce; with the option the query reads what comes."""
    options = {"stream": "ticks", "maxElementsPerTrigger": "100"}
    stream = spark.readStream.format("penstock").options(**options).load(server.uri)
    writing = stream.writeStream.format("noop").option(
        "checkpointLocation", str(tmp_path / "refused")
    )
    text = failure(writing.start())
    assert "penstock.Spool" in text
    assert "delivery=atMostOnce" in text
    rows = spark.read.format("penstock").options(**options, delivery="atMostOnce").load(server.uri)
    assert [bytes(row.value) for row in rows.sort("offset").collect()] == [
        b"%d" % number for number in range(100)
    ]


def test_an_unknown_option_is_an_error_that_names_the_nearest(spark: Any, server: Served) -> None:
    """It is raised by load(), before anything runs."""
    with pytest.raises(Exception, match="nearest one is maxElementsPerTrigger"):
        reading(spark, server, maxElementPerTrigger="5")
