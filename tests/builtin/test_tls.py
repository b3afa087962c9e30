"""The transport ``tls://``, over real sockets, with certificates made for the test."""

import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import check_two_way_stream

from penstock.api import ConnectionLost, UsageError
from penstock.builtin import TcpTransport, TlsTransport, _tls
from penstock.builtin._tls import _reason
from penstock.plugins import Connection, Tls, TransportOptions
from tests.builtin._helpers import close, connect, exchange, listen, shake_hands, stream_of

TLS = TlsTransport()
TCP = TcpTransport()
CA = trustme.CA()
ANOTHER_CA = trustme.CA()
SOON = 0.15  # seconds of real time: what waits here waits for a deadline


class Certificates:
    """Files for a server, a client called alice, and a stranger."""

    def __init__(self, folder: Path) -> None:
        self.ca = folder / "ca.pem"
        CA.cert_pem.write_to_path(self.ca)
        self.server = self._issue(folder / "server.pem", CA, "localhost", "127.0.0.1")
        self.alice = self._issue(folder / "alice.pem", CA, "alice.example", common_name="Alice")
        self.stranger = self._issue(folder / "stranger.pem", ANOTHER_CA, "alice.example", common_name="Alice")

    def _issue(self, path: Path, ca: trustme.CA, *names: str, common_name: str | None = None) -> Path:
        ca.issue_cert(*names, common_name=common_name).private_key_and_cert_chain_pem.write_to_path(path)
        return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once: keys take time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def serving(files: Certificates) -> TransportOptions:
    """A server that asks clients for nothing."""
    return TransportOptions(tls=Tls(certificate=files.server), protocols=("rsio/0",))


@pytest.fixture
def calling(files: Certificates) -> TransportOptions:
    """A client that trusts it."""
    return TransportOptions(tls=Tls(authorities=files.ca), protocols=("rsio/0",))


async def _both(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, url: str = "tls://localhost:0"
) -> tuple[Connection, Connection]:
    """Client and server, connected; their handshakes are due."""
    listener = await listen(TLS, url, nursery, serving)
    client = await connect(TLS, listener.addresses[0], nursery, calling)
    server = await listener.accept()
    await listener.aclose()
    return client, server


async def _fails(connection: Connection) -> str:
    """Shake hands, which must fail; return what was said."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(ConnectionLost) as caught:
            await connection.handshake(nursery)
    return str(caught.value)


async def _both_fail(client: Connection, server: Connection) -> tuple[str, str]:
    said: dict[str, str] = {}

    async def fail(name: str, connection: Connection) -> None:
        said[name] = await _fails(connection)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail, "client", client)
        nursery.start_soon(fail, "server", server)
    return said["client"], said["server"]


@pytest.mark.parametrize("url", ["tls://localhost:0", "tls://127.0.0.1:0"])
async def test_a_word_each_way_arrives(url: str, nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions) -> None:
    """The certificate carries the name, or the address."""
    client, server = await _both(nursery, serving, calling, url)
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)


async def test_both_sides_know_what_they_speak(nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions) -> None:
    """Encrypted, the protocol by ALPN, version and cipher; before the handshake none of it."""
    client, server = await _both(nursery, serving, calling)
    assert not client.facts.secure
    await shake_hands(client, server)
    for connection in (client, server):
        assert connection.facts.secure
        assert connection.facts.local
        assert not connection.facts.half_close
        assert connection.facts.protocol == "rsio/0"
        assert connection.facts.details["tls"] == "TLSv1.3"
        assert connection.facts.details["cipher"].startswith("TLS_")
    assert client.peer.certificate is not None
    assert "DNS:localhost" in client.peer.certificate.names
    assert server.peer.certificate is None
    assert server.peer.address == "{}:{}".format(*stream_of(client).transport_stream.socket.getsockname()[:2])  # type: ignore[attr-defined]  # TLS on TCP
    await close(client, server)


async def test_the_protocol_is_chosen_in_the_order_of_the_client(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """Of what both speak; and with nothing in common, or nothing said, there is none, and the connection is there all the same."""
    cases = ((("a", "b"), ("b", "c"), "b"), (("a",), ("b",), None), (("a",), (), None), ((), ("a",), None), (("a",), None, None))
    for ours, theirs, chosen in cases:
        client, server = await _both(nursery, replace(serving, protocols=ours), replace(calling, protocols=theirs))
        await shake_hands(client, server)
        assert client.facts.protocol == server.facts.protocol == chosen
        await close(client, server)


async def test_its_stream_keeps_every_promise_of_trio_s_streams(serving: TransportOptions, calling: TransportOptions) -> None:
    """Closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.Stream, trio.abc.Stream]:
        async with trio.open_nursery() as nursery:
            client, server = await _both(nursery, serving, calling)
            await shake_hands(client, server)
        return stream_of(client), stream_of(server)

    await check_two_way_stream(maker, None)


