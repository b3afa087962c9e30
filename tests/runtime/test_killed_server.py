"""A server with a log on disk is killed with SIGKILL while a subscriber reads:
the subscriber gets each element once.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.runtime import subscribe
from penstock.spi import Reconnect
from tests._real_time import HANGS_AFTER

pytestmark = pytest.mark.slow  # it starts a server again and again

KILLS = 5
ELEMENTS = 20_000

# Serves a log at the address that it is given, and appends numbers to it,
# from where the log ends up to ELEMENTS.
SERVER = """
import sys, trio
from penstock import DiskLog, Retention, Service, serve

async def main():
    path, address, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    async with DiskLog(path, retention=Retention(max_count=1_000_000)) as log:
        service = Service()
        service.publish("orders", log)
        async with serve(service, address) as server:
            print(server.addresses[0], flush=True)
            for first in range(log.latest()["0"], count, 20):
                await log.append([b"%d" % number for number in range(first, min(first + 20, count))])
            await trio.sleep_forever()

trio.run(main)
"""


class KilledServer:
    """The process of the server, and its address, which the next process takes again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = "tcp://127.0.0.1:0"
        self.start()

    def start(self) -> None:
        arguments = [str(self._path), self.address, str(ELEMENTS)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=HANGS_AFTER)


async def test_a_subscriber_survives_the_kills_of_its_server(tmp_path: Path) -> None:
    """Killed with elements flowing:
    lost 0, repeated 0, and the stream says that it never began anew.
    """
    server = KilledServer(tmp_path / "orders.log")
    received: list[int] = []
    try:
        url, policy = f"{server.address}/orders", Reconnect(first=0.01, most=0.1)
        async with subscribe(url, start=0, stop=ELEMENTS, reconnect=policy) as stream:
            kill_at = [ELEMENTS * number // (KILLS + 1) for number in range(KILLS, 0, -1)]
            async for batch in stream.batches():
                received += map(int, batch)
                if kill_at and len(received) >= kill_at[-1]:
                    kill_at.pop()
                    server.kill()
                    server.start()
            assert (stream.position, stream.restarts) == (ELEMENTS, 0)
    finally:
        server.kill()
    assert not kill_at
    assert received == list(range(ELEMENTS))
