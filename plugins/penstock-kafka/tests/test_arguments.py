"""Arguments that are not possible are refused when the object is made, with what to give."""

import sys
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import trio
from penstock_kafka import KafkaAccess, KafkaGroup, KafkaLog
from penstock_kafka._access import check_brokers

import penstock
from penstock.api import UsageError

AT = "127.0.0.1:9092"


def _log(brokers: Any = AT, topic: Any = "orders", **options: Any) -> KafkaLog:
    return KafkaLog(brokers, topic, **options)


def _group(brokers: Any = AT, topics: Any = "orders", **options: Any) -> KafkaGroup:
    return KafkaGroup(brokers, topics, group="billing", **options)


NO_BROKERS = [
    5,
    None,
    "",
    " , ",
    [],
    [5],
    ["127.0.0.1:9092", 5],
    b"",
    b"127.0.0.1:9092",
    "127.0.0.1:abc",
    "127.0.0.1:",
    "127.0.0.1:0",
    "127.0.0.1:99999",
    "127.0.0.1:-1",
    "127.0.0.1:" + "9" * 5_000,
    "127.0.0.1:٩٠٩٢",  # digits of another script
    ":",
    ":9092",
    "a..b:1",
    "a" * 64 + ".com:1",
    "a." * 127 + "com:1",
    "a\0b:1",
    "a b:1",
    "kafka://a:1",
    "a:b:1",
    "[::1:9092",
    "[::1]9092",
    "[::1]:x",
    "127.0.0.1:9092,a..b:1",
]


@pytest.mark.parametrize("brokers", NO_BROKERS, ids=lambda brokers: repr(brokers)[:30])
@pytest.mark.parametrize("make", [_log, _group])
def test_addresses_that_cannot_be_are_refused(make: Callable[..., object], brokers: object) -> None:
    """The client of Kafka would raise an error of Python when it connects."""
    with pytest.raises(UsageError, match="give the addresses of some brokers"):
        make(brokers)


def test_a_password_in_an_address_is_not_told() -> None:
    """Messages are logged."""
    with pytest.raises(UsageError, match="give the addresses") as caught:
        _log("alice:secret" + "t" * 80 + "@127.0.0.1:9092")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("brokers", "found"),
    [
        ("a:1, b:2,", ["a:1", "b:2"]),
        (["a:1", "b"], ["a:1", "b"]),
        (("kafka_1.example.",), ["kafka_1.example."]),
        ("[::1]:9092,::1,[fe80::1%eth0]:1", ["[::1]:9092", "::1", "[fe80::1%eth0]:1"]),
        ("münchen.example:65535", ["münchen.example:65535"]),
        ("a" * 63 + ".com:1", ["a" * 63 + ".com:1"]),
    ],
)
def test_addresses_that_can_be_are_taken(brokers: Any, found: list[str]) -> None:
    """Names, addresses of both kinds, with a port or without."""
    assert check_brokers(brokers) == found


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        (_log, {"compression": []}, r"compression=\[\]\); give 'gzip'"),
        (_log, {"compression": 5}, r"compression=5\); give 'gzip'"),
        (_log, {"partitions": 5}, "partitions=5 is no list; give a list of names"),
        (_log, {"partitions": None}, "partitions=None is no list; give a list of names"),
        (_log, {"access": "x"}, r"KafkaLog\(access='x'\); give a KafkaAccess"),
        (_log, {"access": None}, r"KafkaLog\(access=None\); give a KafkaAccess"),
        (_log, {"records": "yes"}, r"records='yes'\); give True or False"),
        (_log, {"records": 1}, r"records=1\); give True or False"),
        (_log, {"timeout": 10**400}, r"KafkaLog\(timeout=.*; give seconds, above 0"),
        (_log, {"timeout": 1.7e308}, r"KafkaLog\(timeout=.*; give seconds, above 0"),
        (_log, {"topic": "."}, "not '.' or '..'"),
        (_group, {"access": "x"}, r"KafkaGroup\(access='x'\); give a KafkaAccess"),
        (_group, {"topics": 5}, "topics=5; give the name of a topic, or a list"),
        (_group, {"topics": None}, "topics=None; give the name of a topic, or a list"),
        (_group, {"topics": b"orders"}, "topics=b'orders'; give the name of a topic, or a list"),
        (_group, {"topics": []}, r"topics=\[\]; give at least one topic"),
        (_group, {"topics": ["t", "t"]}, "each of them once"),
        (_group, {"topics": ["t", 5]}, "topic=5; a topic of Kafka has a name"),
        *(
            (_group, {"timeout": timeout}, r"KafkaGroup\(timeout=.*; give seconds, above 0")
            for timeout in ("x", None, True, nan, inf, 0, -1)
        ),
        (KafkaAccess, {"mechanism": "FOO"}, "give 'PLAIN', 'SCRAM-SHA-256' or"),
        (KafkaAccess, {"mechanism": []}, "give 'PLAIN', 'SCRAM-SHA-256' or"),
        (KafkaAccess, {"username": 5, "password": "secret"}, "username=5.*give a text"),
        (KafkaAccess, {"username": "a", "password": 6_543}, "is a int; give a text"),
        (KafkaAccess, {"client_id": 5}, "client_id=5.*give a text"),
    ],
)
def test_arguments_that_are_not_possible_are_refused(
    make: Callable[..., object], options: dict[str, Any], text: str
) -> None:
    """The text says what to give, and has no password."""
    with pytest.raises(UsageError, match=text) as caught:
        make(**options)
    assert "secret" not in str(caught.value)
    assert "6543" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("a..b:1", "give the addresses of some brokers"),
        ("a" * 64 + ":1", "give the addresses of some brokers"),
        ("127.0.0.1:9092,127.0.0.1:x", "not a host and port"),
        ("127.0.0.1:99999", "port 99999 does not exist"),
    ],
)
def test_a_url_with_an_address_that_cannot_be_is_refused(place: str, text: str) -> None:
    """When it is given, and not when it is read."""
    with pytest.raises(UsageError, match=text):
        penstock.remote(f"kafka://{place}/orders")


async def test_the_command_line_tells_an_address_that_cannot_be() -> None:
    """One line, without a traceback."""
    done = await trio.run_process(
        [sys.executable, "-m", "penstock", "cat", "kafka://a..b:1/x"],
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"give the addresses of some brokers" in done.stderr
    assert b"Traceback" not in done.stderr
