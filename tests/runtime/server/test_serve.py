"""`serve`: an accept loop that no client can end, and a shutdown within its deadline."""

import errno
import socket
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import trio

from penstock.api import ConnectionLost, Limits, Rejected, UsageError
from penstock.runtime import Service, connect, remote, serve, subscribe
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.server._admission import AcceptRate
from penstock.runtime.server._draining import PER_PASS
from penstock.spi import ByteConnection, Connection, Listener
from penstock.streams import collect
from penstock.testing import is_dropped
from penstock.transports import MemoryTransport
from tests._limits import HASTY
from tests._real_time import HANGS_AFTER
from tests.runtime._services import Census, numbers_service, raw_connection


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"limits": 3}, "limits=3; give a Limits"),
        ({"options": Limits()}, "options=.*give a TransportOptions"),
        ({"registry": "all"}, "registry='all'; give a Registry"),
        ({"on_violation": "log"}, "on_violation is 'log'; give a function of one argument"),
    ],
)
def test_a_mistake_is_refused_at_the_call(changes: dict[str, Any], says: str) -> None:
    """In the words that `connect` has for it. Nothing is opened, and no loop has to run."""
    with pytest.raises(UsageError, match=says):
        serve(Service(), "memory://mistaken", **changes)


async def test_a_server_that_leaves_says_goodbye(url: str) -> None:
    """The subscriber gets the reason;
    the block of the server ends, although a client still reads.
    """
    reading = trio.Event()
    left = trio.Event()

    async def serve_until_read() -> None:
        async with serve(numbers_service(), url) as server:
            nursery.start_soon(read, server.addresses[0])
            await reading.wait()
        left.set()

    async def read(address: str) -> None:
        with pytest.raises(ConnectionLost, match="shutdown"):
            async with connect(address) as peer, peer.subscribe("endless", demand=2) as stream:
                async for _ in stream:
                    reading.set()
                    await trio.lowlevel.checkpoint()

    with trio.fail_after(HANGS_AFTER):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_until_read)
            await left.wait()


async def test_a_shutdown_reports_no_publisher_that_it_stops(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In every order in which the tasks may be cancelled."""
    told: list[BaseException] = []
    async with trio.open_nursery() as nursery:

        async def read(address: str) -> None:
            with pytest.raises(ConnectionLost):
                async with subscribe(f"{address}/endless", demand=2) as stream:
                    async for _ in stream:
                        await trio.sleep(1)

        for _ in range(20):
            async with serve(
                numbers_service(), "memory://test", on_violation=told.append
            ) as server:
                nursery.start_soon(read, server.addresses[0])
                await trio.sleep(3)
    assert told == []


class OneGuest(Listener):
    """Accepts one connection, and then reports that no other can come."""

    def __init__(self, listener: Listener) -> None:
        self.addresses = listener.addresses
        self._listener: Listener = listener
        self._is_full = False

    async def accept(self) -> Connection:
        if self._is_full:
            await trio.lowlevel.checkpoint()
            raise trio.EndOfChannel
        self._is_full = True
        return await self._listener.accept()

    async def aclose(self) -> None:
        await self._listener.aclose()


async def test_a_block_is_entered_once() -> None:
    """A second time is refused at once, inside of the block and after it, and the server of the
    first one serves on.
    """
    service = Service()
    service.publish("numbers", [b"1"])
    block = serve(service, "memory://once")
    async with block as server:
        with pytest.raises(UsageError, match=r"entered before; call serve\(\) again"):
            await block.__aenter__()
        assert await collect(remote("memory://once#numbers")) == [b"1"]
        assert server.addresses
    with pytest.raises(UsageError, match="entered before"):
        await block.__aenter__()


async def test_wait_over_returns_when_no_client_is_left_and_none_can_come(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at an address that clients may use at any time;
    not while the only client is connected.
    """
    listen = MemoryTransport.listen

    async def listen_for_one(*arguments: Any, **named: Any) -> Listener:
        return OneGuest(await listen(*arguments, **named))

    async with serve(numbers_service(), "memory://test") as server:
        with trio.move_on_after(10) as patience:
            await server.wait_over()
        assert patience.cancelled_caught
    monkeypatch.setattr(MemoryTransport, "listen", listen_for_one)
    async with serve(numbers_service(), "memory://test") as server:
        async with connect("memory://test") as peer:
            await peer.wait_accepted()
            with trio.move_on_after(10) as patience:
                await server.wait_over()
            assert patience.cancelled_caught
        await server.wait_over()
        assert server.peers == ()


async def test_a_cancelled_server_ends_within_its_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Even if a peer never answers the goodbye: in virtual time, to the second."""
    census = Census()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with serve(numbers_service(census), "memory://test"):
                raw = await raw_connection(nursery)
                await raw.send(bytes.fromhex("010000") + b"\x10\x07endless\x00\x05")
                await trio.sleep(0.1)
                assert census.opened == 1
                scope.cancel()
        assert trio.current_time() < 10
        assert census.closed == census.opened == 1
        await raw.abort()


async def test_connections_without_a_hello_are_bounded(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of three, the oldest is cut without a word, and the newest is served.
    When one has said hello, its place is free.
    """
    limits = replace(Limits(), max_pending_handshakes=2)
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", limits=limits) as server,
    ):
        first, second, third = [await raw_connection(nursery) for _ in range(3)]
        with trio.fail_after(1):
            assert await first.receive() is None
        assert dict(server.refused) == {"places:silent": 1}
        await third.send(bytes.fromhex("010000"))
        assert await third.receive() == bytes.fromhex("02000403060107")
        fourth = await raw_connection(nursery)
        for connection in (second, fourth):
            await connection.send(bytes.fromhex("010000"))
            assert await connection.receive() == bytes.fromhex("02000403060107")
        assert dict(server.refused) == {"places:silent": 1}
        for connection in (first, second, third, fourth):
            await connection.abort()


