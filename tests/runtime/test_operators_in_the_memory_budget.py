"""What an operator of a published pipe holds for a slow peer counts for that peer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock import Service, connect, ops, pipe, serve
from penstock.runtime.connection._memory_budget import FULL_FOR_ADDRESS
from penstock.testing import ManualSubscriber
from tests.runtime.server.test_hosted_streams import Fixture, PlainSubscriber

SIZE = 10_000
KEPT = 10
PEERS = 20


async def _elements() -> AsyncIterator[bytes]:
    """New objects: elements that are the same object would cost nothing."""
    for _ in range(KEPT):
        yield bytes(SIZE)
    await trio.sleep_forever()


HOLDERS = {
    "buffer": (ops.buffer(KEPT), KEPT - 1),
    "batch": (ops.batch(KEPT + 1), KEPT),
    "timed batch": (ops.batch(KEPT + 1, 3_600.0), KEPT),
    # A server asks for a few elements first, and for more when it has sent them.
    "delay": (ops.delay(3_600.0), 1),
}
"""How many of the first elements each of them holds when its subscriber has requested one."""


@pytest.mark.parametrize("name", HOLDERS)
async def test_elements_that_an_operator_holds_count_for_the_connection(name: str) -> None:
    """Until they are passed on, or the peer leaves."""
    service = Service()
    operator, least = HOLDERS[name]
    service.publisher("held", type=int)(lambda: pipe(_elements, operator, ops.map(len)))
    async with (
        serve(service, "memory://test") as server,
        connect("memory://test") as peer,
        trio.open_nursery() as nursery,
    ):
        subscribers = [ManualSubscriber(within=5.0) for _ in range(PEERS)]
        for each in subscribers:
            peer.source("held", type=int).publisher(nursery).subscribe(each)
            each.request(1)
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes >= PEERS * least * SIZE
        for each in subscribers:
            each.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes < PEERS * SIZE // 10
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seconds", [None, 3_600.0])
async def test_what_is_passed_on_counts_no_more(seconds: float | None) -> None:
    """Here the next operator drops it."""
    service = Service()
    parts: Any = [ops.buffer(KEPT), ops.batch(KEPT // 2, seconds), ops.filter(lambda _: False)]
    service.publisher("held", type=int)(lambda: pipe(_elements, *parts))
    async with (
        serve(service, "memory://test") as server,
        connect("memory://test") as peer,
        trio.open_nursery() as nursery,
    ):
        subscriber = ManualSubscriber(within=5.0)
        peer.source("held", type=int).publisher(nursery).subscribe(subscriber)
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes >= KEPT * SIZE
        subscriber.request(KEPT)
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes < 2 * SIZE
        nursery.cancel_scope.cancel()


async def test_a_peer_whose_buffer_is_above_the_budget_is_cut() -> None:
    """Inside the signal that fills the buffer. Nothing stays counted."""
    async with trio.open_nursery() as nursery:
        # A quarter of it is for the address of the client.
        fixture = Fixture(nursery, memory_budget=4 * KEPT * SIZE)
        elements = pipe(_elements, ops.start_with(*(bytes(SIZE) for _ in range(KEPT))))
        fixture.service.publisher("held")(lambda: pipe(elements, ops.buffer(2 * KEPT)))
        subscriber: Any = PlainSubscriber()
        await fixture.open("held", subscriber)
        await trio.testing.wait_all_tasks_blocked()
        assert str(subscriber.error) == FULL_FOR_ADDRESS
        assert fixture.budget.held() == 0
        fixture.streams.stop()
