"""The options of the source, and the settings that a query has by them."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.api import UsageError
from penstock_spark._client import CLIENT_OPTIONS, ProcessSettings, refuse_secrets
from penstock_spark._options import (
    Option,
    boolean,
    choice,
    duration,
    json_object,
    milliseconds,
    moment,
    names,
    one_of,
    positive,
    read_options,
    text,
)
from penstock_spark.source._columns import check_names, columns_of, required_of

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
EXACTLY_ONCE: Final = "exactlyOnce"
AT_MOST_ONCE: Final = "atMostOnce"
FAIL: Final = "fail"
CORRUPT: Final = "_corrupt"
RAW: Final = "raw"
FORMATS: Final = (RAW, "json", "msgpack", "protobuf", "arrow")

METADATA: Final = "stream STRING, partition STRING, offset BIGINT"
"""The columns before those of the value."""

TIMESTAMP: Final = "timestamp TIMESTAMP"
"""The column of the time at which an element was appended, after the others of its place."""

RECORD: Final = "key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The columns of a record before those of its value."""

SELECTIONS: Final = ("stream", "streams", "streamPattern", "assign")


def _places(given: str) -> str | dict[str, Any]:
    word = given.strip()
    return word.lower() if word.lower() in (EARLIEST, LATEST) else json_object(word)


