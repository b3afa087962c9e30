"""The end of a server with clients in every state, over memory, on virtual time:
it ends in time in every state.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from _raw_http2 import Asking
from _site_in_memory import Client, World, world

from penstock import Limits

Clock = trio.testing.MockClock
Begin = Callable[[World, trio.Nursery], Awaitable[None]]

PATHS = {
    "a poll that waits": ("PUT", "slow/100", ""),
    "a streamed batch": ("PUT", "slow/100", "stream"),
    "events": ("GET", "slow/100", ""),
    "an answer that is not read": ("PUT", "large", ""),
    "a streamed batch that is not read": ("PUT", "large", "stream"),
}


@asynccontextmanager
async def busy(state: str, version: str, drain: float) -> AsyncIterator[Client]:
    """Serve, with one client in `state`."""
    method, name, delivery = PATHS[state]
    async with world(limits=Limits(drain=drain, goodbye_timeout=0.5)) as (server, nursery):
        client = await server.connect(nursery)
        ending = "/events" if method == "GET" else ""
        if version == "HTTP/1.1":
            path = await server.subscribe(client, name, 20)
            await client.send(
                (
                    f"{method} {path}{ending} HTTP/1.1\r\nHost: localhost\r\nX-Rsio-Delivery: "
                    f"{delivery}\r\n\r\n"
                ).encode()
            )
        else:
            asking = Asking(client.connection.stream, INITIAL_WINDOW_SIZE=100)
            await asking.begin()
            path = await asking.subscribe(name, 20)
            await asking.send_request(f"{method} {path}{ending}", ("x-rsio-delivery", delivery))
        await trio.testing.wait_all_tasks_blocked()
        yield client


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("state", PATHS)
async def test_a_cancelled_server_ends_within_a_second(
    state: str, version: str, autojump_clock: Clock
) -> None:
    """The client reads nothing and answers nothing."""
    with trio.CancelScope() as scope:
        async with busy(state, version, drain=30):
            began = trio.current_time()
            scope.cancel()
            await trio.sleep_forever()
    assert trio.current_time() - began <= 1


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("state", PATHS)
async def test_a_shutdown_ends_within_its_time(
    state: str, version: str, autojump_clock: Clock
) -> None:
    """`Limits.drain`, and the time of a goodbye."""
    async with busy(state, version, drain=2):
        began = trio.current_time()
    assert trio.current_time() - began <= 3


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("a poll that waits", b"HTTP/1.1 503 Service Unavailable\r\n"),
        ("a streamed batch", b"0\r\n\r\n"),
        ("events", b"0\r\n\r\n"),
    ],
)
async def test_requests_that_wait_are_answered_in_a_shutdown(
    state: str, answer: bytes, autojump_clock: Clock
) -> None:
    """A poll gets 503 with ``X-Rsio-Error`` at once, the others end in good order. The connection
    ends after that.
    """
    received: list[bytes] = []
    async with trio.open_nursery() as reading, busy(state, "HTTP/1.1", drain=20) as client:

        async def read() -> None:
            received.append(await client.all())
            # A client that reads on sees the end at once.
            await client.abort()

        reading.start_soon(read)
        began = trio.current_time()
    assert answer in received[0]
    assert trio.current_time() - began <= 1.1
