"""The transport ``exec:command``: bytes over the standard input and output of a child process.

Rules of this file:

* No shell is started. The command is split into words as a shell would split it,
  and nothing in it is expanded.
* A child never outlives its connection. Its pipes are closed; if it still runs after
  `close_timeout` it is terminated, and after `kill_timeout` killed. The child is waited for, even
  if the closing task is cancelled.
* The child's stderr is copied to this process's stderr, and `farewell` repeats its last lines.
"""

import codecs
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import ClassVar, Final, cast

import trio

from penstock.api import UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionFacts,
    PeerIdentity,
    Transport,
    TransportOptions,
    Url,
)

STDERR_LINES: Final = 5
"""Lines of the child's stderr that `farewell` repeats."""

STDERR_CHARACTERS: Final = 2048
"""Characters of the child's stderr that are kept for that."""

STDERR_SECONDS: Final = 0.5
"""Seconds to wait for the end of stderr after the child has ended.
A grandchild may hold stderr open without end.
"""

_CHUNK: Final = 4096
_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class ExecTransport(Transport):
    """Starts a command and communicates over its standard input and output. It can only connect.

    `Connection.farewell` returns the child's exit status and the last lines of its stderr.
    """

    schemes: ClassVar[tuple[str, ...]] = ("exec",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        command = url.command()
        try:
            pipe = subprocess.PIPE
            child = await trio.lowlevel.open_process(
                list(command), stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise UsageError(
                f"cannot start {command[0]!r}: {error}. No shell is involved: give the program's "
                "name or path"
            ) from error
        connection = ExecConnection(child, command[0], options)
        nursery.start_soon(connection.copy_stderr)
        return connection


class ExecConnection(ByteConnection):
    """A connection to a child process."""

    def __init__(self, child: trio.Process, name: str, options: TransportOptions) -> None:
        super().__init__(
            cast("trio.abc.Stream", child.stdio),
            peer=PeerIdentity(address=f"exec:{name} (pid {child.pid})"),
            options=options,
            facts=_FACTS,
        )
        self._child = child
        self._name = name
        self._kill_timeout = options.kill_timeout
        # Shielded: the last lines before a child ends are the most useful ones, so only closing the
        # connection stops the copying.
        self._stderr_scope = trio.CancelScope(shield=True)
        self._stderr_ended = trio.Event()
        self._stderr_tail = ""

    async def copy_stderr(self) -> None:
        """Copy the child's stderr to this process's stderr until it ends,
        or until the connection is closed.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        stderr = cast("trio.abc.ReceiveStream", self._child.stderr)
        with self._stderr_scope:
            async with stderr:
                while data := await stderr.receive_some(_CHUNK):
                    text = decoder.decode(data)
                    self._stderr_tail = (self._stderr_tail + text)[-STDERR_CHARACTERS:]
                    _write_to_stderr(text)
        self._stderr_ended.set()

    async def aclose(self) -> None:
        try:
            with trio.move_on_after(self._close_timeout):
                await super().aclose()  # the end of its standard input tells the child to end
                await self._child.wait()
        finally:
            await self._stop(self._child.terminate, self._child.kill)

    async def abort(self) -> None:
        try:
            await super().abort()
        finally:
            await self._stop(self._child.kill)

    async def _stop(self, *methods: Callable[[], None]) -> None:
        for stop in methods:
            if self._child.poll() is not None:
                break
            stop()
            with trio.move_on_after(self._kill_timeout, shield=True):
                await self._child.wait()
        with trio.move_on_after(STDERR_SECONDS, shield=True):
            await self._stderr_ended.wait()
        self._stderr_scope.cancel()

    def farewell(self) -> str | None:
        status = self._child.poll()
        if status is None:
            how = "still runs"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        lines = [_printable(line) for line in self._stderr_tail.splitlines() if line.strip()][
            -STDERR_LINES:
        ]
        tail = "".join(f"\n  {line}" for line in lines)
        return f"the child {self._name!r} {how}" + (
            f"; the end of its stderr:{tail}" if tail else ""
        )


def _write_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        # stderr is closed, or is None (pythonw). The child's stderr must be read nevertheless, or
        # the child would block on it.
        pass


def _printable(line: str) -> str:
    # Escape control characters: a terminal executes the escape sequences that are written to it.
    return "".join(
        letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in line
    )
