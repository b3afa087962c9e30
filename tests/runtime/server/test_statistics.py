"""`Server.statistics()`: connections and streams that run, and the sums of connections
that have ended.
"""

import pytest
import trio

from penstock.api import Limits, UsageError
from penstock.runtime import connect, serve, subscribe
from penstock.spi import DirectionStatistics
from tests.runtime._services import numbers_service, raw_connection
from tests.runtime.server._knock import STRANGER


async def test_a_server_counts_connections_by_protocol_and_transport(
    nursery, autojump_clock
) -> None:
    """Connections before their hello are counted apart."""
    async with serve(numbers_service(), "memory://one", "memory-framed://two") as server:
        assert server.statistics().connections == {}
        async with (
            connect("memory://one") as a,
            connect("reactivesocket+memory://one") as b,
            connect("memory-framed://two") as c,
        ):
            for peer in (a, b, c):
                await peer.wait_accepted()
            silent = await raw_connection(nursery, "memory://one")
            await trio.sleep(0.1)
            now = server.statistics()
            assert now.connections == {
                ("rsio", "memory"): 1,
                ("reactivesocket", "memory"): 1,
                ("rsio", "memory-framed"): 1,
            }
            assert (now.handshaking, now.accepted) == (1, 3)
            await silent.abort()
        await trio.sleep(1)
        now = server.statistics()
        assert (now.connections, now.handshaking, now.accepted) == ({}, 0, 3)


async def test_what_an_ended_connection_has_done_is_kept(autojump_clock) -> None:
    """Elements, bytes and streams of all connections are added up, in both directions."""
    async with serve(numbers_service(), "memory://test") as server:
        for _ in range(2):
            async with connect("memory://test", service=numbers_service()) as peer:
                async with peer.subscribe("numbers/5", serializer="json") as stream:
                    assert len([number async for number in stream]) == 5
                async with server.peers[0].subscribe("numbers/3", serializer="json") as stream:
                    assert len([number async for number in stream]) == 3
                during = server.statistics()
            await trio.sleep(1)
        after = server.statistics()
    assert (during.sending, during.receiving) == (
        DirectionStatistics(opened=2, elements=10),
        DirectionStatistics(opened=2, elements=6),
    )
    assert (after.sending, after.receiving) == (during.sending, during.receiving)
    # The goodbyes came after the record.
    assert after.sent_bytes >= during.sent_bytes > 60
    assert after.received_bytes > during.received_bytes > 60
    assert (after.buffered_bytes, after.accepted) == (0, 2)


async def test_a_server_adds_up_demand_and_buffers_and_names_the_oldest_stall(
    autojump_clock,
) -> None:
    """Over all connections, against the memory budget of its limits."""
    async with serve(
        numbers_service(), "memory://test", limits=Limits(memory_budget=50_000_000)
    ) as server:
        async with connect("memory://test") as old, connect("memory://test") as young:
            async with old.subscribe("endless", demand=0):
                await trio.sleep(7)
                async with (
                    young.subscribe("numbers/9", demand=0) as stream,
                    young.subscribe("endless", demand=0),
                ):
                    stream.request(4)
                    await trio.sleep(1)
                    now = server.statistics()
    assert now.sending.streams == 3
    assert now.sending.elements == 4
    assert now.sending.without_demand is not None
    assert (now.sending.without_demand.publisher, now.sending.without_demand.seconds) == (
        "endless",
        8,
    )
    assert now.memory_budget == 50_000_000
    assert 0 < now.buffered_bytes < 100_000
    assert now.age == 8


async def test_the_buffered_bytes_are_those_that_the_memory_budget_compares(
    autojump_clock,
) -> None:
    """It counts also those of clients without a connection."""
    async with serve(numbers_service(), "memory://test") as server, connect("memory://test") as one:
        async with one.subscribe("endless", demand=0):
            reservation = server._streams.reserve(
                STRANGER, lambda: 5_000, lambda _: None, address="knock://test"
            )
            assert server.statistics().buffered_bytes == server._settings.budget.held() >= 5_000
            reservation.end()
            assert server.statistics().buffered_bytes == server._settings.budget.held() < 5_000


async def test_refusals_are_a_copy_of_the_time_of_the_call(nursery, autojump_clock) -> None:
    """A record does not change afterwards, as `Server.refused` does."""
    async with serve(numbers_service(), "memory://test") as server:
        before = server.statistics()
        raw = await raw_connection(nursery, "memory://test")
        await raw.send(b"GET / HTTP/1.1\r\n\r\n")
        while await raw.receive():
            pass
        await raw.abort()
        await trio.sleep(1)
        assert server.statistics().refused == server.refused == {"protocol:http": 1}
        assert before.refused == {}


async def test_statistics_outside_of_trio_are_a_usage_error() -> None:
    """Another thread could read a table while it changes."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        subscribe("memory://test/numbers/1", serializer="json") as stream,
    ):
        assert [number async for number in stream] == [0]
        with pytest.raises(UsageError, match="trio"):
            await trio.to_thread.run_sync(server.statistics)
