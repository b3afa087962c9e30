"""One Spark session for all tests of this folder."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the tests of the audit need pyspark: pip install 'penstock-spark[spark]'")

from _query import SETTINGS
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two tasks at once, four attempts each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,4]").appName("tests of penstock-spark")
    # On a local disk this class is safe, and a batch takes 60 ms less.
    files = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    for name, value in (SETTINGS | {"spark.sql.streaming.checkpointFileManagerClass": files}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
