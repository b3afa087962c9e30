"""Limits of a connection and of a server that only trio can enforce:
each is reached, scaled down, in virtual time.

The limits of the session are in tests/session;
the table of all limits is in tests/api/test_limits.py.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from penstock.api import Limits
from penstock.protocols import rsio
from penstock.runtime import Server, Service, serve
from penstock.runtime.connection import _reader
from penstock.session import Session
from penstock.spi import ByteConnection, Connection
from tests.runtime._services import numbers_service, raw_connection

HELLO = rsio.encode(rsio.ClientHello())


@asynccontextmanager
async def serving(
    limits: Limits, service: Service | None = None
) -> AsyncIterator[tuple[Server, trio.Nursery]]:
    """A server at memory://test, and a nursery for raw connections to it."""
    async with (
        trio.open_nursery() as nursery,
        serve(service or numbers_service(), "memory://test", limits=limits) as server,
    ):
        yield server, nursery


async def greeted(nursery: trio.Nursery) -> Connection:
    raw = await raw_connection(nursery)
    await raw.send(HELLO)
    assert (await raw.receive() or b"")[:1] == b"\x02"
    return raw


async def seconds_until_closed(raw: Connection) -> float:
    began = trio.current_time()
    with trio.fail_after(60):
        while await raw.receive() is not None:
            pass
    return trio.current_time() - began


