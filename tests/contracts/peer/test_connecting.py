"""A client connects: arguments that it refuses at the call, the transports, hostile and silent
servers, and the end of the block.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from penstock_tck.wire import rsio

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    Credentials,
    Limits,
    PluginError,
    Rejected,
    UsageError,
)
from penstock.protocols.rsio import RsioDialect
from penstock.spi import Factory, PeerIdentity, Tls, TransportOptions, build_registry
from tests._certificates import certify
from tests._free_port import free_port
from tests._limits import HASTY
from tests._real_time import HANGS_AFTER
from tests._shells import Shell, over_each_shell
from tests.contracts._trio_server import (
    SERVER_HELLO,
    Served,
    examining_service,
    raw_server,
    read_hello,
    serving,
)

# --------------------------------------------------------------------------------------------------
# --- at the call


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"limits": 3}, "limits=3; give a Limits"),
        ({"options": Limits()}, "options=.*give a TransportOptions"),
        ({"registry": "all"}, "registry='all'; give a Registry"),
        ({"reconnect": True}, "reconnect=True; give a Reconnect"),
        ({"on_violation": "log"}, "on_violation is 'log'; give a function of one argument"),
        ({"retries": 3}, r"connect\(\) has no option 'retries'"),
        ({"limit": 3}, r"connect\(\) has no option 'limit'; did you mean 'limits'"),
        ({"credentials": "secret"}, "credentials= is a 'str'"),
        ({"credentials": Credentials.bearer("x" * 5000)}, "credentials of 5,0.. bytes"),
        (
            {"authenticate": "secret"},
            "give a function of a scheme, the credentials, and the server",
        ),
        ({"extensions": 3}, "extensions=3; give a sequence of extensions"),
        ({"extensions": ["keepalive"]}, "extensions.*keepalive"),
        ({"transports": ("unix",)}, "uses the transport 'tcp', and transports= permits unix"),
        ({"encoding": "nothing"}, "there is no encoding 'nothing'"),
        ({"url": "tcp://h:1/name"}, r"names a publisher \('name'\)"),
        ({"url": "tcp://h:1?encoding=nothing"}, "there is no encoding 'nothing'"),
        ({"url": "tcp://h:1?encoding=compact", "encoding": "nothing"}, "leave one of them out"),
        ({"url": "carrier-pigeon://x"}, "carrier-pigeon"),
        ({"url": "nonsense"}, "nonsense"),
    ],
)
def test_a_mistake_is_refused_at_the_call(shell: Shell, changes: dict[str, Any], says: str) -> None:
    """Nothing is opened, and no loop has to run. The text does not repeat what may be secret."""
    options = {"url": "tcp://127.0.0.1:1"} | changes
    with pytest.raises(UsageError, match=says) as refused:
        shell.connect_now(**options)
    assert "secret" not in str(refused.value).replace("authenticate='secret'", "")


# --------------------------------------------------------------------------------------------------
# ---- transports


@over_each_shell
async def test_no_server_is_connection_lost(shell: Shell) -> None:
    """For a port without a server, and for a missing socket file."""
    for url in (f"tcp://127.0.0.1:{free_port()}", "unix:///nowhere/at/all"):
        with pytest.raises(ConnectionLost, match="no server answers"):
            async with shell.connect(url):
                raise AssertionError("it was entered")


@over_each_shell
async def test_a_unix_socket(shell: Shell, tmp_path: Path) -> None:
    """The server is known by its process."""
    with serving(f"unix://{tmp_path}/s") as served:
        async with shell.connect(served.url) as peer:
            assert await peer.request("echo") == b"nothing"
            assert peer.identity.credentials.pid == os.getpid()


@over_each_shell
async def test_tls_verifies_the_server(shell: Shell, tmp_path: Path) -> None:
    """Elements arrive; a client that trusts another authority is told so, and so is one of a server
    without TLS.
    """
    tls = certify(tmp_path)
    trusting = TransportOptions(tls=Tls(authorities=tls.authorities))
    with serving(
        "tls://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=tls.certificate))
    ) as served:
        async with shell.connect(served.url, options=trusting) as peer:
            async with peer.subscribe("numbers?count=3000&size=100") as stream:
                assert len([element async for element in stream]) == 3000
            assert peer.identity.certificate is not None
        with pytest.raises(ConnectionLost, match="certificate cannot be verified"):
            async with shell.connect(served.url):
                raise AssertionError("it was entered")
    with serving() as served, pytest.raises(ConnectionLost, match="without TLS"):
        async with shell.connect(served.url.replace("tcp", "tls")):
            raise AssertionError("it was entered")


# --------------------------------------------------------------------------------------------------
# ------- servers


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (b"", ConnectionLost, "before the peer answered"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ConnectionLost, "broke the protocol"),
        (rsio.server_hello(version=9), Rejected, "version"),
        (SERVER_HELLO + b"\x7f", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO + rsio.on_next(1, b"x"), ConnectionLost, "broke the protocol"),
        (SERVER_HELLO, ConnectionLost, "without a goodbye"),
        (SERVER_HELLO + rsio.goodbye("shutdown"), ConnectionLost, "shut"),
    ],
    ids=[
        "nothing",
        "HTTP",
        "another version",
        "a type that is none",
        "no such stream",
        "the end",
        "a goodbye",
    ],
)
@over_each_shell
async def test_bytes_of_a_hostile_server_end_the_connection(
    shell: Shell, answer: bytes, error: type[Exception], match: str
) -> None:
    """Each is an error of the call that waits. The block is left without another one, unless the
    server has refused the client.
    """

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(answer)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        try:
            async with shell.connect(url) as peer:
                with pytest.raises(error, match=match):
                    await peer.request("echo")
        except Rejected:
            assert error is Rejected


@over_each_shell
async def test_a_silent_server_is_given_up_after_the_handshake_timeout(shell: Shell) -> None:
    """It accepts, and says nothing."""
    with raw_server(_only_reads) as url:
        async with shell.connect(url, limits=Limits(handshake_timeout=0.1)) as peer:
            with pytest.raises(ConnectionLost):
                await peer.wait_accepted()


@over_each_shell
async def test_a_server_that_does_not_answer_the_goodbye_is_left(shell: Shell) -> None:
    """Leaving takes `Limits.goodbye_timeout` at most."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(SERVER_HELLO)
        _only_reads(sock)

    with raw_server(script) as url:
        async with shell.connect(url, limits=HASTY) as peer:
            await peer.wait_accepted()
        assert not peer.is_connected


