"""A server that tests and campaigns start for themselves, kill and stall: a program with its files
in a folder, on a free port.
"""

import random
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Self

from campaigns._processes import stop

HANGS_AFTER = 60.0
"""Seconds after which a server that does not start fails a test."""


class ServerProcess(ABC):
    """A server whose files are in `folder`. It starts again with the port that it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port: int = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _run(self) -> "subprocess.Popen[bytes]":
        """Start the program."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return whether it answers."""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.folder.mkdir(exist_ok=True)
        self._process = self._run()
        give_up_at = monotonic() + HANGS_AFTER
        while not self._answers():
            assert self._process.poll() is None, f"{self} has ended"
            assert monotonic() < give_up_at, f"{self} does not answer"

    def kill(self) -> None:
        """End it as kill -9 does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(HANGS_AFTER)

    def stall(self) -> None:
        """Let it answer nothing, and keep its connections."""
        assert self._process is not None
        stop(self._process.pid)

    def go_on(self) -> None:
        """End a stall."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End it, whatever its state."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def free_port() -> int:
    """Return a port below those that the system gives to outgoing connections: no client takes it
    before the server listens, and after a kill it is free again.
    """
    for port in random.sample(range(10_000, 30_000), 200):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port among 200")
