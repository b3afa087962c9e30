"""The transport ``pipe:``: over pipes and sockets of the test's own, and in real processes."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio
from trio.testing import assert_checkpoints, check_half_closeable_stream

from penstock.api import UsageError
from penstock.builtin import ExecTransport, PipeTransport, _pipe
from penstock.plugins import Bytes, Connection, ConnectionFacts
from tests.builtin._helpers import close, connect, exchange, listen, stream_of


class Crossed:
    """Two pipes, as two processes would have them: what one writes the other reads. `spies` share the open files."""

    def __init__(self) -> None:
        self.read_a, self.write_b = os.pipe()
        self.read_b, self.write_a = os.pipe()
        self.a = PipeTransport(stdin=self.read_a, stdout=self.write_a)
        self.b = PipeTransport(stdin=self.read_b, stdout=self.write_b)

    def spies(self) -> tuple[int, int]:
        """Other numbers for the two files of side a, as a process that shares them would have."""
        return os.dup(self.read_a), os.dup(self.write_a)

    def close(self) -> None:
        for number in (self.read_a, self.write_a, self.read_b, self.write_b):
            os.close(number)


@pytest.fixture
def pipes() -> Iterator[Crossed]:
    """Two pipes."""
    made = Crossed()
    yield made
    made.close()


class Whole(trio.abc.HalfCloseableStream):
    """The stream of a connection, ended and closed by way of the connection: its own part in that is to be checked, too."""

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


async def _both(pipes: Crossed, nursery: trio.Nursery) -> tuple[Connection, Connection]:
    a = await connect(pipes.a, "pipe:", nursery)
    listener = await listen(pipes.b, "pipe:#ignored", nursery)
    b = await listener.accept()
    assert [str(address) for address in listener.addresses] == ["pipe:"]
    await listener.aclose()
    return a, b


def _flags(numbers: tuple[int, ...]) -> list[bool]:
    return [os.get_blocking(number) for number in numbers]


def _close(*numbers: int) -> None:
    for number in numbers:
        os.close(number)


async def test_a_word_each_way_arrives(pipes: Crossed, nursery: trio.Nursery) -> None:
    """And the end of one half is not the end of the other."""
    a, b = await _both(pipes, nursery)
    await a.handshake(nursery)
    await exchange(a, b)
    await a.send_eof()
    assert await b.receive() is None
    await b.send(b"still here")
    assert await a.receive() == b"still here"
    await close(a, b)
    assert (a.facts, a.peer.address) == (ConnectionFacts(half_close=True, local=True), "pipe:")


async def test_its_stream_keeps_every_promise_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[Whole, Whole]:
        pipes = Crossed()
        async with trio.open_nursery() as nursery:
            a, b = await _both(pipes, nursery)
        pipes.close()
        return Whole(a), Whole(b)

    await check_half_closeable_stream(maker, None)


@pytest.mark.parametrize("way", ["aclose", "abort"])
@pytest.mark.parametrize("before", [[True, True], [False, True], [True, False]])
async def test_the_flags_of_shared_files_go_back_to_what_they_were(
    pipes: Crossed, nursery: trio.Nursery, way: str, before: list[bool]
) -> None:
    """The process that started us may share them: while we use them they do not block, and afterwards all is as before."""
    spies = pipes.spies()
    for spy, flag in zip(spies, before, strict=True):
        os.set_blocking(spy, flag)
    a, b = await _both(pipes, nursery)
    assert _flags(spies) == [False, False]
    await getattr(a, way)()
    assert _flags(spies) == before
    await getattr(a, way)()
    await b.aclose()
    _close(*spies)


async def test_the_end_of_our_half_reaches_the_peer_though_we_keep_the_other(pipes: Crossed, nursery: trio.Nursery) -> None:
    """Nothing of ours keeps the file open; its flag is back already, the other one's not yet."""
    spies = pipes.spies()
    a, b = await _both(pipes, nursery)
    await a.send_eof()
    assert _flags(spies) == [False, True]
    os.close(spies[1])
    assert await b.receive() is None
    await close(a, b)
    os.close(spies[0])


