"""A connection from end to end: over each transport, in both directions, with good and bad ends."""

import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from penstock_tck.wire import rsio as wire

from penstock.api import ConnectionLost, Limits, PluginError, PublisherFailed, Subscriber
from penstock.core import Scope, _pump
from penstock.extensions import Keepalive
from penstock.protocols import rsio
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.connection._connection import STOPPED_AT_ONCE
from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.spi import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    SocketConnection,
    Tls,
    TlsConnection,
    TransportOptions,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.streams import Source, single
from penstock.testing import run_virtual
from penstock.transports import MemoryTransport, memory_stream_pair
from tests._certificates import certify
from tests._real_time import HANGS_AFTER
from tests.runtime._services import Census, named, numbers_service, raw_connection


async def test_elements_come_over_every_transport(url: str) -> None:
    """With a name, a parameter and a serializer; a stream that completes ends the loop."""
    async with serve(numbers_service(), url) as server:
        async with subscribe(
            named(server.addresses[0], "numbers/5"), serializer="json", demand=2
        ) as stream:
            assert [number async for number in stream] == [0, 1, 2, 3, 4]
        async with subscribe(
            named(server.addresses[0], "numbers/3?step=10"), serializer="json"
        ) as stream:
            assert [number async for number in stream] == [0, 10, 20]


async def test_many_streams_share_a_connection(url: str) -> None:
    """Each has its own demand and its own end."""
    async with serve(numbers_service(), url) as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("numbers/100", serializer="json", demand=3) as one:
            async with peer.subscribe("numbers/3", serializer="json") as other:
                assert [number async for number in other] == [0, 1, 2]
            assert len([number async for number in one]) == 100


async def test_leaving_a_stream_early_closes_the_peers_generator(url: str) -> None:
    """As soon as the cancel arrives."""
    census = Census()
    async with serve(numbers_service(census), url) as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("endless", demand=5) as stream:
            async for _ in stream:
                break
        with trio.fail_after(HANGS_AFTER):
            await census.wait_closed()
    assert census.opened == census.closed == 1


async def test_leaving_the_connection_closes_every_generator_of_the_peer(url: str) -> None:
    """A goodbye ends the streams of both directions."""
    census = Census()
    async with serve(numbers_service(census), url) as server:
        async with connect(server.addresses[0]) as peer:
            streams = [peer.subscribe("endless", demand=5) for _ in range(3)]
            for each in streams:
                stream = await each.__aenter__()
                await anext(stream)
        with trio.fail_after(HANGS_AFTER):
            await census.wait_closed()
        for each in streams:
            await each.__aexit__(None, None, None)
    assert census.opened == census.closed == 3


