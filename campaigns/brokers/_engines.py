"""The brokers of this campaign: how a server is run, and how a log on it is opened."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from _nats_server import PROGRAM as NATS
from _nats_server import running_nats
from _redis_server import PROGRAM as REDIS
from _redis_server import running_redis
from penstock_kafka import KafkaLog
from penstock_nats import JetStreamLog
from penstock_redis import RedisLog

from campaigns._kafka import LocalKafka, why_missing
from campaigns.brokers._group_kills import Server
from penstock import Retention
from penstock.logs import BrokerLog

PLENTY: Final = Retention(max_count=10_000_000)
TIMEOUT: Final = 50.0


class Engine(NamedTuple):
    """A broker. `open_log` gets a URL, and options of the log."""

    name: str
    program: str | None
    running: Callable[[Path], AbstractContextManager[Server]]
    open_log: Callable[..., BrokerLog]

    def writer(self, url: str, **options: Any) -> BrokerLog:
        """Return a log for appending."""
        return self.open_log(url, "orders", retention=PLENTY, timeout=TIMEOUT, **options)

    def reader(self, url: str) -> BrokerLog:
        """Return a log for reading."""
        return self.open_log(url, "orders", read_only=True, timeout=TIMEOUT)


def _redis(folder: Path) -> AbstractContextManager[Server]:
    return running_redis(folder, "--maxmemory", "1gb")


def _nats(folder: Path) -> AbstractContextManager[Server]:
    return running_nats(folder)


@contextmanager
def _kafka(folder: Path) -> Iterator[Server]:
    """A broker in a folder of its own, with the topic of the log."""
    # The plain client makes the topics of its rounds.
    with LocalKafka(is_measured=True, auto_create_topics_enable="true") as kafka:
        kafka.make_topic("orders", partitions=2)
        yield kafka


def _open_kafka(url: str, name: str, *, timeout: float, **_: Any) -> KafkaLog:
    # Its retention is a setting of the topic, and it has no form for reading alone.
    return KafkaLog(url, name, timeout=timeout)


ENGINES: Final = {
    "redis": Engine("redis", REDIS, _redis, RedisLog),
    "nats": Engine("nats", NATS, _nats, JetStreamLog),
    "kafka": Engine("kafka", None if why_missing() else "java", _kafka, _open_kafka),
}
