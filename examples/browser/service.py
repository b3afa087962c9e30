"""The service of the page index.html.
Start it from this folder, with the plugin penstock-websocket installed:

penstock serve service:service ws://127.0.0.1:7001 --option ws.origins=http://127.0.0.1:8000
"""

from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()


@service.publisher("prices/{symbol}", serializer="json")
async def prices(symbol: str, every: float = 0.5) -> AsyncIterator[dict[str, object]]:
    """Prices of a symbol, without end, one every `every` seconds."""
    cents = 10_000 + sum(symbol.encode())
    number = 0
    while True:
        number += 1
        cents += (number * 7) % 11 - 5
        yield {"symbol": symbol, "number": number, "cents": cents}
        await trio.sleep(every)


@service.request("convert/{symbol}")
async def convert(payload: int, symbol: str) -> int:
    """What `payload` cents buy, in hundredths of a unit."""
    return payload * 100 // (10_000 + sum(symbol.encode()))
