"""The options of the source: their texts, the nearest name of an unknown one, and options
that contradict each other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from penstock_spark._client import CLIENT_OPTIONS, ProcessSettings
from penstock_spark._options import read_options
from penstock_spark.source._settings import SOURCE_OPTIONS, SourceSettings

from penstock.api import UsageError

BASE = {"uri": "tcp://127.0.0.1:7000", "stream": "orders"}


def settings(**options: str) -> SourceSettings:
    """Return the settings of a source with these options beside a server and a stream."""
    return SourceSettings.of(BASE | options)


def client(options: Mapping[str, str]) -> ProcessSettings:
    return ProcessSettings.of(
        read_options(
            {f"penstock.client.{name}": value for name, value in options.items()}, CLIENT_OPTIONS
        )
    )


def test_options_are_read_in_lower_case() -> None:
    """Spark hands the names over in lower case, and values as texts."""
    read = settings(
        maxelementspertrigger="500",
        MAXTRIGGERDELAY="15m",
        failondataloss="False",
        valueformat="RAW",
        longpollms="20",
    )
    assert (
        read.max_elements,
        read.max_delay,
        read.fail_on_loss,
        read.value_format,
        read.long_poll,
    ) == (500, 900.0, False, "raw", 0.02)


def test_the_page_has_each_option() -> None:
    """A table of the page for users, docs/how-to/spark-source.md,
    names each option of the source.
    """
    page = (Path(__file__).parents[3] / "docs/how-to/spark-source.md").read_text(encoding="utf-8")
    assert [option.name for option in SOURCE_OPTIONS if f"`{option.name}`" not in page] == []


def test_a_time_is_a_text_or_milliseconds() -> None:
    """As Kafka's connector takes them; the column of times stands after those of the place."""
    for text in ("2026-07-01T10:00:00Z", "1782900000000", "2026-07-01 12:00:00+02:00"):
        assert settings(startingTimestamp=text).starting_time == 1_782_900_000.0
    assert settings(endingTimestamp="1500").ending_time == 1.5
    assert settings(includeTimestamp="true", records="true").row_schema == (
        "stream STRING, partition STRING, offset BIGINT, timestamp TIMESTAMP, "
        "key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, value BINARY"
    )
    assert "timestamp" not in settings().row_schema


def test_the_server_is_an_option_or_the_path() -> None:
    """load(uri) arrives as the option path."""
    assert SourceSettings.of({"path": "tcp://a:1", "streams": "x, y"}).streams == ("x", "y")
    with pytest.raises(UsageError, match="twice"):
        settings(path="tcp://a:1")
    with pytest.raises(UsageError, match="give the server"):
        SourceSettings.of({"stream": "x"})