def _identifier(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", given):
        raise ValueError(
            "give up to 100 letters, digits, dots, hyphens and underscores, as in nightly-report"
        )
    return given


def _pattern(given: str) -> str:
    try:
        re.compile(given)
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    return given


SOURCE_OPTIONS: Final = (
    Option(
        "uri",
        names,
        None,
        "the server, such as tcp://10.0.0.5:7000, or several with commas; or load(uri)",
    ),
    Option("stream", text, None, "the name of one publisher"),
    Option("streams", names, None, "several names, with commas"),
    Option(
        "streamPattern",
        _pattern,
        None,
        "a regular expression for the names that the server describes",
    ),
    Option("assign", json_object, None, 'partitions of streams: {"orders": ["0", "1"]}'),
    Option(
        "startingOffsets",
        _places,
        None,
        'earliest, latest, or {"orders": {"0": 500}}; for a new query',
    ),
    Option("endingOffsets", _places, None, "the same, where read() ends: latest without it"),
    Option(
        "startingTimestamp",
        moment,
        None,
        "in the place of startingOffsets: the first elements of this time or later, by the clock "
        "of the log, such as 2026-07-01T10:00:00Z, or milliseconds since 1970",
    ),
    Option("endingTimestamp", moment, None, "in the place of endingOffsets: read() ends before it"),
    Option("maxElementsPerTrigger", positive, None, "elements of a batch, at most"),
    Option("minElementsPerTrigger", positive, None, "elements that a batch waits for"),
    Option(
        "maxTriggerDelay",
        duration,
        900.0,
        "how long minElementsPerTrigger may hold a batch back, such as 15m",
    ),
    Option(
        "maxBytesPerTrigger",
        positive,
        None,
        "bytes of the elements of a batch, by the mean size of a sample",
    ),
    Option("minPartitions", positive, 1, "tasks of a batch, at least"),
    Option(
        "failOnDataLoss",
        boolean,
        default=True,
        summary="whether elements that the publisher has dropped end the query",
    ),
    Option(
        "subscriptionId",
        _identifier,
        None,
        "a name of this query: the server sees it, and a checkpoint of another one is refused",
    ),
    Option(
        "includeMetadata",
        boolean,
        default=True,
        summary="whether rows have the columns stream, partition and offset",
    ),
    Option(
        "includeTimestamp",
        boolean,
        default=False,
        summary="whether rows have the column timestamp: when the element was appended to the log",
    ),
    Option(
        "records",
        boolean,
        default=False,
        summary="whether the elements are records: rows have the columns key and headers",
    ),
    Option("valueFormat", choice(*FORMATS), RAW, "how the elements are written"),
    Option("schema", text, None, "the columns of the value, as DDL, for each format but raw"),
    Option("messageType", text, None, "for protobuf: the generated class, as package.module.Class"),
    Option(
        "undecodable",
        choice(FAIL, CORRUPT),
        FAIL,
        "whether an element that cannot be decoded ends the query or goes to _corrupt",
    ),
    Option("demandWindow", positive, 8192, "elements that a task asks for ahead"),
    Option(
        "longPollMs",
        milliseconds,
        500.0 / 1000,
        "how long the server holds the question for new elements",
    ),
    Option(
        "delivery",
        choice(EXACTLY_ONCE, AT_MOST_ONCE),
        EXACTLY_ONCE,
        "atMostOnce reads publishers that keep no elements",
    ),
    *CLIENT_OPTIONS,
)
"""The options of the source."""

FOREIGN: Final = {
    "subscribe": "stream or streams",
    "topic": "stream",
    "topics": "streams",
    "subscribepattern": "streamPattern",
    "kafka.bootstrap.servers": "uri",
    "kafka.group.id": "subscriptionId",
    "groupidprefix": "subscriptionId",
    "maxoffsetspertrigger": "maxElementsPerTrigger",
    "minoffsetspertrigger": "minElementsPerTrigger",
    "maxfilespertrigger": "maxElementsPerTrigger",
    "includeheaders": "records",
    "startingoffsetsbytimestamp": "startingTimestamp, one time for all partitions",
    "endingoffsetsbytimestamp": "endingTimestamp, one time for all partitions",
    "startingoffsetsbytimestampstrategy": (
        "nothing: a partition without an element of startingTimestamp or later begins at its end"
    ),
}
"""Options of Spark's other sources, in lower case, and what users of them look for here."""

OWN_WORDS: Final = frozenset(
    {
        "partition",
        "start",
        "stop",
        "positions",
        "at",
        "times",
        "after",
        "digests",
        "timeout",
        "subscription",
    }
)
"""Words behind the ``?`` of a log's name that the source writes itself."""


class SourceSettings(NamedTuple):
    """The options of a query, checked. Spark pickles this object to the executors."""

    uris: tuple[str, ...]
    streams: tuple[str, ...]
    pattern: str | None
    assigned: Mapping[str, tuple[str, ...]] | None
    starting: str | Mapping[str, Any] | None
    ending: str | Mapping[str, Any]
    starting_time: float | None
    ending_time: float | None
    max_elements: int | None
    min_elements: int | None
    max_delay: float
    max_bytes: int | None
    min_partitions: int
    fail_on_loss: bool
    subscription: str | None
    has_metadata: bool
    has_timestamp: bool
    has_records: bool
    value_format: str
    schema: str | None
    message_type: str | None
    keeps_corrupt: bool
    window: int
    long_poll: float
    at_most_once: bool
    client: ProcessSettings

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SourceSettings":
        """Read the options of a query. Raises UsageError for unknown ones, for bad values, and
        for options that contradict each other.
        """
        refuse_secrets(given)
        if "path" in {name.lower() for name in given}:
            given = _with_path(given)
        values = read_options(given, SOURCE_OPTIONS, foreign=FOREIGN)
        chosen = one_of(values, SELECTIONS)
        for end in ("starting", "ending"):
            if values[f"{end}Offsets"] is not None and values[f"{end}Timestamp"] is not None:
                raise UsageError(
                    f"{end}Offsets and {end}Timestamp both say where to "
                    f"{'begin' if end == 'starting' else 'end'}: give one of them"
                )
        if values["uri"] is None:
            raise UsageError(
                "give the server, as .option('uri', 'tcp://10.0.0.5:7000') or "
                ".load('tcp://10.0.0.5:7000')"
            )
        settings = cls(
            uris=values["uri"],
            streams=values["streams"]
            or ((values["stream"],) if chosen == "stream" else tuple(values["assign"] or ())),
            pattern=values["streamPattern"],
            assigned=_assigned(values["assign"]),
            starting=values["startingOffsets"],
            ending=values["endingOffsets"] or LATEST,
            starting_time=values["startingTimestamp"],
            ending_time=values["endingTimestamp"],
            max_elements=values["maxElementsPerTrigger"],
            min_elements=values["minElementsPerTrigger"],
            max_delay=values["maxTriggerDelay"],
            max_bytes=values["maxBytesPerTrigger"],
            min_partitions=values["minPartitions"],
            fail_on_loss=values["failOnDataLoss"],
            subscription=values["subscriptionId"],
            has_metadata=values["includeMetadata"],
            has_timestamp=values["includeTimestamp"],
            has_records=values["records"],
            value_format=values["valueFormat"],
            schema=values["schema"],
            message_type=values["messageType"],
            keeps_corrupt=values["undecodable"] == CORRUPT,
            window=values["demandWindow"],
            long_poll=values["longPollMs"],
            at_most_once=values["delivery"] == AT_MOST_ONCE,
            client=ProcessSettings.of(values),
        )
        settings._check()
        return settings

    @property
    def uri(self) -> str:
        """The servers, as the user has given them."""
        return ",".join(self.uris)

    @property
    def row_schema(self) -> str:
        """The columns of a row, as DDL. Raises UsageError if they are not known."""
        if self.value_format == RAW:
            columns = ["value BINARY"]
        elif self.schema is not None:
            # The row of an element that cannot be decoded has nulls in all of its columns,
            # so Spark must look for them.
            columns = [required_of(self.schema)[1] if self.keeps_corrupt else self.schema]
        else:
            raise UsageError(
                f"valueFormat={self.value_format} needs the columns of the value: "
                ".option('schema', 'id BIGINT, name STRING')"
            )
        return ", ".join(
            [METADATA] * self.has_metadata
            + [TIMESTAMP] * self.has_timestamp
            + [RECORD] * self.has_records
            + columns
            + [f"{CORRUPT} BINARY"] * self.keeps_corrupt
        )

    # --- inside

    def _check_columns(self) -> None:
        schema = self.schema or ""
        if self.has_metadata:
            check_names(
                schema,
                [name for name, _ in columns_of(METADATA)],
                "set includeMetadata=false, and it has none",
            )
        if self.has_timestamp:
            check_names(schema, ["timestamp"], "rename it, or leave includeTimestamp out")
        if self.has_records:
            check_names(
                schema,
                [name for name, _ in columns_of(RECORD)],
                "rename it, or leave records out",
            )
        check_names(
            schema, [CORRUPT] * self.keeps_corrupt, "rename it, or leave undecodable=_corrupt out"
        )

    def _check(self) -> None:
        self._check_columns()
        self._check_names()
        for uri in self.uris:
            self.client.check_uri(uri)
        self._check_at_most_once()
        low, high = self.min_elements, self.max_elements
        if low is not None and high is not None and low > high:
            raise UsageError(
                f"minElementsPerTrigger={low:,} is above maxElementsPerTrigger={high:,}: no batch "
                "could have as many"
            )
        if self.value_format == "protobuf" and self.message_type is None:
            raise UsageError(
                "valueFormat=protobuf needs .option('messageType', 'package.module.Class'), a "
                "class that the executors can import"
            )
        if self.value_format == RAW and (
            self.schema is not None or (self.keeps_corrupt and not self.has_records)
        ):
            raise UsageError(
                "valueFormat=raw has the one column value; leave schema and undecodable out, or "
                "choose another valueFormat"
            )

    def _check_names(self) -> None:
        for name in () if self.at_most_once else self.streams:
            words = {word.partition("=")[0] for word in name.partition("?")[2].split("&")}
            if own := sorted(words & OWN_WORDS):
                raise UsageError(
                    f"the stream {name!r}: the source itself says {own[0]} to the server. Give "
                    "the name alone; assign chooses partitions, and startingOffsets, "
                    "endingOffsets, startingTimestamp and endingTimestamp choose positions"
                )

    def _check_at_most_once(self) -> None:
        if not self.at_most_once:
            return
        if self.subscription is not None:
            raise UsageError(
                "subscriptionId stands behind the name of a log, and delivery=atMostOnce reads "
                "publishers without one: leave it out"
            )
        if self.has_timestamp or self.starting_time is not None or self.ending_time is not None:
            raise UsageError(
                "startingTimestamp, endingTimestamp and includeTimestamp ask a log for its times, "
                "and delivery=atMostOnce reads publishers without one: leave them out"
            )
        if self.max_elements is None or self.pattern is not None or self.assigned is not None:
            raise UsageError(
                "delivery=atMostOnce needs maxElementsPerTrigger, and stream or streams: the "
                "publisher has no positions to ask for"
            )


def _assigned(given: Mapping[str, Any] | None) -> Mapping[str, tuple[str, ...]] | None:
    if given is None:
        return None
    if not given:
        raise UsageError(
            'option assign: it names no stream; give its partitions, as in {"orders": ["0"]}'
        )
    for stream, partitions in given.items():
        if (
            not isinstance(partitions, list)
            or not partitions
            or not all(isinstance(each, str) for each in partitions)
        ):
            raise UsageError(
                f"option assign: give a list of the names of partitions for {stream!r}, as in "
                f'{{"{stream}": ["0"]}}'
            )
    return {stream: tuple(partitions) for stream, partitions in given.items()}


def _with_path(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options with the argument of ``load(uri)`` as the option uri."""
    rest = {name: each for name, each in given.items() if name.lower() != "path"}
    [path] = [each for name, each in given.items() if name.lower() == "path"]
    if any(name.lower() == "uri" for name in rest):
        raise UsageError("the server is given twice: as the option uri, and in load(uri)")
    return rest | {"uri": path}