async def test_a_refused_connection_costs_no_pace(autojump_clock: trio.testing.MockClock) -> None:
    """At one connection in ten seconds, 50 are refused within a second: a flood that is refused
    delays no client after it.
    """
    limits = replace(Limits(), max_connections=1, accept_rate=0.1)
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", limits=limits) as server,
    ):
        async with connect("memory://test") as peer:
            await peer.wait_accepted()
            await trio.sleep(20)
            raws = [await raw_connection(nursery) for _ in range(50)]
            await trio.sleep(1)
            assert dict(server.refused) == {"places:connections": 50}
            for raw in raws:
                await raw.abort()


async def test_a_silent_client_is_closed_by_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With a goodbye that gives the reason."""
    async with trio.open_nursery() as nursery, serve(numbers_service(), "memory://test"):
        silent = await raw_connection(nursery)
        assert await silent.receive() == b"\x03\x0flimit:handshake"
        assert trio.current_time() == pytest.approx(10.0, abs=0.1)
        await silent.abort()


async def test_connections_are_bounded_in_number(autojump_clock: trio.testing.MockClock) -> None:
    """One more is told so and closed; when one has gone, there is room again."""
    limits = replace(Limits(), max_connections=1)
    async with serve(numbers_service(), "memory://test", limits=limits) as server:
        async with connect(server.addresses[0]) as peer:
            await peer.wait_accepted()
            with pytest.raises(Rejected, match="places:"):
                async with connect(server.addresses[0]) as refused:
                    await refused.wait_accepted()
        await trio.sleep(5)
        async with connect(server.addresses[0]) as again:
            await again.wait_accepted()
        assert "connections" in repr(server)


async def test_connections_from_one_address_are_bounded() -> None:
    """One address cannot take all the places."""
    limits = replace(Limits(), max_connections_per_address=1)
    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0", limits=limits) as server,
        connect(server.addresses[0]) as peer,
    ):
        await peer.wait_accepted()
        with pytest.raises(Rejected, match="places:"):
            async with connect(server.addresses[0]) as refused:
                await refused.wait_accepted()


async def test_an_address_has_a_host_and_a_port() -> None:
    """The real ones, for programs that are not penstock. `connect`, `remote` and `subscribe` take
    it, and its text is the URL.
    """
    async with serve(numbers_service(), "tcp://127.0.0.1:0") as server:
        (address,) = server.addresses
        assert (address.transport, address.host) == ("tcp", "127.0.0.1")
        assert str(address) == f"tcp://127.0.0.1:{address.port}"
        raw = await trio.open_tcp_stream(address.host, address.port)
        await raw.aclose()
        async with connect(address) as peer:
            await peer.wait_accepted()
        assert await collect(remote(address, publisher="numbers/3", type=int)) == [0, 1, 2]
        async with subscribe(address, publisher="numbers/3", type=int) as stream:
            assert [number async for number in stream] == [0, 1, 2]


class CountPasses(trio.abc.Instrument):
    """Counts the passes of the run loop."""

    def __init__(self) -> None:
        self.passes = 0

    def before_io_wait(self, timeout: float) -> None:
        self.passes += 1


async def test_many_refused_clients_cost_few_passes_of_the_run_loop() -> None:
    """64 of one address: one or two passes for 8 of them. With three for each, a busy server
    refused more slowly than clients came.
    """
    limits = replace(Limits(), max_connections_per_address=1)
    counted = CountPasses()
    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0", limits=limits) as server,
        connect(server.addresses[0]) as peer,
    ):
        await peer.wait_accepted()
        port = server.addresses[0].port
        # No checkpoint in between.
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(64)]
        trio.lowlevel.add_instrument(counted)
        with trio.fail_after(HANGS_AFTER):
            while server.refused.get("places:address", 0) < 64:
                await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(counted)
        for client in clients:
            client.close()
    assert counted.passes <= 48


def test_connections_are_accepted_at_a_rate() -> None:
    """The number of one second at once, then one after the other;
    and that number again after a quiet second.
    """
    pace = AcceptRate(10)
    assert sum(pace.count(0.0) for _ in range(10)) == pytest.approx(0)
    assert pace.count(0.0) == pytest.approx(0.1)
    assert pace.count(0.1) == pytest.approx(0.1)
    assert sum(pace.count(50.0) for _ in range(10)) == pytest.approx(0)
    assert pace.count(50.0) == pytest.approx(0.1)


class Odd(Listener):
    """A listener that fails as the test tells it, and then has no more connections."""

    def __init__(self, url: Any, *raised: BaseException) -> None:
        self.addresses = (url,)
        self._raised = list(raised)
        self.is_closed = False

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        raise self._raised.pop(0) if self._raised else trio.EndOfChannel

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.is_closed = True


async def test_a_system_that_is_out_of_files_gets_a_pause(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is reported, the loop goes on;
    a listener without further connections ends quietly.
    """
    told: list[Exception] = []
    made: list[Odd] = []

    async def listen(self: Any, url: Any, **_: Any) -> Odd:
        await trio.lowlevel.checkpoint()
        made.append(Odd(url, OSError(24, "too many open files")))
        return made[0]

    monkeypatch.setattr(MemoryTransport, "listen", listen)
    async with serve(numbers_service(), "memory://test", on_violation=told.append):
        await trio.sleep(1)
    assert [type(error) for error in told] == [OSError]
    assert made[0].is_closed


