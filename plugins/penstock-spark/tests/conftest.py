"""One Spark session for all tests of this folder."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the tests of the audit need pyspark: pip install 'penstock-spark[spark]'")

from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two tasks at once, four attempts each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,4]").appName("tests of penstock-spark")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        # On a busy machine a new Python process takes long, and Spark then would not find `format("penstock")` in the whole session.
        "spark.python.authenticate.socketTimeout": "300s",
        # On a local disk it is safe, and a batch takes 60 ms less.
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
