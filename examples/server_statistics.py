"""The numbers of a server: connections, demand, elements, and the stream that does not move."""

from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()


@service.publisher("quotes/{symbol}")
async def quotes(symbol: str) -> AsyncIterator[str]:
    for price in (100, 101, 102):
        yield f"{symbol} {price}"
    await trio.sleep_forever()


async def main() -> None:
    async with (
        penstock.serve(service, "memory://quotes") as server,
        penstock.connect("memory://quotes") as peer,
        peer.subscribe("quotes/EURUSD", type=str, demand=8) as stream,
        peer.subscribe("quotes/GBPUSD", demand=0),
    ):
        for _ in range(3):
            print(await anext(stream))
        await trio.sleep(60)

        now = server.statistics()
        print("connections:", dict(now.connections))
        print(
            f"sending: {now.sending.streams} streams, {now.sending.elements} elements, "
            f"{now.sending.demand} demanded"
        )
        stalled = now.sending.without_demand
        if stalled is not None:
            print(f"no demand: {stalled.publisher} for {stalled.seconds:.0f} s")

        mine = stream.statistics()
        print(
            f"received: {mine.received} elements, {mine.received_bytes} bytes, {mine.outstanding} "
            "outstanding"
        )


if __name__ == "__main__":
    trio.run(main)