REFUSED = [
    ({"maxElementPerTrigger": "5"}, "the nearest one is maxElementsPerTrigger"),
    ({"penstock.client.tokenfil": "x"}, "the nearest one is penstock.client.tokenFile"),
    ({"zzz": "5"}, "the options are uri, stream"),
    (
        {"streams": "a,b"},
        (
            "exactly one of the options stream, streams, streamPattern, assign; stream, streams "
            "was given"
        ),
    ),
    ({"maxElementsPerTrigger": "0"}, "give a whole number from 1"),
    ({"maxElementsPerTrigger": "9" * 30}, "give a whole number"),
    ({"longPollMs": "-1"}, "milliseconds from 0"),
    ({"maxTriggerDelay": "15"}, "with its unit"),
    ({"maxTriggerDelay": "-1s"}, "a time from 0"),
    ({"maxOffsetsPerTrigger": "5"}, "use maxElementsPerTrigger"),
    ({"subscribe": "orders"}, "use stream or streams"),
    ({"kafka.bootstrap.servers": "a:9092"}, "use uri"),
    ({"startingTimestamp": "2026-07-01T10:00:00"}, "give a time with its time zone"),
    ({"endingTimestamp": "soon"}, "or milliseconds since 1970"),
    ({"startingOffsetsByTimestamp": "{}"}, "use startingTimestamp, one time for all partitions"),
    (
        {"startingTimestamp": "5", "startingOffsets": "latest"},
        "startingOffsets and startingTimestamp both say where to begin",
    ),
    (
        {"endingTimestamp": "5", "endingOffsets": "latest"},
        "endingOffsets and endingTimestamp both say where to end",
    ),
    (
        {"includeTimestamp": "true", "delivery": "atMostOnce", "maxElementsPerTrigger": "5"},
        "ask a log for its times",
    ),
    (
        {"includeTimestamp": "true", "valueFormat": "json", "schema": "Timestamp BIGINT"},
        "a column Timestamp of its own; rename it, or leave includeTimestamp out",
    ),
    ({"startingOffsets": '{"orders": {"0": 5, "0": 7}}'}, "the key '0' is there twice"),
    ({"stream": "orders?partition=1"}, "the source itself says partition to the server"),
    ({"stream": "orders?x=1&start=5"}, "startingTimestamp and endingTimestamp choose positions"),
    (
        {"penstock.client.tls.authorities": "/ca.pem"},
        "penstock.client.tls.… are for tls://, and uri=tcp://127.0.0.1:7000 has no TLS",
    ),
    ({"includeMetadata": "yes"}, "give true or false"),
    ({"valueFormat": "avro"}, "raw, json, msgpack, protobuf, arrow"),
    ({"valueFormat": "protobuf", "schema": "a INT"}, "messageType"),
    ({"schema": "a INT"}, "leave schema"),
    (
        {"valueFormat": "json", "schema": "a INT, Offset BIGINT"},
        "a column Offset of its own; set includeMetadata=false",
    ),
    ({"valueFormat": "json", "schema": "`stream`: STRING"}, "a column stream of its own"),
    (
        {"valueFormat": "json", "schema": "_corrupt INT", "undecodable": "_corrupt"},
        "a column _corrupt of its own; rename it",
    ),
    (
        {"valueFormat": "json", "schema": "s STRUCT<a: INT, b: INT>, `a,b` INT, A INT, a INT"},
        "the column a is there twice",
    ),
    ({"minElementsPerTrigger": "9", "maxElementsPerTrigger": "8"}, "above maxElementsPerTrigger"),
    ({"startingOffsets": "newest"}, "JSON object"),
    ({"delivery": "atMostOnce"}, "needs maxElementsPerTrigger"),
    ({"delivery": "sometimes"}, "exactlyOnce, atMostOnce"),
    ({"subscriptionId": "nightly report"}, "as in nightly-report"),
    (
        {"delivery": "atMostOnce", "maxElementsPerTrigger": "5", "subscriptionId": "nightly"},
        "leave it out",
    ),
    ({"penstock.client.token": "hunter2"}, "tokenFile or penstock.client.tokenEnv"),
    ({"penstock.client.user": "ann"}, "passwordFile"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED)
def test_an_option_that_cannot_work_is_refused(options: dict[str, str], text: str) -> None:
    """The error says what is allowed, and does not show a secret."""
    with pytest.raises(UsageError) as caught:
        settings(**options)
    assert text in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_other_selections() -> None:
    """A pattern has to be a regular expression, and assign has lists of partitions."""
    uri = {"uri": "tcp://a:1"}
    assert SourceSettings.of(uri | {"assign": '{"orders": ["0"]}'}).assigned == {"orders": ("0",)}
    assert SourceSettings.of(uri | {"streamPattern": "ord.*"}).pattern == "ord.*"
    with pytest.raises(UsageError, match="no regular expression"):
        SourceSettings.of(uri | {"streamPattern": "ord("})
    for nothing, text in (
        ("{}", "names no stream"),
        ('{"orders": ["0"], "orders": ["1"]}', "the key 'orders' is there twice"),
    ):
        with pytest.raises(UsageError, match=text):
            SourceSettings.of(uri | {"assign": nothing})
    hot = uri | {
        "stream": "numbers?start=5",
        "delivery": "atMostOnce",
        "maxElementsPerTrigger": "5",
    }
    assert SourceSettings.of(hot).streams == ("numbers?start=5",)  # a word of the publisher's own
    with pytest.raises(UsageError, match="names of partitions"):
        SourceSettings.of(uri | {"assign": '{"orders": 0}'})


def test_the_rows_have_the_columns_of_the_format() -> None:
    """In front are stream, partition and offset, unless includeMetadata=false."""
    assert settings().row_schema == "stream STRING, partition STRING, offset BIGINT, value BINARY"
    json: dict[str, Any] = {"valueFormat": "json", "schema": "id BIGINT"}
    assert settings(**json, includeMetadata="false").row_schema == "id BIGINT"
    assert settings(**json, undecodable="_corrupt").row_schema.endswith(
        "id BIGINT, _corrupt BINARY"
    )
    own = "offset BIGINT, partition STRING, _corrupt STRING, s STRUCT<a: INT, a: INT>"
    assert settings(valueFormat="json", schema=own, includeMetadata="false").row_schema == own
    with pytest.raises(UsageError, match="needs the columns"):
        assert settings(valueFormat="json").row_schema
    record = "key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    assert settings(records="true", includeMetadata="false").row_schema == f"{record}, value BINARY"
    assert settings(records="true", undecodable="_corrupt").row_schema.endswith(
        f"offset BIGINT, {record}, value BINARY, _corrupt BINARY"
    )
    with pytest.raises(UsageError, match="leave records out"):
        settings(records="true", valueFormat="json", schema="key STRING")


def test_credentials_come_from_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read when a process connects, and the settings do not have them."""
    (tmp_path / "token").write_text("secret-one\n")
    monkeypatch.setenv("ANNS_PASSWORD", "secret-two")
    by_file, by_variable = (
        client({"tokenFile": str(tmp_path / "token")}),
        client({"user": "ann", "passwordEnv": "ANNS_PASSWORD"}),
    )
    assert by_file._credentials().data == b"secret-one"  # type: ignore[union-attr]  # there are some
    assert by_variable._credentials().data == b"ann:secret-two"  # type: ignore[union-attr]  # there are some
    assert "secret" not in repr((by_file, by_variable))


def test_a_missing_secret_says_where_it_has_to_be(tmp_path: Path) -> None:
    """A file has to be on each machine, and a variable in each process."""
    (tmp_path / "empty").write_text("")
    for options, text in (
        ({"tokenFile": str(tmp_path / "none")}, "on each machine"),
        ({"tokenFile": str(tmp_path / "empty")}, "is empty"),
        ({"tokenEnv": "NO_SUCH_VARIABLE"}, "spark.executorEnv.NO_SUCH_VARIABLE"),
    ):
        with pytest.raises(UsageError, match=text):
            client(options)._credentials()
    with pytest.raises(UsageError, match="give one of"):
        client({"tokenFile": "a", "tokenEnv": "b"})
