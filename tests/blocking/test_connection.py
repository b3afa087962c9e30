"""One connection of the client: hostile servers, deadlines, pings, interrupts,
and what is left behind.
"""

import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    Limits,
    Rejected,
)
from tests._real_time import HANGS_AFTER
from tests.blocking._trio_server import Served, raw_server, read_hello, serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


async def _peers(served: Served) -> int:
    return len(served.server.peers)


def test_a_server_that_is_gone_ends_the_stream() -> None:
    """With and without a goodbye; streams and requests after that raise the same."""
    with (
        serving() as served,
        blocking.connect(served.url) as peer,
        peer.subscribe("silent", timeout=SECONDS) as stream,
    ):
        elements = iter(stream)
        next(elements)
        served.stop()
        with pytest.raises(ConnectionLost, match="shut"):
            next(elements)
        with pytest.raises(ConnectionLost):
            peer.request("echo", timeout=SECONDS)
        assert not peer.is_connected


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (b"", ConnectionLost, "before the peer said hello"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ConnectionLost, "broke the protocol"),
        (bytes.fromhex("020900"), Rejected, "version"),
        (SERVER_HELLO + b"\x7f", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO + bytes.fromhex("2101") + b"\x01x", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO, ConnectionLost, "without a goodbye"),
        (SERVER_HELLO + b"\x03\x08shutdown", ConnectionLost, "shut"),
    ],
)
def test_bytes_of_a_hostile_server_end_the_connection(
    answer: bytes, error: type[Exception], match: str
) -> None:
    """Each is an error of the call that waits, and the block is left without another one."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(answer)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        connecting = blocking.connect(url)
        peer = connecting.__enter__()
        with pytest.raises(error, match=match):
            peer.request("echo", timeout=SECONDS)
        try:
            connecting.__exit__(None, None, None)
        except Rejected:
            assert error is Rejected


def test_a_silent_server_is_given_up_after_the_handshake_timeout() -> None:
    """It accepts, and says nothing."""
    with raw_server(lambda sock: [*iter(lambda: sock.recv(4096), b"")] and None) as url:
        with blocking.connect(url, limits=Limits(handshake_timeout=0.1)) as peer:
            with pytest.raises(ConnectionLost):
                peer.wait_accepted(timeout=SECONDS)


def test_a_server_that_does_not_answer_the_goodbye_is_left() -> None:
    """Leaving takes `Limits.goodbye_timeout` at most."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(SERVER_HELLO)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        with blocking.connect(url, limits=Limits(goodbye_timeout=0.1)) as peer:
            peer.wait_accepted(timeout=SECONDS)
        assert not peer.is_connected


def test_a_server_that_reads_nothing_is_given_up() -> None:
    """Elements of the client pile up in the system's buffers,
    and `Limits.write_stall` ends the connection.
    """
    asked = threading.Event()

    def script(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        read_hello(sock)
        sock.sendall(SERVER_HELLO + bytes.fromhex("10") + b"\x03all\x00" + b"\xff" * 8 + b"\x7f")
        asked.wait(SECONDS)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 10_000

    with (
        raw_server(script) as url,
        blocking.connect(url, publishers={"all": endless}, limits=Limits(write_stall=0.2)) as peer,
    ):
        peer.run(SECONDS)
        assert not peer.is_connected
        with pytest.raises(ConnectionLost, match="took next to nothing"):
            peer.request("echo")
        asked.set()


def test_pings_are_answered_while_the_program_waits() -> None:
    """A ping that arrives while the program waits for an answer gets its pong,
    and the wait goes on.
    """
    pongs: list[bytes] = []

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(bytes.fromhex("02000101 40026869"))
        received = b""
        while b"hi" not in received:
            received += sock.recv(4096)
        pongs.append(received[-4:])
        sock.sendall(bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    with (
        raw_server(script) as url,
        blocking.connect(url, limits=Limits(goodbye_timeout=0.1)) as peer,
    ):
        assert peer.request("anything", timeout=SECONDS) == b"ok"
    assert pongs == [bytes.fromhex("41026869")]


def test_a_client_that_never_waits_is_taken_for_dead() -> None:
    """The counterpart: a program that makes no call for too long loses the connection,
    and the next call says so.
    """
    limits = Limits(keepalive=0.1, keepalive_timeout=0.1, keepalive_least=0.001)
    with serving(limits=limits) as served, blocking.connect(served.url) as peer:
        peer.wait_accepted(timeout=SECONDS)
        deadline = time.monotonic() + SECONDS
        while served.run(_peers, served) and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(ConnectionLost):
            peer.request("echo", timeout=SECONDS)


def test_an_interrupt_of_a_wait_leaves_a_connection_that_works(served: Served) -> None:
    """Ctrl-C while the client waits for an element:
    KeyboardInterrupt comes at once, and the program can go on.
    """
    program = f"""
import signal, threading, time
from penstock import blocking
# A test run in the background of a shell without job control ignores SIGINT, and so would this program.
signal.signal(signal.SIGINT, signal.default_int_handler)
begun = threading.Event()
def interrupt():
    begun.wait()
    time.sleep(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
with blocking.connect({served.url!r}) as peer:
    with peer.subscribe("silent") as stream:
        elements = iter(stream)
        assert next(elements) == b"first"
        wait = peer._connection._wire.wait
        def waiting(seconds, output):
            begun.set()
            wait(seconds, output=output)
        peer._connection._wire.wait = waiting
        began = time.monotonic()
        try:
            next(elements)
        except KeyboardInterrupt:
            print("interrupted")
        assert time.monotonic() - began < 10
        peer._connection._wire.wait = wait
    assert peer.request("echo", timeout=20) == b"nothing"
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "interrupted\ndone\n"


def test_an_interrupt_in_the_middle_of_a_message_closes_without_a_goodbye(served: Served) -> None:
    """The state of the session is not known then:
    the socket is closed, and the block is left with the interrupt.
    """

    def interrupt() -> Iterator[bytes]:
        raise KeyboardInterrupt
        yield b""

    connecting = blocking.connect(served.url, publishers={"interrupt": interrupt})
    with pytest.raises(KeyboardInterrupt), connecting as peer:
        peer.request("collect?name=interrupt", timeout=SECONDS)
    assert not peer.is_connected


def test_nothing_is_left_behind(served: Served) -> None:
    """No socket is open, and no object of a connection lives, after a client that failed
    and one that did not.
    """
    opened = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        with blocking.connect(served.url) as peer:
            assert peer.request("echo", timeout=SECONDS) == b"nothing"
        with (
            pytest.raises(ZeroDivisionError),
            blocking.connect(served.url) as peer,
            peer.subscribe("forever", timeout=SECONDS) as stream,
        ):
            _ = 1 / len(next(iter(stream))[1:])
    del peer, stream
    gc.collect()
    assert len([*Path("/proc/self/fd").iterdir()]) <= opened
