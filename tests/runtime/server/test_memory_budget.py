"""The memory budget of a server: which connection waits, is refused, or is closed."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest
import trio

from penstock.api import ConnectionLost, Limits
from penstock.plugins import Connection
from penstock.protocols import rsio
from penstock.runtime import Peer, Service, connect, serve
from penstock.runtime.server._memory_budget import MemoryBudget
from tests.runtime._services import numbers_service, raw_connection

HELLO = bytes.fromhex("010000")


class Fake:
    """A connection that holds the bytes that a test gives it, and none after it was closed."""

    def __init__(self, budget: MemoryBudget, size: int = 0) -> None:
        self.size = size
        self.asked = 0
        self.cuts = 0
        budget.add(self)

    def held(self) -> int:
        self.asked += 1
        return self.size

    def close_for_memory(self, held: int, budget: int, /) -> None:
        assert (held, budget) == (self.size, 1000)
        self.cuts += 1
        self.size = 0


@pytest.mark.parametrize(
    ("size", "tight", "full", "cuts"),
    [(799, 0, 0, 0), (800, 1, 0, 0), (899, 1, 0, 0), (900, 1, 1, 0), (949, 1, 1, 0), (950, 0, 0, 1)],
)
def test_each_threshold_has_its_value(size: int, tight: int, full: int, cuts: int) -> None:
    """80, 90 and 95 per cent of a thousand bytes."""
    budget = MemoryBudget(1000)
    holder = Fake(budget, size)
    budget.measure()
    assert (budget.is_tight, budget.is_full, holder.cuts) == (tight, full, cuts)


def test_the_largest_connections_are_closed_until_it_is_enough() -> None:
    """In the order of their bytes, until it is less than 95 %; no connection is closed twice."""
    budget = MemoryBudget(1000)
    sizes = [100, 500, 300, 200, 0]
    holders = [Fake(budget, size) for size in sizes]
    budget.measure()
    assert [holder.cuts for holder in holders] == [0, 1, 0, 0, 0]
    holders[1].size = 500  # it had more that it could not let go of at once
    budget.measure()
    assert [holder.cuts for holder in holders] == [0, 1, 1, 0, 0]


def test_connections_are_measured_only_when_enough_bytes_have_moved() -> None:
    """A quarter of the room below the first threshold; a removed connection is not measured."""
    budget = MemoryBudget(1000)
    holder, gone = Fake(budget, 400), Fake(budget, 900)
    budget.remove(gone)
    for _ in range(199):
        budget.note_bytes(1)
    assert holder.asked == 0
    budget.note_bytes(1)
    assert (holder.asked, gone.asked) == (1, 0)
    budget.note_bytes(99)
    assert holder.asked == 1
    budget.note_bytes(1)
    assert holder.asked == 2


async def test_only_a_connection_above_its_share_waits(autojump_clock: trio.testing.MockClock) -> None:
    """It goes on as soon as memory is free."""
    budget = MemoryBudget(1000)
    greedy, modest = Fake(budget, 810), Fake(budget, 10)
    budget.measure()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(budget.watch)
        with trio.fail_after(0.01):
            await budget.wait_for_room(modest)
        with trio.move_on_after(10) as waiting:
            await budget.wait_for_room(greedy)
        assert waiting.cancelled_caught
        greedy.size = 700
        with trio.fail_after(0.06):
            await budget.wait_for_room(greedy)
        nursery.cancel_scope.cancel()


async def test_no_timer_runs_while_memory_is_not_tight(autojump_clock: trio.testing.MockClock) -> None:
    """For hours; while it is tight, there are twenty measurements a second."""
    budget = MemoryBudget(1000)
    holder = Fake(budget, 700)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(budget.watch)
        await trio.sleep(10_000)
        assert holder.asked == 0
        holder.size = 850
        budget.note_bytes(200)
        await trio.sleep(1.01)
        assert holder.asked == 1 + 20
        holder.size = 700
        await trio.sleep(10_000)
        assert holder.asked == 1 + 20 + 1
        nursery.cancel_scope.cancel()


# --- over a server


async def _hog(nursery: trio.Nursery) -> Connection:
    raw = await raw_connection(nursery)
    await raw.send(HELLO)
    return raw


def _reading_service() -> Service:
    service = numbers_service()

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        while True:
            yield bytes(20_000)

    return service


async def _until_closed(raw: Connection) -> bytes:
    heard = bytearray()
    with trio.fail_after(60):
        try:
            while (data := await raw.receive()) is not None:
                heard += data
        except trio.BrokenResourceError:
            pass
    return bytes(heard)


async def test_the_connection_that_holds_most_is_cut_and_the_others_go_on(autojump_clock: trio.testing.MockClock) -> None:
    """Its peer gets `limit:memory`, the server reports it, and a peer that reads is served as before."""
    told: list[Exception] = []
    limits = replace(Limits(), memory_budget=100_000, max_element=50_000)
    async with (
        trio.open_nursery() as nursery,
        serve(_reading_service(), "memory://test", limits=limits, on_violation=told.append) as server,
    ):
        async with connect(server.addresses[0]) as peer, peer.subscribe("numbers/100000", serializer="json", demand=2) as canary:
            await anext(canary)
            hog = await _hog(nursery)
            for each in range(8):
                await hog.send(b"\x10\x05large" + bytes([each, 100]))
            await trio.sleep(0.1)
            heard = await _until_closed(hog)
            assert heard.endswith(b"\x03\x0climit:memory")
            assert len(told) == 1
            assert "memory_budget" in str(told[0])
            for _ in range(50):
                await anext(canary)
            await hog.abort()


async def test_while_memory_is_full_no_connection_is_accepted(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed at once; when there is room again, the next one is accepted."""
    async with trio.open_nursery() as nursery, serve(numbers_service(), "memory://test") as server:
        monkeypatch.setattr(server._budget, "is_full", True)
        refused = await _hog(nursery)
        assert await _until_closed(refused) == b""
        monkeypatch.setattr(server._budget, "is_full", False)
        welcome = await _hog(nursery)
        assert (await welcome.receive() or b"")[:1] == b"\x02"
        for each in (refused, welcome):
            await each.abort()


async def test_the_budget_holds_with_many_large_connections(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty peers send elements that never end, and never read what they requested: the budget is exceeded at no time."""
    limits = replace(Limits(), memory_budget=1_000_000, max_element=200_000, partial_age=1e9, write_stall=1e9)
    part = rsio.encode(rsio.OnNextPart(subscriber=0, element=0, data=bytes(5000)))
    held: list[int] = []

    async def attack(raw: Connection, peer: Peer) -> None:
        async with peer.subscribe("parts", demand=5) as parts:
            with suppress(trio.BrokenResourceError), trio.move_on_after(20):
                await raw.send(rsio.encode(rsio.OnSubscribe(subscriber=0)) + b"\x10\x05large\x00\x64")
                for _ in range(39):
                    await raw.send(part)
                    held.append(sum(holder.held() for holder in server._budget._holders))
            await raw.abort()
            with suppress(ConnectionLost):
                await anext(parts)

    async with (
        trio.open_nursery() as nursery,
        serve(_reading_service(), "memory://test", limits=limits, on_violation=lambda _: None) as server,
    ):
        hogs = []
        for each in range(30):
            raw = await _hog(nursery)
            while len(server.peers) <= each:
                await trio.lowlevel.checkpoint()
            hogs.append((raw, server.peers[-1]))
        for raw, peer in hogs:
            nursery.start_soon(attack, raw, peer)
        await trio.sleep(30)
        assert server._budget.is_tight is server._budget.is_full is False
    assert 800_000 < max(held) < 1_000_000
