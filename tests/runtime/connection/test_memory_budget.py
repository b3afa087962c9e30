"""The memory budget: the bytes that it counts, the connection that it closes, and
that no other one notices.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest
import trio

from penstock.api import ConnectionLost, LimitExceeded, Limits
from penstock.protocols import rsio
from penstock.runtime import Peer, Server, Service, connect, serve
from penstock.runtime.connection import MemoryBudget
from penstock.runtime.connection._memory_budget import FULL_FOR_ADDRESS, FULL_FOR_ALL
from penstock.session import TASK_BYTES
from penstock.spi import Connection
from tests.runtime._services import numbers_service, raw_connection

HELLO = bytes.fromhex("010000")


class Fake:
    """A connection that holds the bytes that a test gives it. After it was closed it holds none,
    unless its tasks have not ended yet: with `releases` False.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        size: int = 0,
        *,
        goes_first: bool = False,
        origin: str | None = None,
        releases: bool = True,
    ) -> None:
        self.size = size
        self.releases = releases
        self.goes_first = goes_first
        self.asked = 0
        self.cuts = 0
        self.why = ""
        budget.add(self, origin)

    def held(self) -> int:
        self.asked += 1
        return self.size

    def close_for_memory(self, why: LimitExceeded, told: str, /) -> None:
        assert (why.limit, why.value) == ("memory_budget", 1000)
        assert str(why).startswith(f"{self.size} bytes ")
        assert told == (FULL_FOR_ADDRESS if "a quarter" in str(why) else FULL_FOR_ALL)
        self.cuts += 1
        self.why = str(why)
        if self.releases:
            self.size = 0


def test_at_four_fifths_the_largest_is_closed() -> None:
    """799 of a thousand bytes are left alone; 800 are not."""
    budget = MemoryBudget(1000)
    large, small = Fake(budget, 500), Fake(budget, 299)
    budget.measure()
    assert (large.cuts, small.cuts) == (0, 0)
    small.size += 1
    budget.measure()
    assert (large.cuts, small.cuts) == (1, 0)


def test_those_that_have_taken_nothing_are_closed_first() -> None:
    """Before a larger one that has, and only those with more than an equal share."""
    budget = MemoryBudget(1000)
    honest, small = Fake(budget, 450), Fake(budget, 10, goes_first=True)
    asking = [Fake(budget, size, goes_first=True) for size in (205, 210)]
    budget.measure()
    assert [each.cuts for each in (honest, small, *asking)] == [0, 0, 0, 1]
    small.size = 500
    budget.measure()
    assert [each.cuts for each in (honest, small, *asking)] == [0, 1, 0, 1]


def test_the_largest_connections_are_closed_until_it_is_enough() -> None:
    """In the order of their bytes, until it is less than 80 %; no connection is closed twice."""
    budget = MemoryBudget(1000)
    sizes = [100, 600, 300, 200, 0]
    holders = [Fake(budget, size) for size in sizes]
    budget.measure()
    assert [holder.cuts for holder in holders] == [0, 1, 0, 0, 0]
    holders[1].size = 600  # it had more that it could not let go of at once
    budget.measure()
    assert [holder.cuts for holder in holders] == [0, 1, 1, 1, 0]


def test_small_connections_are_not_closed_for_a_large_one_that_is_closing() -> None:
    """The bytes that a closing connection still holds do not cause the end of a connection below
    an equal share.
    """
    budget = MemoryBudget(1000)
    large, small = Fake(budget, 900), [Fake(budget, 40) for _ in range(9)]
    budget.measure()
    large.size = 900  # its publishers take their time to stop
    for _ in range(3):
        budget.measure()
    assert large.cuts == 1
    assert [each.cuts for each in small] == [0] * 9
    small[0].size = 80  # an equal share
    budget.measure()
    assert [each.cuts for each in small] == [1, *[0] * 8]