async def test_a_client_is_known_by_its_certificate(nursery: trio.Nursery, files: Certificates) -> None:
    """A server with authorities knows who is there once the handshake is done."""
    serving = TransportOptions(tls=Tls(certificate=files.server, authorities=files.ca))
    calling = TransportOptions(tls=Tls(certificate=files.alice, authorities=files.ca))
    client, server = await _both(nursery, serving, calling)
    await shake_hands(client, server)
    certificate = server.peer.certificate
    assert certificate is not None
    assert "CN=Alice" in certificate.subject
    assert str(server.peer).endswith(f"({certificate.subject})")
    await close(client, server)


@pytest.mark.parametrize("shown", ["nothing", "a stranger's"])
async def test_a_client_without_the_right_certificate_is_refused(nursery: trio.Nursery, files: Certificates, shown: str) -> None:
    """The server's handshake fails; the client, which had finished its own, finds the connection broken."""
    serving = TransportOptions(tls=Tls(certificate=files.server, authorities=files.ca))
    calling = TransportOptions(tls=Tls(certificate=None if shown == "nothing" else files.stranger, authorities=files.ca))
    client, server = await _both(nursery, serving, calling)
    nursery.start_soon(client.handshake, nursery)
    said = await _fails(server)
    assert ("certificate does not hold" if shown == "a stranger's" else "PEER_DID_NOT_RETURN_A_CERTIFICATE") in said
    with pytest.raises(trio.BrokenResourceError):
        await client.receive()
    await close(client, server)


async def test_a_client_may_be_let_in_unknown(nursery: trio.Nursery, files: Certificates) -> None:
    """If the server says so: no certificate, no name; a wrong one is refused all the same."""
    serving = TransportOptions(tls=Tls(certificate=files.server, authorities=files.ca, client_may_be_unknown=True))
    client, server = await _both(nursery, serving, TransportOptions(tls=Tls(authorities=files.ca)))
    await shake_hands(client, server)
    assert server.peer.certificate is None
    await close(client, server)


@pytest.mark.parametrize("why", ["unknown authority", "other name"])
async def test_a_server_that_is_not_who_it_should_be_is_refused(
    nursery: trio.Nursery, files: Certificates, serving: TransportOptions, why: str
) -> None:
    """By the client, before a byte of ours is sent; the server learns that it was refused."""
    tls = Tls() if why == "unknown authority" else Tls(authorities=files.ca, server_name="other.example")
    client, server = await _both(nursery, serving, TransportOptions(tls=tls))
    client_said, server_said = await _both_fail(client, server)
    assert "its certificate does not hold: " in client_said
    assert f"the TLS handshake with {server.peer.address} failed" in server_said
    await close(client, server)


async def test_a_client_that_is_told_nothing_trusts_the_system_s_authorities(nursery: trio.Nursery, serving: TransportOptions) -> None:
    """Not simply everybody."""
    client, server = await _both(nursery, serving, TransportOptions())
    client_said, _ = await _both_fail(client, server)
    assert "its certificate does not hold" in client_said


