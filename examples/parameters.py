"""Names with parameters: `{symbol}` in the name, defaults behind a '?', converted by annotation;
`PeerIdentity` is the client.
"""

from collections.abc import AsyncIterator
from enum import Enum

import trio

import penstock
from penstock.spi import PeerIdentity

service = penstock.Service()


class Side(Enum):
    """A segment that is one of these values."""

    BUY = "buy"
    SELL = "sell"


@service.publisher("trades/{symbol}/{side}", serializer="json")
async def trades(
    symbol: str, side: Side, peer: PeerIdentity, since: int = 0, limit: int = 2
) -> AsyncIterator[dict[str, object]]:
    """Yield trades. penstock passes `peer`, the identity of the client;
    a subscriber cannot set it.
    """
    for number in range(since, since + limit):
        yield {"symbol": symbol, "side": side.name, "trade": number, "for": peer.address}


NAMES = (
    "trades/EURUSD/buy",
    "trades/EURUSD/sell?since=40&limit=1",
    "trades/EUR%2FUSD/buy?limit=1",  # a '/' inside a segment
    "trades/EURUSD/hold",  # not a Side
    "trades/EURUSD/buy?since=yesterday",  # not an int
    "trades/EURUSD/buy?colour=red",  # not a parameter
    "trades/EURUSD",  # not a name
)


async def main() -> None:
    async with (
        penstock.serve(service, "memory://exchange"),
        penstock.connect("memory://exchange") as peer,
    ):
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