async def test_a_lack_of_files_is_reported_once_and_costs_silent_clients_their_place(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds of failures are one report.
    Each failure frees the file of the oldest client that has said nothing.
    """
    told: list[Exception] = []
    original = MemoryTransport.listen
    is_out = False

    async def listen(self: Any, url: Any, **options: Any) -> Listener:
        listener = await original(self, url, **options)
        accept = listener.accept

        async def fail_or_accept() -> Connection:
            if is_out:
                await trio.lowlevel.checkpoint()
                raise OSError(errno.EMFILE, "too many open files")
            return await accept()

        monkeypatch.setattr(listener, "accept", fail_or_accept, raising=False)
        return listener

    monkeypatch.setattr(MemoryTransport, "listen", listen)
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", on_violation=told.append) as server,
    ):
        silent = [await raw_connection(nursery) for _ in range(3)]
        await trio.sleep(0.1)
        is_out = True
        last = await raw_connection(nursery)  # the accept that waits takes it; the next one fails
        await trio.sleep(5)
        assert dict(server.refused) == {"places:files": 4}
        assert len(told) == 1
        assert "ulimit -n" in str(told[0])
        is_out = False
        await trio.sleep(1)
        async with connect("memory://test") as peer:
            await peer.wait_accepted()
        for raw in (*silent, last):
            await raw.abort()


async def test_a_broken_listener_ends_no_other(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exceptions in accept and in close are reported;
    the listener at another URL accepts, and is closed.
    """
    told: list[Exception] = []
    original = MemoryTransport.listen

    class Broken(Odd):
        async def aclose(self) -> None:
            await super().aclose()
            raise KeyError("closing")

    async def listen(self: Any, url: Any, **options: Any) -> Listener:
        return (
            Broken(url, ValueError("accepting"))
            if url.host == "broken"
            else await original(self, url, **options)
        )

    monkeypatch.setattr(MemoryTransport, "listen", listen)
    async with serve(
        numbers_service(), "memory://broken", "memory://test", on_violation=told.append
    ) as server:
        await trio.sleep(1)
        async with subscribe(f"{server.addresses[1]}/endless", demand=2) as stream:
            assert await anext(stream)
    assert [type(error) for error in told] == [ValueError, KeyError]
    with pytest.raises(ConnectionLost):
        async with subscribe("memory://test/endless") as stream:
            await anext(stream)


async def test_a_fault_of_one_connection_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported; the server serves the next client."""
    told: list[Exception] = []
    broken = [KeyError("ours")]

    async def run(self: ConnectionTask, nursery: trio.Nursery) -> None:
        if broken:
            raise broken.pop()
        await original(self, nursery)

    original = ConnectionTask.run
    async with serve(numbers_service(), "memory://test", on_violation=told.append) as server:
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(ConnectionTask, "run", run)
            raw = await raw_connection(nursery)
            assert await raw.receive() is None
            await raw.abort()
        async with subscribe(f"{server.addresses[0]}/numbers/2", serializer="json") as stream:
            assert [number async for number in stream] == [0, 1]
    assert len(told) == 1


async def test_a_failed_handshake_is_not_reported(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of it, and its time is bounded."""
    told: list[Exception] = []
    async with (
        serve(numbers_service(), "memory://test", on_violation=told.append) as server,
        trio.open_nursery() as nursery,
    ):
        for shake in (_refuse, _hang):
            raw = await raw_connection(nursery)
            monkeypatch.setattr(ByteConnection, "handshake", shake)
            with trio.fail_after(6):
                assert await raw.receive() is None
            await raw.abort()
        assert server.peers == ()
    assert told == []


async def _refuse(self: Connection, nursery: trio.Nursery) -> None:
    await trio.lowlevel.checkpoint()
    raise ConnectionLost("no certificate")


async def _hang(self: Connection, nursery: trio.Nursery) -> None:
    await trio.sleep_forever()


async def test_a_server_that_cannot_listen_everywhere_listens_nowhere() -> None:
    """The listeners that were open are closed again, and the error is not in a group."""
    with pytest.raises(UsageError, match="another listener has"):
        async with serve(Service(), "memory://a", "memory://a"):
            pass
    with pytest.raises(ConnectionLost, match="no listener at"):
        async with connect("memory://a"):
            pass


async def test_a_server_keeps_nothing_of_a_connection_that_is_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Not even of the last one, while it waits for the next: a TLS connection has large buffers."""
    async with serve(numbers_service(), "memory://test") as server:
        async with connect("memory://test") as peer:
            await peer.wait_accepted()
            connection = ref(server.peers[0]._connection.connection)
        await trio.sleep(5)
        assert server.peers == ()
        assert is_dropped(connection)


async def test_a_client_without_a_hello_is_not_among_the_peers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A subscribe before the hello would end the connection, by the server's fault."""
    async with trio.open_nursery() as nursery, serve(Service(), "memory://test") as server:
        raw = await raw_connection(nursery)
        await trio.testing.wait_all_tasks_blocked()
        assert server.peers == ()
        await raw.send(bytes.fromhex("010000"))
        assert await raw.receive() == bytes.fromhex("02000403060107")
        (peer,) = server.peers
        async with peer.subscribe("x", demand=1):
            assert await raw.receive() == bytes.fromhex("1001780001")
        await raw.abort()


async def test_the_goodbyes_of_a_shutdown_begin_in_turns(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each pass of the run loop a few connections begin; all of them said goodbye in the end."""
    begun = [0]

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            begun.append(0)

    leave = ConnectionTask.leave

    def count(self: ConnectionTask, reason: str) -> None:
        begun[-1] += reason == "shutdown"
        leave(self, reason)

    monkeypatch.setattr(ConnectionTask, "leave", count)
    limits = HASTY
    async with trio.open_nursery() as nursery:
        async with serve(numbers_service(), "memory://test", limits=limits) as server:
            raws = [await raw_connection(nursery) for _ in range(45)]
            while len(server._connections.running) < 45:
                await trio.lowlevel.checkpoint()
            passes = Passes()
            trio.lowlevel.add_instrument(passes)
        trio.lowlevel.remove_instrument(passes)
        for raw in raws:
            await raw.abort()
        nursery.cancel_scope.cancel()
    assert sum(begun) == 45
    assert max(begun) <= PER_PASS
