"""A client for which a server has no room: it is told so in its own protocol, and costs little."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits, Rejected
from penstock.protocols import reactivesocket, rsio
from penstock.protocols.rsio import RsioDialect
from penstock.runtime import Server, connect, serve, subscribe
from penstock.runtime.server._refused_clients import MOST, RATE, READ_AFTER, SECONDS, RefusedClients
from penstock.spi import Connection, MessageConnection, PeerIdentity, Reconnect, build_registry
from tests.runtime._services import numbers_service, raw_connection

FULL = Limits(max_connections=1)
HELLO = rsio.encode(rsio.ClientHello())
SETUP = reactivesocket.encode(reactivesocket.Setup())
GOODBYE = rsio.encode(rsio.Goodbye(reason="places:connections"))
ERROR = reactivesocket.encode(reactivesocket.Error(stream_id=0, data=b"places:connections"))


@asynccontextmanager
async def full_server(url: str = "memory://test", **options: Any) -> AsyncIterator[Server]:
    """Serve one client, which has the only place."""
    async with (
        serve(numbers_service(), url, limits=FULL, **options) as server,
        connect(server.addresses[0]) as first,
    ):
        await first.wait_accepted()
        yield server


async def all_of(connection: Connection) -> bytes:
    """Return what comes until the end."""
    received = b""
    try:
        while (data := await connection.receive()) is not None:
            received += data
    except trio.BrokenResourceError:
        pass
    return received


@pytest.mark.parametrize("transport", ["memory", "memory-framed"])
@pytest.mark.parametrize(("protocol", "processed"), [("rsio", False), ("reactivesocket", True)])
async def test_a_refused_client_reads_what_to_try(
    protocol: str, processed: bool, transport: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Its requests, its streams, `wait_accepted` and the block itself raise `Rejected`. Only
    RS.io says that nothing was done.
    """
    async with full_server(f"{transport}://test") as server:
        with pytest.raises(Rejected, match=r"places:connections.*no room.*try again later") as told:
            async with connect(f"{protocol}+{server.addresses[0]}") as refused:
                with pytest.raises(Rejected, match=r"places:connections"):
                    async with refused.subscribe("endless") as stream:
                        await anext(stream)
        assert (told.value.temporary, told.value.processed) == (True, processed)
        assert dict(server.refused) == {"places:connections": 1}


