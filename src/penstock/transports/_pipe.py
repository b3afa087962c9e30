"""The transport ``pipe:``: bytes over this process's standard input and output, for a process that
another process has started.

Rules of this file:

* A connection takes the standard files until the process ends. Other output of the process goes to
  stderr, because a ``print`` would corrupt the stream; other input is empty.
* O_NONBLOCK is a flag of the open file, which the parent process may share. Closing the connection
  restores the flags. If the connection is never closed, the end of the process restores them.
* If input and output are the same socket, it is used as one stream. As two files, each would
  restore the flag while the other needs it.
"""

import os
import socket
import stat
import weakref
from collections.abc import Callable
from typing import ClassVar, Final

import trio

from penstock.api import UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionFacts,
    Listener,
    PeerIdentity,
    Transport,
    TransportOptions,
    Url,
)

_STDERR: Final = 2
_HIGHEST_STANDARD: Final = 2
# standard descriptors in use; they belong to the process, so this set does too.
_taken: Final[set[int]] = set()
_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class PipeTransport(Transport):
    """Standard input and output. Listening and connecting both give the one connection,
    for either role of this process.

    A process can use them once only. A terminal is refused. `stdin` and `stdout` may be the
    descriptors of other open files.
    """

    schemes: ClassVar[tuple[str, ...]] = ("pipe",)

    def __init__(self, *, stdin: int = 0, stdout: int = 1) -> None:
        self._descriptors = (stdin, stdout)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        await trio.lowlevel.checkpoint()
        return self._take(url, options)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        await trio.lowlevel.checkpoint()
        return PipeListener(url, self._take(url, options))

    def _take(self, url: Url, options: TransportOptions) -> Connection:
        if url.host is not None or url.path:
            raise UsageError(
                f"{url.address} is not of the form {url.scheme}:#name; a process has one standard "
                "input and output only"
            )
        for descriptor in self._descriptors:
            if descriptor in _taken:
                raise UsageError(
                    "a connection uses standard input and output already; a process can use them "
                    "once only"
                )
            if os.isatty(descriptor):
                raise UsageError(
                    f"file {descriptor} is a terminal; {url.scheme}: is for a process that another "
                    "process starts, as exec: does"
                )
        try:
            connection = PipeConnection(*self._descriptors, options)
        except OSError as error:
            raise UsageError(
                f"standard input and output cannot be used as a connection: {error}"
            ) from error
        _taken.update(
            descriptor for descriptor in self._descriptors if descriptor <= _HIGHEST_STANDARD
        )
        return connection


class PipeConnection(ByteConnection):
    """A connection over two open files, or over one socket that is both."""

    def __init__(self, stdin: int, stdout: int, options: TransportOptions) -> None:
        # weakref.finalize also runs when the interpreter exits: it restores the flags if the
        # connection is never closed.
        self._restore_input = weakref.finalize(self, _restorer(stdin))
        self._restore_output = weakref.finalize(self, _restorer(stdout))
        stream = _as_one_socket(stdin, stdout) or _as_two_files(stdin, stdout)
        super().__init__(stream, peer=PeerIdentity(address="pipe:"), options=options, facts=_FACTS)
        _redirect(stdin, os.devnull)
        _redirect(stdout, _STDERR)

    async def send_eof(self) -> None:
        if isinstance(self.stream, trio.StapledStream):
            # It also closes a copy of the descriptor:
            # the peer sees the end only after every copy is closed.
            self._restore_output()
        await super().send_eof()

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            # After closing: until then a task may still be reading, and must not block the process.
            self._restore()

    async def abort(self) -> None:
        try:
            await super().abort()
        finally:
            self._restore()

    def _restore(self) -> None:
        self._restore_input()
        self._restore_output()


class PipeListener(Listener):
    """Returns the one connection; after that `accept` raises trio.EndOfChannel."""

    def __init__(self, url: Url, connection: Connection) -> None:
        self.addresses = (url.address,)
        self._connection: Connection | None = connection
        self._is_closed = False

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        if self._is_closed:
            raise trio.ClosedResourceError("this listener is closed")
        connection, self._connection = self._connection, None
        if connection is None:
            raise trio.EndOfChannel(
                "standard input and output are one connection; a second one is impossible"
            )
        return connection

    async def aclose(self) -> None:
        self._is_closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.abort()
        else:
            await trio.lowlevel.checkpoint()


def _restorer(descriptor: int) -> Callable[[], None]:
    """Remember the blocking flag of an open file; return a function that restores it. The
    function holds a copy of the descriptor.
    """
    was_blocking = os.get_blocking(descriptor)
    copy = os.dup(descriptor)

    def restore() -> None:
        os.set_blocking(copy, was_blocking)
        os.close(copy)

    return restore


def _as_one_socket(stdin: int, stdout: int) -> trio.abc.HalfCloseableStream | None:
    ins, outs = os.fstat(stdin), os.fstat(stdout)
    if not stat.S_ISSOCK(ins.st_mode) or (ins.st_dev, ins.st_ino) != (outs.st_dev, outs.st_ino):
        return None
    return trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=os.dup(stdin))))


def _as_two_files(stdin: int, stdout: int) -> trio.abc.HalfCloseableStream:
    return trio.StapledStream(
        trio.lowlevel.FdStream(os.dup(stdout)), trio.lowlevel.FdStream(os.dup(stdin))
    )


def _redirect(descriptor: int, target: int | str) -> None:
    """Let a descriptor refer to another open file. Other code of the process continues to use
    the descriptor, and disturbs nothing.
    """
    try:
        other = os.dup(target) if isinstance(target, int) else os.open(target, os.O_RDONLY)
    except OSError:
        other = os.open(os.devnull, os.O_RDWR)  # a process may have been started without stderr
    os.dup2(other, descriptor)
    os.close(other)
