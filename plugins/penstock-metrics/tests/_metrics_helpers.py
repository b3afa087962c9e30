"""A service for tests, registries, and the samples of a page by name and labels."""

from collections.abc import AsyncIterator

import trio
from penstock_metrics import Measurements, PenstockCollector
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import penstock
from penstock.spi import Registry, build_registry


def quotes_service() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("quotes/{symbol}")
    async def quotes(symbol: str) -> AsyncIterator[bytes]:
        yield symbol.encode()
        yield b"0" * 10

    @service.publisher("quiet")
    async def quiet() -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    @service.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise penstock.PublicError("out of stock")

    @service.request("twice")
    async def twice(payload: bytes) -> bytes:
        return payload + payload

    return service


def registry_with(observer: object) -> Registry:
    """Return a registry with `observer`, and without the observer that is installed: its counts
    are those of the whole process.
    """
    return build_registry([observer], environ={"PENSTOCK_DISABLE_PLUGINS": "metrics"})


def collector_registry(measurements: Measurements) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(PenstockCollector(measurements))
    return registry


def samples(text: str) -> dict[str, float]:
    """Return the samples of a page, by name and labels:
    ``penstock_elements_total{direction=sent}``.
    """
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found
