"""The bytes that resume adds to a connection that does nothing."""

import gc
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio.testing

import penstock
from penstock.runtime import Service, connect, serve

pytestmark = pytest.mark.slow  # each allocation is traced

CONNECTIONS = 32
AT_MOST = 1 << 10
"""Bytes for one side of one connection: the token, the counts, and the last bytes that are not
acknowledged. Measured: 860.
"""

OWN = str(Path(penstock.__file__).parent)
"""The code whose allocations count."""

STALE_DEADLINES = 2_500
"""With this number trio tidies its heap of deadlines, which keeps the tasks of those that are over:
noise of several KiB.
"""


def _held() -> int:
    """Return the bytes that lines of penstock have allocated and that are still held."""
    for _ in range(STALE_DEADLINES):
        with trio.move_on_after(1):  # noqa: ASYNC100  # only its deadline counts
            pass
    gc.collect()
    # Not with `filter_traces`, which takes ten times as long.
    return sum(
        trace.size
        for trace in tracemalloc.take_snapshot().traces
        if OWN in trace.traceback[0].filename
    )


async def _bytes_of_connections(*, resume: bool) -> float:
    """Return the bytes of both sides of one connection."""
    async with serve(Service(), "memory://idle", resume=resume), AsyncExitStack() as stack:

        async def open_one() -> None:
            peer = await stack.enter_async_context(connect("memory://idle", resume=resume))
            await peer.wait_accepted()

        await open_one()  # objects that all connections share are made once
        before = _held()
        for _ in range(CONNECTIONS):
            await open_one()
        await trio.sleep(1)  # the acknowledgements have come and gone
        return (_held() - before) / CONNECTIONS


@pytest.mark.heavy
async def test_an_idle_connection_with_resume_costs_no_kibibyte_more(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """On each side, in the objects of penstock."""
    tracemalloc.start()
    try:
        await _bytes_of_connections(resume=True)  # objects of the process are made once
        without, with_resume = (
            await _bytes_of_connections(resume=False),
            await _bytes_of_connections(resume=True),
        )
    finally:
        tracemalloc.stop()
    assert 0 < with_resume - without <= 2 * AT_MOST, (without, with_resume)
