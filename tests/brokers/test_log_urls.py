"""The URLs of logs: what they name, and what no text of theirs has."""

from typing import ClassVar

import pytest

from penstock.api import Credentials, Limits, UsageError
from penstock.brokers import LogAtUrl, LogUrls
from penstock.logs import BrokerLog, Retention
from penstock.spi import SourceOptions, TransportOptions
from tests.logs._shelf import Shelf


class ShelfUrls(LogUrls):
    schemes: ClassVar[tuple[str, ...]] = ("shelf",)
    why_no_connection: ClassVar[str] = "it answers no peer"
    what: ClassVar[str] = "log on a shelf"
    example: ClassVar[str] = "write shelf://here/orders"
    logins: ClassVar[dict[str, str]] = {"basic": "Credentials.basic(user, password)"}

    def __init__(self) -> None:
        self.asked: list[LogAtUrl] = []

    def open_log(self, at: LogAtUrl) -> BrokerLog | None:
        self.asked.append(at)
        return BrokerLog(Shelf(), partitions=[at.partition]) if any(at.path) else None


def _options(credentials: Credentials | None = None) -> SourceOptions:
    return SourceOptions(limits=Limits(), transport=TransportOptions(), credentials=credentials)


def test_a_url_names_a_log_and_its_partition() -> None:
    """The words of the path come without their escapes, and the partition is "0" without a name."""
    urls = ShelfUrls()
    urls.check("shelf://here/0/two%20words?start=5&stop=latest", _options())
    urls.check("shelf://here/orders?partition=east", _options())
    assert [(each.path, each.partition) for each in urls.asked] == [
        (("0", "two words"), "0"),
        (("orders",), "east"),
    ]


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "/",
        "orders?begin=5",
        "orders?start=x",
        "orders?stop=earliest",
        "orders?start=-1",
        pytest.param(f"orders?start={'9' * 5_000}", id="a position of 5,000 digits"),
    ],
)
def test_a_url_that_names_no_log_is_refused_with_one_that_does(ending: str) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(UsageError, match=r"names no log on a shelf: write shelf://here/orders"):
        ShelfUrls().check(f"shelf://here/{ending}", _options())


def test_a_user_comes_as_credentials() -> None:
    """They are escaped for the plugin. A URL with a user is refused, and its text has no password."""
    urls = ShelfUrls()
    urls.check("shelf://here/orders", _options(Credentials.basic("a", "s:w@rd")))
    assert urls.asked[0].user == "a:s%3Aw%40rd@"
    with pytest.raises(UsageError, match="must not hold a user") as caught:
        urls.check("shelf://a:secret@here/orders", _options())
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match=r"give Credentials.basic\(user, password\)"):
        urls.check("shelf://here/orders", _options(Credentials.bearer("token")))


class WithOptions(ShelfUrls):
    options: ClassVar[frozenset[str]] = frozenset({"durability"})


def test_a_log_is_asked_for_to_read_or_to_append() -> None:
    """With the bounds that were given, and the plugin's own words of the query."""
    urls, keep = WithOptions(), Retention(max_count=5)
    url = "shelf://here/orders?partition=east&durability=memory"
    assert urls.log_at(url, _options()).partitions == ("east",)
    urls.log_at(url, _options(), read_only=False, retention=keep)
    first, second = urls.asked
    assert (first.read_only, first.retention) == (True, None)
    assert (second.read_only, second.retention) == (False, keep)
    assert second.options == {"durability": "memory"}
