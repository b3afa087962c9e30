"""The connections of penstock on streams in memory:
deadlines, cancels, and the words of their ends. The time is virtual.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
from penstock_http.multiplex._accepted import AcceptedConnection, Attendance
from penstock_http.multiplex._connection import Http2ClientConnection, ServedStream, reset_code
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._requests import Agreed, Mount, request_headers
from penstock_http.multiplex._stream import Http2Stream
from trio.testing import lockstep_stream_pair, wait_all_tasks_blocked

from penstock.api import ConnectionLost
from penstock.spi import ByteConnection, PeerIdentity, TransportOptions

PEER = PeerIdentity(address="memory")
POST = request_headers(scheme="http", host="x", path="/", subprotocol="rsio.v0")


Pair = tuple[Http2ClientConnection, ServedStream]


@asynccontextmanager
async def _pair(ends_type: Any, options: TransportOptions) -> AsyncIterator[Pair]:
    """A connection of each side, behind the handshake and the hellos."""
    ends = ends_type(options)
    client = Http2ClientConnection(ends.below[0], options, request=POST, protocol=None, ping=20.0)
    served: list[ServedStream] = []

    def accept(stream: Http2Stream, _: Any) -> None:
        served.append(
            ServedStream(
                server,
                ends.below[1],
                options,
                stream=stream,
                agreed=Agreed("rsio.v0"),
                on_hello=lambda: None,
            ),
        )
        nursery.start_soon(served[0].handshake, nursery)

    server = Multiplexer(ends.below[1], is_client=False, ping=20.0, on_request=accept)
    async with trio.open_nursery() as nursery:
        server.begin()
        nursery.start_soon(server.run)
        await client.handshake(nursery)
        client.on_open()
        served[0].on_open()
        yield client, served[0]
        nursery.cancel_scope.cancel()


async def test_closing_ends_within_its_time_if_the_peer_reads_nothing(
    ends_type: Any, options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> None:
    """A send that was cancelled in the middle changes nothing about it."""
    async with _pair(ends_type, options) as (client, server):
        server._mux.stop()
        await wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await client.send(bytes(1 << 20))
        began = trio.current_time()
        await client.aclose()
        assert trio.current_time() - began <= 1.0
        began = trio.current_time()
        await server.aclose()
        assert trio.current_time() - began <= 1.0


@pytest.mark.parametrize("call", ["send", "receive", "send_eof", "aclose"])
async def test_cancelling_ends_at_once_whatever_the_peer_does(
    ends_type: Any, options: TransportOptions, autojump_clock: trio.testing.MockClock, call: str
) -> None:
    """The peer reads nothing and sends nothing.
    Neither the call nor the abort after it waits for it.
    """
    patient = replace(options, close_timeout=100.0)
    async with _pair(ends_type, patient) as (client, server):
        server._mux.stop()
        await wait_all_tasks_blocked()
        # So much that the writer waits too.
        while client.send_now(bytes(100_000)):
            pass
        calls: dict[str, Callable[[], Any]] = {
            "send": lambda: client.send(bytes(8 << 20)),
            "receive": client.receive,
            "send_eof": client.send_eof,
            "aclose": client.aclose,
        }
        began = trio.current_time()
        with trio.move_on_after(2) as waiting:
            await calls[call]()
        assert waiting.cancelled_caught
        await client.abort()
        assert trio.current_time() - began == 2


async def test_cancelling_a_handshake_ends_at_once(
    options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> None:
    """The server accepts the connection and does nothing."""
    one, _ = lockstep_stream_pair()
    client = Http2ClientConnection(
        ByteConnection(one, peer=PEER, options=options),
        options,
        request=POST,
        protocol=None,
        ping=20.0,
    )
    began = trio.current_time()
    with trio.move_on_after(2):
        async with trio.open_nursery() as nursery:
            await client.handshake(nursery)
    assert trio.current_time() - began == 2


async def test_cancelling_the_service_of_a_client_ends_at_once(
    options: TransportOptions, autojump_clock: trio.testing.MockClock, host_type: Any
) -> None:
    """With a stream on which a send waits."""
    one, two = lockstep_stream_pair()
    accepted = AcceptedConnection(
        ByteConnection(two, peer=PEER, options=options),
        options,
        place=Mount(protocols=("rsio.v0",)),
        ping=20.0,
    )
    below = ByteConnection(one, peer=PEER, options=options)
    mux = Multiplexer(below, is_client=True, ping=20.0)
    async with trio.open_nursery() as nursery:
        host = host_type(nursery)
        mux.begin()
        nursery.start_soon(mux.run)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as serving:
                serving.start_soon(
                    Attendance(
                        accepted.below,
                        accepted.options,
                        host,
                        place=accepted.place,
                        ping=accepted.ping,
                    ).run
                )
                mux.streams.open(POST)
                connection = await host.wait_adopted()
                mux.stop()
                await wait_all_tasks_blocked()
                began = trio.current_time()
                nursery.start_soon(_broken_send, connection)
                await wait_all_tasks_blocked()
                scope.cancel()
        assert trio.current_time() - began < 1


async def _broken_send(connection: ServedStream) -> None:
    with pytest.raises(trio.BrokenResourceError, match="the connection was closed"):
        await connection.send(bytes(8 << 20))


async def test_a_handshake_without_an_answer_has_a_deadline(
    options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> None:
    """The connection below is closed then."""
    one, two = lockstep_stream_pair()
    client = Http2ClientConnection(
        ByteConnection(one, peer=PEER, options=options),
        options,
        request=POST,
        protocol=None,
        ping=20.0,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_read_out, two)
        with pytest.raises(ConnectionLost, match="did not answer the request of HTTP/2 within 5 s"):
            await client.handshake(nursery)


async def _read_out(stream: trio.abc.ReceiveStream) -> None:
    while await stream.receive_some():
        pass


async def test_a_closed_connection_says_so(
    ends_type: Any, options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> None:
    """A task that waits in it is let go; closing again does nothing."""
    async with _pair(ends_type, options) as (client, server):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_closed_receive, server)
            await wait_all_tasks_blocked()
            await server.abort()
        for call in (lambda: server.send(b"x"), server.receive, server.send_eof):
            with pytest.raises(trio.ClosedResourceError):
                await call()
        with pytest.raises(trio.ClosedResourceError):
            server.send_now(b"x")
        await server.aclose()
        await server.abort()
        with pytest.raises(trio.BrokenResourceError, match="the peer reset the stream"):
            await client.receive()


async def _closed_receive(connection: ServedStream) -> None:
    with pytest.raises(trio.ClosedResourceError):
        await connection.receive()


async def test_held_counts_what_waits_in_both_directions(
    ends_type: Any, options: TransportOptions, autojump_clock: trio.testing.MockClock
) -> None:
    """Bytes that were not received, and frames that the system has not taken."""
    async with _pair(ends_type, options) as (client, server):
        await client.send(bytes(1000))
        await wait_all_tasks_blocked()
        assert server.held() == 1000
        assert client.held() == 0
        assert client.send_now(bytes(2000)) == 2000
        assert client.held() == 2009
        await wait_all_tasks_blocked()
        assert client.held() == 0
        assert server.held() == 3000


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", "CANCEL"),
        ("shutdown", "CANCEL"),
        ("protocol:varint", "PROTOCOL_ERROR"),
        ("version", "PROTOCOL_ERROR"),
        ("limit:frame", "ENHANCE_YOUR_CALM"),
        ("internal", "INTERNAL_ERROR"),
    ],
)
async def test_the_reset_behind_a_goodbye_has_its_code(
    ends_type: Any,
    options: TransportOptions,
    autojump_clock: trio.testing.MockClock,
    reason: str,
    code: str,
) -> None:
    """For people, and for proxies."""
    assert reset_code(reason).name == code
    async with _pair(ends_type, options) as (client, server):
        server.on_goodbye(reason)
        await server.abort()
        with pytest.raises(trio.BrokenResourceError, match=code):
            await client.receive()
        assert code in (client.farewell() or "")


def test_an_accepted_connection_has_what_its_listener_was_told(options: TransportOptions) -> None:
    """The server attends it with this."""
    below = ByteConnection(lockstep_stream_pair()[0], peer=PEER, options=options)
    accepted = AcceptedConnection(below, options, place=Mount(path="/x"), ping=3.0)
    assert (accepted.peer, accepted.place.path, accepted.ping) == (PEER, "/x", 3.0)
