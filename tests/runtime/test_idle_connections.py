"""A connection that is used for minutes is not closed as idle, over both protocols and by neither
side; one that is not used is closed.

`Limits.idle_connection` is 300 s. Each test lets 20 minutes of virtual time pass.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Extension
from penstock.extensions import Keepalive
from penstock.runtime import Peer, Service, connect, serve

RSIO, REACTIVESOCKET = "rsio+memory://test", "reactivesocket+memory://test"
MINUTES = 20
PAUSES = [7.0, 150.0, 290.0]
"""Seconds between two uses: more often than a look at the clock, and nearly as seldom as a
connection may stay unused.
"""


def offering() -> Service:
    """Return a service with one publisher, and a handler of messages."""
    service = Service()

    @service.publisher("one", serializer="text")
    async def one() -> AsyncIterator[str]:
        yield "1"

    @service.request("ask")
    async def ask() -> str:
        return "answer"

    @service.fire_and_forget
    async def take(data: bytes) -> None:
        """Take a message."""

    return service


async def request(peer: Peer) -> None:
    assert await peer.request("ask", type=str) == "answer"


async def short_stream(peer: Peer) -> None:
    async with peer.subscribe("one", serializer="text") as stream:
        assert [element async for element in stream] == ["1"]


async def message(peer: Peer) -> None:
    await peer.fire_and_forget(b"message")


async def use_for_minutes(peer: Peer, use: Callable[[Peer], Awaitable[None]], pause: float) -> None:
    ends = trio.current_time() + MINUTES * 60
    while trio.current_time() < ends:
        await use(peer)
        await trio.sleep(pause)


USES = [
    (RSIO, request),
    (RSIO, short_stream),
    (REACTIVESOCKET, request),
    (REACTIVESOCKET, short_stream),
    (REACTIVESOCKET, message),
]


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize(("url", "use"), USES)
async def test_a_client_that_uses_its_connection_keeps_it(
    url: str,
    use: Callable[[Peer], Awaitable[None]],
    pause: float,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also without a keepalive: requests and short streams begin
    and end between two looks at the clock.
    """
    async with (
        serve(offering(), url, extensions=()) as server,
        connect(server.addresses[0], extensions=()) as peer,
    ):
        await use_for_minutes(peer, use, pause)
        assert peer.is_connected
        assert len(server.peers) == 1


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize(("url", "use"), USES)
async def test_a_server_that_uses_the_connection_of_a_client_keeps_it(
    url: str,
    use: Callable[[Peer], Awaitable[None]],
    pause: float,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client publishes, and the server subscribes and asks."""
    async with (
        serve(Service(), url, extensions=()) as server,
        connect(server.addresses[0], service=offering(), extensions=()) as peer,
    ):
        await trio.testing.wait_all_tasks_blocked()
        (client,) = server.peers
        await use_for_minutes(client, use, pause)
        assert peer.is_connected


@pytest.mark.parametrize("extensions", [None, [Keepalive()]], ids=["by default", "given"])
async def test_a_publishing_server_and_its_client_are_not_idle_with_a_keepalive(
    extensions: list[Extension] | None, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither side closes although nothing is asked: pings show that both are alive, and a
    stream may begin at any time.
    """
    async with (
        serve(offering(), RSIO, extensions=extensions) as server,
        connect(server.addresses[0], extensions=extensions) as peer,
    ):
        await trio.sleep(MINUTES * 60)
        await request(peer)


@pytest.mark.parametrize("url", [RSIO, REACTIVESOCKET])
async def test_an_unused_connection_without_a_keepalive_is_closed(
    url: str, autojump_clock: trio.testing.MockClock
) -> None:
    """It is closed 300 s after its last use, and not at the first look after it."""
    async with (
        serve(offering(), url, extensions=()) as server,
        connect(server.addresses[0], extensions=()) as peer,
    ):
        await trio.sleep(200)
        await request(peer)
        await trio.sleep(299)
        assert peer.is_connected
        await trio.sleep(10)
        assert not peer.is_connected
        with pytest.raises(ConnectionLost, match="idle"):
            await request(peer)


async def test_a_server_that_offers_nothing_and_asks_nothing_closes_an_unused_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its peer is alive, but no stream has ever begun, and none can begin on the server's side."""
    async with serve(Service(), RSIO) as server, connect(server.addresses[0]) as peer:
        await trio.sleep(310)
        assert not peer.is_connected