async def test_what_else_is_printed_goes_to_stderr(pipes: Crossed, nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]) -> None:
    """A stray print would corrupt the conversation; and what else reads finds nothing to steal."""
    a, b = await _both(pipes, nursery)
    os.write(pipes.write_a, b"stray\n")
    assert os.read(pipes.read_a, 10) == b""
    await exchange(a, b)
    assert capfd.readouterr().err == "stray\n"
    await close(a, b)


async def test_without_stderr_what_else_is_printed_is_lost(pipes: Crossed, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have been started without one."""
    monkeypatch.setattr(_pipe, "_STDERR", 9999)
    a, b = await _both(pipes, nursery)
    os.write(pipes.write_a, b"stray\n")
    await exchange(a, b)
    await close(a, b)


@pytest.mark.parametrize("way", ["aclose", "abort"])
@pytest.mark.parametrize("before", [True, False])
async def test_one_socket_that_is_both_is_used_as_one(nursery: trio.Nursery, way: str, before: bool) -> None:
    """As ssh and inetd start a process: half a connection ends, the other goes on, and the flag comes back."""
    ours, theirs = socket.socketpair()
    spy = os.dup(ours.fileno())
    os.set_blocking(spy, before)
    numbers = os.dup(ours.fileno()), os.dup(ours.fileno())
    ours.close()
    connection = await connect(PipeTransport(stdin=numbers[0], stdout=numbers[1]), "pipe:", nursery)
    await connection.send(b"there")
    assert theirs.recv(10) == b"there"
    await connection.send_eof()
    assert theirs.recv(10) == b""
    assert not os.get_blocking(spy)
    theirs.send(b"back")
    assert await connection.receive() == b"back"
    await getattr(connection, way)()
    assert os.get_blocking(spy) is before
    theirs.close()
    _close(spy, *numbers)


async def test_two_sockets_are_used_as_two(nursery: trio.Nursery) -> None:
    """One to read from, another to write to."""
    pairs = [socket.socketpair() for _ in range(2)]
    numbers = [os.dup(ours.fileno()) for ours, _ in pairs]
    for ours, _ in pairs:
        ours.close()
    (_, source), (_, sink) = pairs
    connection = await connect(PipeTransport(stdin=numbers[0], stdout=numbers[1]), "pipe:", nursery)
    source.send(b"in")
    assert await connection.receive() == b"in"
    await connection.send(b"out")
    assert sink.recv(10) == b"out"
    await connection.aclose()
    source.close()
    sink.close()
    _close(*numbers)


@pytest.mark.parametrize("which", ["input", "output"])
async def test_a_terminal_is_refused(pipes: Crossed, nursery: trio.Nursery, which: str) -> None:
    """People do not speak the protocol; and making a terminal non-blocking would break the shell."""
    leader, terminal = os.openpty()
    numbers = (terminal, pipes.write_a) if which == "input" else (pipes.read_a, terminal)
    with pytest.raises(UsageError, match=f"file {terminal} is a terminal; pipe: is for a process that another one starts"):
        await connect(PipeTransport(stdin=numbers[0], stdout=numbers[1]), "pipe:", nursery)
    assert os.get_blocking(terminal)
    _close(leader, terminal)


@pytest.mark.parametrize("which", [0, 1])
async def test_what_a_connection_has_taken_is_refused_to_the_next(
    pipes: Crossed, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """Whichever of the two it is."""
    monkeypatch.setattr(_pipe, "_taken", {(pipes.read_a, pipes.write_a)[which]})
    with pytest.raises(UsageError, match="have been taken by a connection already; a process has them once"):
        await connect(pipes.a, "pipe:", nursery)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_file_that_is_not_open_is_told(pipes: Crossed, nursery: trio.Nursery, which: int) -> None:
    """A process may have been started without them; the other one is as it was."""
    spies = pipes.spies()
    numbers = (9999, pipes.write_a) if which == 0 else (pipes.read_a, 9999)
    with pytest.raises(UsageError, match=r"cannot be used as a connection: .*Bad file descriptor"):
        await connect(PipeTransport(stdin=numbers[0], stdout=numbers[1]), "pipe:", nursery)
    assert _flags(spies) == [True, True]
    _close(*spies)


@pytest.mark.parametrize("url", ["pipe://", "pipe://host", "pipe:/dev/null"])
async def test_what_has_an_address_is_no_pipe(pipes: Crossed, nursery: trio.Nursery, url: str) -> None:
    """There is one standard input."""
    with pytest.raises(UsageError, match="is not of the form pipe:#name"):
        await connect(pipes.a, url, nursery)


async def test_a_listener_gives_its_one_connection(pipes: Crossed, nursery: trio.Nursery) -> None:
    """Then it says that there cannot be another; closed, it says that it is closed."""
    listener = await listen(pipes.a, "pipe:", nursery)
    with assert_checkpoints():
        connection = await listener.accept()
    with pytest.raises(trio.EndOfChannel, match="there cannot be another"):
        await listener.accept()
    await listener.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await listener.accept()
    await connection.aclose()


async def test_a_listener_that_nobody_accepted_from_lets_go(pipes: Crossed, nursery: trio.Nursery) -> None:
    """The peer sees the end, and the flags are back."""
    spies = pipes.spies()
    listener = await listen(pipes.a, "pipe:", nursery)
    b = await connect(pipes.b, "pipe:", nursery)
    await listener.aclose()
    assert _flags(spies) == [True, True]
    _close(*spies)
    assert await b.receive() is None
    await b.aclose()


# --- in real processes

CHILD = """
import sys, trio
from penstock.api import UsageError
from penstock.builtin import PipeTransport
from penstock.plugins import TransportOptions, parse_url

async def main():
    async with trio.open_nursery() as nursery:
        listener = await PipeTransport().listen(parse_url("pipe:"), options=TransportOptions(), nursery=nursery)
        connection = await listener.accept()
        {body}

trio.run(main)
"""


def _child(body: str) -> list[str]:
    return [sys.executable, "-c", CHILD.format(body=body.replace("\n", "\n        "))]


async def test_a_process_serves_the_one_that_started_it(nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]) -> None:
    """`exec:` on one side, `pipe:` on the other; what the child prints beside it does not disturb."""
    body = "print('stray')\nwhile data := await connection.receive(): await connection.send(data.upper())\nawait connection.aclose()"
    connection = await connect(ExecTransport(), f"exec:{shlex.join(_child(body))}", nursery)
    for word in (b"one", b"two"):
        await connection.send(word)
        assert await connection.receive() == word.upper()
    await connection.send_eof()
    assert await connection.receive() is None
    await connection.aclose()
    assert "ended with status 0" in (connection.farewell() or "")
    assert capfd.readouterr().err == "stray\n"


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise RuntimeError('mine')", "connection = None; raise KeyboardInterrupt"])
def test_a_process_that_just_ends_leaves_the_flags_as_they_were(end: str) -> None:
    """Nobody closed the connection: the process that shares the files still finds them as they were."""
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    done = subprocess.run(_child(end), stdin=read, stdout=theirs, stderr=subprocess.PIPE, check=False)
    assert done.returncode != 0
    assert _flags((read, theirs.fileno())) == [True, True]
    both = subprocess.run(_child(end), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, check=False)
    assert both.returncode != 0
    assert os.get_blocking(theirs.fileno())
    ours.close()
    theirs.close()
    _close(read, write)


TWICE = """
try:
    await PipeTransport().connect(parse_url("pipe:"), options=TransportOptions(), nursery=nursery)
except UsageError as error:
    print(error)
"""


def test_a_process_has_its_standard_files_once() -> None:
    """A second connection over them would speak to nobody, in silence; also by way of another registry."""
    done = subprocess.run(_child(TWICE), stdin=subprocess.PIPE, capture_output=True, text=True, check=True)
    assert done.stderr == "standard input and output have been taken by a connection already; a process has them once\n"
