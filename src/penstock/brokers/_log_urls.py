"""Logs by their URL, for `subscribe`, `remote` and `penstock cat`.

``redis://127.0.0.1:6379/0/orders?partition=east&start=500&stop=latest``

Rules of this file:

* A fetch has what is requested, and no more.
* No text has the user or the password of a URL.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple, cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from penstock.api import Credentials, UsageError, shown
from penstock.logs import BrokerLog, Position, Retention
from penstock.spi import ElementSink, SourceOptions, UrlSource

MOST_DIGITS: Final = 19
"""Digits of a position."""

STEP: Final = 1 << 20
"""Bytes after which a fetch ends."""

WORDS: Final = {"partition", "start", "stop"}


class LogAtUrl(NamedTuple):
    """Where a URL leads: what `LogUrls.open_log` makes a log of."""

    parts: SplitResult
    """The URL, without a user."""
    path: tuple[str, ...]
    """The words of its path."""
    partition: str
    """The partition that is read."""
    user: str
    """The user and the password, or the token, as a URL has them: with their @ at the end. Empty
    without credentials.
    """
    read_only: bool
    """Nothing is appended."""
    retention: Retention | None
    """The bounds of a log that is appended to, if the command or the program has given them."""
    options: Mapping[str, str]
    """The words of the query that the plugin knows beside those of each log."""


class LogUrls(UrlSource):
    """Reads a partition of a log by its URL. A plugin for a broker derives its own, with `open_log`
    and the words for the texts.
    """

    what: ClassVar[str]
    """The thing that a URL names, as in "log on Redis"."""

    example: ClassVar[str]
    """What to write, and a URL that does."""

    options: ClassVar[frozenset[str]] = frozenset()
    """Words of a query that the plugin knows beside partition, start and stop."""

    logins: ClassVar[dict[str, str]] = {}
    """The schemes of credentials that the broker takes, each with the call that makes them."""

    @abstractmethod
    def open_log(self, at: LogAtUrl) -> BrokerLog | None:
        """Return a log that can be opened; None if the path of the URL names none."""

    def check(self, url: str, options: SourceOptions) -> None:
        """Raise UsageError for a URL that names no log, and for credentials of another kind."""
        self._parts_of(url, options)

    def log_at(
        self,
        url: str,
        options: SourceOptions,
        *,
        read_only: bool = True,
        retention: Retention | None = None,
    ) -> BrokerLog:
        """Return the log at a URL. Raises UsageError as `check` does."""
        return self._parts_of(url, options, read_only=read_only, retention=retention)[0]

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        """Deliver the elements of a partition, within the demand."""
        log, partition, start, stop = self._parts_of(url, options)
        async with log:
            if partition not in log.partitions:
                raise UsageError(
                    f"{shown(url)}: it has the partitions {shown(list(log.partitions))}"
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

    def _parts_of(
        self,
        url: str,
        options: SourceOptions,
        *,
        read_only: bool = True,
        retention: Retention | None = None,
    ) -> tuple[BrokerLog, str, Position, Position | None]:
        """Return the log at a URL, its partition, and the first and the last position. Raises
        UsageError.
        """
        try:
            parts = urlsplit(url)
        except ValueError:  # half of the brackets of an address
            raise self._names_no_log(url) from None
        if parts.username is not None or parts.password is not None:
            # Without the text: it may contain a password, and messages are logged.
            raise UsageError(
                "a URL must not hold a user or a password (the part before '@'): URLs are logged; "
                f"pass them as credentials, or open the {self.what} in the program"
            )
        words = dict(parse_qsl(parts.query, keep_blank_values=True))
        places = {words.get("start", "earliest"), words.get("stop", "latest")}
        is_place = all(map(_is_place, places))
        partition = words.get("partition", "0")
        log = None
        if is_place and not set(words) - WORDS - self.options and words.get("stop") != "earliest":
            path = tuple(unquote(each) for each in parts.path.strip("/").split("/"))
            user = self._user(options.credentials)
            own = {each: words[each] for each in words.keys() & self.options}
            at = LogAtUrl(parts, path, partition, user, read_only, retention, own)
            log = self.open_log(at)
        if log is None:
            raise self._names_no_log(url)
        stop = None if "stop" not in words else _place(words["stop"])
        return log, partition, _place(words.get("start", "earliest")), stop

    def _names_no_log(self, url: str) -> UsageError:
        return UsageError(f"{shown(url)} names no {self.what}: {self.example}")

    def _user(self, login: Credentials | None) -> str:
        if login is None:
            return ""
        if login.scheme not in self.logins:
            allowed = " or ".join(self.logins.values())
            raise UsageError(
                f"credentials of the scheme {login.scheme!r}, for a {self.what}; "
                + (f"give {allowed}" if allowed else "its URLs lead to brokers without a user")
            )
        secrets = login.data.decode().split(":", 1 if login.scheme == "basic" else 0)
        return ":".join(quote(each, safe="") for each in secrets) + "@"


def _is_place(word: str) -> bool:
    # Python refuses to read a number of more than 4,300 digits. 2^63 - 1 has 19.
    return word in ("earliest", "latest") or (word.isdecimal() and len(word) <= MOST_DIGITS)


def _place(word: str) -> Position:
    return int(word) if word.isdecimal() else cast("Position", word)
