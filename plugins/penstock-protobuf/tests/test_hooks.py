"""The plugin in a registry, and on a connection."""

from typing import Any

import pytest

import penstock
from penstock.spi import PluginStatus, TransportOptions, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it and reports no problem: the id 17 belongs to this distribution."""
    registry = build_registry(environ={})
    report = next(
        report for report in registry.plugins if report.distribution == "penstock-protobuf"
    )
    offers = ("serializer protobuf", "encoding protobuf")
    assert (report.name, report.status, report.offers) == ("protobuf", PluginStatus.ACTIVE, offers)
    assert registry.problems == ()
    assert registry.encoding("protobuf").id == 17


def _service() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("numbers", serializer="protobuf")
    def numbers() -> Any:
        return ("x" * n for n in range(200))

    return service


@pytest.mark.parametrize(
    ("at", "of_client"), [("", {"encoding": "protobuf"}), ("", {}), ("?encoding=protobuf", {})]
)
async def test_elements_arrive_in_the_encoding(at: str, of_client: dict[str, Any]) -> None:
    """Agreed on in the hellos, not asked for, and chosen by the URL."""
    async with penstock.serve(_service(), f"tcp://127.0.0.1:0{at}") as server:
        url = server.addresses[0]
        name = f"{url}#numbers" if at else f"{url}/numbers"
        async with penstock.subscribe(
            name, serializer="protobuf", options=TransportOptions(), **of_client
        ) as stream:
            seen = [element async for element in stream]
    assert seen == ["x" * n for n in range(200)]
