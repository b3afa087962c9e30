"""While a program that blocks waits for one connection, it serves those to servers that drain."""

import threading
from collections.abc import Iterator

import pytest

from penstock import blocking
from penstock.api import ConnectionLost
from penstock.spi import Reconnect
from tests._real_time import HANGS_AFTER
from tests.contracts._drained_server import Servers, two_servers
from tests.contracts._trio_server import Served

AT_ONCE = Reconnect(first=0.001, most=0.001)
ANSWERS = 10
"""Bytes of some answers to pings."""


@pytest.fixture
def servers() -> Iterator[Servers]:
    with two_servers() as made:
        yield made


def test_a_program_that_blocks_serves_the_old_connection_between_two_attempts(
    servers: Servers,
) -> None:
    """A stream of it may last longer than all attempts."""
    slowly = Reconnect(first=0.5, most=0.5, chance=lambda: 1.0, attempts=2)
    with (
        blocking.connect(servers.url, reconnect=slowly) as peer,
        peer.subscribe("slow", type=str, timeout=HANGS_AFTER) as slow,
    ):
        assert next(iter(slow)) == "old, first"
        servers.replace("nobody")
        while not peer._keeper.needs_next:
            peer.run(0.01)
        before = received_by(servers.old)
        with pytest.raises(ConnectionLost):
            peer.request("who", type=str, timeout=HANGS_AFTER)
        assert received_by(servers.old) > before


def test_a_program_that_blocks_serves_both_connections(servers: Servers) -> None:
    """While it waits on the old one it answers the pings of the new one."""

    def go_on_when_answered() -> None:
        before = received_by(servers.new)
        while received_by(servers.new) < before + ANSWERS:
            pass
        servers.go_on()

    with (
        blocking.connect(servers.url, reconnect=AT_ONCE) as peer,
        peer.subscribe("slow", type=str, timeout=HANGS_AFTER) as slow,
    ):
        assert next(iter(slow)) == "old, first"
        servers.replace()
        assert peer.request("who", type=str, timeout=HANGS_AFTER) == "new"
        other = threading.Thread(target=go_on_when_answered, daemon=True)
        other.start()
        assert list(slow) == ["old, last"]
        other.join(HANGS_AFTER)


def received_by(served: Served) -> int:
    """Return how many bytes have come over the connections of a server."""

    async def count() -> int:
        return sum(each.statistics().received_bytes for each in served.server.peers)

    received: int = served.run(count)
    return received
