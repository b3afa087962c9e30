"""A client with a policy to reconnect: which streams and requests end with a connection, which wait
for the next one, and when it gives up.
"""

import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
from penstock_tck.wire import rsio

from penstock.api import ConnectionLost, ProtocolError, Rejected
from penstock.spi import Reconnect, ReconnectEvent, build_registry, hookimpl
from tests._free_port import free_port
from tests._limits import HASTY
from tests._shells import Shell, over_each_shell
from tests.contracts._positioned import cutting_server
from tests.contracts._trio_server import SERVER_HELLO, raw_server, read_hello, serving

SUBSCRIBE = b"\x10\x01a"
AT_ONCE = Reconnect(first=0.001, most=0.001)


class Seen:
    """A plugin that keeps the stages of a client that reconnects."""

    def __init__(self) -> None:
        self.events: list[ReconnectEvent] = []

    @hookimpl
    def penstock_reconnect(self, event: ReconnectEvent) -> None:
        self.events.append(event)

    @property
    def stages(self) -> list[tuple[str, int]]:
        return [(event.stage.value, event.attempt) for event in self.events]


def flapping() -> tuple[list[int], Callable[[socket.socket], None]]:
    """Return the numbers of the connections, and the script of a server that loses its first client
    right after the hello.
    """
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(len(connections))
        if len(connections) == 1:
            read_hello(sock)
            sock.sendall(SERVER_HELLO)
            return
        answer(sock)
        while sock.recv(4096):
            pass

    return connections, script


def answer(sock: socket.socket) -> None:
    """Answer the subscribe to `a`, which may come in one piece with the hello of the client."""
    sock.sendall(SERVER_HELLO)
    received = b""
    while SUBSCRIBE not in received:
        received += sock.recv(4096)
    sock.sendall(rsio.on_subscribe(0) + rsio.on_next(0, b"ok"))


@over_each_shell
async def test_a_lost_connection_is_made_again(shell: Shell) -> None:
    """The stream that was open ends with ConnectionLost; a new one waits for the next connection.
    Observers hear of each step.
    """
    connections, script = flapping()
    seen = Seen()
    with raw_server(script) as url:
        registry = build_registry(plugins=[seen])
        async with shell.connect(
            url, reconnect=AT_ONCE, limits=HASTY, registry=registry, extensions=()
        ) as peer:
            async with peer.subscribe("a") as stream:
                with pytest.raises(ConnectionLost):
                    await anext(stream)
            async with peer.subscribe("a") as stream:
                assert await anext(stream) == b"ok"
            assert peer.is_connected
    assert len(connections) == 2
    assert seen.stages == [("lost", 1), ("retrying", 2), ("back", 2)]
    assert {event.address for event in seen.events} == {url}


@over_each_shell
async def test_requests_wait_for_the_next_connection(shell: Shell) -> None:
    """As streams do."""
    connections, script = flapping()
    with raw_server(script) as url:
        async with shell.connect(url, reconnect=AT_ONCE, limits=HASTY) as peer:
            with pytest.raises(ConnectionLost):
                await peer.request("a")
            await peer.wait_accepted()
            assert await peer.request("a") == b"ok"
    assert len(connections) == 2


@over_each_shell
async def test_the_policy_gives_up_before_the_first_connection(shell: Shell) -> None:
    """After its attempts the error of the last one is raised from entering."""
    seen = Seen()
    url, policy = f"tcp://127.0.0.1:{free_port()}", Reconnect(attempts=3, first=0.001, most=0.001)
    with pytest.raises(ConnectionLost, match="no server answers"):
        async with shell.connect(url, reconnect=policy, registry=build_registry(plugins=[seen])):
            raise AssertionError("it was entered")
    assert seen.stages == [("retrying", 2), ("retrying", 3), ("given up", 3)]


@over_each_shell
async def test_after_the_last_attempt_all_that_is_asked_for_fails(shell: Shell) -> None:
    """Each request and each stream, with the reason of the last attempt; and no further attempt is
    made.
    """
    seen = Seen()
    policy = Reconnect(attempts=3, first=0.001, most=0.001)
    with serving() as served:
        async with shell.connect(
            served.url, reconnect=policy, registry=build_registry(plugins=[seen])
        ) as peer:
            await peer.wait_accepted()
            served.stop()
            await shell.until(lambda: not peer.is_connected)
            for _ in range(2):
                with pytest.raises(ConnectionLost, match="no further attempt to connect is made"):
                    await peer.request("echo")
            with pytest.raises(ConnectionLost, match="no further attempt to connect is made"):
                async with peer.subscribe("numbers") as stream:
                    await anext(stream)
    assert [stage for stage, _ in seen.stages].count("given up") == 1