async def test_a_peer_that_requests_everything_and_reads_nothing_costs_little(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Unbounded demand permits sending, not buffering; and a stalled write ends the connection."""
    census = Census()
    limits = replace(Limits(), write_stall=3.0)
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(census), "memory://test", limits=limits):
            raw = await raw_connection(nursery)
            await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00" + b"\xff" * 8 + b"\x7f")
            with trio.fail_after(10):
                await census.wait_closed()
        await raw.abort()


async def test_keepalive_finds_a_peer_that_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    """The connection to a peer that sends nothing any more is ended;
    a peer that answers is kept.
    """
    limits = replace(Limits(), keepalive=5.0, keepalive_timeout=5.0, idle_connection=1e9)
    async with trio.open_nursery() as nursery:
        async with serve(
            numbers_service(), "memory://test", limits=limits, extensions=[Keepalive()]
        ) as server:
            raw = await raw_connection(nursery)
            await raw.send(bytes.fromhex("01000101"))
            async with connect(
                server.addresses[0], extensions=[Keepalive()], limits=limits
            ) as peer:
                await trio.sleep(60)
                assert peer.is_connected
                assert len(server.peers) == 1
        await raw.abort()


# --- the end


class Endings:
    """The last message that each connection of this process sent, and how each was closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: list[object] = []
        self.closed: list[str] = []
        aclose, abort = ByteConnection.aclose, ByteConnection.abort
        receive = {kind: kind.receive for kind in (SocketConnection, TlsConnection)}

        async def received(connection: ByteConnection) -> bytes | bytearray | None:
            try:
                data = await receive[type(connection)](connection)
            except Exception as error:
                self.heard.append(type(error))
                raise
            if data is None:
                self.heard.append(None)
            return data

        async def aclosed(connection: ByteConnection) -> None:
            self.closed.append("aclose")
            await aclose(connection)

        async def aborted(connection: ByteConnection) -> None:
            self.closed.append("abort")
            await abort(connection)

        for kind in receive:
            monkeypatch.setattr(kind, "receive", received)
        monkeypatch.setattr(ByteConnection, "aclose", aclosed)
        monkeypatch.setattr(ByteConnection, "abort", aborted)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """A certificate for this machine, for either side."""
    return certify(tmp_path)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_after_both_goodbyes_a_connection_is_closed_in_good_order(
    scheme: str, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer sees the end: over TLS a close_notify, over TCP no reset.
    Neither side waits for a deadline.
    """
    endings = Endings(monkeypatch)
    options = TransportOptions(tls=tls, close_timeout=2 * HANGS_AFTER)
    limits = replace(Limits(), goodbye_timeout=2 * HANGS_AFTER, linger=2 * HANGS_AFTER)
    with trio.fail_after(HANGS_AFTER):
        async with serve(
            numbers_service(), f"{scheme}://127.0.0.1:0", options=options, limits=limits
        ) as server:
            async with connect(server.addresses[0], options=options, limits=limits) as peer:
                async with peer.subscribe("numbers/3", serializer="json") as stream:
                    assert [number async for number in stream] == [0, 1, 2]
            while server.peers:
                await trio.lowlevel.checkpoint()
    assert None in endings.heard
    assert trio.BrokenResourceError not in endings.heard
    assert endings.closed[:2] == ["aclose", "aclose"]


async def test_a_connection_that_was_cut_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """No goodbye is sent, and none is waited for: the place is free at once."""
    async with trio.open_nursery() as nursery, serve(numbers_service(), "memory://test") as server:
        raw = await raw_connection(nursery)
        await raw.send(bytes.fromhex("010000"))
        await raw.receive()
        await raw.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert server.peers == ()
        assert trio.current_time() < 0.1


QUICK = replace(Limits(), goodbye_timeout=0.2, linger=0.2)


async def test_a_goodbye_can_be_read_by_a_peer_that_was_still_sending() -> None:
    """Its bytes are read and dropped for a while: to close over unread bytes would be a reset,
    and take the goodbye with it.
    """
    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0", limits=QUICK) as server,
        trio.open_nursery() as nursery,
    ):
        raw = await raw_connection(nursery, server.addresses[0])
        await raw.send(bytes.fromhex("010000 7f00"))
        heard = b""
        for _ in range(8):
            await raw.send(bytes(4096))
            await trio.testing.wait_all_tasks_blocked()
        while (data := await raw.receive()) is not None:
            heard += data
        await raw.abort()
    assert heard.endswith(rsio.encode(rsio.Goodbye(reason="protocol:type 0x7f")))


async def test_a_peer_that_goes_on_sending_after_the_end_is_cut_off(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After LINGER_BYTES, long before the deadline."""
    limits = replace(Limits(), linger=1000.0)
    async with (
        serve(numbers_service(), "memory://test", limits=limits) as server,
        trio.open_nursery() as nursery,
    ):
        raw = await raw_connection(nursery)
        await raw.send(bytes.fromhex("010000") + rsio.encode(rsio.Goodbye(reason="")))
        sent = 0
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await raw.send(bytes(1024))
                sent += 1024
                await trio.sleep(0.001)
        assert server.peers == ()
        assert 64 << 10 <= sent <= 256 << 10  # LINGER_BYTES, and the capacity of the pipe
        assert trio.current_time() < 10
        await raw.abort()


async def test_a_goodbye_without_an_answer_ends_by_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A bad message of the peer may have caused the goodbye, which the writer queued."""
    async with serve(numbers_service(), "memory://test") as server, trio.open_nursery() as nursery:
        raw = await raw_connection(nursery)
        await raw.send(bytes.fromhex("010000 7f00"))
        await trio.sleep(2.5)
        assert (await raw.receive() or b"").endswith(
            rsio.encode(rsio.Goodbye(reason="protocol:type 0x7f"))
        )
        assert await raw.receive() is None
        assert len(server._admission.open) == 1  # it reads on, for `linger` seconds
        await trio.sleep(1)
        assert not server._admission.open
        await raw.abort()


class Faulty(ByteConnection):
    """A connection of a plugin's transport, with a mistake in one method."""

    fault: ClassVar[str] = ""

    def _may_fail(self, where: str) -> None:
        if where == self.fault:
            raise KeyError(where)

    async def send(self, data: Bytes, /) -> None:
        self._may_fail("send")
        await super().send(data)

    async def receive(self) -> bytes | bytearray | None:
        data = await super().receive()
        self._may_fail("receive")
        return data

    async def send_eof(self) -> None:
        self._may_fail("send_eof")
        await super().send_eof()

    async def aclose(self) -> None:
        await super().abort()
        self._may_fail("aclose")

    async def abort(self) -> None:
        await super().abort()
        self._may_fail("abort")

    def farewell(self) -> str | None:
        self._may_fail("farewell")
        return None


class FaultyTransport(MemoryTransport):
    """Makes pairs of faulty and plain connections."""

    schemes: ClassVar[tuple[str, ...]] = ("faulty",)

    def _pair(
        self, peer: Any, ours: TransportOptions, theirs: TransportOptions
    ) -> tuple[Connection, Connection]:
        here, there = memory_stream_pair()
        facts = ConnectionFacts(half_close=True, local=True)
        return Faulty(here, peer=peer, options=ours, facts=facts), ByteConnection(
            there, peer=peer, options=theirs, facts=facts
        )


class FaultyPlugin:
    """Offers the transport."""

    @hookimpl
    def penstock_transports(self) -> list[FaultyTransport]:
        return [FaultyTransport()]


@pytest.mark.parametrize("fault", ["send", "receive", "send_eof", "aclose", "abort", "farewell"])
async def test_a_transport_that_raises_ends_its_connection_and_nothing_else(
    fault: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Its streams get a PluginError, or the fault is reported;
    the block is left, and the server goes on.
    """
    monkeypatch.setattr(Faulty, "fault", fault)
    told: list[Exception] = []
    registry = build_registry([FaultyPlugin()])
    async with serve(numbers_service(), "faulty://test", registry=registry) as server:
        ending: Exception | None = None
        async with connect("faulty://test", registry=registry, on_violation=told.append) as peer:
            with pytest.raises((PluginError, PublisherFailed, ConnectionLost)) as caught:
                async with peer.subscribe(
                    "failing" if fault in ("send_eof", "aclose") else "endless", demand=1
                ) as stream:
                    async for _ in stream:
                        over_there = server.peers[0]._connection.connection
                        if fault == "farewell":
                            await over_there.abort()  # without a goodbye: `farewell` is asked
                        elif fault == "abort":
                            await over_there.send(b"\x7f\x00")  # a bad message ends it badly
            ending = caught.value
        async with connect("faulty://test", registry=registry, on_violation=told.append):
            pass
    if fault in ("send", "receive"):
        assert str(ending) == (
            "the transport (Faulty) raised what no transport may, which ended its connection: "
            f"KeyError('{fault}')"
        )
    assert all(isinstance(each, KeyError) for each in told)
    assert bool(told) is (fault in ("aclose", "abort", "farewell"))


async def test_a_stalled_writer_ends_the_connection_with_the_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The streams on this side are told how long it was, and the name of the limit."""
    limits = replace(Limits(), write_stall=3.0, idle_connection=1e9)
    async with trio.open_nursery() as nursery:
        transport = MemoryTransport()
        listener = await transport.listen(
            parse_url("memory://deaf"), options=TransportOptions(), nursery=nursery
        )
        async with connect("memory://deaf", limits=limits, extensions=()) as peer:
            deaf = await listener.accept()
            await deaf.receive()
            await deaf.send(bytes.fromhex("020000"))
            await peer.wait_accepted()
            streams = [peer.subscribe("x" * 1000) for _ in range(100)]  # more than the pipe holds
            opened = [await each.__aenter__() for each in streams]
            with pytest.raises(
                ConnectionLost,
                match=r"took next to nothing of what was sent to it for 3 s \(Limits.write_stall",
            ):
                await anext(opened[0])
            assert trio.current_time() == pytest.approx(3.0, abs=0.1)
            for each in streams:
                await each.__aexit__(None, None, None)
        await listener.aclose()
        await deaf.abort()


async def test_a_message_too_large_for_the_transport_ends_the_connection() -> None:
    """The streams are told the limit. No goodbye is sent, because the transport cannot go on."""
    options = TransportOptions(max_message=100)
    async with (
        serve(numbers_service(), "memory-framed://test") as server,
        connect(server.addresses[0], options=options) as peer,
    ):
        with pytest.raises(ConnectionLost, match=r"the connection was ended, because .*100"):
            async with peer.subscribe("endless", demand=2) as stream:
                await anext(stream)
                await anext(stream)


async def test_the_end_of_a_child_process_is_told_to_its_streams() -> None:
    """With its exit status and its last words on stderr."""
    code = (
        "import sys; sys.stdin.buffer.read(3); print('no such table: ticks', file=sys.stderr); "
        "sys.exit(3)"
    )
    with pytest.raises(ConnectionLost) as caught:
        # On a busy machine a child may need more than the usual second to end.
        options = TransportOptions(close_timeout=60)
        async with subscribe(
            f"exec:{shlex.join([sys.executable, '-c', code])}#ticks", options=options
        ) as stream:
            await anext(stream)
    assert str(caught.value) == (
        "the connection ended before the peer answered: is it a server of this protocol that "
        f"listens there, and in the clear (tls:// if not)? The child {sys.executable!r} ended "
        "with status 3; the end of its stderr:\n  no such table: ticks"
    )


# --- shutting down


@pytest.mark.parametrize("seed", range(8))
def test_a_shutdown_is_not_reported_as_a_failure(seed: int) -> None:
    """A publisher that runs is stopped:
    its subscriber gets the reason, and `on_violation` gets nothing.
    """
    told: list[Exception] = []
    service = Service()

    @service.publisher("slow")
    async def slow() -> AsyncIterator[bytes]:
        while True:
            await trio.sleep(1)
            yield b"x"

    async def read() -> None:
        with pytest.raises(ConnectionLost, match="shutdown"):
            async with subscribe("memory://test/slow") as stream:
                async for _ in stream:
                    pass

    async def shut_down() -> None:
        async with trio.open_nursery() as nursery:
            async with serve(service, "memory://test", on_violation=told.append):
                nursery.start_soon(read)
                await trio.sleep(2.5)

    run_virtual(shut_down, seed=seed)
    assert told == []


async def test_a_publisher_that_does_not_stop_is_cancelled_in_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A connection that is over waits for the tasks of its publishers,
    but only until a deadline.
    """
    with trio.fail_after(60):
        async with (
            serve(_stubborn(), "memory://test"),
            subscribe("memory://test/stubborn") as stream,
        ):
            assert await anext(stream) == b"x"
    assert trio.current_time() < 20


def _stubborn() -> Service:
    """Return a service with a publisher whose task goes on after the cancel."""

    class Stubborn(Source[bytes]):
        def attach(self, subscriber: Subscriber[bytes], scope: Scope) -> None:
            scope.spawn(trio.sleep_forever, name="stubborn", stop=lambda: None)
            single(b"x").attach(subscriber, scope)

    service = Service()
    service.publish("stubborn", Stubborn())
    return service


MANY = 3 * STOPPED_AT_ONCE


async def _with_many_publishers() -> int:
    """Open `MANY` streams over one connection, end it, and return how many of their publishers
    have ended after the server.
    """
    begun = ended = 0
    service = Service()

    @service.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        nonlocal begun, ended
        begun += 1
        try:
            await trio.sleep_forever()
            yield b""
        finally:
            ended += 1

    async with trio.open_nursery() as nursery:
        async with serve(service, "memory://test"):
            raw = await raw_connection(nursery)
            await raw.send(
                wire.hello() + b"".join(wire.subscribe("waits", n, 1) for n in range(MANY))
            )
            while begun < MANY:
                await trio.lowlevel.checkpoint()
            await raw.abort()
        return ended


async def test_many_publishers_of_an_ended_connection_are_cancelled_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them have ended when the block of the server ends."""
    turns: list[object] = []
    stop_in_turns = DecodingTurns.stop_in_turns

    async def note(self: DecodingTurns, stops: Iterable[Callable[[], None]], turn: float) -> None:
        turns.append(turn)
        await stop_in_turns(self, stops, turn)

    monkeypatch.setattr(DecodingTurns, "stop_in_turns", note)
    assert await _with_many_publishers() == MANY
    assert turns == [Limits().turn]


async def test_publishers_whose_turn_never_comes_are_cancelled_with_the_host(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The deadline of the host ends the wait for turns."""

    async def wait(
        _turns: DecodingTurns, _stops: Iterable[Callable[[], None]], _turn: float
    ) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(DecodingTurns, "stop_in_turns", wait)
    with trio.fail_after(60):
        assert await _with_many_publishers() == MANY


# --- what goes without waiting is sent at once


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_the_writer_sends_the_rest_of_a_short_send(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A transport takes a part of each message without waiting:
    the rest follows it, in order, and nothing comes between.
    """
    now = SocketConnection.send_now
    monkeypatch.setattr(
        SocketConnection,
        "send_now",
        lambda connection, data: now(connection, data[:most]) if most else 0,
    )
    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0") as server,
        connect(server.addresses[0]) as peer,
    ):
        for count in (1, 5, 200):
            async with (
                peer.subscribe(f"numbers/{count}", serializer="json") as stream,
                peer.subscribe(f"numbers/{count}", serializer="json", demand=2) as other,
            ):
                assert [number async for number in stream] == list(range(count))
                assert [number async for number in other] == list(range(count))


@pytest.mark.parametrize("size", [64, 1000, 40_000])
async def test_sends_that_do_not_wait_need_no_deadline(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """While the transport takes everything at once, the writer task sends nothing."""
    service, at_once = Service(), []
    now, send = SocketConnection.send_now, SocketConnection.send

    @service.publisher("blocks")
    async def blocks() -> AsyncIterator[bytes]:
        for number in range(300_000 // size):
            yield number.to_bytes(size, "big")

    def counted(connection: SocketConnection, data: Bytes, /) -> int:
        at_once.append(len(data))
        return now(connection, data)

    async def refused(connection: SocketConnection, data: Bytes, /) -> None:
        assert len(data) == 0, "something had to wait"
        await send(connection, data)

    monkeypatch.setattr(SocketConnection, "send_now", counted)
    monkeypatch.setattr(SocketConnection, "send", refused)
    async with serve(service, "tcp://127.0.0.1:0") as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("blocks", demand=max(1, 40_000 // size)) as stream:
            assert [int.from_bytes(block, "big") async for block in stream] == list(
                range(300_000 // size)
            )
    assert max(at_once) > 20_000


@pytest.mark.parametrize("most", [0, 4097, 65_536])
async def test_the_writer_sends_the_rest_of_large_elements(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """All of it arrives, in order."""
    service = Service()
    now = SocketConnection.send_now

    @service.publisher("blocks/{size}")
    async def blocks(size: int) -> AsyncIterator[bytes]:
        for number in range(3_000_000 // size):
            yield number.to_bytes(size, "big")

    monkeypatch.setattr(
        SocketConnection,
        "send_now",
        lambda connection, data: now(connection, data[:most]) if most else 0,
    )
    async with serve(service, "tcp://127.0.0.1:0") as server, connect(server.addresses[0]) as peer:
        for size in (500, 300_000):
            async with peer.subscribe(f"blocks/{size}", demand=1024) as stream:
                assert [int.from_bytes(block, "big") async for block in stream] == list(
                    range(3_000_000 // size)
                )


async def test_a_stream_of_one_takes_one_message_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acceptance, element and completion go out in one send, and the writer tasks send nothing."""
    at_once: list[int] = []
    now, send = SocketConnection.send_now, SocketConnection.send

    def counted(connection: SocketConnection, data: Bytes, /) -> int:
        at_once.append(len(data))
        return now(connection, data)

    async def refused(connection: SocketConnection, data: Bytes, /) -> None:
        assert len(data) == 0, "the writer sent"
        await send(connection, data)

    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0") as server,
        connect(server.addresses[0]) as peer,
    ):
        await peer.wait_accepted()
        monkeypatch.setattr(SocketConnection, "send_now", counted)
        monkeypatch.setattr(SocketConnection, "send", refused)
        # On a busy machine a burst of one element may last longer than the limit.
        monkeypatch.setattr(_pump, "BURST_SECONDS", 60)
        for _ in range(20):  # the scheduler shuffles reader, writer and publisher
            async with peer.subscribe("numbers/1", serializer="json") as stream:
                assert [number async for number in stream] == [0]
        assert len(at_once) == 2 * 20


async def test_a_transport_that_fails_in_send_now_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if `send` had failed: the subscriber is told, and nothing hangs."""

    def broken(connection: SocketConnection, data: Bytes, /) -> int:
        raise trio.BrokenResourceError

    async with serve(numbers_service(), "tcp://127.0.0.1:0") as server:
        with trio.fail_after(HANGS_AFTER):
            async with connect(server.addresses[0]) as peer:
                await peer.wait_accepted()
                monkeypatch.setattr(SocketConnection, "send_now", broken)
                async with peer.subscribe("numbers/3", serializer="json") as stream:
                    with pytest.raises(ConnectionLost):
                        await anext(stream)


@pytest.mark.parametrize("waits", [False, True])
def test_an_interrupt_in_a_handler_ends_the_server_at_once(waits: bool) -> None:
    """It ends the tasks that could say goodbye, so no deadline is waited for,
    and the client gets ConnectionLost.
    """

    class Interrupt(BaseException):
        """Stands for KeyboardInterrupt, which would end the tests."""

    service, lost = Service(), list[Exception]()

    @service.request_response
    async def handler(data: bytes) -> bytes:
        if waits:
            await trio.lowlevel.checkpoint()
        raise Interrupt

    async def ask(url: str) -> None:
        try:
            async with connect(url) as peer:
                await peer.request_response(b"")
        except ConnectionLost as error:
            lost.append(error)

    async def main() -> None:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            with pytest.raises(Interrupt):
                async with serve(service, "reactivesocket+memory://test") as server:
                    nursery.start_soon(ask, server.addresses[0])
                    await trio.sleep_forever()
            assert trio.current_time() == began

    run_virtual(main)
    assert len(lost) == 1
