"""One worker, as the parent sees it: its process, its channel, and the clients that it has."""

import enum
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from math import inf
from subprocess import DEVNULL, PIPE
from typing import Final

import attrs
import trio

from penstock.runtime import Slot
from penstock.workers._channel import Channel
from penstock.workers._claims import Claims
from penstock.workers._messages import Start, ToParent, Waiting, to_parent

MOST_UNTAKEN: Final = 8
"""Clients that are handed over and not taken. A worker that hangs gets no more than these."""


FIRST_OF_SIGNALS: Final = 128
"""A status above it is this number and that of a signal, as a shell has it."""


class WorkerState(enum.Enum):
    """The stages of a worker."""

    STARTING = "starting"
    """It imports the service, and serves no client yet."""
    SERVING = "serving"
    ENDING = "ending"
    """It was told to end: its streams may go on for some time."""
    OVER = "over"
    """The process has ended."""


@attrs.define(eq=False)
class Client:
    """A connected client."""

    number: int
    listener: int
    address: list[str | int]
    slot: Slot | None
    """Its place; None if it is refused, or has none any more."""
    refusal: str = ""
    sock: socket.socket | None = None
    """Kept until the worker has taken it: if the worker dies, another one gets it."""


class WorkerProcess:
    """One worker."""

    def __init__(self, name: int, number: int) -> None:
        self.name: int = name
        self.number: int = number
        self.state: WorkerState = WorkerState.STARTING
        self.clients: dict[int, Client] = {}  # bounded by Limits.max_connections
        self.untaken: dict[int, Client] = {}  # bounded by MOST_UNTAKEN
        self.handed: int = 0
        """Clients that it has got so far."""
        self.unknown: set[int] = set()
        """The clients that have not made themselves known."""
        self.room: int = 0
        """Connections that it may have open."""
        self.publishers: list[str] = []
        self.failure: str = ""
        """Why it could not start, or go on, in its own words."""
        self.is_mistake: bool = False
        """The failure says what to do, and is the same for each worker."""
        self.waits_for: Waiting | None = None
        """Its last report about its drain, until the operator has read it."""
        self.served_at: float = inf
        """When it began to serve."""
        self.page: bytes = b""
        """The last page that it has sent to be kept."""
        self.pinged_at: float | None = None
        """When it was asked for a sign of life that has not come."""
        self.answered_at: float = -inf
        """When it has given one."""
        self.is_stuck: bool = False
        self.over: trio.Event = trio.Event()
        self.claims: Claims
        self.process: trio.Process
        self.channel: Channel[ToParent]

    async def start(self, start: Start) -> None:
        """Start the process. Raises OSError if the system cannot."""
        with ExitStack() as files:
            own, theirs = socket.socketpair()
            files.callback(own.close)
            with theirs:
                self.claims = Claims()
                files.callback(self.claims.close)
                passed = theirs.fileno(), self.claims.reader
                self.process = await trio.lowlevel.open_process(
                    # -P: the current folder is searched if the settings say so, and not before.
                    [sys.executable, "-P", "-m", "penstock.workers", *map(str, passed)],
                    stdin=DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                    pass_fds=passed,
                    # Ctrl-C in a terminal is for the parent alone, which tells the workers.
                    start_new_session=True,
                )
            files.pop_all()
        self.channel = Channel(own, to_parent)
        self.channel.send(start)

    def takes(self) -> bool:
        """Return whether it may get another client now."""
        return (
            self.state is WorkerState.SERVING
            and not self.is_stuck
            and len(self.untaken) < MOST_UNTAKEN
            and len(self.clients) < self.room
        )

    @property
    def has_served(self) -> bool:
        """Whether it has begun to serve."""
        return self.served_at < inf

    @property
    def is_member(self) -> bool:
        """Whether it serves, or did so until it was told to end: others may reach it. One that was
        told to end while the system started it has no channel.
        """
        return self.has_served and self.state in (WorkerState.SERVING, WorkerState.ENDING)

    @property
    def load(self) -> tuple[int, int]:
        """Clients go where this is least: among workers with equally many to the one that has
        had fewer in all.
        """
        return len(self.clients), self.handed

    @property
    def is_settled(self) -> bool:
        """Whether each client that was handed over is taken and has made itself known."""
        return not self.untaken and not self.unknown

    def tell(self, number: signal.Signals) -> None:
        """Send a signal: SIGTERM lets it drain, SIGINT end."""
        if self.state is not WorkerState.OVER:
            self.state = WorkerState.ENDING
            # Without a process, `start` is not over: its caller looks at the state.
            with suppress(ProcessLookupError, AttributeError):
                self.process.send_signal(number)

    def end_now(self, number: signal.Signals) -> None:
        """Send a signal, or kill the process if it starts: it has no client to say goodbye to, and
        may not handle the signal yet.
        """
        if self.state is WorkerState.STARTING:
            self.state = WorkerState.ENDING
            self.kill()
        else:
            self.tell(number)

    def kill(self) -> None:
        """End the process at once. Plain: it can be called from any thread."""
        with suppress(ProcessLookupError, AttributeError):
            self.process.kill()

    @property
    def was_cut(self) -> bool:
        """Whether the process has ended before its streams had: a signal has killed it, or it has
        ended itself because something went on for too long.
        """
        status = self.process.returncode
        return status is not None and (status < 0 or status > FIRST_OF_SIGNALS)

    @property
    def end(self) -> str:
        """How the process has ended, in words."""
        status = self.process.returncode
        if status is None:
            return "has not ended"
        if status < 0:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    def __str__(self) -> str:
        process = getattr(self, "process", None)
        return f"worker {self.number} ({f'process {process.pid}' if process else 'not started'})"