def test_no_more_are_closed_at_once_because_their_tasks_end_later() -> None:
    """100 that held the same were closed in one pass: the cancels of 10,000 tasks took 166 ms of
    the run loop. If the memory is not given back, the next measurement closes others.
    """
    budget = MemoryBudget(1000)
    peers = [Fake(budget, 100, origin="one", releases=False) for _ in range(4)]
    budget.measure()
    assert sum(peer.cuts for peer in peers) == 2
    budget.measure()
    assert [peer.cuts for peer in peers] == [1] * 4


def test_connections_are_measured_only_when_enough_bytes_have_moved() -> None:
    """A quarter of the bytes that are left, for all or for the address that holds most; a removed
    connection is not measured.
    """
    budget = MemoryBudget(1000)
    holder, gone = Fake(budget, 700), Fake(budget, 900)
    budget.remove(gone)
    for _ in range(62):
        budget.note_bytes(1)
    assert holder.asked == 0
    budget.note_bytes(1)
    assert (holder.asked, gone.asked) == (1, 0)
    budget.note_bytes(24)
    assert holder.asked == 1
    budget.note_bytes(1)
    assert holder.asked == 2
    Fake(budget, 50, origin="a")
    holder.size = 0
    budget.note_bytes(25)
    budget.note_bytes(49)
    assert holder.asked == 3
    budget.note_bytes(1)
    assert holder.asked == 4


def test_the_connections_of_one_address_have_a_quarter() -> None:
    """The largest of them is closed, and the next, until they hold less; no other one is."""
    budget = MemoryBudget(1000)
    near = [Fake(budget, size, origin="near") for size in (90, 80, 79)]
    far = [Fake(budget, 120, origin=f"far {number}") for number in range(4)]
    without = Fake(budget, 50)
    budget.measure()
    assert not any(each.cuts for each in (*near, *far, without))
    near[2].size += 1
    budget.measure()
    assert [each.cuts for each in near] == [1, 0, 0]
    assert "of its address, and these together a quarter of 1,000" in near[0].why
    assert not any(each.cuts for each in (*far, without))
    # The bytes that the address gives back are enough for all.
    without.size, near[1].size = 150, 200
    budget.measure()
    assert [each.cuts for each in near] == [1, 1, 0]
    assert not any(each.cuts for each in (*far, without))


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


def _held_by(server: Server) -> int:
    budget = server._settings.budget
    assert isinstance(budget, MemoryBudget)
    return budget.held()


def _held_by_open(server: Server) -> int:
    """Return what the connections hold that were not told to close: the others have bytes in
    flight until their goodbye.
    """
    budget = server._settings.budget
    assert isinstance(budget, MemoryBudget)
    return sum(holder.held() for holder in budget._holders.keys() - budget._closed)


async def _until_closed(raw: Connection) -> bytes:
    heard = bytearray()
    with trio.fail_after(60):
        try:
            while (data := await raw.receive()) is not None:
                heard += data
        except trio.BrokenResourceError:
            pass
    return bytes(heard)


async def test_the_connection_that_holds_most_is_cut_and_the_others_go_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its peer gets `limit:memory`, the server reports it, and a peer
    that reads is served as before.
    """
    told: list[Exception] = []
    limits = replace(Limits(), memory_budget=100_000, max_element=50_000)
    async with (
        trio.open_nursery() as nursery,
        serve(
            _reading_service(), "memory://test", limits=limits, on_violation=told.append
        ) as server,
    ):
        async with (
            connect(server.addresses[0]) as peer,
            peer.subscribe("numbers/100000", serializer="json", demand=2) as canary,
        ):
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


@pytest.mark.parametrize("size", [100_000, 1_000_000])
async def test_a_peer_that_reads_nothing_makes_a_server_hold_two_large_elements(
    size: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever the number of its streams; when it reads, every stream goes on."""
    service = Service()

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        for _ in range(2):
            yield bytes(size)

    async with trio.open_nursery() as nursery, serve(service, "memory://test") as server:
        raw = await _hog(nursery)
        for each in range(100):
            await raw.send(
                rsio.encode(rsio.Subscribe(publisher="large", subscriber=each, demand=5))
            )
        await trio.sleep(1)
        assert 2 * size <= _held_by(server) <= 2 * size + 400_000
        heard = 0
        with trio.fail_after(60):
            while heard < 200 * size:
                heard += len(await raw.receive() or b"")
        await raw.abort()


