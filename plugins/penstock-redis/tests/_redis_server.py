"""A server of Redis for tests: the program `redis-server`, on a free port, with bounded memory."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from campaigns._server_process import HANGS_AFTER, ServerProcess

PROGRAM = os.environ.get("PENSTOCK_REDIS_SERVER") or shutil.which("redis-server")

MISSING = (
    "needs the program redis-server: apt-get install redis-server, or its path in "
    "PENSTOCK_REDIS_SERVER"
)


def needs_redis() -> None:
    """Skip a test without the program."""
    if PROGRAM is None:
        pytest.skip(MISSING)


class RedisServer(ServerProcess):
    """A server that syncs each append."""

    def __init__(self, folder: Path, *settings: str) -> None:
        super().__init__(folder)
        self.settings = settings
        self.url: str = f"redis://127.0.0.1:{self.port}/0"

    def _run(self) -> "subprocess.Popen[bytes]":
        assert PROGRAM is not None, MISSING
        words = [
            *(PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--maxmemory", "128mb", "--maxmemory-policy", "noeviction", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always", *self.settings),
        ]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def _answers(self) -> bool:
        return self.command("PING") == b"+PONG\r\n"

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


def running_redis(folder: Path, *settings: str) -> RedisServer:
    """Return a server that runs for a block."""
    return RedisServer(folder, *settings)