@pytest.mark.parametrize(
    ("first", "answer"),
    [(HELLO, GOODBYE), (SETUP, ERROR), (b"SSH-2.0-x\r\n", b""), (bytes([0x7F]) * 8, b"")],
    ids=["rsio", "reactivesocket", "ssh", "unknown"],
)
@pytest.mark.parametrize("size", [1, 100])
async def test_the_answer_is_all_that_a_refused_client_gets(
    first: bytes, answer: bytes, size: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Its bytes may come in any chunks. Then the connection ends at once."""
    async with full_server(), trio.open_nursery() as nursery:
        raw = await raw_connection(nursery)
        with suppress(trio.BrokenResourceError):  # an unknown client is known by its first byte
            for start in range(0, len(first), size):
                await raw.send(first[start : start + size])
        began = trio.current_time()
        assert await all_of(raw) == answer
        assert trio.current_time() == began
        await raw.abort()


async def test_an_http_client_without_a_place_gets_http(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """As it would from a server with room."""
    async with full_server(), trio.open_nursery() as nursery:
        raw = await raw_connection(nursery)
        await raw.send(b"GET / HTTP/1.1\r\n\r\n")
        assert (await all_of(raw)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        await raw.abort()


@pytest.mark.parametrize("said", [b"", b"GET", HELLO], ids=["nothing", "half a method", "hello"])
async def test_a_refused_client_has_two_seconds(
    said: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    """It says nothing, or not enough, or does not leave after the answer."""
    async with full_server(), trio.open_nursery() as nursery:
        raw = await raw_connection(nursery)
        began = trio.current_time()
        if said:
            await raw.send(said)
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await trio.sleep(0.1)
                await raw.send(b"")
        assert trio.current_time() - began == pytest.approx(SECONDS, abs=0.11)
        await raw.abort()


async def test_behind_the_answer_a_bounded_number_of_bytes_is_read(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A client may have sent requests after its hello. One that goes on sending is cut."""
    async with full_server(), trio.open_nursery() as nursery:
        raw = await raw_connection(nursery)
        await raw.send(HELLO)
        assert await raw.receive() == GOODBYE
        began, sent = trio.current_time(), 0
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await raw.send(bytes(1024))
                sent += 1024
        assert READ_AFTER <= sent <= 4 * READ_AFTER
        assert trio.current_time() == began
        await raw.abort()


async def test_more_than_the_bound_at_a_time_are_closed_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Silent ones keep their places for two seconds; then others are answered again."""
    async with full_server() as server, trio.open_nursery() as nursery:
        silent = [await raw_connection(nursery) for _ in range(MOST)]
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)
        raw = await raw_connection(nursery)
        with trio.fail_after(0.1):
            assert await all_of(raw) == b""
        await trio.sleep(SECONDS)
        again = await raw_connection(nursery)
        await again.send(HELLO)
        assert await all_of(again) == GOODBYE
        assert dict(server.refused) == {"places:connections": MOST + 2}
        for each in (*silent, raw, again):
            await each.abort()


async def test_no_more_than_the_rate_are_answered_in_a_second(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A flood of refused clients that leave at once costs what it did without answers."""
    async with full_server(), trio.open_nursery() as nursery:
        await trio.sleep(10)
        answered = 0
        for _ in range(200):
            raw = await raw_connection(nursery)
            try:
                await raw.send(HELLO)
                answered += await all_of(raw) == GOODBYE
            except trio.BrokenResourceError:
                pass
            await raw.abort()
            await trio.sleep(0.01)
        assert MOST <= answered <= MOST + 2 * RATE + 1


async def test_a_shutdown_does_not_wait_for_refused_clients(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They have no stream that a goodbye would end."""
    async with trio.open_nursery() as nursery:
        async with full_server():
            silent = await raw_connection(nursery)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() == began
        assert await all_of(silent) == b""
        await silent.abort()


class FailingConnection(MessageConnection):
    """A connection whose handshake raises."""

    def __init__(self, error: Exception) -> None:
        super().__init__(peer=PeerIdentity(address="plugin://x"))
        self.error = error
        self.aborts = 0

    async def handshake(self, nursery: trio.Nursery) -> None:
        raise self.error

    async def send(self, data: object, /) -> None:
        raise AssertionError("nothing is sent after a handshake that failed")

    async def receive(self) -> bytes | None:
        return None

    async def aclose(self) -> None:
        await self.abort()

    async def abort(self) -> None:
        self.aborts += 1


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (ConnectionLost("not TLS"), 0),
        (trio.BrokenResourceError(), 0),
        (ZeroDivisionError("a fault of the transport"), 1),
    ],
    ids=["lost", "reset", "fault"],
)
async def test_a_handshake_that_fails_ends_only_its_connection(
    error: Exception, reported: int, autojump_clock: trio.testing.MockClock
) -> None:
    """A fault of the transport is reported, and the mistake of a client is not.
    The place is free again.
    """
    told: list[Exception] = []
    refused_clients = RefusedClients(told.append, build_registry())
    refused_clients.most = 1
    assert refused_clients.take_place()
    assert not refused_clients.take_place()
    connection = FailingConnection(error)
    await refused_clients.answer(connection, "places:address", [RsioDialect], [])
    assert len(told) == reported
    assert connection.aborts == 1
    assert refused_clients.take_place()


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_client_that_reconnects_backs_off_until_there_is_room(
    protocol: str, autojump_clock: trio.testing.MockClock
) -> None:
    """With waits that double up to 30 s: ten minutes take less than 30 attempts."""
    policy = Reconnect(chance=lambda: 1.0)
    async with serve(numbers_service(), "memory://test", limits=FULL) as server:
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                async with subscribe(
                    f"{protocol}+memory://test/endless", reconnect=policy
                ) as stream:
                    await anext(stream)
                    taken.append(trio.current_time())

            taken: list[float] = []
            async with connect(server.addresses[0]) as first:
                await first.wait_accepted()
                nursery.start_soon(read)
                await trio.sleep(600)
                assert 10 <= server.refused["places:connections"] < 30
                assert not taken
        assert taken[0] <= 600 + policy.most + 1


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_connection_that_reconnects_backs_off_until_there_is_room(
    protocol: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A request waits, or fails with the refusal of the connection that it was sent on."""
    policy = Reconnect(chance=lambda: 1.0)
    async with serve(numbers_service(), "memory://test", limits=FULL) as server:
        async with connect(server.addresses[0]) as first:
            await first.wait_accepted()
            async with connect(f"{protocol}+memory://test", reconnect=policy):
                await trio.sleep(600)
        assert 10 <= server.refused["places:connections"] < 30
        await trio.sleep(1)  # until the server has seen that the first client has left
        async with (
            connect(f"{protocol}+memory://test", reconnect=policy) as peer,
            peer.subscribe("endless") as stream,
        ):
            await anext(stream)


async def test_a_client_gives_up_after_its_attempts(autojump_clock: trio.testing.MockClock) -> None:
    """The stream gets the refusal, and not a lost connection."""
    async with full_server() as server:
        with pytest.raises(Rejected, match="places:connections"):
            async with subscribe(
                "memory://test/endless", reconnect=Reconnect(attempts=3)
            ) as stream:
                await anext(stream)
        assert server.refused["places:connections"] == 3
        with pytest.raises(ConnectionLost, match=r"no further attempt.*places:connections"):
            async with connect("memory://test", reconnect=Reconnect(attempts=2)) as peer:
                await trio.sleep(60)
                await peer.request("x")
