"""Where the files of a record are: in a folder that this process can read, or in one of a file
system that Spark can read.

Rules of this file:

* A URL, such as ``s3a://bucket/signals``, is read by Spark alone, with its own file systems and
  settings: this process and the workers need neither credentials nor a library. Spark's source of
  whole files is asked, which a session of Spark Connect has as well.
* A recorder ends a file at 64 MiB, so a worker holds one file at a time. The driver holds the files
  of subscriptions and of processes, some at a time.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from penstock.api import UsageError
from penstock_spark._jobs import settings

AT_ONCE: Final = 64
"""Files that the driver asks for at once."""

WHOLE_FILES: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""Settings while files are read: a batch of rows with their content is one file."""

Source: TypeAlias = Path | pa.Buffer
"""What pyarrow reads a file from."""


class RecordFiles(ABC):
    """The files of a record."""

    name: str
    """The folder, as the user has given it."""
    is_local: bool
    """Whether this process and the workers can read the files by their paths."""

    @abstractmethod
    def paths(self) -> list[str]:
        """Return the paths of all files, sorted. Raises UsageError for a folder that cannot be
        read.
        """

    @abstractmethod
    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, Source]]:
        """Yield each file. Raises OSError for one that is gone."""


class LocalFiles(RecordFiles):
    """The files of a folder that this process can read."""

    is_local = True

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    def paths(self) -> list[str]:
        return sorted(map(str, self._folder.glob("*")))

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, Source]]:
        for path in paths:
            yield path, Path(path)


class SparkFiles(RecordFiles):
    """The files of a folder that Spark can read."""

    is_local = False

    def __init__(self, spark: Any, url: str) -> None:
        self.name = url
        self._spark = spark

    def paths(self) -> list[str]:
        # Without the content, which Spark then does not read.
        rows = asked(self.name, lambda: self.frame([self.name]).select("path").collect())
        return sorted(row.path for row in rows)

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, Source]]:
        with settings(self._spark, WHOLE_FILES):
            for first in range(0, len(paths), AT_ONCE):
                frame = self.frame(paths[first : first + AT_ONCE]).select("path", "content")
                for row in asked(self.name, frame.collect):
                    yield row.path, pa.py_buffer(row.content)

    def frame(self, paths: Iterable[str]) -> Any:
        """Return the files as rows, with their path and content."""
        return self._spark.read.format("binaryFile").load([*paths])


def record_files(spark: Any, folder: object) -> RecordFiles:
    """Return the files of a folder, which a URL or a path names."""
    text = str(folder)
    # A letter alone is a drive of Windows.
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text):
        return SparkFiles(spark, text)
    return LocalFiles(Path(text))


def is_url(folder: object) -> bool:
    """Return whether a folder is read by Spark alone."""
    return not record_files(None, folder).is_local


def asked(name: str, ask: Any) -> Any:
    """Return what Spark answers. Raises UsageError with the line of its error that tells why."""
    try:
        return ask()
    except Exception as error:  # boundary: Spark, and the file systems that were added to it
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        causes = [line for line in lines if "Exception:" in line and not line.startswith("at ")]
        told = (causes or lines or [type(error).__name__])[0]
        raise UsageError(
            f"Spark cannot read {name}: {told}. Give the session the package and the credentials "
            "of this file system, as for each other job; `--conf` sets them for the command"
        ) from None
