"""Strangers that ask for much and take nothing, beside honest clients of the same server."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing
from _site_in_memory import Client, World, world

from penstock import LimitExceeded, Limits, Service

Clock = trio.testing.MockClock

KIB = 1024
ELEMENT = 100 * KIB
HONEST = 20
STRANGERS = 200

POSITIONS = "Accept-Encoding: identity"
NOW = "Prefer: wait=0"


class Blobs:
    """A service whose elements are large. It counts them."""

    def __init__(self) -> None:
        self.made = 0
        self.service = Service()

        @self.service.publisher("blobs")
        async def blobs() -> AsyncIterator[bytes]:
            while True:
                self.made += 1
                yield bytes(ELEMENT)


async def _take(client: Client, path: str, count: int) -> None:
    """Take `count` elements, one with each poll."""
    for _ in range(count):
        answer = await client.ask(f"PUT {path}?request=1", POSITIONS)
        assert (answer.status, len(answer.body)) == (200, ELEMENT), answer.raw[:300]


async def _subscribe(server: World, client: Client, count: int) -> list[str]:
    return [await server.subscribe(client, "blobs", 1 << 62) for _ in range(count)]


async def test_a_subscribe_makes_the_server_hold_no_element(autojump_clock: Clock) -> None:
    """Sixty bytes once made it hold eight elements. A poll, whose answer nobody takes, makes it
    hold one.
    """
    blobs = Blobs()
    async with world(blobs.service) as (server, nursery):
        client = await server.connect(nursery)
        paths = await _subscribe(server, client, STRANGERS)
        for path in paths:
            await client.ask(f"PUT {path}/requestMore=1000")
        await trio.testing.wait_all_tasks_blocked()
        assert blobs.made == 0
        assert server.server.statistics().buffered_bytes < STRANGERS * 7 * KIB
        for path in paths:
            await client.ask(f"PUT {path}", NOW)
        await trio.testing.wait_all_tasks_blocked()
        assert blobs.made == STRANGERS


async def test_the_statistics_count_what_clients_have_not_taken(autojump_clock: Clock) -> None:
    """The documented alert compares it with the memory budget."""
    async with world(Blobs().service) as (server, nursery):
        client = await server.connect(nursery)
        for path in await _subscribe(server, client, 5):
            await client.ask(f"PUT {path}", NOW)
        await trio.testing.wait_all_tasks_blocked()
        assert server.server.statistics().buffered_bytes >= 5 * ELEMENT


@pytest.mark.parametrize("polls", [False, True], ids=["never polled", "polled once"])
async def test_no_honest_client_is_cut_for_strangers_that_take_nothing(
    autojump_clock: Clock, *, polls: bool
) -> None:
    """Three quarters of the honest streams once ended with 503. Those that have taken nothing go
    first, also if the honest ones hold as much or more.
    """
    limits = Limits(memory_budget=40 * 1024 * KIB)
    async with world(Blobs().service, limits=limits) as (server, nursery):
        honest, stranger = await server.connect(nursery), await server.connect(nursery)
        paths = await _subscribe(server, honest, HONEST)
        for path in paths:
            await _take(honest, path, 2)
        theirs = await _subscribe(server, stranger, STRANGERS)
        for path in theirs if polls else ():
            await stranger.ask(f"PUT {path}", NOW)
        for path in paths:
            await _take(honest, path, 2)
        assert server.server.statistics().buffered_bytes < limits.memory_budget
        if not polls:
            assert server.told == []
            return
        assert {type(error) for error in server.told} == {LimitExceeded}
        answers = [await stranger.ask(f"PUT {path}", NOW, POSITIONS) for path in theirs]
        assert {answer.status for answer in answers} >= {503}
        assert all(answer.status in {200, 503} for answer in answers)


async def test_strangers_that_never_poll_keep_nobody_out(autojump_clock: Clock) -> None:
    """Each newcomer takes the place of the oldest stream that was not polled. Once all have polled,
    a newcomer is told what is true, and may come again. All of that is counted.
    """
    limits = Limits(max_connections=50)
    async with world(Blobs().service, limits=limits) as (server, nursery):
        stranger, honest = await server.connect(nursery), await server.connect(nursery)
        await _subscribe(server, stranger, STRANGERS)
        assert server.server.refused == {"places:unasked": STRANGERS - 50}
        for _ in range(50):
            [path] = await _subscribe(server, honest, 1)
            await _take(honest, path, 1)
        assert server.server.refused == {"places:unasked": STRANGERS}
        refused = await honest.ask("PUT /p/blobs")
        assert (refused.status, refused.headers.get("x-rsio-error")) == (503, None)
        assert refused.headers["retry-after"] == "5"
        assert refused.body == b"the server has as many streams as it may have\n"
        assert server.server.refused == {"places:unasked": STRANGERS, "places:streams": 1}
