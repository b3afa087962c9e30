"""Topics by their URL, for `subscribe`, `remote` and `penstock cat`.

``kafka://127.0.0.1:9092/orders?partition=0&start=500&stop=latest``

Rules of this file:

* A URL leads to plain TCP without a user. Others need a `KafkaLog`.
* Of what was fetched, the sink gets what is requested, and no more.
"""

from typing import ClassVar, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.api import UsageError, shown
from penstock.logs import Position
from penstock.spi import ElementSink, SourceOptions, UrlSource
from penstock_kafka._late import LateUrls
from penstock_kafka._log import KafkaLog

STEP: Final = 1 << 20
"""Bytes of a fetch."""

WORDS: Final = {"partition", "start", "stop"}


class KafkaUrls(UrlSource):
    """Reads a partition of a topic by its URL."""

    schemes: ClassVar[tuple[str, ...]] = LateUrls.schemes
    why_no_connection: ClassVar[str] = LateUrls.why_no_connection

    def check(self, url: str, options: SourceOptions) -> None:
        _parts_of(url, options)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        log, partition, start, stop = _parts_of(url, options)
        async with log:
            if partition not in log.partitions:
                raise UsageError(
                    f"{shown(url)}: the topic has the partitions {shown(list(log.partitions))}"
                )
            index = log.partitions.index(partition)
            position, end = log.resolve(index, start, stop)
            while True:
                demand = await sink.wait_demand()
                found = await log.read_next(index, position, end, demand, STEP, sink)
                if not found:
                    return
                sink.put(found)
                position += len(found)


def _parts_of(url: str, options: SourceOptions) -> tuple[KafkaLog, str, Position, Position | None]:
    """Return the log at a URL, its partition, and the first and the last position. Raises
    UsageError.
    """
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None or options.credentials is not None:
        # Without the text: it may contain a password, and messages are logged.
        raise UsageError(
            "a URL of Kafka leads to brokers without a user; for others open a "
            "KafkaLog(access=KafkaAccess(username=..., password=...))"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    places = {words.get("start", "earliest"), words.get("stop", "latest")}
    is_place = all(each in ("earliest", "latest") or each.isdecimal() for each in places)
    topic = unquote(parts.path.strip("/"))
    if not topic or set(words) - WORDS or not is_place or words.get("stop") == "earliest":
        raise UsageError(
            f"{shown(url)} names no partition of a topic: write its brokers and its name, and from "
            "where to where, as in kafka://127.0.0.1:9092/orders?partition=0&start=500&stop=latest"
        )
    log = KafkaLog(parts.netloc, topic)
    stop = None if "stop" not in words else _place(words["stop"])
    return log, words.get("partition", "0"), _place(words.get("start", "earliest")), stop


def _place(word: str) -> Position:
    return int(word) if word.isdecimal() else cast("Position", word)
