"""The promises of a transport, with ``ws://``:
as a stream of bytes, and with one frame in a message.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trustme
from penstock_websocket import WebSocketTransport
from penstock_websocket._connection import close_code
from penstock_websocket._pings import Pinger
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.spi import Connection, Listener, Tls, TransportOptions, parse_url

TRANSPORT = WebSocketTransport()
URL = "ws://127.0.0.1:0"
BYTES = TransportOptions(protocols=("rsio/0", "reactivesocket/0"), close_timeout=0.5)
FRAMED = replace(BYTES, protocols=("reactivesocket/0",))
Pair = tuple[Connection, Connection]


async def _listen(
    nursery: trio.Nursery, options: TransportOptions = BYTES, url: str = URL
) -> Listener:
    return await TRANSPORT.listen(parse_url(url), options=options, nursery=nursery)


async def _pair(
    nursery: trio.Nursery,
    options: TransportOptions = BYTES,
    listening: TransportOptions | None = None,
    url: str = URL,
) -> Pair:
    """Return both sides behind their handshakes and hellos."""
    listener = await _listen(nursery, listening or options, url)
    client = await TRANSPORT.connect(listener.addresses[0], options=options, nursery=nursery)
    server = await listener.accept()
    await listener.aclose()
    async with trio.open_nursery() as handshakes:
        handshakes.start_soon(client.handshake, nursery)
        handshakes.start_soon(server.handshake, nursery)
    client.on_open()
    server.on_open()
    return client, server


def _tls(folder: Path) -> tuple[TransportOptions, TransportOptions]:
    """Return the options of a client and of a server over TLS."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "roots.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return (
        replace(BYTES, tls=Tls(authorities=str(folder / "roots.pem"))),
        replace(BYTES, tls=Tls(certificate=str(folder / "server.pem"))),
    )


async def _close(*connections: Connection) -> None:
    for connection in connections:
        await connection.abort()


# --- connecting and listening


@pytest.mark.parametrize(("options", "framed"), [(BYTES, False), (FRAMED, True)])
async def test_the_subprotocol_decides_whether_messages_count(
    nursery: trio.Nursery, options: TransportOptions, framed: bool
) -> None:
    """The server chooses the first one of the client that it has too. Both sides have the facts."""
    client, server = await _pair(nursery, options, BYTES)
    name = "reactivesocket.v0" if framed else "rsio.v0"
    for connection in (client, server):
        assert connection.framed is framed
        assert connection.facts.protocol == name
        assert connection.facts.details["websocket"] == name
        assert connection.facts.local
        assert not connection.facts.half_close
        assert connection.peer.host == "127.0.0.1"
    await _close(client, server)


async def test_a_client_without_subprotocols_is_known_by_its_first_bytes(
    nursery: trio.Nursery,
) -> None:
    """A hello of RS.io begins with 1; the SETUP of any version of ReactiveSocket does not look
    like one. No subprotocol is answered.
    """
    for first, framed in (
        (b"\x01\0\0", False),
        (b"\0\0\0\x01" + bytes(4), True),
        (b"\x01\0\0\x01" + bytes(4), True),
    ):
        listener = await _listen(nursery)
        client = await TRANSPORT.connect(
            listener.addresses[0], options=replace(BYTES, protocols=()), nursery=nursery
        )
        server = await listener.accept()
        async with trio.open_nursery() as handshakes:
            handshakes.start_soon(server.handshake, nursery)
            await client.handshake(nursery)
            await client.send(first)
        assert (server.framed, server.facts.protocol) == (framed, None)
        assert await server.receive() == first
        await _close(client, server)
        await listener.aclose()


async def test_a_listener_reports_its_real_address_with_its_path(nursery: trio.Nursery) -> None:
    """The path is asked for by clients of that address; at another one there is nothing."""
    listener = await _listen(nursery, url="ws://127.0.0.1:0/streams#")
    [address] = listener.addresses
    assert address.port
    assert address.path == "/streams"
    for path, status in (("/streams", 101), ("/other", 404)):
        client = await TRANSPORT.connect(
            parse_url(f"ws://127.0.0.1:{address.port}{path}#x"), options=BYTES, nursery=nursery
        )
        server = await listener.accept()
        errors: list[str] = []
        async with trio.open_nursery() as handshakes:
            for connection in (client, server):
                handshakes.start_soon(_shake, connection, nursery, errors)
        assert [str(status) in error for error in errors] == ([] if status == 101 else [True, True])
        await _close(client, server)
    await listener.aclose()