async def test_newcomers_are_accepted_while_one_connection_holds_all_that_is_allowed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is cut; the others, and those who come then, are served."""
    limits = replace(Limits(), memory_budget=1_000_000, partial_age=1e9)
    part = rsio.encode(rsio.OnNextPart(subscriber=0, element=0, data=bytes(100_000)))
    async with (
        trio.open_nursery() as nursery,
        serve(
            numbers_service(), "memory://test", limits=limits, on_violation=lambda _: None
        ) as server,
    ):
        hog = await _hog(nursery)
        while not server.peers:
            await trio.lowlevel.checkpoint()
        async with server.peers[0].subscribe("parts", demand=5) as parts:
            with suppress(trio.BrokenResourceError):
                await hog.send(rsio.encode(rsio.OnSubscribe(subscriber=0)) + part * 12)
            async with (
                connect(server.addresses[0]) as peer,
                peer.subscribe("numbers/3", serializer="json") as numbers,
            ):
                assert [number async for number in numbers] == [0, 1, 2]
            with pytest.raises(ConnectionLost, match="80 % of"):
                await anext(parts)
        await hog.abort()


async def test_tasks_and_data_of_requests_are_counted_until_they_have_stopped(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A stream, its task and its data each have their price;
    after the handlers have stopped nothing is left of it.
    """
    service, may_stop = Service(), trio.Event()

    @service.request("keep")
    async def keep(payload: bytes) -> bytes:
        with trio.CancelScope(shield=True):
            await may_stop.wait()
        return payload

    async with serve(service, "memory://test") as server:
        async with connect(f"rsio+{server.addresses[0]}") as peer:
            await peer.wait_accepted()
            before = _held_by(server)
            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(peer.request, "keep", bytes(10_000))
                await trio.testing.wait_all_tasks_blocked()
                assert (
                    10 * (20_000 + TASK_BYTES)
                    <= _held_by(server) - before
                    <= 10 * (21_000 + TASK_BYTES)
                )
                nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert (
                10 * (20_000 + TASK_BYTES)
                <= _held_by(server) - before
                <= 10 * (21_000 + TASK_BYTES)
            )
            may_stop.set()
            await trio.testing.wait_all_tasks_blocked()
            assert _held_by(server) == before


async def test_the_budget_holds_with_many_large_connections(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty peers send elements that never end, and never read what they requested:
    the budget is exceeded at no time.
    """
    limits = replace(
        Limits(), memory_budget=1_000_000, max_element=200_000, partial_age=1e9, write_stall=1e9
    )
    part = rsio.encode(rsio.OnNextPart(subscriber=0, element=0, data=bytes(5000)))
    held: list[int] = []

    async def attack(raw: Connection, peer: Peer) -> None:
        async with peer.subscribe("parts", demand=5) as parts:
            with suppress(trio.BrokenResourceError), trio.move_on_after(20):
                await raw.send(
                    rsio.encode(rsio.OnSubscribe(subscriber=0)) + b"\x10\x05large\x00\x64"
                )
                for _ in range(39):
                    await raw.send(part)
                    held.append(_held_by_open(server))
            await raw.abort()
            with suppress(ConnectionLost):
                await anext(parts)

    async with (
        trio.open_nursery() as nursery,
        serve(
            _reading_service(), "memory://test", limits=limits, on_violation=lambda _: None
        ) as server,
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
    assert 500_000 < max(held) < 1_000_000
