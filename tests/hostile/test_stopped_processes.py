"""A process that is stopped (SIGSTOP) is noticed by the other side. Its system still
acknowledges bytes, so TCP does not notice.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from penstock.api import ConnectionLost
from penstock.runtime import serve, subscribe
from tests._real_time import HANGS_AFTER
from tests.hostile._beside_a_canary import wait_until
from tests.hostile._quiet_program import LIMITS, service

ROOT = Path(__file__).parents[2]
DIALECTS = ["rsio", "reactivesocket"]
TRANSPORTS = ["tcp", "unix"]


@contextmanager
def program(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start the program. Yield it and its first line."""
    command = [sys.executable, "-m", "tests.hostile._quiet_program", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stderr is not None
            yield started, started.stderr.readline().strip()
        finally:
            started.kill()


def where(transport: str, folder: Path) -> tuple[str, str]:
    """Return an address to listen at, and the text between an address and a name."""
    return ("tcp://127.0.0.1:0", "/") if transport == "tcp" else (f"unix://{folder}/s", "#")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_client_notices_a_server_that_is_stopped(
    dialect: str, transport: str, tmp_path: Path
) -> None:
    """The stream ends with ConnectionLost, which names the limits."""
    address, mark = where(transport, tmp_path)
    with program("serve", address) as (server, url), trio.fail_after(HANGS_AFTER):
        async with subscribe(f"{dialect}+{url}{mark}quiet", limits=LIMITS) as stream:
            assert await anext(stream) == b"element"
            server.send_signal(signal.SIGSTOP)
            with pytest.raises(ConnectionLost, match=r"Limits\.keepalive"):
                await anext(stream)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_notices_a_client_that_is_stopped(
    dialect: str, transport: str, tmp_path: Path
) -> None:
    """It keeps neither the connection nor its publisher."""
    address, mark = where(transport, tmp_path)
    async with serve(service, address, limits=LIMITS) as server:
        url = f"{dialect}+{server.addresses[0]}{mark}quiet"

        programs = program("subscribe", url)
        # In a thread: the server must run meanwhile.
        client, _ = await trio.to_thread.run_sync(programs.__enter__)
        try:
            assert len(server.peers) == 1
            client.send_signal(signal.SIGSTOP)
            with trio.fail_after(HANGS_AFTER):
                await wait_until(lambda: not server.peers)
        finally:
            programs.__exit__(None, None, None)
