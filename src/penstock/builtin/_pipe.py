"""The transport ``pipe:``: bytes over this process's own standard input and output, for a process that another one has started.

Rules of this file:

* Taking them is for good: until the process ends, what else it prints goes to stderr (a stray ``print`` would corrupt the conversation),
  and what else it reads is empty.
* Reading and writing without blocking is a flag of the open file, which the process that started us may share: the flags go back to what
  they were when the connection is closed, also when it never was and the process just ends.
* Where input and output are one socket, it is used as one: two files over it would restore its flag under each other's feet.
"""

import os
import socket
import stat
import weakref
from collections.abc import Callable
from typing import ClassVar, Final

import trio

from penstock.api import UsageError
from penstock.plugins import ByteConnection, Connection, ConnectionFacts, Listener, PeerIdentity, Transport, TransportOptions, Url

_STDERR: Final = 2
_HIGHEST_STANDARD: Final = 2
_taken: Final[set[int]] = set()  # of the standard numbers: they are the process's, so this is, too
_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class PipeTransport(Transport):
    """Standard input and output. Listening gives one connection, connecting gives the same one: whichever role this process has.

    A process has them once. Refused where either is a terminal: people do not speak the protocol.
    `stdin` and `stdout` may be other open files, by number.
    """

    schemes: ClassVar[tuple[str, ...]] = ("pipe",)

    def __init__(self, *, stdin: int = 0, stdout: int = 1) -> None:
        self._numbers = (stdin, stdout)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        await trio.lowlevel.checkpoint()
        return self._take(url, options)

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        await trio.lowlevel.checkpoint()
        return PipeListener(url, self._take(url, options))

    def _take(self, url: Url, options: TransportOptions) -> Connection:
        if url.host is not None or url.path:
            raise UsageError(f"{url.address} is not of the form {url.scheme}:#name; there is one standard input and output only")
        for number in self._numbers:
            if number in _taken:
                raise UsageError("standard input and output have been taken by a connection already; a process has them once")
            if os.isatty(number):
                raise UsageError(f"file {number} is a terminal; {url.scheme}: is for a process that another one starts, as exec: does")
        try:
            connection = PipeConnection(*self._numbers, options)
        except OSError as error:
            raise UsageError(f"standard input and output cannot be used as a connection: {error}") from error
        _taken.update(number for number in self._numbers if number <= _HIGHEST_STANDARD)
        return connection


class PipeConnection(ByteConnection):
    """A connection over two open files, or over one socket that is both."""

    def __init__(self, stdin: int, stdout: int, options: TransportOptions) -> None:
        # Each is run when its file is let go; or else when the process ends, for that is when `finalize` runs what is left.
        self._restore_input = weakref.finalize(self, _restorer(stdin))
        self._restore_output = weakref.finalize(self, _restorer(stdout))
        stream = _as_one_socket(stdin, stdout) or _as_two_files(stdin, stdout)
        super().__init__(stream, peer=PeerIdentity(address="pipe:"), options=options, facts=_FACTS)
        _cover(stdin, os.devnull)
        _cover(stdout, _STDERR)

    async def send_eof(self) -> None:
        if isinstance(self.stream, trio.StapledStream):
            self._restore_output()  # lets go of the file, too: the peer sees the end when nobody has it open any more
        await super().send_eof()

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            self._restore()  # not before: somebody may be reading until it is closed, and must not block

    async def abort(self) -> None:
        try:
            await super().abort()
        finally:
            self._restore()

    def _restore(self) -> None:
        self._restore_input()
        self._restore_output()


class PipeListener(Listener):
    """Gives its one connection, and then no more."""

    def __init__(self, url: Url, connection: Connection) -> None:
        self.addresses = (url.address,)
        self._connection: Connection | None = connection
        self._closed = False

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise trio.ClosedResourceError("this listener is closed")
        connection, self._connection = self._connection, None
        if connection is None:
            raise trio.EndOfChannel("standard input and output are one connection; there cannot be another")
        return connection

    async def aclose(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.abort()
        else:
            await trio.lowlevel.checkpoint()


def _restorer(number: int) -> Callable[[], None]:
    """Remember the flag of an open file; the function returned puts it back, and lets go of the file."""
    was_blocking = os.get_blocking(number)
    kept = os.dup(number)

    def restore() -> None:
        os.set_blocking(kept, was_blocking)
        os.close(kept)

    return restore


def _as_one_socket(stdin: int, stdout: int) -> trio.abc.HalfCloseableStream | None:
    ins, outs = os.fstat(stdin), os.fstat(stdout)
    if not stat.S_ISSOCK(ins.st_mode) or (ins.st_dev, ins.st_ino) != (outs.st_dev, outs.st_ino):
        return None
    return trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=os.dup(stdin))))


def _as_two_files(stdin: int, stdout: int) -> trio.abc.HalfCloseableStream:
    return trio.StapledStream(trio.lowlevel.FdStream(os.dup(stdout)), trio.lowlevel.FdStream(os.dup(stdin)))


def _cover(number: int, instead: int | str) -> None:
    """Put another open file under a number that others know: they go on reading and writing, and disturb nobody."""
    try:
        other = os.dup(instead) if isinstance(instead, int) else os.open(instead, os.O_RDONLY)
    except OSError:
        other = os.open(os.devnull, os.O_RDWR)  # there may be no stderr at all
    os.dup2(other, number)
    os.close(other)
