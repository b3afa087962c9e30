"""The service of the everyday tasks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import penstock

log = penstock.RingLog(retention=penstock.Retention(max_count=100_000))


@dataclass
class Quote:
    """A price."""

    symbol: str
    price: float


@asynccontextmanager
async def filled() -> AsyncIterator[None]:
    """Begin with elements in the log."""
    await log.append([b"order %d" % number for number in range(1_000)])
    yield


service = penstock.Service(describe=True, lifespan=filled)
service.publish("orders", log)
penstock.receive(service, "inbox", log)


@service.publisher("quotes/{symbol}")
async def quotes(symbol: str, most: int = 3) -> AsyncIterator[Quote]:
    """The next prices of a symbol."""
    for number in range(most):
        yield Quote(symbol, 1.0 + number)


@service.request("last/{symbol}")
async def last(symbol: str) -> Quote:
    """The last price of a symbol."""
    return Quote(symbol, 1.0)


@service.request("mean")
async def mean(payload: list[float]) -> float:
    """The mean of numbers."""
    return sum(payload) / len(payload)