async def _shake(connection: Connection, nursery: trio.Nursery, errors: list[str]) -> None:
    try:
        await connection.handshake(nursery)
    except ConnectionLost as error:
        errors.append(str(error))


async def test_a_wss_listener_needs_a_certificate(nursery: trio.Nursery) -> None:
    """And an unknown option is refused for both."""
    with pytest.raises(UsageError, match="certificate"):
        await _listen(nursery, url="wss://127.0.0.1:0")
    with pytest.raises(UsageError, match=r"ws\.origin"):
        await _listen(nursery, replace(BYTES, extra={"ws.origin": "x"}))


async def test_without_a_server_the_connection_is_lost(nursery: trio.Nursery) -> None:
    """With the address in the message."""
    listener = await _listen(nursery)
    await listener.aclose()
    with pytest.raises(ConnectionLost, match=str(listener.addresses[0])):
        await TRANSPORT.connect(listener.addresses[0], options=BYTES, nursery=nursery)


# --- messages


async def test_bytes_arrive_in_both_directions(nursery: trio.Nursery) -> None:
    """The boundaries of messages are not kept.
    Every type of `Bytes` can be sent, and 600 kB go out as three messages.
    """
    client, server = await _pair(nursery)
    for sender, receiver in ((client, server), (server, client)):
        for data in (b"one", bytearray(b"two"), memoryview(b"three")):
            with assert_checkpoints():
                await sender.send(data)
        received = b""
        while len(received) < 11:
            received += await receiver.receive() or b""
        assert received == b"onetwothree"
        async with trio.open_nursery() as sending:
            sending.start_soon(sender.send, b"x" * 600_000)
            size = 0
            while size < 600_000:
                size += len(await receiver.receive() or b"")
        assert size == 600_000
    await _close(client, server)


async def test_messages_stay_whole_if_they_are_frames(nursery: trio.Nursery) -> None:
    """Also above 256 KiB, up to `max_message`; nothing is sent without waiting."""
    client, server = await _pair(nursery, FRAMED)
    for sender, receiver in ((client, server), (server, client)):
        assert sender.send_now(b"x") == 0
        async with trio.open_nursery() as sending:
            sending.start_soon(sender.send, b"x" * 700_000)
            assert await receiver.receive() == b"x" * 700_000
        for message in (b"one", b"two"):
            await sender.send(message)
        with assert_checkpoints():
            assert await receiver.receive() == b"one"
        with assert_checkpoints():
            assert await receiver.receive() == b"two"
    await _close(client, server)


async def test_send_now_counts_what_the_system_has_taken(nursery: trio.Nursery) -> None:
    """The caller sends the rest again, perhaps in pieces, and no byte is lost or doubled."""
    client, server = await _pair(nursery)
    whole = bytes(number % 251 for number in range(200_000))
    sent, queued = bytearray(), 0
    while True:
        taken = server.send_now(whole)
        sent += whole
        queued = taken
        if taken < len(whole):
            break
    assert server.send_now(b"x") == 0
    received = bytearray()

    async def send_rest() -> None:
        for start in range(queued, len(whole), 4096):
            await server.send(memoryview(whole)[start : min(start + 4096, len(whole))])
        await server.send(b"end")

    async with trio.open_nursery() as sending:
        sending.start_soon(send_rest)
        while not received.endswith(b"end"):
            received += await client.receive() or b""
    assert received == sent + b"end"
    await _close(client, server)


