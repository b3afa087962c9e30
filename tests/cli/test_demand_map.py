"""A map that a service sends is checked, and what it makes this side hold is bounded."""

import pytest
import trio

from penstock.api import ProtocolError, UsageError
from penstock.cli import _demand_map
from penstock.cli._demand_map import AGAIN, DemandMap, follow, service_urls
from penstock.cli._main import parse
from penstock.runtime import Service, serve
from tests.cli._maps import DEFAULTS, map_of


def test_changes_are_put_into_the_table() -> None:
    """New fields replace old ones, and streams that are gone are forgotten."""
    found = map_of("tcp://a:1", {"key": "1", "delivered": 10}, {"key": "2"}, now=1.0)
    found.apply({"kind": "streams", "streams": [{"key": "1", "delivered": 40}]})
    found.apply({"kind": "gone", "keys": ["2", "never"]})
    assert found.apply({"kind": "looked", "at": 3.0, "streams": 1}) is True
    assert found.streams.keys() == {"1"}
    assert found.rates == {"1": 15.0}
    assert found.looks == 2


def test_the_time_of_a_stream_is_that_of_its_service() -> None:
    """The clocks of two machines differ."""
    found = map_of("tcp://a:1", {"key": "1", "since": 3.5}, now=10.0)
    assert found.still(found.streams["1"]) == 6.5
    found.apply({"kind": "streams", "streams": [{"key": "1", "since": 99.0}]})
    assert found.still(found.streams["1"]) == 0.0


def test_a_kind_of_a_later_version_is_passed_over() -> None:
    """A newer service can tell more."""
    assert DemandMap("tcp://a:1").apply({"kind": "weather", "streams": 7}) is False


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "text",
        {},
        {"kind": "streams"},
        {"kind": "streams", "streams": {}},
        {"kind": "streams", "streams": ["x"]},
        {"kind": "streams", "streams": [{"key": 7}]},
        {"kind": "streams", "streams": [{"key": "new", "name": "but no more"}]},
        {"kind": "streams", "streams": [{**DEFAULTS, "key": "1", "demand": "many"}]},
        {"kind": "streams", "streams": [{**DEFAULTS, "key": "1", "demand": True}]},
        {"kind": "streams", "streams": [{**DEFAULTS, "key": "1", "name": None}]},
        {"kind": "gone"},
        {"kind": "looked"},
        {"kind": "looked", "at": "now", "streams": 1},
    ],
)
def test_a_message_of_another_shape_ends_the_command(message: object) -> None:
    """It could be shown as nothing that a person understands."""
    with pytest.raises(ProtocolError):
        DemandMap("tcp://a:1").apply(message)


def test_parts_of_another_shape_are_left_out() -> None:
    """The pipe is read as far as it can be."""
    found = map_of(
        "tcp://a:1", {"key": "1", "parts": [["map", 0], ["x"], 7, ["y", "z"]], "on": [7]}
    )
    assert found.streams["1"]["parts"] == [("map", 0)]
    assert found.streams["1"]["on"] == []


def test_a_service_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """With streams of which it never says that they have ended."""
    monkeypatch.setattr(_demand_map, "MOST", 2)
    with pytest.raises(ProtocolError, match="more than 2"):
        map_of("tcp://a:1", {"key": "1"}, {"key": "2"}, {"key": "3"})


def test_the_url_of_a_publisher_is_a_mistake() -> None:
    """The message has the address that was meant."""
    with pytest.raises(UsageError, match="tcp://a:1"):
        service_urls(["tcp://a:1/ticks"])


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "https://example.com/x"])
def test_an_address_of_http_is_a_mistake_that_says_what_to_give(url: str) -> None:
    """The service speaks RS.io at the same port."""
    with pytest.raises(UsageError, match=r"give (tcp|tls)://"):
        service_urls([url])


async def test_a_service_that_comes_later_is_shown_beside_the_others(autojump_clock) -> None:
    """It was asked in vain when the command began, and is lost and there again later."""
    options = parse(["top", "memory://here", "memory://later", "--plain"])
    here, later = DemandMap("memory://here"), DemandMap("memory://later")
    async with trio.open_nursery() as nursery, serve(Service(), "memory://here", inspect=True):
        nursery.start_soon(follow, [here, later], options, lambda: None)
        for _ in range(2):
            await trio.sleep(3 * AGAIN)
            assert later.lost
            assert not later.streams
            async with serve(Service(), "memory://later", inspect=True):
                await trio.sleep(3 * AGAIN)
                assert (later.lost, here.lost) == ("", "")
                assert later.streams
        nursery.cancel_scope.cancel()
