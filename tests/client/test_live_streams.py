"""The streams of a session as records, without trio: for clients on asyncio and that block."""

import asyncio

import trio

import penstock.aio
from penstock import Service, serve
from penstock.spi import LiveStream, WaitsFor


async def served(read: object) -> list[LiveStream]:
    """Serve a publisher that stops after one element, and return what `read` returns of it."""
    service = Service()

    @service.publisher("silent")
    async def silent():
        yield b"one"
        await trio.sleep_forever()

    async with serve(service, "tcp://127.0.0.1:0") as server:
        return await trio.to_thread.run_sync(read, str(server.addresses[0]))


def check(records: list[LiveStream]) -> None:
    (record,) = records
    assert (record.name, record.outbound) == ("silent", False)
    assert (record.delivered, record.waits_for) == (1, WaitsFor.PUBLISHER)
    assert (record.protocol, record.transport) == ("rsio", "tcp")


async def test_a_client_on_asyncio_sees_its_streams() -> None:
    """`penstock.aio.Peer.streams()`."""

    def read(url: str) -> list[LiveStream]:
        async def main() -> list[LiveStream]:
            async with (
                penstock.aio.connect(url) as peer,
                peer.subscribe("silent", demand=5) as stream,
            ):
                await anext(stream)
                return peer.streams()

        return asyncio.run(main())

    check(await served(read))


async def test_a_client_that_blocks_sees_its_streams() -> None:
    """`penstock.blocking.Peer.streams()`."""

    def read(url: str) -> list[LiveStream]:
        with penstock.blocking.connect(url) as peer, peer.subscribe("silent", demand=5) as stream:
            next(iter(stream))
            return peer.streams()

    check(await served(read))
