"""A server of Redis for tests: the program `redis-server`, on a free port, with bounded memory."""

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

PROGRAM = os.environ.get("PENSTOCK_REDIS_SERVER") or shutil.which("redis-server")

MISSING = (
    "needs the program redis-server: apt-get install redis-server, or its path in "
    "PENSTOCK_REDIS_SERVER"
)

HANGS_AFTER = 60.0
"""Seconds after which a server that does not start fails a test."""


def needs_redis() -> None:
    """Skip a test without the program."""
    if PROGRAM is None:
        pytest.skip(MISSING)


class RedisServer:
    """A server whose files are in `folder`. It starts again with the port that it had."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.settings = settings
        self.port: int = _free_port()
        self.url: str = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert PROGRAM is not None, MISSING
        self.folder.mkdir(exist_ok=True)
        words = [
            *(PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--maxmemory", "128mb", "--maxmemory-policy", "noeviction", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always", *self.settings),
        ]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        give_up_at = monotonic() + HANGS_AFTER
        while self.command("PING") != b"+PONG\r\n":
            assert self._process.poll() is None, "redis-server has ended"
            assert monotonic() < give_up_at, "redis-server does not answer"

    def command(self, *words: str) -> bytes:
        """Return the first bytes of the reply to a command; none if the server is not there."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER) as stream:
                stream.sendall(
                    b"*%d\r\n" % len(words)
                    + b"".join(
                        b"$%d\r\n%s\r\n" % (len(each.encode()), each.encode()) for each in words
                    )
                )
                return stream.recv(65_536)
        except OSError:
            return b""

    def kill(self) -> None:
        """End it as kill -9 does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(HANGS_AFTER)

    def stall(self) -> None:
        """Let it answer nothing, and keep its connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # A thread on another core may go on for a moment.
        for stat in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            while stat.read_text().rpartition(")")[2].split()[0] != "T":
                pass

    def go_on(self) -> None:
        """End a stall."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End it, whatever its state."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


def _free_port() -> int:
    """Return a port below those that the system gives to outgoing connections: no client takes it
    before the server listens, and after a kill it is free again.
    """
    for port in random.sample(range(10_000, 30_000), 200):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port among 200")


@contextmanager
def running_redis(folder: Path, *settings: str) -> Iterator[RedisServer]:
    """Run a server for a block."""
    server = RedisServer(folder, *settings)
    try:
        server.start()
        yield server
    finally:
        server.end()
