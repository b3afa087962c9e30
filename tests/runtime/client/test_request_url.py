"""One request by URL."""

import pytest

import penstock
from penstock.api import ConnectionLost, PublisherFailed, Rejected, UsageError
from penstock.runtime import serve
from tests.runtime._named import RECORDS, Order, Price, named_service


@pytest.mark.parametrize("protocol", ["", "rsio+", "reactivesocket+"])
async def test_a_url_names_the_request(protocol: str) -> None:
    """The parameters of the URL reach the handler, in both protocols."""
    async with serve(named_service(), "memory://u") as server:
        url = f"{protocol}{server.addresses[0]}/price/EURUSD?cents=7"
        assert await penstock.request(url, Order(2), type=Price, serializer=RECORDS) == Price(
            "EURUSD", 14
        )
        assert await penstock.request(f"{protocol}{server.addresses[0]}/time") == b"12:00"


@pytest.mark.parametrize("url", ["memory://u", "tcp://127.0.0.1:1"])
async def test_a_url_without_a_name_is_refused(url: str) -> None:
    """Before a connection is made."""
    with pytest.raises(UsageError, match="names no request"):
        await penstock.request(url)


async def test_failures_are_those_of_a_request() -> None:
    """No server, no such name, and a handler that fails."""
    with pytest.raises(ConnectionLost):
        await penstock.request("memory://nobody/time")
    async with serve(named_service(), "memory://u", on_violation=lambda _: None) as server:
        with pytest.raises(Rejected, match="no such publisher"):
            await penstock.request(f"{server.addresses[0]}/nowhere")
        with pytest.raises(PublisherFailed, match="sold out"):
            await penstock.request(
                f"{server.addresses[0]}/price/a", Order(1, "sold out"), serializer=RECORDS
            )
        with pytest.raises(UsageError, match="extension 'requests'"):
            await penstock.request(f"{server.addresses[0]}/echo", b"x", extensions=())
