"""A Spark session for a job of penstock, and what to do if there can be none."""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from penstock.api import UsageError
from penstock_spark._java import ensure_java

INSTALL: Final = "pip install 'penstock-spark[spark]'"

OLDEST_PYSPARK: Final = (4, 2)
"""Older ones have no limit for a batch of a source in Python, which is where demand meets Spark."""

NEWEST_PANDAS: Final = 2
"""pyspark 4 does not work with pandas 3."""

LOCAL: Final = {
    # Loopback, because the name of a machine often leads nowhere, and Spark waits for it.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Local sockets between Java and Python: a batch of rows takes 30 ms less.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings of a session on this machine alone."""


def session(master: str, *, name: str = "", settings: Mapping[str, str] | None = None) -> Any:
    """Return a session at `master`, for example ``local[2]``, with the settings that a query of
    penstock needs there, and `settings`, which count more.

    A session that the program has already is returned: Spark gives it those settings that can
    change. `name` is that of the application. Raises UsageError that says what is missing.
    """
    check_requirements()
    from pyspark.sql import SparkSession  # checked right before: it may be missing

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master)
    if name:
        builder = builder.appName(name)
    log = Path(__file__).with_name("log4j2.properties")
    chosen = {
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()}",
        # Spark gives a new Python process 15 s to answer. On a busy machine each task would fail
        # and be repeated, without an end.
        "spark.python.authenticate.socketTimeout": "300s",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        chosen |= LOCAL
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def remote_session(url: str, settings: Mapping[str, str]) -> Any:
    """Return a session of the server of Spark Connect at `url`. Raises UsageError that says what is
    missing here.
    """
    if find_spec("pyspark") is None or find_spec("grpc") is None:
        raise UsageError("this needs pip install 'penstock-spark[connect]'")
    from pyspark.sql import SparkSession  # as above

    builder = SparkSession.builder.remote(url)
    for key, value in settings.items():
        # The server has begun: what only a new one can take is its own.
        if key != "spark.ui.enabled":
            builder = builder.config(key, value)
    return builder.getOrCreate()


def check_requirements() -> None:
    """Raise UsageError if pyspark, a fitting pandas or Java is missing."""
    if find_spec("pyspark") is None:
        raise UsageError(f"this needs pyspark; install it with: {INSTALL}")
    found = version("pyspark")
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST_PYSPARK:
        wanted = ".".join(map(str, OLDEST_PYSPARK))
        raise UsageError(
            f"this needs pyspark {wanted} or newer, and {found} is installed; update it with: "
            f"{INSTALL}"
        )
    if find_spec("pandas") is None:
        raise UsageError(f"pyspark needs pandas; install it with: {INSTALL}")
    found = version("pandas")
    if int(found.split(".")[0]) > NEWEST_PANDAS:
        raise UsageError(
            f"pyspark does not work with pandas {found}; install an older one with: pip install "
            "'pandas<3'"
        )
    ensure_java()
