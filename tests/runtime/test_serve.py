"""`serve`: an accept loop that nobody can take down, and a shutdown within its deadline."""

import pytest
import trio

from penstock.api import ConnectionLost
from penstock.runtime import connect, serve
from tests.runtime._services import Census, numbers_service, raw_connection


async def test_a_server_that_leaves_says_goodbye(url: str) -> None:
    """The subscriber learns why; the block of the server ends, though somebody still reads."""
    reading = trio.Event()
    left = trio.Event()

    async def serve_until_read() -> None:
        async with serve(numbers_service(), url) as server:
            nursery.start_soon(read, server.addresses[0])
            await reading.wait()
        left.set()

    async def read(address: str) -> None:
        with pytest.raises(ConnectionLost, match="shutdown"):
            async with connect(address) as peer, peer.subscribe("endless", demand=2) as stream:
                async for _ in stream:
                    reading.set()
                    await trio.lowlevel.checkpoint()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_until_read)
            await left.wait()


async def test_a_cancelled_server_ends_within_its_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """Even where a peer never answers its goodbye: in virtual time, to the second."""
    census = Census()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with serve(numbers_service(census), "memory://test"):
                raw = await raw_connection(nursery)
                await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00\x05")
                while not census.opened:
                    await trio.sleep(0.1)
                scope.cancel()
        assert trio.current_time() < 10
        assert census.closed == census.opened == 1
        await raw.abort()
