"""The block around a connection: leaving it ends the connection, also after an exception, and
also if the peer says nothing.
"""

import pytest
import trio
from trio.testing import MockClock

from penstock.api import ConnectionLost
from penstock.runtime import connect
from penstock.spi import TransportOptions, parse_url
from penstock.transports import MemoryTransport


async def test_a_peer_that_says_nothing_does_not_keep_the_block_open(
    autojump_clock: MockClock,
) -> None:
    """Leaving it says goodbye, and waits for the answer within `Limits.goodbye_timeout`
    and `Limits.linger`.
    """
    async with trio.open_nursery() as nursery:
        await MemoryTransport().listen(
            parse_url("memory://mute"), options=TransportOptions(), nursery=nursery
        )
        async with connect("memory://mute") as peer:
            left_at = trio.current_time()
        assert trio.current_time() - left_at <= 3.1
        with pytest.raises(ConnectionLost):
            await peer.wait_accepted()
        nursery.cancel_scope.cancel()
