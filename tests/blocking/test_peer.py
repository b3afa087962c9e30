"""The peer of a client that blocks, against a server of penstock on trio over real sockets."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    Limits,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
)
from penstock.spi import Reconnect
from tests._free_port import free_port
from tests._real_time import HANGS_AFTER
from tests.blocking._trio_server import Served, raw_server, read_hello, serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[blocking.Peer]:
    with blocking.connect(served.url) as connected:
        yield connected


def _wait_stopped(peer: blocking.Peer, served: Served, name: str, times: int) -> None:
    """Wait until the server has heard of the cancels: another thread runs it."""
    deadline = time.monotonic() + SECONDS
    while served.stopped.count(name) < times and time.monotonic() < deadline:
        peer.run(0.01)
    assert served.stopped.count(name) == times


def test_the_statistics_of_a_connection_are_those_of_a_client_on_trio(served: Served) -> None:
    """Before the connection is open, while a stream waits for demand, and behind the end."""
    with blocking.connect(served.url) as peer:
        before = peer.statistics()
        assert (before.protocol, before.transport, before.is_open, before.age) == (
            "rsio",
            "tcp",
            False,
            None,
        )
        with peer.subscribe("numbers", demand=0) as stream:
            stream.request(3)
            assert [element for _, element in zip(range(3), stream, strict=False)] == [
                b"0",
                b"1",
                b"2",
            ]
            now = peer.statistics()
            assert now.is_open
            assert (now.receiving.streams, now.receiving.opened, now.receiving.elements) == (
                1,
                1,
                3,
            )
            assert now.receiving.without_demand is not None
            assert now.receiving.without_demand.peer == peer.identity
            assert now.sent_bytes > 0
            assert now.received_bytes > 0
            assert now.buffered_bytes < 1000
    after = peer.statistics()
    assert (after.is_open, after.buffered_bytes, after.receiving.streams) == (False, 0, 0)


def test_requests_carry_a_payload_and_bring_a_value(peer: blocking.Peer) -> None:
    """With a payload, without one, and with a type."""
    assert peer.request("echo", b"payload", timeout=SECONDS) == b"payload"
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    assert peer.request("echo", {"a": 1}, type=dict, timeout=SECONDS) == {"a": 1}
    assert peer.request("numbers", type=str, timeout=SECONDS) == "0"


def test_a_request_that_takes_too_long_is_cancelled(served: Served, peer: blocking.Peer) -> None:
    """The handler ends, and the connection goes on."""
    served.stopped.clear()
    with pytest.raises(StreamTimeout, match="never"):
        peer.request("never", timeout=0.05)
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    _wait_stopped(peer, served, "never", 1)


def test_failures_of_the_peer_are_raised_from_the_iteration(peer: blocking.Peer) -> None:
    """An unknown name is a refusal; the publisher's error comes behind its elements."""
    with (
        peer.subscribe("nowhere", timeout=SECONDS) as stream,
        pytest.raises(Rejected, match="no such publisher"),
    ):
        next(iter(stream))
    got: list[bytes] = []
    with (
        peer.subscribe("failing", timeout=SECONDS) as stream,
        pytest.raises(PublisherFailed, match="out of paper"),
    ):
        got.extend(stream)
    with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
        peer.request("nowhere", timeout=SECONDS)


def test_leaving_a_stream_stops_its_publisher(served: Served, peer: blocking.Peer) -> None:
    """The next answer of the server shows that it has heard of the cancel."""
    served.stopped.clear()
    with peer.subscribe("forever", timeout=SECONDS) as stream:
        next(iter(stream))
    batches = peer.batches("forever", timeout=SECONDS)
    next(batches)
    batches.close()
    _wait_stopped(peer, served, "forever", 2)


def test_no_trio_is_imported_by_a_client_that_works(served: Served) -> None:
    """Elements with a type, requests and credentials are sent and received in a process
    that has neither trio nor asyncio.
    """
    program = f"""
import sys
from penstock import blocking
with blocking.connect({served.url!r}) as peer:
    assert [*peer.batches("numbers?count=3", type=str, timeout=20)]
    assert peer.request("echo", {{"a": 1}}, type=dict, timeout=20) == {{"a": 1}}
assert "trio" not in sys.modules and "asyncio" not in sys.modules, sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_the_server_reads_publishers_of_the_client(served: Served) -> None:
    """Functions, lists, types, and a failure, each as far as the server asks."""
    pulled: list[int] = []

    def counting() -> Iterator[bytes]:
        for number in range(1000):
            pulled.append(number)
            yield b"%d" % number

    def failing() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    heard: list[Exception] = []
    publishers = {
        "counting": counting,
        "list": [b"a", b"b"],
        "ints": blocking.Published([1, 2], type=int),
        "failing": failing,
        "nothing": list,
        "none": [None],
        "text": ["not bytes"],
    }
    with blocking.connect(served.url, publishers=publishers, on_violation=heard.append) as peer:
        assert peer.request("collect?name=list", timeout=SECONDS) == b"a,b"
        assert peer.request("collect?name=ints", timeout=SECONDS) == b"1,2"
        assert peer.request("collect?name=nothing", timeout=SECONDS) == b""
        assert peer.request("collect?name=counting&demand=3", timeout=SECONDS) == b",".join(
            b"%d" % number for number in range(1000)
        )
        assert pulled == [*range(1000)]
        for name in ("failing", "none", "text", "unknown"):
            with pytest.raises(PublisherFailed):
                peer.request(f"collect?name={name}", timeout=SECONDS)
        assert peer.request("echo", timeout=SECONDS) == b"nothing"
    assert [type(error) for error in heard] == [ValueError, UsageError, UsageError]


def test_publishers_are_closed_when_the_block_is_left(served: Served) -> None:
    """The cleanup of a generator that the server still reads runs before the block is left."""
    closed: list[str] = []

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("endless")

    with (
        blocking.connect(served.url, publishers={"endless": endless}) as peer,
        pytest.raises(StreamTimeout),
    ):
        peer.request("collect?name=endless&demand=2", timeout=0.1)
    assert closed == ["endless"]


def test_a_lost_connection_is_made_again_by_the_next_call() -> None:
    """The stream that was open ends with ConnectionLost; a new one goes over the new connection."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(len(connections))
        read_hello(sock)
        if len(connections) == 1:
            sock.sendall(SERVER_HELLO)
            return
        sock.sendall(SERVER_HELLO + bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    policy = Reconnect(first=0.001, most=0.001)
    with (
        raw_server(script) as url,
        blocking.connect(url, reconnect=policy, limits=Limits(goodbye_timeout=0.1)) as peer,
    ):
        with peer.subscribe("a", timeout=SECONDS) as stream, pytest.raises(ConnectionLost):
            next(iter(stream))
        with peer.subscribe("a", timeout=SECONDS) as stream:
            assert next(iter(stream)) == b"ok"
    assert len(connections) == 2


def test_the_policy_gives_up() -> None:
    """After its attempts the error of the last one is raised from entering."""
    with pytest.raises(ConnectionLost, match="no server answers"):
        blocking.connect(
            f"tcp://127.0.0.1:{free_port()}",
            reconnect=Reconnect(attempts=3, first=0.001, most=0.001),
        ).__enter__()