async def test_a_message_above_max_message_is_refused(nursery: trio.Nursery) -> None:
    """The option of the receiving side counts;
    `farewell` says why, and so does that of the other side.
    """
    client, server = await _pair(nursery, FRAMED, replace(BYTES, max_message=1000))
    await client.send(bytes(1001))
    with pytest.raises(LimitExceeded, match="1001 bytes or more; 1000 are allowed") as caught:
        await server.receive()
    assert (caught.value.limit, caught.value.value) == ("max_message", 1000)
    assert await client.receive() is None
    await _close(client, server)
    assert "1009" in (server.farewell() or "")
    assert "1009" in (client.farewell() or "")


async def test_before_the_hello_a_client_sends_short_messages(nursery: trio.Nursery) -> None:
    """The server accepts no longer ones, and bytes behind the hello may follow it at once."""
    listener = await _listen(nursery)
    client = await TRANSPORT.connect(listener.addresses[0], options=BYTES, nursery=nursery)
    server = await listener.accept()
    async with trio.open_nursery() as handshakes:
        handshakes.start_soon(client.handshake, nursery)
        handshakes.start_soon(server.handshake, nursery)
    assert client.send_now(bytes(4097)) == 0
    await client.send(bytes(10_000))
    received = b""
    while len(received) < 10_000:
        received += await server.receive() or b""
    await _close(client, server)
    await listener.aclose()


async def test_messages_behind_the_first_one_wait_until_it_was_examined(
    nursery: trio.Nursery,
) -> None:
    """A long request after a SETUP is not a fault of the client, and the server does not hold it."""
    listener = await _listen(nursery)
    client = await TRANSPORT.connect(listener.addresses[0], options=FRAMED, nursery=nursery)
    server = await listener.accept()
    async with trio.open_nursery() as handshakes:
        handshakes.start_soon(client.handshake, nursery)
        handshakes.start_soon(server.handshake, nursery)
    await client.send(b"setup")
    async with trio.open_nursery() as tasks:
        tasks.start_soon(client.send, bytes(100_000))
        assert await server.receive() == b"setup"
        received = []

        async def receive() -> None:
            received.append(await server.receive())

        tasks.start_soon(receive)
        await wait_all_tasks_blocked(0.01)
        assert received == []
        assert server.held() <= 4096
        server.on_open()
    assert received == [bytes(100_000)]
    await _close(client, server)
    await listener.aclose()


async def test_a_cancelled_receive_loses_no_bytes(nursery: trio.Nursery) -> None:
    """An unfinished message is held, counted, and completed by the next call."""
    client, server = await _pair(nursery, FRAMED)
    await client._below.send(bytes([0x82, 0x85, 0, 0, 0, 0]) + b"he")
    async with trio.open_nursery() as receiving:
        receiving.start_soon(server.receive)
        await wait_all_tasks_blocked(0.01)
        receiving.cancel_scope.cancel()
    assert server.held() == 2
    await client._below.send(b"llo")
    assert await server.receive() == b"hello"
    assert server.held() == 0
    await _close(client, server)


async def test_sending_waits_for_a_peer_that_does_not_read(nursery: trio.Nursery) -> None:
    """It waits when the buffers of the system are full. A cancelled send leaves no torn frame:
    the Close frame follows it.
    """
    client, server = await _pair(nursery)
    sent = []

    async def send_without_end() -> None:
        while True:
            await server.send(bytes(1 << 18))
            sent.append(True)

    async with trio.open_nursery() as sending:
        sending.start_soon(send_without_end)
        await wait_all_tasks_blocked(0.05)
        before = len(sent)
        await wait_all_tasks_blocked(0.05)
        assert len(sent) == before < 100
        sending.cancel_scope.cancel()
    async with trio.open_nursery() as closing:
        closing.start_soon(server.aclose)
        size = 0
        while (data := await client.receive()) is not None:
            size += len(data)
    assert size == (before + 1) << 18
    assert client.farewell() is not None  # 1001: the server leaves
    await _close(client, server)


# --- the end


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", 1000),
        ("shutdown", 1001),
        ("protocol:varint", 1002),
        ("version", 1002),
        ("limit:frame", 1008),
        ("idle", 1008),
        ("internal", 1011),
    ],
)
def test_each_reason_of_a_goodbye_has_a_code(reason: str, code: int) -> None:
    """A client that is shut down leaves in good order."""
    assert close_code(reason, is_client=False) == code
    assert close_code("shutdown", is_client=True) == 1000


