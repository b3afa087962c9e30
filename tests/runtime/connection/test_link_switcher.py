"""An idle connection has two tasks on each side.
Others come when there is something to wait for, and go again.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock.runtime import Service, connect, serve
from penstock.runtime.connection._writer import REST_SECONDS


def _tasks_below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _tasks_below(child)


def _names() -> Counter[str]:
    return Counter(
        task.name.rpartition(".")[2] for task in _tasks_below(trio.lowlevel.current_task())
    )


def _large_service() -> Service:
    service = Service()

    @service.publisher("large")
    async def large() -> Any:
        while True:
            yield bytes(1 << 20)

    return service


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_an_idle_connection_has_two_tasks_on_each_side(
    protocol: str, autojump_clock: trio.testing.MockClock
) -> None:
    """One waits for the end and ticks, the other reads: no task waits to send."""
    async with serve(Service(), f"{protocol}+memory://idle") as server:
        await trio.testing.wait_all_tasks_blocked()
        before = _names()
        async with connect(server.addresses[0]), connect(server.addresses[0]):
            # transports in memory take nothing at once, so the hellos had a writer.
            await trio.sleep(3 * REST_SECONDS)
            assert +(_names() - before) == {"_serve_one": 2, "_run": 2, "penstock reader": 4}
        await trio.testing.wait_all_tasks_blocked()
        assert _names() == before


async def test_a_writer_without_work_costs_no_task(autojump_clock: trio.testing.MockClock) -> None:
    """It has one while the peer does not read, and for a while after that."""
    async with (
        serve(_large_service(), "rsio+memory://idle") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("large", demand=1) as stream:
            await anext(stream)
            assert _names()["penstock writer"] > 0
        await trio.sleep(3 * REST_SECONDS)
        assert _names()["penstock writer"] == 0
