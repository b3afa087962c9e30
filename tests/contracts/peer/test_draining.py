"""A client with a policy to reconnect follows a server that drains: new streams and requests go
over the next connection, and those that run go on over the old one.
"""

import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import pytest
from penstock_tck.wire import rsio

import penstock
from penstock.api import ConnectionLost, Rejected
from penstock.spi import Reconnect
from tests._limits import HASTY
from tests._shells import Shell, over_each_shell
from tests.contracts._drained_server import Servers, two_servers
from tests.contracts._trio_server import raw_server

AT_ONCE = Reconnect(first=0.001, most=0.001)
DRAINS = rsio.of_extension(0x45, bytes.fromhex("a8c301"))
ANSWERS = 10
"""Bytes of some answers to pings."""
SUBSCRIBE = b"\x10\x03who"


@pytest.fixture
def servers() -> Iterator[Servers]:
    with two_servers() as made:
        yield made


@over_each_shell
async def test_a_server_that_drains_is_followed(shell: Shell, servers: Servers) -> None:
    """Later requests go to the next server, while the stream that runs goes on. The old connection
    is left when the stream has ended.
    """
    async with (
        shell.connect(servers.url, reconnect=AT_ONCE) as peer,
        peer.subscribe("slow", type=str) as slow,
    ):
        assert await anext(slow) == "old, first"
        assert await peer.request("who", type=str) == "old"
        servers.replace()
        assert [await peer.request("who", type=str) for _ in range(3)] == ["new"] * 3
        async with peer.subscribe("name", type=str) as stream:
            assert [each async for each in stream] == ["new"]
        assert not servers.old_is_left.is_set()
        servers.go_on()
        assert [each async for each in slow] == ["old, last"]
        await shell.until(servers.old_is_left.is_set)
        assert await peer.request("who", b"payload", type=str) == "new"


@over_each_shell
async def test_the_old_connection_is_left_with_the_block(shell: Shell, servers: Servers) -> None:
    """Its stream is cancelled there."""
    left = AsyncExitStack()
    async with shell.connect(servers.url, reconnect=AT_ONCE) as peer:
        slow = await left.enter_async_context(peer.subscribe("slow", type=str))
        assert await anext(slow) == "old, first"
        servers.replace()
        assert await peer.request("who", type=str) == "new"
    await shell.until(servers.old_is_left.is_set)
    await left.aclose()


@over_each_shell
async def test_what_runs_goes_on_without_a_next_server(shell: Shell, servers: Servers) -> None:
    """A new request fails when the attempts are over."""
    once = Reconnect(first=0.001, most=0.001, attempts=2)
    async with (
        shell.connect(servers.url, reconnect=once) as peer,
        peer.subscribe("slow", type=str) as slow,
    ):
        assert await anext(slow) == "old, first"
        servers.replace("nobody")
        with pytest.raises(ConnectionLost, match="no further attempt"):
            await peer.request("who", type=str)
        servers.go_on()
        assert [each async for each in slow] == ["old, last"]
    await shell.until(servers.old_is_left.is_set)


@over_each_shell
async def test_the_block_is_left_while_the_last_server_drains(
    shell: Shell, servers: Servers
) -> None:
    """The old connection is left once, even if there is no next one."""
    once = Reconnect(first=0.001, most=0.001, attempts=2)
    async with (
        shell.connect(servers.url, reconnect=once) as peer,
        peer.subscribe("slow", type=str) as slow,
    ):
        assert await anext(slow) == "old, first"
        servers.replace("nobody")
        with pytest.raises(ConnectionLost, match="no further attempt"):
            await peer.request("who", type=str)
    await shell.until(servers.old_is_left.is_set)


@over_each_shell
async def test_the_block_waits_for_the_goodbyes_of_each_connection(shell: Shell) -> None:
    """A server that drains and does not answer gets its goodbye, and the time for an answer."""
    silent: list[socket.socket] = []

    def script(sock: socket.socket) -> None:
        sock.sendall(rsio.server_hello(6))
        read_until(sock, SUBSCRIBE)
        # The notice comes first: a question after it goes to the next server.
        notice = b"" if silent else DRAINS
        sock.sendall(notice + rsio.on_subscribe(0) + rsio.on_next(0, b"ok"))
        if not silent:
            # The socket that `raw_server` closes is another one.
            silent.append(sock.dup())
            return
        read_until(sock, rsio.goodbye())
        sock.sendall(rsio.goodbye())

    with raw_server(script) as url:
        async with (
            shell.connect(url, reconnect=AT_ONCE, limits=HASTY) as peer,
            peer.subscribe("who") as stream,
        ):
            assert await anext(stream) == b"ok"
            assert await peer.request("who") == b"ok"
    with silent.pop() as sock:
        received = b""
        while piece := sock.recv(4096):
            received += piece
    assert received.endswith(rsio.goodbye())


def read_until(sock: socket.socket, last: bytes) -> None:
    """Read until these bytes have come, or the client has ended the connection."""
    received = b""
    while last not in received and (piece := sock.recv(4096)):
        received += piece


@contextmanager
def refusing(text: str, *, drains: bytes = DRAINS) -> Iterator[tuple[str, list[bytes]]]:
    """A server that refuses the first stream, with `drains` before that, and answers the next one,
    which may come over the same connection or over another one.
    """
    names: list[bytes] = []

    def script(sock: socket.socket) -> None:
        data, seen = b"", 0
        sock.sendall(rsio.server_hello(6))
        while piece := sock.recv(4096):
            data += piece
            while (found := data.find(SUBSCRIBE, seen)) >= 0:
                seen = found + len(SUBSCRIBE)
                stream = data[seen : seen + 1]
                names.append(stream)
                sock.sendall(
                    drains + rsio.on_error(stream[0], text)
                    if len(names) == 1
                    else rsio.on_subscribe(stream[0]) + rsio.on_next(stream[0], b"ok")
                )
            if data.endswith(rsio.goodbye()):
                sock.sendall(rsio.goodbye())
                return

    with raw_server(script) as url:
        yield url, names


@pytest.mark.parametrize("ask", ["request", "subscribe"])
@over_each_shell
async def test_what_was_refused_goes_over_the_next_connection(shell: Shell, ask: str) -> None:
    """The notice comes behind the question: nothing was done for it."""
    with refusing("draining") as (url, names):
        async with shell.connect(url, reconnect=AT_ONCE) as peer:
            if ask == "request":
                assert await peer.request("who") == b"ok"
            else:
                async with peer.subscribe("who", demand=1) as stream:
                    assert await anext(stream) == b"ok"
    assert names == [b"\0", b"\0"]


@pytest.mark.parametrize(
    ("text", "drains", "reconnect"),
    [("draining", DRAINS, None), ("draining", b"", AT_ONCE), ("full", DRAINS, AT_ONCE)],
    ids=["no policy", "no notice", "another reason"],
)
@over_each_shell
async def test_any_other_refusal_is_raised(
    shell: Shell, text: str, drains: bytes, reconnect: Reconnect | None
) -> None:
    """A text alone moves nothing: a publisher may use the same word."""
    with refusing(text, drains=drains) as (url, names):
        async with shell.connect(url, reconnect=reconnect) as peer:
            with pytest.raises((Rejected, penstock.PublisherFailed)):
                await peer.request("who")
    assert len(names) == 1
