"""What a peer may see of a service: refusals in one form of words, failures that keep their secrets, serializers."""

import pytest

from penstock.api import ProtocolError, PublisherFailed, Rejected
from penstock.runtime import connect, serve
from tests.runtime._services import numbers_service


async def test_a_publishers_failure_is_raised_from_the_loop_and_keeps_its_secrets() -> None:
    """Its text crosses only where it was meant to; on its own side everything is told."""
    told: list[Exception] = []
    async with serve(numbers_service(), "memory://test", on_violation=told.append) as server, connect(server.addresses[0]) as peer:
        with pytest.raises(PublisherFailed, match=r"^the publisher failed: why is in the log"):
            async with peer.subscribe("failing", serializer="text") as stream:
                assert [element async for element in stream]
        assert [str(each) for each in told] == ["a secret"]
        with pytest.raises(PublisherFailed, match=r"^out of stock$"):
            async with peer.subscribe("honest", serializer="text") as stream:
                assert [element async for element in stream]


@pytest.mark.parametrize("name", ["nobody", "numbers", "numbers/x", "numbers/1?stop=3", "numbers/1/2", "numbers/1?count=2"])
async def test_names_that_lead_nowhere_are_all_refused_in_the_same_words(name: str) -> None:
    """Nobody can probe for names."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        with pytest.raises(Rejected, match=r"refused this stream: no such publisher: "):
            async with peer.subscribe(name, serializer="json") as stream:
                await anext(stream)


async def test_a_publisher_may_know_who_asks() -> None:
    """By annotation."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("who", serializer="text") as stream:
            assert "memory" in await anext(stream)


async def test_a_wrong_serializer_fails_that_stream_only() -> None:
    """The connection goes on."""
    async with serve(numbers_service(), "memory://test") as server, connect(server.addresses[0]) as peer:
        with pytest.raises(ProtocolError, match="not JSON"):
            async with peer.subscribe("endless", serializer="json") as stream:
                await anext(stream)
        async with peer.subscribe("numbers/2", serializer="json") as stream:
            assert [number async for number in stream] == [0, 1]
