"""A server on asyncio has its clients as peers."""

import asyncio
from collections.abc import Iterator

import pytest

from penstock import aio, blocking
from penstock.api import ConnectionLost
from tests.aio._run import run
from tests.guest._served import URL, reached


def numbers() -> Iterator[bytes]:
    return (b"%d" % number for number in range(1_000))


@pytest.mark.parametrize("url", [URL, "memory://clients"])
def test_the_server_reads_its_clients(url: str) -> None:
    """Streams and requests are those of any peer on asyncio, and a client has one peer."""
    answering = aio.Service()

    @answering.request("double")
    async def double(payload: int) -> int:
        await asyncio.sleep(0)
        return 2 * payload

    async def main() -> None:
        async with aio.serve(aio.Service(), url) as server:
            address = server.addresses[0]
            assert server.peers == ()
            async with (
                aio.connect(address, publishers={"numbers": numbers}) as first,
                aio.connect(address, service=answering) as second,
            ):
                await first.wait_accepted()
                await second.wait_accepted()
                await reached(lambda: len(server.peers) == 2)
                mine, other = server.peers
                assert server.peers == (mine, other)
                async with mine.subscribe("numbers", demand=8) as stream:
                    assert [element async for element in stream] == list(numbers())
                assert await other.request("double", 21, type=int) == 42
                assert mine.is_connected
                assert mine.statistics().is_open
                assert mine.opened_at is not None
                assert 0 <= asyncio.get_running_loop().time() - mine.opened_at < 300
            await reached(lambda: not server.peers)
            assert not mine.is_connected
            with pytest.raises(ConnectionLost):
                await mine.request("double", 1)

    run(main())


def test_a_client_that_blocks() -> None:
    """Its publishers run while it waits."""
    service = aio.Service()

    @service.request("sum")
    async def total() -> str:
        (client,) = server.peers
        async with client.subscribe("numbers") as stream:
            return str(sum([int(element) async for element in stream]))

    def ask(url: str) -> str:
        with blocking.connect(url, publishers={"numbers": numbers}) as peer:
            answer: str = peer.request("sum", type=str)
            return answer

    async def main() -> None:
        nonlocal server
        async with aio.serve(service, URL) as server:
            assert await asyncio.to_thread(ask, str(server.addresses[0])) == "499500"

    server: aio.Server
    run(main())
