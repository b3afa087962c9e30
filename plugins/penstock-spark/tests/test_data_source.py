"""What Spark makes of `format("penstock")`: the check of its version, and of the way in which the package has come."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from penstock_spark import _data_source
from penstock_spark._data_source import PenstockDataSource, check_version, is_shipped
from penstock_spark.source._readers import PenstockStreamReader
from pyspark import SparkFiles
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.api import UsageError

OPTIONS = {"uri": "tcp://127.0.0.1:7000", "stream": "orders"}
SCHEMA = StructType([StructField("value", BinaryType())])


def test_an_older_pyspark_is_refused() -> None:
    """The error says which version is needed."""
    for version in ("4.2.0", "4.10.1", "5.0.0.dev1"):
        check_version(version)
    for version in ("4.1.4", "3.5.0"):
        with pytest.raises(UsageError, match=f"4.2 or newer, and this is {version}"):
            check_version(version)


def test_a_package_that_was_sent_by_py_files_is_warned_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Spark does not give these files to the process of a streaming source, and its own error does not say so."""
    assert not is_shipped(Path("/srv/penstock_spark/x.py"), None)
    assert not is_shipped(Path("/srv/penstock_spark/x.py"), "/srv/userFiles-1")
    source = PenstockDataSource(OPTIONS)
    assert source.schema() == "stream STRING, partition STRING, offset BIGINT, value BINARY"
    assert not caplog.records
    monkeypatch.setattr(SparkFiles, "_root_directory", str(Path(_data_source.__file__).parents[1]))
    source.schema()
    assert "installed on the driver with pip" in caplog.text


LIMITS: list[tuple[dict[str, str], Any]] = [
    ({}, ReadAllAvailable()),
    ({"maxElementsPerTrigger": "5", "maxBytesPerTrigger": "9"}, ReadMaxRows(5)),
    ({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9)),
]


@pytest.mark.parametrize(("options", "limit"), LIMITS)
def test_spark_gets_one_limit(options: dict[str, str], limit: Any) -> None:
    """The number of elements if there is one, because Spark has no limit of several."""
    reader = PenstockDataSource(OPTIONS | options).streamReader(SCHEMA)
    assert isinstance(reader, PenstockStreamReader)
    assert reader.getDefaultReadLimit() == limit


def test_the_processes_of_spark_import_no_trio() -> None:
    """No trio run is in any of them, and the import of trio would cost each of them its time."""
    program = "import sys, pyspark_penstock, penstock_spark.source._readers; print('trio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
