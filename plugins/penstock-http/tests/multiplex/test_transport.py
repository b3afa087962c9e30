"""The promises of a transport, with ``h2://`` over real sockets: bytes in both directions, and
several streams of one connection.
"""

import ssl
from dataclasses import replace
from typing import Any

import pytest
import trio
import trustme
from penstock_http.multiplex import Http2Transport
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.api import ConnectionLost, UsageError
from penstock.spi import Connection, Tls, TransportOptions, parse_url

Pair = tuple[Connection, Connection]


async def _pair(
    served: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> Pair:
    """Return a connection of a client and that of the server, behind the handshake
    and the hellos.
    """
    count = len(served.hosts) + 1
    client = await transport.connect(served.address, options=options, nursery=nursery)
    await client.handshake(nursery)
    server = await (await served.host(count)).wait_adopted()
    client.on_open()
    server.on_open()
    return client, server


async def _receive(connection: Connection, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += await connection.receive() or b""
    return bytes(data)


# --- connecting and listening


async def test_both_sides_have_the_facts(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """The server knows the protocol by the content type; a client knows what it has asked for."""
    client, server = await _pair(await serve(), transport, options, nursery)
    assert server.facts.protocol == "rsio.v0"
    assert client.facts.protocol is None
    for connection in (client, server):
        assert not connection.framed
        assert connection.facts.half_close
        assert connection.facts.local
        assert connection.facts.details["http"] == "2"
        assert connection.peer.host == "127.0.0.1"
        assert str(connection.peer) in repr(connection)
    await client.abort()


async def test_an_encoding_is_asked_for_if_the_url_names_one(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """Both sides have it in their facts then."""
    in_encoding = replace(options, protocols=("rsio/0+msgpack",))
    client, server = await _pair(await serve(options=in_encoding), transport, in_encoding, nursery)
    assert client.facts.protocol == server.facts.protocol == "rsio.v0+msgpack"
    await client.abort()


async def test_a_listener_reports_its_real_address_with_its_path(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """A client of that address asks for the path. At another path there is nothing."""
    served = await serve("h2://127.0.0.1:0/streams#")
    assert served.address.port
    assert served.address.path == "/streams"
    client, _ = await _pair(served, transport, options, nursery)
    await client.abort()
    other = await transport.connect(
        parse_url(f"h2://127.0.0.1:{served.address.port}/other#x"), options=options, nursery=nursery
    )
    with pytest.raises(ConnectionLost, match="it answered the request with 404"):
        await other.handshake(nursery)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"h2.origin": "x"}, "h2.origin' is not known"),
        ({"h2.ping": "often"}, "give seconds"),
        ({"h2.ping": 0}, "give seconds"),
        ({"h2.origins": "example"}, "which is no origin"),
        ({"h2.origins": "https://a/b"}, "which is no origin"),
        ({"h2.origins": 3}, "give a text, or several"),
    ],
)
async def test_a_wrong_option_is_refused(
    transport: Http2Transport,
    options: TransportOptions,
    nursery: trio.Nursery,
    extra: dict[str, object],
    words: str,
) -> None:
    """By a listener and by a client."""
    wrong = replace(options, extra=extra)
    for call in (transport.listen, transport.connect):
        with pytest.raises(UsageError, match=words):
            await call(parse_url("h2://127.0.0.1:0"), options=wrong, nursery=nursery)


async def test_right_options_are_accepted(serve: Any, options: TransportOptions) -> None:
    """As texts, as on the command line, or as values. Options of other transports do not count."""
    for extra in (
        {"h2.origins": "https://a.example, http://b.example", "h2.ping": "3"},
        {"h2.origins": ["https://a.example"], "ws.ping": 0},
    ):
        await serve(options=replace(options, extra=extra))


async def test_without_a_server_the_connection_is_lost(
    transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """With the address in the message."""
    listener = await transport.listen(
        parse_url("h2://127.0.0.1:0"), options=options, nursery=nursery
    )
    await listener.aclose()
    with pytest.raises(ConnectionLost, match=str(listener.addresses[0])):
        await transport.connect(listener.addresses[0], options=options, nursery=nursery)


async def test_h2s_is_tls_with_alpn(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """It needs a certificate, and both sides negotiate h2.
    A client that offers only another protocol is told so.
    """
    with pytest.raises(UsageError, match="certificate"):
        await transport.listen(parse_url("h2s://127.0.0.1:0"), options=options, nursery=nursery)
    authority = trustme.CA()
    with (
        authority.cert_pem.tempfile() as ca,
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as pem,
    ):
        served = await serve("h2s://127.0.0.1:0", replace(options, tls=Tls(certificate=pem)))
        trusting = replace(options, tls=Tls(authorities=ca))
        client, server = await _pair(served, transport, trusting, nursery)
        assert client.facts.secure
        assert server.facts.secure
        whole = bytes(range(256)) * 2000
        for sender, receiver in ((client, server), (server, client)):
            async with trio.open_nursery() as sending:
                sending.start_soon(sender.send, whole)
                assert await _receive(receiver, len(whole)) == whole
        await client.aclose()
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["http/1.1"])
        stream = await trio.open_ssl_over_tcp_stream(
            "127.0.0.1", served.address.port, ssl_context=context
        )
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while data := await stream.receive_some():
            answer += data
            if answer.endswith(b"\n"):
                break
        assert answer.startswith(b"HTTP/1.1 505 ")
        await trio.aclose_forcefully(stream)


async def test_an_untrusted_certificate_is_refused(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """The message says what to do."""
    authority = trustme.CA()
    with authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as pem:
        served = await serve("h2s://127.0.0.1:0", replace(options, tls=Tls(certificate=pem)))
        client = await transport.connect(served.address, options=options, nursery=nursery)
        with pytest.raises(ConnectionLost, match="certificate cannot be verified"):
            await client.handshake(nursery)


# --- bytes


async def test_bytes_arrive_in_both_directions(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """Boundaries are not kept. Every type of `Bytes` can be sent, and 5 MB cross in both
    directions at the same time.
    """
    client, server = await _pair(await serve(), transport, options, nursery)
    for sender, receiver in ((client, server), (server, client)):
        for data in (b"one", bytearray(b"two"), memoryview(b"three"), b""):
            with assert_checkpoints():
                await sender.send(data)
        assert await _receive(receiver, 11) == b"onetwothree"
    whole = bytes(range(256)) * 20_000
    received: list[bytes] = []

    async def receive(connection: Connection) -> None:
        received.append(await _receive(connection, len(whole)))

    async with trio.open_nursery() as both:
        for connection in (client, server):
            both.start_soon(connection.send, whole)
            both.start_soon(receive, connection)
    assert received == [whole, whole]
    await client.abort()


async def test_send_now_takes_a_part_and_no_byte_is_lost(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """Until the system takes no more; then it takes nothing, and `send` waits."""
    client, server = await _pair(await serve(), transport, options, nursery)
    sent = bytearray()
    while taken := server.send_now(bytes([len(sent) % 251]) * 50_000):
        sent += bytes([len(sent) % 251]) * taken
    assert server.send_now(b"x") == 0
    async with trio.open_nursery() as sending:
        sending.start_soon(server.send, b"end")
        assert await _receive(client, len(sent) + 3) == sent + b"end"
    await client.abort()


async def test_a_client_that_closes_leaves_nothing(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """The server reads all of it, and then the end;
    its own half is still open until it closes too.
    """
    served = await serve()
    client, server = await _pair(served, transport, options, nursery)
    await client.send(b"last")
    await client.send_eof()
    assert await _receive(server, 4) == b"last"
    assert await server.receive() is None
    await server.send(b"words")
    assert await _receive(client, 5) == b"words"
    await server.aclose()
    assert await client.receive() is None
    await client.aclose()
    while not served.ended:
        await trio.lowlevel.checkpoint()


async def test_an_abort_of_the_server_is_a_reset(
    serve: Any, transport: Http2Transport, options: TransportOptions, nursery: trio.Nursery
) -> None:
    """The connection of the client below it ends with the client."""
    served = await serve()
    client, server = await _pair(served, transport, options, nursery)
    await server.abort()
    with pytest.raises(trio.BrokenResourceError, match=r"the peer reset the stream \(CANCEL\)"):
        await client.receive()
    with pytest.raises(trio.BrokenResourceError):
        await client.send(b"x")
    await client.aclose()
    while not served.ended:
        await trio.lowlevel.checkpoint()


async def test_the_end_of_tcp_without_a_goodbye_breaks_the_stream(
    serve: Any, raw: Any, nursery: trio.Nursery
) -> None:
    """It is not an end in good order."""
    served = await serve()
    client = await raw(served.address)
    assert await client.status(await client.request()) == "200"
    server = await (await served.host()).wait_adopted()
    await client.stream.aclose()
    with pytest.raises(trio.BrokenResourceError, match="the peer ended the connection"):
        await server.receive()
    assert server.farewell() == "the peer ended the connection"


# --- several streams of one connection


async def test_each_stream_of_a_client_is_a_connection(serve: Any, raw: Any) -> None:
    """With its own bytes and its own end.
    The client is known when both sides have said hello on one of them.
    """
    served = await serve()
    client = await raw(served.address)
    host = await served.host()
    ids = [await client.request() for _ in range(20)]
    connections = [await host.wait_adopted(number + 1) for number in range(20)]
    for stream_id in ids:
        client.h2.send_data(stream_id, b"from %d" % stream_id)
    await client.flush()
    for stream_id, connection in zip(ids, connections, strict=True):
        assert await connection.receive() == b"from %d" % stream_id
    assert not host.is_recognised
    connections[3].on_open()
    assert host.is_recognised
    await connections[5].abort()
    event = await client.read_until(lambda event: type(event).__name__ == "StreamReset")
    assert event.stream_id == ids[5]
    await connections[6].send(b"still here")
    event = await client.read_until(lambda event: type(event).__name__ == "DataReceived")
    assert (event.stream_id, event.data) == (ids[6], b"still here")


async def test_the_credit_for_padding_goes_back_at_once(serve: Any, raw: Any) -> None:
    """Although nothing of the stream was read.
    130 bytes with 255 bytes of padding each need half of the window.
    """
    served = await serve()
    client = await raw(served.address)
    stream_id = await client.request()
    await client.status(stream_id)
    for _ in range(130):
        client.h2.send_data(stream_id, b"x", pad_length=255)
    await client.flush()
    await client.sync()
    assert client.h2.local_flow_control_window(stream_id) >= (64 << 10) - 1 - 2 * 257 - 130


async def test_aborted_streams_use_up_no_credit_of_their_connection(serve: Any, raw: Any) -> None:
    """Six of them leave 900 kB each unread, which is more than the window of the connection."""
    served = await serve()
    client = await raw(served.address)
    host = await served.host()
    for number in range(6):
        stream_id = await client.request()
        await client.status(stream_id)
        connection = await host.wait_adopted(number + 1)
        connection.on_open()
        await client.sync()
        left = 900_000
        while left:
            size = min(left, client.h2.max_outbound_frame_size)
            assert client.h2.local_flow_control_window(stream_id) >= size
            client.h2.send_data(stream_id, bytes(size))
            left -= size
        await client.flush()
        await client.sync()
        assert connection.held() == 900_000
        await connection.abort()


async def test_a_stream_without_a_place_gets_503(serve: Any, raw: Any) -> None:
    """It can be tried again. The other streams of the connection go on."""
    served = await serve()
    client = await raw(served.address)
    first = await client.request()
    assert await client.status(first) == "200"
    host = await served.host()
    host.refusal = "places:address"
    assert await client.status(await client.request()) == "503"
    body = await client.read_until(lambda event: type(event).__name__ == "DataReceived")
    assert body.data == b"the server has no place: places:address\n"
    client.h2.send_data(first, b"x")
    await client.flush()
    assert await host.adopted[0].receive() == b"x"


async def test_a_refusal_waits_for_the_credit_of_its_client(serve: Any, raw: Any) -> None:
    """Nothing of the text is lost, and no task waits for it."""
    served = await serve()
    client = await raw(served.address, INITIAL_WINDOW_SIZE=5)
    stream_id = await client.request(method="GET", ends=True)
    assert await client.status(stream_id) == "405"
    body = b""
    while not body.endswith(b"\n"):
        event = await client.read_until(lambda event: type(event).__name__ == "DataReceived")
        assert len(event.data) <= 5
        body += event.data
        if not body.endswith(b"\n"):
            client.h2.increment_flow_control_window(5, stream_id)
            await client.flush()
    assert body == b"a stream of bytes begins with a POST\n"


async def test_a_server_that_drains_says_goaway_and_lets_the_streams_end(
    serve: Any, raw: Any
) -> None:
    """Behind it a request is refused as one that was not looked at.
    The connection ends with its last stream.
    """
    served = await serve()
    client = await raw(served.address)
    await client.status(await client.request())
    host = await served.host()
    host.draining.set()
    assert await client.goaway() == ("NO_ERROR", "")
    await host.adopted[0].send(b"goodbye")
    await host.adopted[0].aclose()
    await wait_all_tasks_blocked()
    while not served.ended:
        if not await client.stream.receive_some():
            break
    await client.stream.aclose()
    while not served.ended:
        await trio.lowlevel.checkpoint()


async def test_a_goaway_of_the_client_lets_its_streams_end(serve: Any, raw: Any) -> None:
    """As RFC 9113 wants it, and h2 does not."""
    served = await serve()
    client = await raw(served.address)
    stream_id = await client.request()
    await client.status(stream_id)
    connection = await (await served.host()).wait_adopted()
    client.h2.send_data(stream_id, b"before")
    data = client.h2.data_to_send()
    client.h2.send_data(stream_id, b"after")
    rest = client.h2.data_to_send()
    client.h2.close_connection()
    await client.send(data + client.h2.data_to_send() + rest)
    assert await _receive(connection, 11) == b"beforeafter"
    await connection.send(b"answer")
    assert b"answer" in await client.stream.receive_some()


async def test_trailers_and_early_answers_are_ignored(serve: Any, raw: Any) -> None:
    """Proxies for gRPC send them. Trailers end the half of the client."""
    served = await serve()
    client = await raw(served.address)
    stream_id = await client.request(("te", "trailers"))
    client.h2.send_data(stream_id, b"x")
    client.h2.send_headers(stream_id, [("grpc-status", "0")], end_stream=True)
    await client.flush()
    connection = await (await served.host()).wait_adopted()
    assert await connection.receive() == b"x"
    assert await connection.receive() is None