async def test_the_name_to_expect_can_be_another_than_the_host(
    nursery: trio.Nursery, files: Certificates, serving: TransportOptions
) -> None:
    """Behind a tunnel, say."""
    calling = TransportOptions(tls=Tls(authorities=files.ca, server_name="127.0.0.1"))
    client, server = await _both(nursery, serving, calling, "tls://localhost:0")
    await shake_hands(client, server)
    await close(client, server)


def _socket_of(connection: Connection) -> socket.socket:
    return stream_of(connection).transport_stream.socket  # type: ignore[attr-defined,no-any-return]  # TLS on TCP


@pytest.mark.parametrize(
    "words", [b"\x01\x00\x00\x10\x05ticks", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(100), b"SSH-2.0-x\r\n"], ids=repr
)
async def test_plaintext_on_the_tls_port_ends_that_connection_only(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, words: bytes
) -> None:
    """It costs one handshake, which says why; the next client is served."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    plain = await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)
    server = await listener.accept()
    await plain.send(words)
    assert "what it sent is not TLS" in await _fails(server)
    assert _socket_of(server).fileno() == -1
    client = await connect(TLS, listener.addresses[0], nursery, calling)
    server = await listener.accept()
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server, plain)
    await listener.aclose()


@pytest.mark.parametrize("words", [b"", b"\x16\x03\x01", b"\x01\x00\x00"], ids=repr)
async def test_silence_on_the_tls_port_ends_by_deadline(nursery: trio.Nursery, serving: TransportOptions, words: bytes) -> None:
    """A client that says nothing, begins and stops, or says too little to be told from TLS: it is given up, and its socket is closed."""
    listener = await listen(TLS, "tls://localhost:0", nursery, replace(serving, handshake_timeout=SOON))
    silent = await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)
    server = await listener.accept()
    if words:
        await silent.send(words)
    began = trio.current_time()
    assert "did not finish its TLS handshake within 0.15 s" in await _fails(server)
    assert SOON * 0.9 < trio.current_time() - began < 5
    assert _socket_of(server).fileno() == -1
    await close(silent)
    await listener.aclose()


async def test_a_peer_that_leaves_in_the_handshake_is_a_lost_connection(nursery: trio.Nursery, serving: TransportOptions) -> None:
    """In good order or not: the handshake fails at once."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    for linger in (b"\0\0\0\0\0\0\0\0", b"\1\0\0\0\0\0\0\0"):
        guest = await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)
        server = await listener.accept()
        stream_of(guest).socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # type: ignore[attr-defined]  # a SocketStream
        await guest.abort()
        assert f"the TLS handshake with {server.peer.address} failed" in await _fails(server)
    await listener.aclose()


async def test_a_client_at_a_plain_port_is_told_so(nursery: trio.Nursery, calling: TransportOptions) -> None:
    """The other way round: what answers is not TLS."""
    listener = await listen(TCP, "tcp://localhost:0", nursery)
    client = await connect(TLS, str(listener.addresses[0]).replace("tcp", "tls"), nursery, calling)
    server = await listener.accept()
    await server.send(b"\x02\x00\x00 hello")
    assert "what it sent is not TLS" in await _fails(client)
    await close(server)
    await listener.aclose()