@over_each_shell
async def test_a_server_that_reads_nothing_is_given_up(shell: Shell) -> None:
    """Elements of the client pile up in the system's buffers, and `Limits.write_stall` ends the
    connection.
    """
    asked = threading.Event()

    def script(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        read_hello(sock)
        sock.sendall(SERVER_HELLO + rsio.subscribe("all", 0, rsio.UNBOUNDED))
        asked.wait(HANGS_AFTER)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 10_000

    with raw_server(script) as url:
        async with shell.connect(
            url, publishers={"all": endless}, limits=Limits(write_stall=0.2)
        ) as peer:
            with pytest.raises(ConnectionLost, match="took next to nothing"):
                await peer.request("echo")
            asked.set()
            assert not peer.is_connected


@over_each_shell
async def test_pings_are_answered_while_the_program_waits(shell: Shell) -> None:
    """A ping that arrives while the program waits for an answer gets its pong, and the wait goes
    on.
    """
    pongs: list[bytes] = []

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(rsio.server_hello(1) + rsio.ping(b"hi"))
        received = b""
        while b"\x41\x02hi" not in received:
            received += sock.recv(4096)
        pongs.append(received[received.index(b"\x41") :][:4])
        sock.sendall(rsio.on_subscribe(0) + rsio.on_next(0, b"ok"))
        _only_reads(sock)

    with raw_server(script) as url:
        async with shell.connect(url, limits=HASTY) as peer:
            assert await peer.request("anything") == b"ok"
    assert pongs == [bytes.fromhex("41026869")]


@over_each_shell
async def test_a_server_that_is_gone_ends_the_stream(shell: Shell) -> None:
    """Streams that run and requests after that raise ConnectionLost."""
    with serving() as served:
        async with shell.connect(served.url) as peer, peer.subscribe("silent") as stream:
            await anext(stream)
            served.stop()
            with pytest.raises(ConnectionLost, match="shut"):
                await anext(stream)
            with pytest.raises(ConnectionLost):
                await peer.request("echo")
            assert not peer.is_connected


# -----------------------------------------------------------------------------------------------
# who the server is


@over_each_shell
async def test_a_server_is_examined_before_any_request(shell: Shell) -> None:
    """One that the function refuses was never asked, and the request and the block raise
    AuthRefused.
    """
    verdicts: list[str | None] = [None, "the exchange"]
    seen: list[tuple[str, bytes]] = []

    def look(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        seen.append((scheme, data))
        return verdicts.pop(0)

    options: dict[str, Any] = {"credentials": Credentials.bearer("swordfish"), "authenticate": look}
    with serving(make=examining_service, credentials=Credentials.bearer("lighthouse")) as running:
        with pytest.raises(AuthRefused, match="refused the credentials"):
            async with shell.connect(running.url, **options) as peer:
                with pytest.raises(AuthRefused):
                    await peer.request("count")
        async with shell.connect(running.url, **options) as peer:
            assert await peer.request("count", type=str) == "1"
            assert peer.identity.principal == "the exchange"
    assert seen == [("bearer", b"lighthouse")] * 2


@over_each_shell
async def test_a_refusal_is_raised_from_the_block_too(shell: Shell, served: Served) -> None:
    """A server that examines no credentials does not get them."""
    with pytest.raises(Rejected, match="does not examine"):
        async with shell.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            with pytest.raises(Rejected):
                await peer.wait_accepted()
    with pytest.raises(ZeroDivisionError):
        async with shell.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            with pytest.raises(Rejected):
                await peer.request("echo")
            _ = 1 / 0  # an exception of the program goes first


# --------------------------------------------------------------------------------------------------
# ----- the block


@over_each_shell
async def test_nothing_is_left_of_a_block(shell: Shell, served: Served) -> None:
    """An exception of the body leaves it unchanged; the server has no peer any more, and a peer
    that was left is over.
    """
    async with shell.connect(served.url) as peer:
        await peer.wait_accepted()
        assert peer.is_connected
        assert peer.opened_at is not None
    assert not peer.is_connected
    with pytest.raises(KeyError):
        async with shell.connect(served.url) as peer, peer.subscribe("forever") as stream:
            await anext(stream)
            raise KeyError
    await shell.until(lambda: not served.server.peers)
    with pytest.raises(ConnectionLost):
        await peer.request("echo")


@over_each_shell
async def test_a_block_is_entered_once(shell: Shell, served: Served) -> None:
    """A second time is refused at once, inside of the block and after it, and the connection of the
    first one is as before.
    """
    block = shell.connect_now(served.url)

    async def enter() -> Any:
        return block.__enter__() if hasattr(block, "__enter__") else await block.__aenter__()

    async def leave() -> None:
        if hasattr(block, "__exit__"):
            block.__exit__(None, None, None)
        else:
            await block.__aexit__(None, None, None)

    peer = await enter()
    with pytest.raises(UsageError, match=r"entered before; call connect\(\) again"):
        await enter()
    assert peer.is_connected
    await leave()
    with pytest.raises(UsageError, match="entered before"):
        await enter()


def _only_reads(sock: socket.socket) -> None:
    while sock.recv(4096):
        pass


class _Broken(RsioDialect):
    """A protocol of a plugin that cannot be made."""

    def __init__(self, *arguments: Any) -> None:
        raise ValueError("the protocol is broken")


@over_each_shell
async def test_a_protocol_that_raises_leaves_no_transport_open(shell: Shell) -> None:
    """The error is that of entering the block."""
    closed: list[bool] = []

    def script(sock: socket.socket) -> None:
        with suppress(OSError):  # a transport that is aborted is closed as well
            while sock.recv(4096):
                pass
        closed.append(True)

    registry = attrs.evolve(build_registry(), dialects={"rsio": Factory(name="rsio", make=_Broken)})
    with raw_server(script) as url:
        with pytest.raises(
            PluginError, match=r"raised when its connection was made: .*the protocol is broken"
        ):
            async with shell.connect(url, registry=registry):
                raise AssertionError("it was entered")
        await shell.until(lambda: closed)