@over_each_shell
async def test_leaving_ends_the_attempts_to_reconnect(shell: Shell) -> None:
    """The server is gone for good: the block is left at once, and nothing is tried again after it."""
    slowly = Reconnect(first=60.0, most=60.0, chance=lambda: 1.0)
    with serving() as served:
        async with shell.connect(served.url, reconnect=slowly) as peer:
            await peer.wait_accepted()
            served.stop()
            await shell.until(lambda: not peer.is_connected)
        with pytest.raises(ConnectionLost):
            await peer.request("echo")


@over_each_shell
async def test_leaving_closes_a_connection_that_has_just_opened(shell: Shell) -> None:
    """The server has accepted the next connection, and neither side has said hello over it."""
    connections: list[int] = []
    closed: list[int] = []

    def script(sock: socket.socket) -> None:
        number = len(connections)
        connections.append(number)
        if number == 0:
            read_hello(sock)
            sock.sendall(SERVER_HELLO)
            return
        with suppress(OSError):  # a transport that is aborted is closed as well
            while sock.recv(4096):
                pass
        closed.append(number)

    with raw_server(script) as url:
        async with shell.connect(url, reconnect=AT_ONCE, limits=HASTY) as peer:
            with pytest.raises(ConnectionLost):
                await peer.request("a")
            # One shell connects again by itself, another one when it is asked for something.
            with suppress(TimeoutError):
                await shell.within(0, peer.wait_accepted)
            await shell.until(lambda: len(connections) == 2)
    assert closed == [1]


@over_each_shell
async def test_a_refusal_is_not_tried_again(shell: Shell) -> None:
    """It would be refused again: requests and the block raise it, as without a policy."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(1)
        read_hello(sock)
        sock.sendall(rsio.server_hello(version=9))
        while sock.recv(4096):
            pass

    with raw_server(script) as url, pytest.raises(Rejected, match="version"):
        async with shell.connect(url, reconnect=AT_ONCE, limits=HASTY) as peer:
            with pytest.raises((Rejected, ConnectionLost), match="version"):
                await peer.request("a")
    assert connections == [1]


@over_each_shell
async def test_a_refusal_that_passes_is_tried_again(shell: Shell) -> None:
    """A server without room has some later."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(1)
        if len(connections) == 1:
            read_hello(sock)
            sock.sendall(rsio.goodbye("places:connections"))  # before any hello
        else:
            answer(sock)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        async with shell.connect(url, reconnect=AT_ONCE, limits=HASTY) as peer:
            # Refused if it is sent before the refusal comes; else it waits for the next connection.
            answered = b""
            with suppress(Rejected):
                answered = await peer.request("a")
            assert (answered or await peer.request("a")) == b"ok"
    assert len(connections) == 2


# -------------------------------------------------------------------------------------------
# streams with positions


@over_each_shell
async def test_a_stream_goes_on_at_its_position(shell: Shell) -> None:
    """Over three connections no element is missing, and none comes twice."""
    with cutting_server() as (url, names):
        async with shell.read_on(
            url, "ticks", reconnect=AT_ONCE, stop="latest", demand=8
        ) as stream:
            assert stream.position_if_known is None
            seen = [(element, stream.position) async for element in stream]
    assert seen == [(b"%02d" % number, number + 1) for number in range(7, 17)]
    assert names == [b"ticks?stop=latest", b"ticks?start=11&stop=17", b"ticks?start=15&stop=17"]


@over_each_shell
async def test_a_stream_without_a_policy_ends_and_has_its_position(shell: Shell) -> None:
    """The program subscribes again with it."""
    with cutting_server() as (url, names):
        async with shell.connect(url) as peer, peer.subscribe("ticks", start=9) as stream:
            with pytest.raises(ConnectionLost):
                _ = [element async for element in stream]
            assert stream.position == 13
        async with (
            shell.connect(url) as peer,
            peer.subscribe("ticks", start=stream.position) as stream,
        ):
            assert [element async for element in stream] == [b"13", b"14", b"15", b"16"]
    assert names == [b"ticks?start=9", b"ticks?start=13"]


@over_each_shell
async def test_a_gap_is_never_silent(shell: Shell) -> None:
    """A publisher that goes on in another place fails the stream."""
    with cutting_server(jump=1) as (url, _):
        async with shell.read_on(url, "ticks", reconnect=AT_ONCE) as stream:
            with pytest.raises(ProtocolError, match="position 12, and 11 was asked for"):
                _ = [element async for element in stream]
