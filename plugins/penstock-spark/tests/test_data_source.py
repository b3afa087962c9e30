"""What Spark makes of `format("penstock")`:
the check of its version, and of the way in which the package has come.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from penstock_spark import _data_source
from penstock_spark._data_source import (
    LEAST_VERSIONS,
    PenstockDataSource,
    check_version,
    is_shipped,
)
from penstock_spark.source._stream_reader import PenstockStreamReader
from pyspark import SparkFiles
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from penstock.api import UsageError
from penstock.spi import build_registry

OPTIONS = {"uri": "tcp://127.0.0.1:7000", "stream": "orders"}
SCHEMA = StructType([StructField("value", BinaryType())])


def test_an_older_pyspark_is_refused() -> None:
    """The error says which version is needed, why, and what works with this one."""
    for version in ("4.2.0", "4.10.1", "5.0.0.dev1"):
        for act in LEAST_VERSIONS:
            check_version(version, act)
    check_version("4.1.4", "writeStream")
    for version, act, text in (
        ("3.5.0", "read", "4.0 or newer, and this is 3.5.0: it has no sources in Python"),
        ("4.0.5", "writeStream", "4.1 or newer.* read and write work with"),
        ("4.1.4", "readStream", "4.2 or newer.* write and writeStream work"),
    ):
        with pytest.raises(UsageError, match=text):
            check_version(version, act)


def test_a_package_that_was_sent_by_py_files_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark does not give these files to the process of a streaming source,
    and its own error does not say so.
    """
    assert not is_shipped(Path("/srv/penstock_spark/x.py"), None)
    assert not is_shipped(Path("/srv/penstock_spark/x.py"), "/srv/userFiles-1")
    source = PenstockDataSource(OPTIONS)
    assert source.schema() == "stream STRING, partition STRING, offset BIGINT, value BINARY"
    assert not caplog.records
    monkeypatch.setattr(SparkFiles, "_root_directory", str(Path(_data_source.__file__).parents[1]))
    source.schema()
    assert "installed on the driver with pip" in caplog.text


JSON = {
    "valueFormat": "json",
    "schema": "id BIGINT, `a b` DECIMAL(10, 2) NOT NULL, s struct<x: integer, y:array<string>>",
}
OTHER_COLUMNS = [
    ({}, "value BINARY"),
    ({"includeMetadata": "false"}, "value STRING"),
    ({}, "value BINARY, stream STRING, partition STRING, offset BIGINT"),
    ({}, "a STRING, b STRING, c BIGINT, d BINARY"),
    (JSON, "id BIGINT"),
]


@pytest.mark.parametrize(("options", "ddl"), OTHER_COLUMNS)
def test_columns_of_the_program_have_to_be_those_of_the_options(
    spark: Any, options: dict[str, str], ddl: str
) -> None:
    """Taken by their place, they would have the values of other columns."""
    with pytest.raises(
        UsageError, match=r"the columns of \.schema\(…\) are .* leave \.schema\(…\) out"
    ):
        PenstockDataSource(OPTIONS | options).reader(StructType.fromDDL(ddl))


@pytest.mark.parametrize(
    "options", [{}, {"includeMetadata": "false"}, JSON, JSON | {"undecodable": "_corrupt"}]
)
def test_the_same_columns_are_taken(spark: Any, options: dict[str, str]) -> None:
    """The types may be spelled in another way.
    Columns that Spark has asked for are not compared.
    """
    source = PenstockDataSource(OPTIONS | options)
    schema = StructType.fromDDL(source.schema())
    for each in (source, PenstockDataSource(OPTIONS | options)):
        each.reader(schema)
        each.streamReader(schema)


def test_columns_of_json_have_to_be_in_the_options(spark: Any) -> None:
    """The error says how."""
    with pytest.raises(UsageError, match=r"needs the columns of the value: \.option\('schema'"):
        PenstockDataSource(OPTIONS | {"valueFormat": "json"}).reader(
            StructType.fromDDL("id BIGINT")
        )


@pytest.mark.parametrize("name", ["msgpack", "protobuf"])
def test_a_format_without_its_plugin_is_refused_on_the_driver(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With the package that it needs. Its tasks would fail one by one."""
    options = {"valueFormat": name, "schema": "a BIGINT", "messageType": "a.B"}
    source = PenstockDataSource(OPTIONS | options | {"includeMetadata": "false"})
    schema = StructType([StructField("a", LongType())])
    source.reader(schema)
    monkeypatch.setattr(_data_source, "build_registry", partial(build_registry, discover=False))
    with pytest.raises(UsageError, match=rf"pip install 'penstock-spark\[{name}\]'"):
        source.reader(schema)


def test_a_streaming_query_has_no_ending_offsets() -> None:
    """They would have no effect."""
    with pytest.raises(UsageError, match=r"endingOffsets is for read.*Trigger\.AvailableNow"):
        PenstockDataSource(OPTIONS | {"endingOffsets": "latest"}).streamReader(SCHEMA)


UNREAD = [
    "v VARIANT",
    "v VARCHAR(3)",
    "v VOID",
    "v INTERVAL YEAR TO MONTH",
    "v INTERVAL DAY TO SECOND",
    "v STRUCT<void: ARRAY<VARIANT>>",
]


@pytest.mark.parametrize("ddl", UNREAD)
def test_a_type_that_the_format_cannot_give_is_refused(spark: Any, ddl: str) -> None:
    """When the query begins, and not at its first element. A field may be named like a type; an
    Arrow stream has intervals of days.
    """
    given = {
        "valueFormat": "json",
        "schema": f"a STRUCT<void: INT, variant: STRING>, {ddl}",
        "includeMetadata": "false",
    }
    source = PenstockDataSource(OPTIONS | given)
    schema = StructType.fromDDL(source.schema())
    with pytest.raises(
        UsageError,
        match=r"option schema: the column v is .*, and valueFormat=json has no such values",
    ):
        source.streamReader(schema)
    source = PenstockDataSource(OPTIONS | given | {"valueFormat": "arrow"})
    source.schema()
    if "DAY" in ddl:
        source.reader(schema)
        return
    with pytest.raises(UsageError, match="valueFormat=arrow"):
        source.reader(schema)


LIMITS: list[tuple[dict[str, str], Any]] = [
    ({}, ReadAllAvailable()),
    ({"maxElementsPerTrigger": "5", "maxBytesPerTrigger": "9"}, ReadMaxRows(5)),
    ({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9)),
]


@pytest.mark.parametrize(("options", "limit"), LIMITS)
def test_spark_gets_one_limit(options: dict[str, str], limit: Any) -> None:
    """The number of elements if there is one, because Spark has no limit of several."""
    reader = PenstockDataSource(OPTIONS | options | {"includeMetadata": "false"}).streamReader(
        SCHEMA
    )
    assert isinstance(reader, PenstockStreamReader)
    assert reader.getDefaultReadLimit() == limit


def test_the_processes_of_spark_import_what_they_use() -> None:
    """No trio run is in any of them, and JSON is read by few of them: each import would cost each
    of them its time.
    """
    program = (
        "import sys, pyspark_penstock, penstock_spark.source._readers; "
        "print([each for each in ('trio', 'pyarrow.compute') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
