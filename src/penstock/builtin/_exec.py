"""The transport ``exec:command``: bytes over the standard input and output of a child process.

Rules of this file:

* There is no shell: the command is split into words as a shell would, and nothing in it is expanded.
* A child never outlives its connection: its pipes are closed, then it is asked to end, then it is killed, each after its deadline.
  It is waited for, also when the task that closes is cancelled.
* What the child writes to stderr goes where ours goes; the last lines of it are kept, for whoever asks how the child ended.
"""

import codecs
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import ClassVar, Final, cast

import trio

from penstock.api import UsageError
from penstock.plugins import ByteConnection, Connection, ConnectionFacts, PeerIdentity, Transport, TransportOptions, Url

LAST_LINES: Final = 5
"""Lines of its stderr that a child's farewell repeats."""

LAST_WORDS: Final = 2048
"""Characters of them."""

EAR_SECONDS: Final = 0.5
"""How long to wait for the end of a child's stderr when the child has ended: a child of its own may hold it open for ever."""

_CHUNK: Final = 4096
_FACTS: Final = ConnectionFacts(half_close=True, local=True)


class ExecTransport(Transport):
    """Starts a command and speaks with it over its standard input and output. It can only connect.

    `Connection.farewell` tells the child's exit status, and the last lines that it wrote to stderr.
    """

    schemes: ClassVar[tuple[str, ...]] = ("exec",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        command = url.command()
        try:
            pipe = subprocess.PIPE
            child = await trio.lowlevel.open_process(list(command), stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise UsageError(f"cannot start {command[0]!r}: {error}. No shell is involved: write it as the system finds it") from error
        connection = ExecConnection(child, command[0], options)
        nursery.start_soon(connection.listen)
        return connection


class ExecConnection(ByteConnection):
    """A connection to a child process."""

    def __init__(self, child: trio.Process, name: str, options: TransportOptions) -> None:
        super().__init__(
            cast("trio.abc.Stream", child.stdio), peer=PeerIdentity(address=f"exec:{name} (pid {child.pid})"), options=options, facts=_FACTS
        )
        self._child = child
        self._name = name
        self._kill_timeout = options.kill_timeout
        self._ear = trio.CancelScope(shield=True)  # what a child says while it ends is worth most: closing ends this, and nothing else
        self._heard_all = trio.Event()
        self._last_words = ""

    async def listen(self) -> None:
        """Pass on what the child writes to stderr, until it is closed."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        stderr = cast("trio.abc.ReceiveStream", self._child.stderr)
        with self._ear:
            async with stderr:
                while data := await stderr.receive_some(_CHUNK):
                    text = decoder.decode(data)
                    self._last_words = (self._last_words + text)[-LAST_WORDS:]
                    _pass_on(text)
        self._heard_all.set()

    async def aclose(self) -> None:
        try:
            with trio.move_on_after(self._close_timeout):
                await super().aclose()  # the end of its input is what tells a child that all is over
                await self._child.wait()
        finally:
            await self._stop(self._child.terminate, self._child.kill)

    async def abort(self) -> None:
        try:
            await super().abort()
        finally:
            await self._stop(self._child.kill)

    async def _stop(self, *ways: Callable[[], None]) -> None:
        for stop in ways:
            if self._child.poll() is not None:
                break
            stop()
            with trio.move_on_after(self._kill_timeout, shield=True):
                await self._child.wait()
        with trio.move_on_after(EAR_SECONDS, shield=True):
            await self._heard_all.wait()
        self._ear.cancel()

    def farewell(self) -> str | None:
        status = self._child.poll()
        if status is None:
            how = "still runs"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        lines = [_printable(line) for line in self._last_words.splitlines() if line.strip()][-LAST_LINES:]
        said = "".join(f"\n  {line}" for line in lines)
        return f"the child {self._name!r} {how}" + (f", its last words on stderr were:{said}" if said else "")


def _pass_on(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # ours is closed, or was never there; the child's must be read all the same, or the child would wait


def _printable(line: str) -> str:
    # A terminal obeys what it is told to print.
    return "".join(letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in line)
