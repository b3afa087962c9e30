"""The transport ``exec:command``: bytes over the standard input and output of a child process.

Rules of this file:

* There is no shell: the command is split into words as a shell would, and nothing in it is expanded.
* A child never outlives its connection: its pipes are closed, then it is asked to end, then it is killed, each after its deadline.
  It is waited for, also when the task that closes is cancelled.
* What the child writes to stderr goes where ours goes.
"""

import signal
import subprocess
from collections.abc import Callable
from typing import ClassVar, Final, cast

import trio

from penstock.api import UsageError
from penstock.plugins import ByteConnection, Connection, Facts, Peer, Transport, TransportOptions, Url

_FACTS: Final = Facts(half_close=True, local=True)


class ExecTransport(Transport):
    """Starts a command and speaks with it over its standard input and output. It can only connect.

    `Connection.farewell` tells the child's exit status.
    """

    schemes: ClassVar[tuple[str, ...]] = ("exec",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        command = url.command()
        try:
            child = await trio.lowlevel.open_process(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise UsageError(f"cannot start {command[0]!r}: {error}. No shell is involved: write it as the system finds it") from error
        return ExecConnection(child, command[0], options)


class ExecConnection(ByteConnection):
    """A connection to a child process."""

    def __init__(self, child: trio.Process, name: str, options: TransportOptions) -> None:
        super().__init__(
            cast("trio.abc.Stream", child.stdio), peer=Peer(address=f"exec:{name} (pid {child.pid})"), options=options, facts=_FACTS
        )
        self._child = child
        self._name = name
        self._kill_timeout = options.kill_timeout

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

    def farewell(self) -> str | None:
        status = self._child.poll()
        if status is None:
            return f"the child {self._name!r} still runs"
        if status < 0:
            return f"the child {self._name!r} was ended by {signal.Signals(-status).name}"
        return f"the child {self._name!r} ended with status {status}"
