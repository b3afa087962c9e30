"""The context of a check: it opens connections, and closes all of them."""

import trio
import trio.testing
from penstock_tck.wire import Target
from penstock_tck.wire._check_context import CheckContext

from penstock.spi import Connection, TransportOptions
from tck.tests.wire._scripted_target import PARSED_URL, REGISTRY, serve_script


async def test_close_closes_all_connections(autojump_clock) -> None:
    """The target sees the end of both connections when the context is closed, and not before."""
    ended = []

    async def record_end(connection: Connection, fault: str) -> None:
        while await connection.receive():
            pass
        ended.append(connection)

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, record_end, "")
        context = CheckContext(PARSED_URL, Target(), REGISTRY, TransportOptions(), nursery)
        await context.connect_reactivesocket()
        await context.connect_reactivesocket(setup=False)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == []
        await context.close()
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == 2
        nursery.cancel_scope.cancel()
