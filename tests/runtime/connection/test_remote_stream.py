"""Elements of fixed size as packed memory."""

from collections.abc import AsyncIterator

import pytest

from penstock.api import UsageError
from penstock.runtime import Service, connect, serve, subscribe
from tests.runtime._services import named, numbers_service


async def test_elements_of_fixed_size_can_be_read_as_memory(url: str) -> None:
    """Packed there, packed here, counted as elements; or read one by one."""
    service = Service()

    @service.publisher("ints", element_size=4)
    async def ints() -> AsyncIterator[bytes]:
        for number in range(0, 1000, 10):
            yield b"".join(each.to_bytes(4, "big") for each in range(number, number + 10))

    expected = b"".join(each.to_bytes(4, "big") for each in range(1000))
    async with serve(service, url) as server:
        async with subscribe(named(server.addresses[0], "ints"), demand=64) as stream:
            got = b""
            async for piece in stream.buffers():
                assert len(piece) <= 64 * 4
                got += piece
            assert got == expected
            assert stream.statistics().taken == 1000
        async with connect(server.addresses[0]) as peer, peer.subscribe("ints", demand=7) as by_element:
            assert b"".join([each async for each in by_element]) == expected
            assert by_element.element_size == 4


async def test_buffers_of_a_stream_without_a_fixed_size_are_refused() -> None:
    """The ends of its elements would be lost."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("endless") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())
