"""The transport ``pipe:``, over pipes and sockets of the test, and in real processes."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
import trio
from trio.testing import assert_checkpoints, check_half_closeable_stream

from penstock.api import UsageError
from penstock.spi import Bytes, Connection, ConnectionFacts
from penstock.transports import ExecTransport, PipeTransport, _pipe
from tests.transports._helpers import OPTIONS, close, connect, exchange, listen, stream_of


class PipePair:
    """Two pipes between the transports a and b:
    b reads the bytes that a writes, and a those of b.
    """

    def __init__(self) -> None:
        self.read_a, self.write_b = os.pipe()
        self.read_b, self.write_a = os.pipe()
        self.a = PipeTransport(stdin=self.read_a, stdout=self.write_a)
        self.b = PipeTransport(stdin=self.read_b, stdout=self.write_b)

    def shared_files(self) -> tuple[int, int]:
        """Further descriptors for the two open files of a, as a process
        that shares them would have.
        """
        return os.dup(self.read_a), os.dup(self.write_a)

    def close(self) -> None:
        for number in (self.read_a, self.write_a, self.read_b, self.write_b):
            os.close(number)


@pytest.fixture
def pipes() -> Iterator[PipePair]:
    made = PipePair()
    yield made
    made.close()


class ConnectionStream(trio.abc.HalfCloseableStream):
    """A connection as a stream of trio: its own `send_eof` and `aclose` are part of the check."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stream = stream_of(connection)

    async def send_all(self, data: Bytes) -> None:
        await self._stream.send_all(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._connection.send_eof()

    async def aclose(self) -> None:
        await self._connection.aclose()


async def _both(pipes: PipePair, nursery: trio.Nursery) -> tuple[Connection, Connection]:
    a = await connect(pipes.a, "pipe:", nursery)
    listener = await listen(pipes.b, "pipe:#ignored", nursery)
    b = await listener.accept()
    assert [str(address) for address in listener.addresses] == ["pipe:"]
    await listener.aclose()
    return a, b


def _blocking(descriptors: tuple[int, ...]) -> list[bool]:
    return [os.get_blocking(descriptor) for descriptor in descriptors]


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


async def test_bytes_arrive_in_both_directions(pipes: PipePair, nursery: trio.Nursery) -> None:
    """After `send_eof` in one direction the other direction still works."""
    a, b = await _both(pipes, nursery)
    await a.handshake(nursery)
    await exchange(a, b)
    await a.send_eof()
    assert await b.receive() is None
    await b.send(b"more")
    assert await a.receive() == b"more"
    await close(a, b)
    assert (a.facts, a.peer.address) == (ConnectionFacts(half_close=True, local=True), "pipe:")


async def test_its_stream_keeps_the_promises_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[ConnectionStream, ConnectionStream]:
        pipes = PipePair()
        async with trio.open_nursery() as nursery:
            a, b = await _both(pipes, nursery)
        pipes.close()
        return ConnectionStream(a), ConnectionStream(b)

    await check_half_closeable_stream(maker, None)


@pytest.mark.parametrize("way", ["aclose", "abort"])
@pytest.mark.parametrize("before", [[True, True], [False, True], [True, False]])
async def test_closing_restores_the_flags_of_shared_files(
    pipes: PipePair, nursery: trio.Nursery, way: str, before: list[bool]
) -> None:
    """The parent process may share the open files:
    they are non-blocking only while the connection is open.
    """
    shared = pipes.shared_files()
    for shared_file, flag in zip(shared, before, strict=True):
        os.set_blocking(shared_file, flag)
    a, b = await _both(pipes, nursery)
    assert _blocking(shared) == [False, False]
    await getattr(a, way)()
    assert _blocking(shared) == before
    await getattr(a, way)()
    await b.aclose()
    _close(*shared)


async def test_send_eof_closes_every_descriptor_of_the_output(
    pipes: PipePair, nursery: trio.Nursery
) -> None:
    """So the peer sees the end. The flag of the output is restored at once, the flag of the
    input when the connection is closed.
    """
    shared = pipes.shared_files()
    a, b = await _both(pipes, nursery)
    await a.send_eof()
    assert _blocking(shared) == [False, True]
    os.close(shared[1])
    assert await b.receive() is None
    await close(a, b)
    os.close(shared[0])


async def test_other_output_of_the_process_goes_to_stderr(
    pipes: PipePair, nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    """A stray print would corrupt the stream.
    Other code that reads standard input finds it empty.
    """
    a, b = await _both(pipes, nursery)
    os.write(pipes.write_a, b"stray\n")
    assert os.read(pipes.read_a, 10) == b""
    await exchange(a, b)
    assert capfd.readouterr().err == "stray\n"
    await close(a, b)


async def test_without_stderr_other_output_is_dropped(
    pipes: PipePair, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may have been started without stderr."""
    monkeypatch.setattr(_pipe, "_STDERR", 9999)
    a, b = await _both(pipes, nursery)
    os.write(pipes.write_a, b"stray\n")
    await exchange(a, b)
    await close(a, b)


@pytest.mark.parametrize("way", ["aclose", "abort"])
@pytest.mark.parametrize("before", [True, False])
async def test_one_socket_for_input_and_output_is_used_as_one_stream(
    nursery: trio.Nursery, way: str, before: bool
) -> None:
    """As ssh and inetd start a process. It can be half-closed, and closing restores the flag."""
    own, other = socket.socketpair()
    shared_file = os.dup(own.fileno())
    os.set_blocking(shared_file, before)
    descriptors = os.dup(own.fileno()), os.dup(own.fileno())
    own.close()
    connection = await connect(
        PipeTransport(stdin=descriptors[0], stdout=descriptors[1]), "pipe:", nursery
    )
    await connection.send(b"there")
    assert other.recv(10) == b"there"
    await connection.send_eof()
    assert other.recv(10) == b""
    assert not os.get_blocking(shared_file)
    other.send(b"back")
    assert await connection.receive() == b"back"
    await getattr(connection, way)()
    assert os.get_blocking(shared_file) is before
    other.close()
    _close(shared_file, *descriptors)


async def test_two_sockets_are_used_as_two_files(nursery: trio.Nursery) -> None:
    """One for input, the other for output."""
    pairs = [socket.socketpair() for _ in range(2)]
    descriptors = [os.dup(own.fileno()) for own, _ in pairs]
    for own, _ in pairs:
        own.close()
    (_, source), (_, sink) = pairs
    connection = await connect(
        PipeTransport(stdin=descriptors[0], stdout=descriptors[1]), "pipe:", nursery
    )
    source.send(b"in")
    assert await connection.receive() == b"in"
    await connection.send(b"out")
    assert sink.recv(10) == b"out"
    await connection.aclose()
    source.close()
    sink.close()
    _close(*descriptors)


@pytest.mark.parametrize("which", ["input", "output"])
async def test_a_terminal_is_refused(pipes: PipePair, nursery: trio.Nursery, which: str) -> None:
    """A non-blocking terminal would break the shell that shares it."""
    leader, terminal = os.openpty()
    descriptors = (terminal, pipes.write_a) if which == "input" else (pipes.read_a, terminal)
    with pytest.raises(
        UsageError,
        match=f"file {terminal} is a terminal; pipe: is for a process that another process starts",
    ):
        await connect(PipeTransport(stdin=descriptors[0], stdout=descriptors[1]), "pipe:", nursery)
    assert os.get_blocking(terminal)
    _close(leader, terminal)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_second_connection_over_the_same_files_is_refused(
    pipes: PipePair, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """If input or output is in use."""
    monkeypatch.setattr(_pipe, "_taken", {(pipes.read_a, pipes.write_a)[which]})
    with pytest.raises(
        UsageError,
        match=(
            "a connection uses standard input and output already; a process can use them once only"
        ),
    ):
        await connect(pipes.a, "pipe:", nursery)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_file_that_is_not_open_is_a_usage_error(
    pipes: PipePair, nursery: trio.Nursery, which: int
) -> None:
    """A process may have been started without it. The flag of the other file is unchanged."""
    shared = pipes.shared_files()
    descriptors = (9999, pipes.write_a) if which == 0 else (pipes.read_a, 9999)
    with pytest.raises(UsageError, match=r"cannot be used as a connection: .*Bad file descriptor"):
        await connect(PipeTransport(stdin=descriptors[0], stdout=descriptors[1]), "pipe:", nursery)
    assert _blocking(shared) == [True, True]
    _close(*shared)


@pytest.mark.parametrize("url", ["pipe://", "pipe://host", "pipe:/dev/null"])
async def test_a_url_with_an_address_is_refused(
    pipes: PipePair, nursery: trio.Nursery, url: str
) -> None:
    """A process has one standard input only."""
    with pytest.raises(UsageError, match="is not of the form pipe:#name"):
        await connect(pipes.a, url, nursery)


async def test_a_listener_returns_its_one_connection(
    pipes: PipePair, nursery: trio.Nursery
) -> None:
    """After that `accept` raises EndOfChannel; after `aclose`, ClosedResourceError."""
    listener = await listen(pipes.a, "pipe:", nursery)
    with assert_checkpoints():
        connection = await listener.accept()
    with pytest.raises(trio.EndOfChannel, match="a second one is impossible"):
        await listener.accept()
    await listener.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await listener.accept()
    await connection.aclose()


async def test_closing_a_listener_closes_a_connection_that_was_not_accepted(
    pipes: PipePair, nursery: trio.Nursery
) -> None:
    """The peer sees the end, and the flags are restored."""
    shared = pipes.shared_files()
    listener = await listen(pipes.a, "pipe:", nursery)
    b = await connect(pipes.b, "pipe:", nursery)
    await listener.aclose()
    assert _blocking(shared) == [True, True]
    _close(*shared)
    assert await b.receive() is None
    await b.aclose()


# --- in real processes

CHILD = """
import sys, trio
from penstock.api import UsageError
from penstock.transports import PipeTransport
from penstock.spi import TransportOptions, parse_url

async def main():
    async with trio.open_nursery() as nursery:
        listener = await PipeTransport().listen(parse_url("pipe:"), options=TransportOptions(), nursery=nursery)
        connection = await listener.accept()
        {body}

trio.run(main)
"""


PATIENT = replace(OPTIONS, close_timeout=60)
"""On a busy machine a child may need more than the usual second to end."""


def _child(body: str) -> list[str]:
    return [sys.executable, "-c", CHILD.format(body=body.replace("\n", "\n        "))]


async def test_a_child_with_pipe_serves_a_parent_with_exec(
    nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    """The child's print goes to stderr and does not corrupt the stream."""
    body = (
        "print('stray')\nwhile data := await connection.receive(): await "
        "connection.send(data.upper())\nawait connection.aclose()"
    )
    connection = await connect(
        ExecTransport(), f"exec:{shlex.join(_child(body))}", nursery, PATIENT
    )
    for word in (b"one", b"two"):
        await connection.send(word)
        assert await connection.receive() == word.upper()
    await connection.send_eof()
    assert await connection.receive() is None
    await connection.aclose()
    assert "ended with status 0" in (connection.farewell() or "")
    assert capfd.readouterr().err == "stray\n"


@pytest.mark.parametrize(
    "end",
    ["sys.exit(3)", "raise RuntimeError('mine')", "connection = None; raise KeyboardInterrupt"],
)
def test_the_end_of_the_process_restores_the_blocking(end: str) -> None:
    """Even if the connection was never closed. Other processes may share the open files."""
    own, other = socket.socketpair()
    read, write = os.pipe()
    done = subprocess.run(
        _child(end), stdin=read, stdout=other, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode != 0
    assert _blocking((read, other.fileno())) == [True, True]
    both = subprocess.run(
        _child(end), stdin=other, stdout=other, stderr=subprocess.PIPE, check=False
    )
    assert both.returncode != 0
    assert os.get_blocking(other.fileno())
    own.close()
    other.close()
    _close(read, write)


TWICE = """
try:
    await PipeTransport().connect(parse_url("pipe:"), options=TransportOptions(), nursery=nursery)
except UsageError as error:
    print(error)
"""


def test_a_process_can_use_its_standard_files_once() -> None:
    """A second connection would be connected to /dev/null.
    A second transport object is refused as well.
    """
    done = subprocess.run(
        _child(TWICE), stdin=subprocess.PIPE, capture_output=True, text=True, check=True
    )
    assert (
        done.stderr
        == "a connection uses standard input and output already; a process can use them once only\n"
    )