async def test_the_handshake_of_a_transport_has_a_deadline(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TLS client that sends nothing is closed after `tls_timeout`,
    well before `handshake_timeout`.
    """

    async def hang(self: Connection, nursery: trio.Nursery) -> None:
        await trio.sleep_forever()

    async with serving(Limits(tls_timeout=0.25, handshake_timeout=5.0)) as (_, nursery):
        raw = await raw_connection(nursery)
        monkeypatch.setattr(ByteConnection, "handshake", hang)
        assert await seconds_until_closed(raw) == pytest.approx(0.25, abs=0.05)
        await raw.abort()


async def test_a_hello_has_a_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """From the accept on, also if part of it has arrived; then a goodbye gives the reason, for
    `goodbye_timeout` and `linger` at most.
    """
    async with serving(Limits(handshake_timeout=0.25, goodbye_timeout=0.5, linger=0.1)) as (
        server,
        nursery,
    ):
        raw = await raw_connection(nursery)
        await raw.send(HELLO[:1])
        began = trio.current_time()
        assert await raw.receive() == b"\x03\x0flimit:handshake"
        assert trio.current_time() - began == pytest.approx(0.25, abs=0.05)
        assert await seconds_until_closed(raw) <= 0.5 + 0.5 + 0.1 + 0.05
        await trio.sleep(0.5)
        assert server.peers == ()
        await raw.abort()


async def test_accepting_keeps_its_rate(autojump_clock: trio.testing.MockClock) -> None:
    """Two a second: two at once, and one that waits with them; then one each half second."""
    welcomed: list[float] = []

    async def come() -> None:
        raw = await greeted(nursery)
        welcomed.append(trio.current_time() - began)
        await raw.abort()

    async with serving(Limits(accept_rate=2)) as (_, nursery):
        began = trio.current_time()
        async with trio.open_nursery() as guests:
            for _ in range(6):
                guests.start_soon(come)
    assert welcomed == pytest.approx([0, 0, 0, 0.5, 1, 1.5], abs=0.05)


async def test_the_answering_side_waits_for_the_other_to_close(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """For `linger` at most: closed too early, the answer might be lost."""
    async with serving(Limits(linger=0.5)) as (server, nursery):
        raw = await greeted(nursery)
        await raw.send(rsio.encode(rsio.Goodbye(reason="")))
        await trio.sleep(0.45)
        assert len(server._admission.open) == 1
        await trio.sleep(0.1)
        assert not server._admission.open
        await raw.abort()


@pytest.mark.parametrize("seconds", [0.5, 3.0])
async def test_a_goodbye_without_an_answer_is_waited_for_until_its_deadline(
    seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    """When a server leaves, no longer than `linger` besides."""
    raws = []
    async with trio.open_nursery() as nursery:
        async with serve(
            numbers_service(), "memory://test", limits=Limits(goodbye_timeout=seconds, linger=0.25)
        ):
            raws.append(await greeted(nursery))
            began = trio.current_time()
        assert seconds <= trio.current_time() - began <= seconds + 0.3
        await raws[0].abort()


@pytest.mark.parametrize(("drain", "seconds"), [(1.0, 1.0), (25.0, 4.0)])
async def test_a_shutdown_takes_no_longer_than_its_drain(
    drain: float, seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    """A publisher's cleanup of four seconds gets them, or the seconds of `drain`."""
    service = Service()

    @service.publisher("slow")
    async def slow() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            await trio.sleep(4)

    limits = Limits(drain=drain, goodbye_timeout=0.25, linger=0.25)
    async with trio.open_nursery() as nursery:
        async with serve(service, "memory://test", limits=limits):
            raw = await greeted(nursery)
            await raw.send(rsio.encode(rsio.Subscribe(publisher="slow", subscriber=0, demand=1)))
            await raw.receive()
            await trio.sleep(0.1)
            began = trio.current_time()
        assert trio.current_time() - began == pytest.approx(seconds, abs=0.3)
        await raw.abort()


async def test_a_receive_takes_no_more_than_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen bytes here, also if more has arrived."""
    taken: list[int] = []

    async def received(self: ByteConnection) -> Any:
        data = await original(self)
        taken.append(len(data or b""))
        return data

    original = ByteConnection.receive
    async with serving(Limits(receive_chunk=16)) as (_, nursery):
        raw = await raw_connection(nursery)
        monkeypatch.setattr(ByteConnection, "receive", received)
        await raw.send(HELLO + rsio.encode(rsio.Cancel(subscriber=1)) * 50)
        while sum(taken) < 103:
            await trio.lowlevel.checkpoint()
        await raw.abort()
    assert max(taken) == 16


@pytest.mark.parametrize(("turn", "is_fair"), [(1e-9, True), (1e9, False)])
async def test_other_tasks_get_a_turn_while_a_chunk_is_decoded(
    turn: float, is_fair: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After MESSAGES_PER_TURN messages, once `turn` is over; not before."""
    turns, helpings = 0, []

    async def checkpoint() -> None:
        nonlocal turns
        turns += 1
        await paused()

    def receive(self: Session, data: bytes, now: float, *, most: int) -> bool:
        helpings.append(turns)
        return original(self, data, now, most=most)

    original, paused = Session.receive, trio.lowlevel.checkpoint
    monkeypatch.setattr(Session, "receive", receive)
    monkeypatch.setattr(_reader.trio.lowlevel, "checkpoint", checkpoint)
    async with serving(Limits(turn=turn)) as (_, nursery):
        raw = await raw_connection(nursery)
        await raw.send(HELLO + rsio.encode(rsio.Cancel(subscriber=1)) * 640)
        await trio.testing.wait_all_tasks_blocked()
        await raw.abort()
    assert len(helpings) == 11
    assert len(set(helpings)) == (11 if is_fair else 1)


async def test_a_message_of_a_framed_transport_is_bounded(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By the largest message of the protocol: before it is decoded, if the transport can."""
    limits = Limits(max_frame=3000, outbound_high=1000, split_outbound_at=500, outbound_control=500)
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory-framed://test", limits=limits) as server,
    ):
        raws = [await raw_connection(nursery, "memory-framed://test") for _ in range(2)]
        for raw, size in zip(raws, (3000, 3001), strict=True):
            await raw.send(HELLO)
            await raw.receive()
            await raw.send((rsio.encode(rsio.Cancel(subscriber=1)) * 2000)[:size])
        await trio.sleep(1)
        assert len(server.peers) == 1
        for raw in raws:
            await raw.abort()
