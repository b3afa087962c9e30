"""A connection that has ended is freed at once:
none of its objects waits for the garbage collector.
"""

import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost
from penstock.runtime import Server, Service, connect, serve
from penstock.spi import build_registry
from tests.runtime._services import raw_connection

REGISTRY = build_registry()
PACKAGES = ("penstock.runtime", "penstock.session", "penstock.protocols", "penstock.core")
"""The objects of connections and streams. The objects that a registry has made do not count."""


def _service() -> Service:
    service = Service()

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    return service


@contextmanager
def _collected() -> Iterator[Counter[str]]:
    """Count the objects of penstock that this block leaves to the collector, by class."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(
            type(each).__qualname__
            for each in gc.garbage
            if type(each).__module__.startswith(PACKAGES)
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def _leave(server: Server) -> None:
    """A client uses its connection and says goodbye."""
    async with connect(server.addresses[0], registry=REGISTRY) as peer:
        async with peer.subscribe("one") as stream:
            assert [element async for element in stream] == [b"one"]
        assert await peer.request("echo", b"data") == b"data"


async def _vanish(server: Server) -> None:
    """The transport ends without a goodbye."""
    async with trio.open_nursery() as nursery:
        raw = await raw_connection(nursery, str(server.addresses[0]).partition("+")[2])
        await trio.testing.wait_all_tasks_blocked()
        await raw.abort()


async def _break(server: Server) -> None:
    """The peer breaks the protocol."""
    async with trio.open_nursery() as nursery:
        raw = await raw_connection(nursery, str(server.addresses[0]).partition("+")[2])
        await raw.send(b"\x7f" * 20)
        await trio.testing.wait_all_tasks_blocked()
        await raw.abort()


@pytest.mark.parametrize("end", [_leave, _vanish, _break])
@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_no_object_of_a_connection_waits_for_the_collector(
    protocol: str, end: Callable[[Server], Awaitable[None]], autojump_clock: trio.testing.MockClock
) -> None:
    """However it ends, and on both sides. Each left 220 objects in circles, and the collector
    held up all other connections.
    """
    async with serve(
        _service(), f"{protocol}+memory://release", on_violation=lambda _: None
    ) as server:
        await end(server)  # objects that are made once
        await trio.sleep(60)
        with _collected() as found:
            await end(server)
            await trio.sleep(60)
            assert not server.peers
    assert found == {}


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_connection_that_has_ended_holds_no_bytes(protocol: str) -> None:
    """Its account can still be asked for."""
    async with serve(_service(), f"{protocol}+memory://release") as server:
        async with connect(server.addresses[0]) as peer:
            assert await peer.request("echo", b"data") == b"data"
            (task,) = server._connections.running
        await trio.testing.wait_all_tasks_blocked()
        assert not server.peers
        assert task.held() == 0


async def test_what_the_program_still_holds_can_be_asked() -> None:
    """A peer whose connection is over tells so, and each of its requests raises."""
    async with (
        serve(_service(), "rsio+memory://release") as server,
        connect(server.addresses[0]) as peer,
    ):
        await peer.wait_accepted()
        (client,) = server.peers
    for each in (peer, client):
        assert not each.is_connected
        assert str(each.identity)
        with pytest.raises(ConnectionLost):
            await each.request("echo", b"data")
        with pytest.raises(ConnectionLost):
            async with each.subscribe("one") as stream:
                await anext(stream)
        with pytest.raises(ConnectionLost):
            await each.wait_accepted()
