"""Where a check works: it opens connections, and leaves none behind."""

import trio
import trio.testing
from penstock_tck.wire import Target
from penstock_tck.wire._lab import Lab

from penstock.plugins import Connection, TransportOptions
from tck.tests.wire._stage import PLACE, REGISTRY, _accept


async def test_what_was_opened_is_closed(autojump_clock) -> None:
    """Both connections of a check end for the target when the lab closes, and not before."""
    ended = []

    async def listens(connection: Connection, fault: str) -> None:
        while await connection.receive():
            pass
        ended.append(connection)

    async with trio.open_nursery() as nursery:
        await nursery.start(_accept, listens, "")
        lab = Lab(PLACE, Target(), REGISTRY, TransportOptions(), nursery)
        await lab.reactivesocket()
        await lab.reactivesocket(introduced=False)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == []
        await lab.close()
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == 2
        nursery.cancel_scope.cancel()
