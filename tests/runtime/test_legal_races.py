"""Messages that cross on the wire are legal, and never end a connection,
however long it is in use.
"""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from penstock import Limits, PublicError, PublisherFailed, Rejected, Service, connect, serve
from penstock.runtime import Peer

PROTOCOLS = ("rsio", "reactivesocket")
TIMEOUT = 0.05
SECONDS = 15
"""With 33 oddities and 33 short streams a second after 1,000,
a connection in such use once ended within 8 seconds.
"""


def slow_service() -> Service:
    """Return a service that answers later than its clients wait, or at the same time."""
    service = Service()
    count = 0

    @service.request("slow")
    async def slow(payload: bytes) -> bytes:
        nonlocal count
        count += 1
        # Most answers are given up; the others come together with the deadline.
        await trio.sleep(1.0 if count % 4 else TIMEOUT)
        if count % 8:
            raise PublicError("too late")
        return payload

    return service


async def ask_for_seconds(peer: Peer, payload: bytes) -> int:
    """Ask with a deadline, again and again. Return the number of deadlines that have passed."""
    passed = 0
    ends = trio.current_time() + SECONDS
    while trio.current_time() < ends:
        with trio.move_on_after(TIMEOUT) as scope:
            try:
                await peer.request("slow", payload)
            except PublisherFailed as error:
                assert "too late" in str(error)  # noqa: PT017  # the answer was a failure
        passed += scope.cancelled_caught
    return passed


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_eight_tasks_with_short_deadlines_keep_their_connection(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Each gives up after 50 ms: 2,400 requests, most of which are cancelled."""
    async with (
        serve(slow_service(), "memory://r") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        passed: list[int] = []

        async def work(number: int) -> None:
            passed.append(await ask_for_seconds(peer, bytes(number * 3_000)))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(work, number)
        assert peer.is_connected
        assert sum(passed) > 100 * SECONDS


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_streams_that_are_left_early_keep_their_connection(
    protocol: str, autojump_clock: MockClock
) -> None:
    """300 streams, each with an element of many parts under way when its reader leaves."""
    service = Service()

    @service.publisher("large")
    async def large() -> object:
        for _ in range(3):
            yield bytes(100_000)

    limits = replace(Limits(), glitch_burst=20, glitch_rate=1e-9)
    async with (
        serve(service, "memory://l") as server,
        connect(f"{protocol}+{server.addresses[0]}", limits=limits) as peer,
    ):
        for _ in range(300):
            async with peer.subscribe("large", demand=2) as stream:
                async for _ in stream:
                    break
            await trio.sleep(0.002)
        assert await peer.request("large") == bytes(100_000)


async def test_the_data_of_refused_requests_costs_nothing(autojump_clock: MockClock) -> None:
    """64 requests of 1 MiB at once:
    most are refused while their parts are on the way, over and over.
    """
    service = Service()

    @service.request("size")
    async def size(payload: bytes) -> str:
        await trio.sleep(1)
        return str(len(payload))

    async with serve(service, "memory://d") as server, connect(server.addresses[0]) as peer:
        refused = 0

        async def ask() -> None:
            nonlocal refused
            try:
                assert await peer.request("size", bytes(1 << 20), type=str) == str(1 << 20)
            except Rejected:
                refused += 1

        for _ in range(3):
            async with trio.open_nursery() as nursery:
                for _ in range(64):
                    nursery.start_soon(ask)
        assert peer.is_connected
        assert refused > 64
