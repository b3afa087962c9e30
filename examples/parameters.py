"""Names with parameters: `{symbol}` in the name, defaults behind a '?', each converted by its annotation; and who asks, as a `Peer`."""

from collections.abc import AsyncIterator
from enum import Enum

import trio

import penstock
from penstock.plugins import PeerIdentity

service = penstock.Service()


class Side(Enum):
    """What a segment may be: one of these values."""

    BUY = "buy"
    SELL = "sell"


@service.publisher("trades/{symbol}/{side}", serializer="json")
async def trades(symbol: str, side: Side, peer: PeerIdentity, since: int = 0, limit: int = 2) -> AsyncIterator[dict[str, object]]:
    """`peer` is nothing that a subscriber can give: it says who has connected."""
    for number in range(since, since + limit):
        yield {"symbol": symbol, "side": side.name, "trade": number, "for": peer.address}


NAMES = (
    "trades/EURUSD/buy",
    "trades/EURUSD/sell?since=40&limit=1",
    "trades/EUR%2FUSD/buy?limit=1",  # a '/' inside a segment
    "trades/EURUSD/hold",  # no Side
    "trades/EURUSD/buy?since=yesterday",  # no int
    "trades/EURUSD/buy?colour=red",  # no parameter
    "trades/EURUSD",  # no such name
)


async def main() -> None:
    async with penstock.serve(service, "memory://exchange"), penstock.connect("memory://exchange") as peer:
        for name in NAMES:
            print(name)
            try:
                async with peer.subscribe(name, serializer="json") as stream:
                    async for trade in stream:
                        print("  ", trade)
            except penstock.Rejected as refusal:
                print("  ", refusal)


if __name__ == "__main__":
    trio.run(main)
