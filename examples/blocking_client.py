"""A script that reads a service without trio: `penstock.blocking`. Only the service runs on
trio; here both are in one program.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import trio

import penstock
from penstock import blocking

service = penstock.Service()


@dataclass
class Quote:
    """A price."""

    symbol: str
    price: int


@service.publisher("quotes/{symbol}")
async def quotes(symbol: str, count: int = 3) -> AsyncIterator[Quote]:
    """Publish some prices."""
    for price in range(count):
        yield Quote(symbol, 100 + price)


@service.request("total")
async def total(payload: list[int]) -> int:
    """Add numbers."""
    return sum(payload)


def script(url: str) -> None:
    """The script: plain calls that block."""
    with blocking.connect(url) as peer:
        with peer.subscribe("quotes/EURUSD", type=Quote, timeout=10) as stream:
            for quote in stream:
                print(quote)
        count = sum(len(batch) for batch in peer.batches("quotes/GBPUSD?count=10000", demand=1000))
        print(f"{count:,} elements in batches")
        print("total", peer.request("total", [1, 2, 3], type=int))
        try:
            peer.request("nothing")
        except penstock.Rejected as refusal:
            print(str(refusal).partition(" (")[0])


async def main() -> None:
    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        await trio.to_thread.run_sync(script, str(server.addresses[0]))


if __name__ == "__main__":
    trio.run(main)
