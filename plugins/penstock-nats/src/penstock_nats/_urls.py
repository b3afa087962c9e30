"""Logs on JetStream by their URL, for `subscribe`, `remote` and `penstock cat`.

``nats://127.0.0.1:4222/orders?partition=east&start=500&stop=latest``

Rules of this file:

* A fetch has what is requested, and no more.
"""

from typing import ClassVar, Final, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from penstock.api import UsageError, shown
from penstock.logs import Position
from penstock.spi import ElementSink, SourceOptions, UrlSource
from penstock_nats._late import LateUrls
from penstock_nats._log import JetStreamLog

STEP: Final = 1 << 20
"""Bytes after which a fetch ends."""

WORDS: Final = {"partition", "start", "stop"}


class NatsUrls(UrlSource):
    """Reads a log on JetStream by its URL."""

    schemes: ClassVar[tuple[str, ...]] = LateUrls.schemes
    why_no_connection: ClassVar[str] = LateUrls.why_no_connection

    def check(self, url: str, options: SourceOptions) -> None:
        _parts_of(url, options)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        log, partition, start, stop = _parts_of(url, options)
        async with log:
            index = log.partitions.index(partition)
            position, end = log.resolve(index, start, stop)
            while True:
                demand = await sink.wait_demand()
                found = await log.read_next(index, position, end, demand, STEP, sink)
                if not found:
                    return
                sink.put(found)
                position += len(found)


def _parts_of(
    url: str, options: SourceOptions
) -> tuple[JetStreamLog, str, Position, Position | None]:
    """Return the log at a URL, its partition, and the first and the last position. Raises
    UsageError.
    """
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        # Without the text: it may contain a password, and messages are logged.
        raise UsageError(
            "a URL must not hold a user or a password (the part before '@'): URLs are logged; "
            "pass them as credentials, or open a JetStreamLog"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    name = unquote(parts.path.strip("/"))
    places = {words.get("start", "earliest"), words.get("stop", "latest")}
    is_place = all(each in ("earliest", "latest") or each.isdecimal() for each in places)
    if not name or set(words) - WORDS or not is_place or words.get("stop") == "earliest":
        raise UsageError(
            f"{shown(url)} names no log on JetStream: write the name of the log, and from where to "
            "where, as in nats://127.0.0.1:4222/orders?start=500&stop=latest"
        )
    login = options.credentials
    if login is not None and login.scheme not in ("basic", "bearer"):
        raise UsageError(
            f"credentials of the scheme {login.scheme!r}; for NATS give Credentials.basic(user, "
            "password) or Credentials.bearer(token)"
        )
    user = ""
    if login is not None:
        secrets = login.data.decode().split(":", 1 if login.scheme == "basic" else 0)
        user = ":".join(quote(each, safe="") for each in secrets) + "@"
    partition = words.get("partition", "0")
    log = JetStreamLog(f"nats://{user}{parts.netloc}", name, partitions=[partition], read_only=True)
    stop = None if "stop" not in words else _place(words["stop"])
    return log, partition, _place(words.get("start", "earliest")), stop


def _place(word: str) -> Position:
    return int(word) if word.isdecimal() else cast("Position", word)
