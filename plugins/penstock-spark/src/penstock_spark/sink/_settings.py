"""The options of the sink, and the settings that a query has by them."""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from penstock.api import UsageError
from penstock_spark._client import CLIENT_OPTIONS, ProcessSettings, refuse_secrets
from penstock_spark._options import Option, choice, read_options, text

EXACTLY_ONCE: Final = "exactlyOnce"
AT_LEAST_ONCE: Final = "atLeastOnce"
RAW: Final = "raw"
JSON: Final = "json"
ARROW: Final = "arrow"
REFUSE: Final = "refuse"
ACCEPT: Final = "accept"

SINK_OPTIONS: Final = (
    Option("uri", text, None, "the server, such as tcp://10.0.0.5:7000; or save(uri), start(uri)"),
    Option("stream", text, None, "the name that the server receives under"),
    Option(
        "partition",
        text,
        "",
        "the partition of the log for rows without a key and a partition of their own; without it "
        "the tasks are spread over all",
    ),
    Option(
        "keyColumn",
        text,
        "",
        "for json: the column with the key of a row; raw has it in the column key",
    ),
    Option(
        "valueFormat",
        choice(RAW, JSON, ARROW),
        RAW,
        "raw takes the column value; json and arrow take all columns",
    ),
    Option(
        "delivery",
        choice(EXACTLY_ONCE, AT_LEAST_ONCE),
        None,
        "exactlyOnce refuses receivers without a log",
    ),
    Option(
        "missingBatches",
        choice(REFUSE, ACCEPT),
        REFUSE,
        "accept goes on if the log does not have the batches before, as after a backup",
    ),
    Option(
        "changedBatches",
        choice(REFUSE, ACCEPT),
        REFUSE,
        "accept leaves a batch out if the log has one of its number, also if that had other rows",
    ),
    Option(
        "writeId",
        text,
        None,
        "for write: the id of the data; with an id that was written before nothing is appended",
    ),
    *CLIENT_OPTIONS,
)
"""The options of the sink."""

OF_SPARK: Final = ("checkpointLocation", "queryName", "outputMode")
"""Options that Spark hands on with the others."""


class SinkSettings(NamedTuple):
    """Where a query writes, and how. Spark pickles it to the executors."""

    uri: str
    stream: str
    partition: str
    key_column: str
    value_format: str
    delivery: str | None
    write_id: str | None
    missing_batches: Literal["refuse", "accept"]
    changed_batches: Literal["refuse", "accept"]
    client: ProcessSettings
    places: tuple[str, ...] = ()
    """The columns that say where a row goes."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SinkSettings":
        """Read the options of a query. Raises UsageError for unknown ones and bad values, and if
        the server or the name is missing.
        """
        refuse_secrets(given)
        values = read_options(_with_path(given), SINK_OPTIONS, ignored=OF_SPARK)
        if values["uri"] is None:
            raise UsageError(
                "give the server, as .option('uri', 'tcp://10.0.0.5:7000') or "
                ".start('tcp://10.0.0.5:7000')"
            )
        if values["stream"] is None:
            raise UsageError(
                "give the name that the server receives under, as .option('stream', 'orders') for "
                "penstock.receive(service, 'orders', …)"
            )
        return cls(
            uri=values["uri"],
            stream=values["stream"],
            partition=values["partition"],
            key_column=values["keyColumn"],
            value_format=values["valueFormat"],
            delivery=values["delivery"],
            write_id=values["writeId"],
            missing_batches=values["missingBatches"],
            changed_batches=values["changedBatches"],
            client=ProcessSettings.of(values),
        )


def _with_path(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with the argument of ``save(uri)`` as the option uri."""
    rest = {name: each for name, each in given.items() if name.lower() != "path"}
    paths = [each for name, each in given.items() if name.lower() == "path"]
    if paths and any(name.lower() == "uri" for name in rest):
        raise UsageError(
            "the server is given twice: as the option uri, and in save(uri) or start(uri)"
        )
    return rest | ({"uri": paths[0]} if paths else {})
