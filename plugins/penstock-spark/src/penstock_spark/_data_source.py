"""`format("penstock")`: what Spark makes for each `read`, `readStream`, `write` and `writeStream`.

Spark imports this module when it looks for sources, with every version of pyspark. So the readers
are imported after a check of it:
an error here would also hide the other sources.
"""

import logging
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkFiles
from pyspark.sql.datasource import DataSource

from penstock.api import UsageError
from penstock.spi import build_registry
from penstock_spark.source._columns import check_given, check_types
from penstock_spark.source._settings import SourceSettings

LEAST_VERSIONS: Final = {
    "read": ((4, 0), "it has no sources in Python"),
    "write": ((4, 0), "it has no sinks in Python"),
    "writeStream": ((4, 1), "its sinks in Python get no batches of Arrow from a streaming query"),
    "readStream": ((4, 2), "its sources in Python cannot bound a batch"),
}
"""The first pyspark that can do each of them, and what those before lack."""

OF_PLUGINS: Final = ("msgpack", "protobuf")
"""The formats whose elements a plugin of penstock decodes."""

_log: Final = logging.getLogger("penstock.spark")


class PenstockDataSource(DataSource):  # type: ignore[misc]  # pyspark is not installed for the check
    """Reads logs of a Penstock server, and writes to one, with demand."""

    _is_asked: bool = False
    """Whether Spark has asked for the columns.
    It does not if the program has given some by ``.schema(…)``.
    """

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        check_version(pyspark.__version__, "read")
        if is_shipped(Path(__file__), SparkFiles._root_directory):  # noqa: SLF001  # getRootDirectory() needs a session
            _log.warning(
                "penstock_spark has come by --py-files. Spark does not give these files to the "
                "process of a streaming source: readStream will fail with ModuleNotFoundError "
                "until penstock-spark is installed on the driver with pip"
            )
        found = SourceSettings.of(self.options).row_schema
        self._is_asked = True  # kept: Spark sends this object from process to process
        return found

    def reader(self, schema: Any) -> Any:
        from penstock_spark.source._readers import PenstockReader  # see above

        return PenstockReader(self._settings(schema), schema)

    def streamReader(self, schema: Any) -> Any:
        check_version(pyspark.__version__, "readStream")
        given = {name.lower() for name in self.options}
        for end in ("endingOffsets", "endingTimestamp"):
            if end.lower() not in given:
                continue
            raise UsageError(
                f"{end} is for read: a streaming query has no end. Leave it out; with "
                "Trigger.AvailableNow the query reads what is there, and ends"
            )
        from penstock_spark.source._stream_reader import PenstockStreamReader  # see above

        return PenstockStreamReader(self._settings(schema), schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001  # as Spark calls it
        check_version(pyspark.__version__, "write")
        from penstock_spark.sink import batch_writer  # see above

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: FBT001  # as Spark calls it
        check_version(pyspark.__version__, "writeStream")
        from penstock_spark.sink import stream_writer  # see above

        return stream_writer(self.options, schema, overwrite=overwrite)

    # --- inside

    def _settings(self, schema: Any) -> SourceSettings:
        settings = SourceSettings.of(self.options)
        if not self._is_asked:
            check_given(schema, settings.row_schema)
        check_types(schema, settings.value_format)
        check_plugin(settings.value_format)
        return settings


def check_plugin(value_format: str) -> None:
    """Raise UsageError for a format whose plugin is missing: on the driver, when the query is
    planned, and not in each of its tasks.
    """
    if value_format in OF_PLUGINS and value_format not in build_registry().serializers:
        raise UsageError(
            f"valueFormat={value_format} needs the package penstock-{value_format}, on the driver "
            f"and on each executor: pip install 'penstock-spark[{value_format}]'"
        )


def check_version(version: str, act: str) -> None:
    """Raise UsageError for a pyspark that is too old for `read`, `write` and the two of streams."""
    least, lacks = LEAST_VERSIONS[act]
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if found < least:
        able = [each for each, (first, _) in LEAST_VERSIONS.items() if first <= found]
        rest = f" {' and '.join(able)} work with this one." if able else ""
        raise UsageError(
            f"{act} of penstock needs pyspark {least[0]}.{least[1]} or newer, and this is "
            f"{version}: {lacks}.{rest} To get a newer one: pip install 'penstock-spark[spark]'"
        )


def is_shipped(module: Path, root: str | None) -> bool:
    """Return whether a module is in the folder in
    which Spark keeps what ``--py-files`` has sent.
    """
    return root is not None and module.is_relative_to(root)
