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
    """A subscribe of sixty bytes once made the server hold eight elements. A poll whose answer is
    not read makes it hold one.
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


async def _poll_unread(server: World, nursery: trio.Nursery, *headers: str) -> Client:
    """Take one element, then ask for all that may be kept, and read nothing of the answer."""
    client = await server.connect(nursery)
    path = await server.subscribe(client, "blobs", 1 << 62)
    await _take(client, path, 1)
    await client.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n".encode())
    await client.send("".join(f"{header}\r\n" for header in (*headers, "")).encode())
    await trio.testing.wait_all_tasks_blocked()
    return client


async def test_an_answer_that_nobody_reads_counts_as_long_as_it_is_written(
    autojump_clock: Clock,
) -> None:
    """A body has copies of its elements, and they count as well. They count also when a request
    over another connection has let the elements go, or has cancelled the stream.
    """
    async with world(Blobs().service) as (server, nursery):
        counted = server.server.statistics
        reader = await _poll_unread(server, nursery)
        assert 1.9 * 1024 * KIB < counted().buffered_bytes < 2.2 * 1024 * KIB
        [entry] = server.site.engine._entries.values()
        path = f"/s/{next(iter(server.site.engine._entries))}"
        other = await server.connect(nursery)
        position = f"X-Rsio-Position: {entry.subscription.sent}"
        assert (await other.ask(f"PUT {path}", position, POSITIONS)).status == 200
        assert counted().buffered_bytes > 0.9 * 1024 * KIB
        assert (await other.ask(f"PUT {path}/cancel")).status == 200
        assert counted().buffered_bytes > 0.9 * 1024 * KIB
        await reader.answer()
        await trio.testing.wait_all_tasks_blocked()
        assert counted().buffered_bytes == 0


@pytest.mark.parametrize(
    "headers", [(), (POSITIONS,), ("X-Rsio-Delivery: stream",)], ids=["batch", "one", "streamed"]
)
async def test_the_answer_of_a_client_that_is_cut_ends_at_once(
    autojump_clock: Clock, headers: tuple[str, ...]
) -> None:
    """A thousand connections that read nothing once held 2.2 GiB, and 205 MiB were counted: their
    streams ended, and the answers that were being written stayed for `Limits.write_stall`.
    """
    limits = Limits(memory_budget=20 * 1024 * KIB)
    async with world(Blobs().service, limits=limits) as (server, nursery):
        began = trio.current_time()
        for _ in range(40):
            await _poll_unread(server, nursery, *headers)
        held = [len(entry.subscription._writes) for entry in server.site.engine._entries.values()]
        assert trio.current_time() == began
        ended = [
            entry.subscription.ended is not None for entry in server.site.engine._entries.values()
        ]
        assert 10 < sum(ended) < 40
        assert all(writes == 0 for writes, over in zip(held, ended, strict=True) if over)
        assert server.server.statistics().buffered_bytes < limits.memory_budget