@pytest.mark.parametrize("way", ["aclose", "abort"])
async def test_a_connection_can_be_closed_again(nursery: trio.Nursery, way: str) -> None:
    """In either way, and after the peer has closed. Afterwards `send` and `receive` raise."""
    client, server = await _pair(nursery)
    for connection in (client, server):
        await getattr(connection, way)()
        await connection.aclose()
        await connection.abort()
        with pytest.raises(trio.ClosedResourceError):
            await connection.send(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive()


@pytest.mark.parametrize("way", ["aclose", "abort", "send_eof"])
async def test_the_other_side_sees_a_close_frame(nursery: trio.Nursery, way: str) -> None:
    """Before TCP ends, also if the connection is aborted."""
    client, server = await _pair(nursery)
    server.on_goodbye("limit:frame")
    async with trio.open_nursery() as closing:
        closing.start_soon(getattr(server, way))
        assert await client.receive() is None
        await client.abort()
    assert client.farewell() == "it closed the WebSocket with the code 1008"
    await _close(server)


async def test_a_cancelled_aclose_closes_nevertheless(nursery: trio.Nursery) -> None:
    """The peer sees the end of the connection."""
    client, server = await _pair(nursery)
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await client.receive()
    with suppress(trio.BrokenResourceError):  # the cancelled close had no time for a Close frame
        assert await server.receive() is None
    await _close(server)


async def test_the_end_of_tcp_alone_breaks_the_connection(nursery: trio.Nursery) -> None:
    """An orderly peer sends a Close frame first."""
    client, server = await _pair(nursery)
    await client._below.send_eof()
    with pytest.raises(trio.BrokenResourceError, match="without a Close frame"):
        await server.receive()
    await _close(client, server)


# --- pings


def _pinger(calls: list[str], heard: Callable[[], float]) -> Pinger:
    async def give_up() -> None:
        calls.append(f"gave up at {trio.current_time() - start:.0f}")

    start = trio.current_time()
    give: Callable[[], Awaitable[None]] = give_up
    return Pinger(20.0, ping=lambda: calls.append("ping"), heard_at=heard, give_up=give)


async def test_a_silent_client_is_pinged_and_given_up(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After 20 s with 15 % of jitter, and 20 s more."""
    calls: list[str] = []
    began = trio.current_time()
    _pinger(calls, lambda: began).start(nursery)
    await trio.sleep(16)
    assert calls == []
    await trio.sleep(8)
    assert calls == ["ping"]
    await trio.sleep(20)
    assert calls[0] == "ping"
    assert calls[1].startswith("gave up at ")
    assert len(calls) == 2


async def test_a_client_that_sends_is_not_pinged(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And one that answers is kept. After `stop` nothing is pinged."""
    calls: list[str] = []
    heard = [trio.current_time()]
    pinger = _pinger(calls, lambda: heard[0])
    pinger.start(nursery)
    for _ in range(10):
        await trio.sleep(10)
        heard[0] = trio.current_time()
    assert calls == []
    await trio.sleep(25)
    assert calls == ["ping"]
    heard[0] = trio.current_time()
    await trio.sleep(16)
    assert calls == ["ping"]
    pinger.stop()
    await trio.sleep(100)
    assert calls == ["ping"]


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_a_close_waits_for_the_task_that_receives(
    scheme: str, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Its reader still waits for the peer: a second one over TLS is an error of trio."""
    options, listening = _tls(tmp_path) if scheme == "wss" else (BYTES, BYTES)
    client, server = await _pair(nursery, options, listening, f"{scheme}://127.0.0.1:0")
    received: list[object] = []

    async def receive() -> None:
        with suppress(trio.ClosedResourceError):  # the close may be over before the second one is
            received.append(await client.receive())
            received.append(await client.receive())

    async with trio.open_nursery() as tasks:
        tasks.start_soon(receive)
        await wait_all_tasks_blocked()
        tasks.start_soon(client.aclose)
        await wait_all_tasks_blocked()
        await server.send(b"late")
        assert await server.receive() is None
        await server.aclose()
    assert received[0] == b"late"
