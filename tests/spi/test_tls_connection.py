"""`TlsConnection`, over real sockets: handshake, certificates, records, closing, error texts."""

import ssl
from dataclasses import replace

import pytest
import trio

from penstock.spi import Tls, TransportOptions, _tls_connection
from tests._real_time import HANGS_AFTER
from tests.spi._over_tls import (
    SOON,
    TCP,
    TLS,
    Certificates,
    connected,
    failed_handshake,
    failed_handshakes,
    plain_client,
    reset_on_close,
    socket_of,
)
from tests.transports._helpers import close, connect, listen, shake_hands, stream_of


async def test_the_facts_are_complete_after_the_handshake(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """Encrypted, with version and cipher. Before the handshake the connection is not secure."""
    client, server = await connected(nursery, serving, calling)
    assert not client.facts.secure
    await shake_hands(client, server)
    for connection in (client, server):
        assert connection.facts.secure
        assert connection.facts.local
        assert not connection.facts.half_close
        assert connection.facts.details["tls"] == "TLSv1.3"
        assert connection.facts.details["cipher"].startswith("TLS_")
    assert client.peer.certificate is not None
    assert "DNS:localhost" in client.peer.certificate.names
    assert server.peer.certificate is None
    assert server.peer.address == "{}:{}".format(*socket_of(client).getsockname()[:2])
    await close(client, server)


async def test_a_client_is_identified_by_its_certificate(
    nursery: trio.Nursery, files: Certificates
) -> None:
    """A server with authorities has the client's certificate after the handshake."""
    serving = TransportOptions(tls=Tls(certificate=files.server, authorities=files.ca))
    calling = TransportOptions(tls=Tls(certificate=files.alice, authorities=files.ca))
    client, server = await connected(nursery, serving, calling)
    await shake_hands(client, server)
    certificate = server.peer.certificate
    assert certificate is not None
    assert "CN=Alice" in certificate.subject
    assert str(server.peer).endswith(f"({certificate.subject})")
    await close(client, server)


@pytest.mark.parametrize("shown", ["none", "untrusted"])
async def test_a_client_without_a_trusted_certificate_is_refused(
    nursery: trio.Nursery, files: Certificates, shown: str
) -> None:
    """The server's handshake fails.
    The client has finished its own handshake, and its first `receive` raises.
    """
    serving = TransportOptions(tls=Tls(certificate=files.server, authorities=files.ca))
    calling = TransportOptions(
        tls=Tls(certificate=None if shown == "none" else files.untrusted, authorities=files.ca)
    )
    client, server = await connected(nursery, serving, calling)
    nursery.start_soon(client.handshake, nursery)
    message = await failed_handshake(server)
    assert (
        "certificate cannot be verified"
        if shown == "untrusted"
        else "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    ) in message
    with pytest.raises(trio.BrokenResourceError):
        await client.receive()
    await close(client, server)


@pytest.mark.parametrize("why", ["unknown authority", "other name"])
async def test_a_server_that_cannot_be_verified_is_refused(
    nursery: trio.Nursery, files: Certificates, serving: TransportOptions, why: str
) -> None:
    """The client's handshake fails before it sends any data,
    and the server's handshake fails as well.
    """
    tls = (
        Tls()
        if why == "unknown authority"
        else Tls(authorities=files.ca, server_name="other.example")
    )
    client, server = await connected(nursery, serving, TransportOptions(tls=tls))
    of_client, of_server = await failed_handshakes(client, server)
    assert "its certificate cannot be verified: " in of_client
    assert f"the TLS handshake with {server.peer.address} failed" in of_server
    await close(client, server)


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01", b"\x01\x00\x00"], ids=repr)
async def test_an_unfinished_handshake_ends_by_its_deadline(
    nursery: trio.Nursery, serving: TransportOptions, data: bytes
) -> None:
    """A client that sends nothing, an incomplete handshake, or too little to be recognised as
    plaintext: its socket is closed.
    """
    listener = await listen(
        TLS,
        "tls://localhost:0",
        nursery,
        replace(serving, handshake_timeout=SOON, close_timeout=2 * HANGS_AFTER),
    )
    silent = await plain_client(listener, nursery)
    server = await listener.accept()
    if data:
        await silent.send(data)
    began = trio.current_time()
    assert "did not finish its TLS handshake within 0.15 s" in await failed_handshake(server)
    assert SOON * 0.9 < trio.current_time() - began < HANGS_AFTER
    assert socket_of(server).fileno() == -1
    await close(silent)
    await listener.aclose()


async def test_a_disconnect_in_the_handshake_is_a_lost_connection(
    nursery: trio.Nursery, serving: TransportOptions
) -> None:
    """Whether the client closes or resets the connection, the handshake fails at once."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    for with_reset in (False, True):
        client = await plain_client(listener, nursery)
        server = await listener.accept()
        if with_reset:
            reset_on_close(client)
        await client.abort()
        assert f"the TLS handshake with {server.peer.address} failed" in await failed_handshake(
            server
        )
    await listener.aclose()


async def test_a_tls_client_of_a_plain_server_gets_the_reason(
    nursery: trio.Nursery, calling: TransportOptions
) -> None:
    """The error says that the server does not speak TLS."""
    listener = await listen(TCP, "tcp://localhost:0", nursery)
    client = await connect(TLS, str(listener.addresses[0]).replace("tcp", "tls"), nursery, calling)
    server = await listener.accept()
    await server.send(b"\x02\x00\x00 hello")
    assert "it does not speak TLS" in await failed_handshake(client)
    await close(server)
    await listener.aclose()


async def test_a_cancelled_handshake_closes_the_connection(
    nursery: trio.Nursery, serving: TransportOptions
) -> None:
    """The state of the handshake is lost, so the connection cannot be used again."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    silent = await plain_client(listener, nursery)
    server = await listener.accept()
    async with trio.open_nursery() as shaking:
        shaking.start_soon(server.handshake, shaking)
        await trio.testing.wait_all_tasks_blocked()
        shaking.cancel_scope.cancel()
    assert socket_of(server).fileno() == -1
    await close(silent)
    await listener.aclose()


async def test_a_closed_connection_differs_from_a_cut_one(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """After `aclose` the peer's `receive` returns None.
    If the TCP connection ends without close_notify, it raises.
    """
    client, server = await connected(nursery, serving, calling)
    await shake_hands(client, server)
    await server.aclose()
    assert await client.receive() is None
    await client.aclose()
    client, server = await connected(nursery, serving, calling)
    await shake_hands(client, server)
    await trio.aclose_forcefully(stream_of(server).transport_stream)  # type: ignore[attr-defined]  # TLS on TCP
    with pytest.raises(trio.BrokenResourceError):
        await client.receive()
    await client.aclose()


@pytest.mark.parametrize("hidden", [False, True])
async def test_records_that_have_arrived_are_received_together(
    nursery: trio.Nursery,
    serving: TransportOptions,
    calling: TransportOptions,
    monkeypatch: pytest.MonkeyPatch,
    hidden: bool,
) -> None:
    """Up to a chunk, in order, without a loss.
    If trio hides its records, they are received singly.
    """
    if hidden:
        monkeypatch.setattr(_tls_connection, "_records_of", lambda _: None)
    client, server = await connected(nursery, serving, replace(calling, receive_chunk=20))
    await shake_hands(client, server)
    for number in range(10):
        await server.send(b"%d%d%d" % (number, number, number))
    got = [await client.receive() or b""]
    while sum(map(len, got)) < 30:
        got.append(await client.receive() or b"")
    assert b"".join(got) == b"".join(b"%d%d%d" % (number, number, number) for number in range(10))
    assert [len(piece) for piece in got] == ([3] * 10 if hidden else [20, 10])
    await close(client, server)


@pytest.mark.parametrize("orderly", [True, False])
async def test_data_before_the_end_is_received_before_the_end(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, orderly: bool
) -> None:
    """The end may arrive together with the last records: `receive` returns these first, then
    None, or raises for a broken record.
    """
    client, server = await connected(nursery, serving, calling)
    await shake_hands(client, server)
    await server.send(b"last")
    await server.send(b"words")
    if orderly:
        await server.aclose()
    else:
        await stream_of(server).transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))  # type: ignore[attr-defined]  # TLS on TCP
    assert await client.receive() == b"lastwords"
    if orderly:
        assert await client.receive() is None
    else:
        with pytest.raises(trio.BrokenResourceError):
            await client.receive()
    await client.abort()
    await server.abort()


async def test_closing_does_not_wait_for_a_peer_that_does_not_read(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """The socket's buffer has no room for close_notify:
    after `close_timeout` the connection is closed without it.
    """
    client, server = await connected(
        nursery, replace(serving, close_timeout=SOON, handshake_timeout=2 * HANGS_AFTER), calling
    )
    await shake_hands(client, server)
    raw = stream_of(server).transport_stream  # type: ignore[attr-defined]  # TLS on TCP
    async with trio.open_nursery() as filling:
        filling.start_soon(raw.send_all, bytes(64 << 20))
        await trio.testing.wait_all_tasks_blocked(0.05)
        filling.cancel_scope.cancel()
    began = trio.current_time()
    await server.aclose()
    assert SOON * 0.9 < trio.current_time() - began < HANGS_AFTER
    assert raw.socket.fileno() == -1
    await client.abort()


async def test_tls_1_1_is_refused(
    nursery: trio.Nursery, files: Certificates, serving: TransportOptions
) -> None:
    """The handshake of a client that supports no newer version fails."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    plain = await plain_client(listener, nursery)
    server = await listener.accept()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(files.ca)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    old.set_ciphers("ALL:@SECLEVEL=0")
    client = trio.SSLStream(stream_of(plain), old, server_hostname="localhost")

    async def call() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await client.do_handshake()

    nursery.start_soon(call)
    assert "UNSUPPORTED_PROTOCOL" in await failed_handshake(server)
    await close(plain)
    await listener.aclose()
