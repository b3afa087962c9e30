"""The plugin in a registry, and on a connection."""

from typing import Any

import pytest

import penstock
from penstock.spi import PluginStatus, TransportOptions, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it and reports no problem: the id 16 belongs to this distribution."""
    registry = build_registry(environ={})
    report = next(
        report for report in registry.plugins if report.distribution == "penstock-msgpack"
    )
    offers = ("serializer msgpack", "encoding msgpack")
    assert (report.name, report.status, report.offers) == ("msgpack", PluginStatus.ACTIVE, offers)
    assert registry.problems == ()
    assert registry.encoding("msgpack").id == 16


def _service() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("numbers", serializer="msgpack")
    def numbers() -> Any:
        return ({"n": n, "text": "x" * n} for n in range(200))

    return service


@pytest.mark.parametrize(
    ("at", "of_client"), [("", {"encoding": "msgpack"}), ("", {}), ("?encoding=msgpack", {})]
)
async def test_elements_arrive_in_the_encoding(at: str, of_client: dict[str, Any]) -> None:
    """Agreed on in the hellos, not asked for, and chosen by the URL."""
    async with penstock.serve(_service(), f"tcp://127.0.0.1:0{at}") as server:
        url = server.addresses[0]
        name = f"{url}#numbers" if at else f"{url}/numbers"
        async with penstock.subscribe(
            name, serializer="msgpack", options=TransportOptions(), **of_client
        ) as stream:
            seen = [element async for element in stream]
    assert seen == [{"n": n, "text": "x" * n} for n in range(200)]
