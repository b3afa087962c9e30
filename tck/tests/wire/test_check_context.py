"""Where a check works: it opens connections, and leaves none behind."""

import trio
import trio.testing
from penstock_tck.wire import Target
from penstock_tck.wire._check_context import CheckContext

from penstock.plugins import Connection, TransportOptions
from tck.tests.wire._scripted_target import PARSED_URL, REGISTRY, serve_script


async def test_what_was_opened_is_closed(autojump_clock) -> None:
    """Both connections of a check end for the target when the context closes, and not before."""
    ended = []

    async def listens(connection: Connection, fault: str) -> None:
        while await connection.receive():
            pass
        ended.append(connection)

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, listens, "")
        context = CheckContext(PARSED_URL, Target(), REGISTRY, TransportOptions(), nursery)
        await context.connect_reactivesocket()
        await context.connect_reactivesocket(setup=False)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == []
        await context.close()
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == 2
        nursery.cancel_scope.cancel()
