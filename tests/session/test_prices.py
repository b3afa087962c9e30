"""The flat prices are what the objects cost:
an account that is too low would let a peer hold more than the budget.
"""

import gc
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from penstock.protocols import rsio
from penstock.runtime import Service, serve
from penstock.session import STREAM_BYTES, TASK_BYTES
from tests.runtime._services import raw_connection

COUNT = 500
HELLO = bytes.fromhex("010000")


@pytest.fixture(autouse=True)
def _tracemalloc() -> Iterator[None]:
    # The tracer of coverage allocates for each suspended frame,
    # which would count as the cost of a stream.
    tracer = sys.gettrace()
    sys.settrace(None)
    tracemalloc.start()
    yield
    tracemalloc.stop()
    sys.settrace(tracer)


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(("demand", "price"), [(0, STREAM_BYTES), (5, STREAM_BYTES + TASK_BYTES)])
async def test_a_stream_costs_no_more_than_its_price(demand: int, price: int) -> None:
    """Without demand it has no task; with demand its generator waits in one."""
    service = Service()

    @service.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    async with trio.open_nursery() as nursery, serve(service, "memory://test"):
        raw = await raw_connection(nursery)

        async def subscribe(first: int) -> None:
            streams = range(first, first + COUNT)
            await raw.send(
                b"".join(
                    rsio.encode(rsio.Subscribe(publisher="waits", subscriber=each, demand=demand))
                    for each in streams
                )
            )
            await trio.testing.wait_all_tasks_blocked()
            # With demand, the acceptance would go out with the first signal of the generator.
            if not demand:
                await raw.receive()

        await raw.send(HELLO)
        await subscribe(1000)  # tables and caches grow with the first streams
        before = _allocated()
        await subscribe(2000)
        cost = (_allocated() - before) / COUNT
        assert 0.5 * price <= cost <= price
        await raw.abort()