async def test_a_cancelled_handshake_closes_the_connection(nursery: trio.Nursery, serving: TransportOptions) -> None:
    """Its state is lost: nothing could be done with it."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    silent = await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)
    server = await listener.accept()
    async with trio.open_nursery() as shaking:
        shaking.start_soon(server.handshake, shaking)
        await trio.testing.wait_all_tasks_blocked()
        shaking.cancel_scope.cancel()
    assert _socket_of(server).fileno() == -1
    await close(silent)
    await listener.aclose()


async def test_closing_says_so_to_the_peer(nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions) -> None:
    """A closed connection ends with None, a cut one breaks: nobody can pass the one off as the other."""
    client, server = await _both(nursery, serving, calling)
    await shake_hands(client, server)
    await server.aclose()
    assert await client.receive() is None
    await client.aclose()
    client, server = await _both(nursery, serving, calling)
    await shake_hands(client, server)
    await trio.aclose_forcefully(stream_of(server).transport_stream)  # type: ignore[attr-defined]  # TLS on TCP
    with pytest.raises(trio.BrokenResourceError):
        await client.receive()
    await client.aclose()


@pytest.mark.parametrize("hidden", [False, True])
async def test_records_that_have_arrived_come_together(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    """Up to a chunk, in order, and none is lost; where they cannot be got at, one at a time."""
    if hidden:
        monkeypatch.setattr(_tls, "_records_of", lambda _: None)
    client, server = await _both(nursery, serving, replace(calling, receive_chunk=20))
    await shake_hands(client, server)
    for number in range(10):
        await server.send(b"%d%d%d" % (number, number, number))
    got = [await client.receive() or b""]
    while sum(map(len, got)) < 30:
        got.append(await client.receive() or b"")
    assert b"".join(got) == b"".join(b"%d%d%d" % (number, number, number) for number in range(10))
    assert [len(piece) for piece in got] == ([3] * 10 if hidden else [20, 10])
    await close(client, server)


@pytest.mark.parametrize("in_good_order", [True, False])
async def test_what_stands_before_the_end_is_received_and_then_the_end(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions, in_good_order: bool
) -> None:
    """The end that arrived together with the last words is told after them, for what it is; so is a broken record."""
    client, server = await _both(nursery, serving, calling)
    await shake_hands(client, server)
    await server.send(b"last")
    await server.send(b"words")
    if in_good_order:
        await server.aclose()
    else:
        await stream_of(server).transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))  # type: ignore[attr-defined]  # TLS on TCP
    assert await client.receive() == b"lastwords"
    if in_good_order:
        assert await client.receive() is None
    else:
        with pytest.raises(trio.BrokenResourceError):
            await client.receive()
    await client.abort()
    await server.abort()


async def test_closing_does_not_wait_for_a_peer_that_does_not_read(
    nursery: trio.Nursery, serving: TransportOptions, calling: TransportOptions
) -> None:
    """Its word of farewell finds no room: after `close_timeout` the connection is closed without it."""
    client, server = await _both(nursery, replace(serving, close_timeout=SOON), calling)
    await shake_hands(client, server)
    raw = stream_of(server).transport_stream  # type: ignore[attr-defined]  # TLS on TCP
    async with trio.open_nursery() as filling:
        filling.start_soon(raw.send_all, bytes(64 << 20))
        await trio.testing.wait_all_tasks_blocked(0.05)
        filling.cancel_scope.cancel()
    began = trio.current_time()
    await server.aclose()
    assert SOON * 0.9 < trio.current_time() - began < 10
    assert raw.socket.fileno() == -1
    await client.abort()


async def test_listening_needs_a_certificate(nursery: trio.Nursery) -> None:
    """Said before anything is bound."""
    for options in (TransportOptions(), TransportOptions(tls=Tls())):
        with pytest.raises(UsageError, match="certificate: tls=Tls"):
            await listen(TLS, "tls://localhost:0", nursery, options)


async def test_an_old_version_of_tls_is_refused(nursery: trio.Nursery, files: Certificates, serving: TransportOptions) -> None:
    """A client that speaks nothing newer than 1.1 cannot come in."""
    listener = await listen(TLS, "tls://localhost:0", nursery, serving)
    plain = await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)
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
    assert "UNSUPPORTED_PROTOCOL" in await _fails(server)
    await close(plain)
    await listener.aclose()


def test_a_reason_is_never_empty() -> None:
    """Whatever an exception has to say for itself."""
    assert _reason(trio.BrokenResourceError()) == "BrokenResourceError"
    assert _reason(trio.BrokenResourceError("cut")) == "cut"
    assert "plain words" in _reason(ssl.SSLError(1, "plain words"))
    assert _reason(OSError(5, "trouble")) == "[Errno 5] trouble"
