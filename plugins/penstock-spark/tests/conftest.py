"""One Spark session for all tests of this folder."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip(
    "pyspark", reason="the tests of the audit need pyspark: pip install 'penstock-spark[spark]'"
)

from _query import SETTINGS
from penstock_spark import ensure_java
from pyspark.sql import SparkSession

ensure_java()  # also for the programs that tests start


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests with the mark `many_kills` to `nox -s spark_kills`: each of their kills
    takes a new Java, some 25 s.
    """
    if int(os.environ.get("PENSTOCK_SPARK_KILLS", "1")) > 1:
        return
    left_out = [item for item in items if item.get_closest_marker("many_kills")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two tasks at once, four attempts each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,4]").appName("tests of penstock-spark")
    # On a local disk this class is safe, and a batch takes 60 ms less.
    files = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    for name, value in (
        SETTINGS | {"spark.sql.streaming.checkpointFileManagerClass": files}
    ).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
