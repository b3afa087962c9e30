"""How many connections a server accepts, and how fast."""

from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import Limits
from penstock.plugins import PeerIdentity
from penstock.runtime.server._admission import AcceptRate, Admission
from penstock.runtime.server._memory_budget import MemoryBudget


class FakeConnection:
    """A connection from a host."""

    def __init__(self, host: str | None) -> None:
        self.peer = PeerIdentity(address="test", host=host)


def connection_from(host: str | None = None) -> Any:
    return FakeConnection(host)


@pytest.mark.parametrize(
    ("limit", "host"), [("max_connections", None), ("max_pending_handshakes", None), ("max_connections_per_address", "192.0.2.1")]
)
def test_each_limit_bounds_the_connections_and_frees_them(limit: str, host: str | None) -> None:
    """A connection that is removed makes room for another one."""
    admission = Admission(replace(Limits(), **{limit: 2}), MemoryBudget(1 << 30))
    kept = [connection_from(host) for _ in range(2)]
    scopes = [admission.add(each) for each in kept]
    assert not admission.has_room(connection_from(host))
    admission.remove(kept[0], scopes[0], host)
    assert admission.has_room(connection_from(host))


def test_a_hello_frees_a_handshake_and_another_host_has_its_own_room() -> None:
    """The limits are independent of one another."""
    admission = Admission(replace(Limits(), max_pending_handshakes=1, max_connections_per_address=1), MemoryBudget(1 << 30))
    first = connection_from("192.0.2.1")
    admission.add(first)
    assert not admission.has_room(connection_from("192.0.2.2"))
    admission.on_hello(first)
    assert admission.has_room(connection_from("192.0.2.2"))
    assert not admission.has_room(connection_from("192.0.2.1"))


async def test_wait_empty_returns_when_the_last_connection_is_removed() -> None:
    """Not before."""
    admission, connection = Admission(Limits(), MemoryBudget(1 << 30)), connection_from()
    scope = admission.add(connection)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.wait_empty)
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        admission.remove(connection, scope, None)


def test_a_quiet_second_allows_a_burst_of_that_second() -> None:
    """Then one connection follows another at the rate."""
    rate = AcceptRate(10)
    assert [rate.count(100.0) for _ in range(10)] == [0.0] * 10
    assert rate.count(100.0) == pytest.approx(0.1)
    assert rate.count(100.1) == pytest.approx(0.1)
