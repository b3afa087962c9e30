"""The statistics of a server count the clients that send requests."""

from collections.abc import AsyncIterator

import pytest
import trio

import penstock

service = penstock.Service()


@service.publisher("numbers/{count}")
async def numbers(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"%d" % number


@service.publisher("silent")
async def silent() -> AsyncIterator[bytes]:
    await trio.sleep_forever()
    yield b""


async def test_streams_and_connections_without_a_session_are_counted() -> None:
    """Those that are open, those that have ended, their elements and their demand; and a name that
    is not offered counts as opened, as over a connection.
    """
    async with penstock.serve(service, "http://127.0.0.1:0") as server:
        url = str(server.addresses[0])
        assert server.statistics().connections == {}
        async with penstock.subscribe(f"{url}/p/numbers/7") as stream:
            assert [each async for each in stream] == [b"%d" % each for each in range(7)]
        after = server.statistics()
        assert (after.sending.streams, after.sending.opened, after.sending.elements) == (0, 1, 7)
        assert after.accepted >= 1
        with pytest.raises(penstock.PenstockError):
            async with penstock.subscribe(f"{url}/p/nowhere") as stream:
                await anext(stream)
        async with penstock.subscribe(f"{url}/p/silent", demand=5) as stream:
            while (now := server.statistics()).sending.streams == 0 or not now.sending.demand:
                await trio.lowlevel.checkpoint()
            assert now.connections == {("http", "http"): 1}
            # Not 5: the subscriber asks for one element before the first poll.
            assert now.sending.demand == 1
            assert now.sending.opened == 3
            assert now.sending.without_elements is not None
            assert now.sending.without_elements.publisher == "silent"
            assert now.sending.without_demand is None
        while server.statistics().sending.streams:
            await trio.lowlevel.checkpoint()
        end = server.statistics()
        assert (end.sending.elements, end.sending.demand) == (7, 0)
        assert end.sending.without_elements is None
