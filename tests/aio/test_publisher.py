"""Publishers of a client on asyncio: a task for each subscription, pulled by demand."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from penstock import aio
from penstock.api import (
    PublisherFailed,
    UsageError,
)
from tests.aio._run import connected
from tests.contracts._trio_server import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_the_server_reads_publishers_of_the_client(served: Served) -> None:
    """Async generators, plain ones, lists, types, and failures, each as far as the server asks."""
    pulled: list[int] = []
    closed: list[str] = []

    async def counting() -> AsyncIterator[bytes]:
        try:
            for number in range(300):
                pulled.append(number)
                yield b"%d" % number
        finally:
            closed.append("counting")

    def plain() -> Iterator[bytes]:
        for number in range(300):
            yield b"%d" % number

    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    def failing_plainly() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    heard: list[Exception] = []
    publishers = {
        "counting": counting,
        "plain": plain,
        "list": [b"a", b"b"],
        "ints": aio.Published([1, 2], type=int),
        "nothing": list,
        "failing": failing,
        "failing plainly": failing_plainly,
        "none": [None],
        "text": ["not bytes"],
    }

    async def serve(peer: aio.Peer) -> None:
        numbers = b",".join(b"%d" % number for number in range(300))
        assert await peer.request("collect?name=list") == b"a,b"
        assert await peer.request("collect?name=ints") == b"1,2"
        assert await peer.request("collect?name=nothing") == b""
        assert await peer.request("collect?name=counting&demand=3") == numbers
        assert await peer.request("collect?name=plain&demand=3") == numbers
        for name in ("failing", "failing%20plainly", "none", "text", "unknown"):
            with pytest.raises(PublisherFailed):
                await peer.request(f"collect?name={name}")
        assert await peer.request("echo") == b"nothing"

    connected(served, serve, publishers=publishers, on_violation=heard.append)
    assert pulled == [*range(300)]
    assert closed == ["counting"]
    assert [type(error) for error in heard] == [ValueError, ValueError, UsageError, UsageError]


def test_publishers_are_pulled_as_far_as_they_were_asked(served: Served) -> None:
    """A server that reads nothing more has asked for its demand, and the client has pulled that
    and one element more at most.
    """
    pulled: list[int] = []
    closed: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                pulled.append(len(pulled))
                yield b"x"
        finally:
            closed.append("endless")

    async def serve(peer: aio.Peer) -> None:
        collecting = asyncio.ensure_future(peer.request("hold?name=endless&demand=5"))
        while len(pulled) < 5:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(pulled) <= 6
        collecting.cancel()
        await asyncio.wait((collecting,))

    connected(served, serve, publishers={"endless": endless})
    assert closed == ["endless"]
