"""Scene: a server with a log on disk that is killed with SIGKILL, and read on."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A log on disk, and kill -9"
STORY = """\
A program appends orders to a DiskLog and publishes it. It is killed with SIGKILL five times, in the middle of its work, and
started again. One `async for` in this process reads through all of it; then the log is compared with what was acknowledged."""
KILLS = 5
EACH = 40
"""Orders that a program acknowledges before it is killed."""
PROGRAM = Path(__file__).with_name("order_server.py")


class _Server:
    """The program, started again after each kill."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.port = 0
        self.kills = 0
        self.acknowledged: list[int] = []

    async def run(self, serving: trio.Event) -> None:
        """Run it and kill it `KILLS` times, then until cancelled. Set `serving` when it serves."""
        while True:
            async with self._program() as output:
                lines = 0
                async for line in _lines_of(output):
                    lines += 1
                    if lines == 1:
                        self.port = int(line)
                        serving.set()
                    else:
                        self.acknowledged.append(int(line))
                    if lines > EACH and self.kills < KILLS:
                        break
                else:
                    raise RuntimeError("the server has ended by itself")

    @asynccontextmanager
    async def _program(self) -> AsyncIterator[trio.abc.ReceiveStream]:
        """Start the program, and kill it at the end of the block. The value is what it prints."""
        command = [sys.executable, str(PROGRAM), str(self._path), str(self.port)]
        program = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
        if program.stdout is None:
            raise RuntimeError("the program was started with a pipe")
        try:
            yield program.stdout
        finally:
            program.kill()
            self.kills += 1
            with trio.CancelScope(shield=True):
                await program.wait()  # a killed program ends


async def _lines_of(output: trio.abc.ReceiveStream) -> AsyncIterator[bytes]:
    rest = b""
    while data := await output.receive_some():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line


async def play(screen: Screen) -> list[Finding]:
    """Read on while the server is killed, and compare the log."""
    found: list[int] = []
    enough = (KILLS + 1) * EACH
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.log"
        server = _Server(path)

        def look() -> Iterator[Gauge]:
            yield Gauge("orders read", f"{len(found)}", min(1.0, len(found) / enough))
            yield Gauge("kills", f"{server.kills} of {KILLS}", min(1.0, server.kills / KILLS))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(screen.watch, look)
            serving = trio.Event()
            nursery.start_soon(server.run, serving)
            await serving.wait()
            url = f"tcp://127.0.0.1:{server.port}/orders"
            reconnect = penstock.Reconnect(first=0.05, most=0.5)
            async with penstock.subscribe(url, start=0, reconnect=reconnect) as stream:
                async for order in stream:
                    found.append(int(order))
                    if server.kills == KILLS and len(found) >= enough:
                        break
            nursery.cancel_scope.cancel()
        async with penstock.DiskLog(path, retention=penstock.Retention(max_count=10**6)) as log:
            kept = [int(order) for order in await penstock.collect(log.source(stop="latest"))]
    lost = len(set(server.acknowledged) - set(kept))
    return [
        Finding(
            "each order that was acknowledged is in the log, once",
            f"{server.kills} kills; {len(server.acknowledged)} acknowledged, lost {lost}; "
            f"{len(kept)} in the log, repeated {len(kept) - len(set(kept))}",
            shown=not lost and kept == list(range(len(kept))),
        ),
        Finding(
            "one loop reads through the kills: nothing is lost, nothing comes twice",
            f"{len(found)} orders in order, repeated {len(found) - len(set(found))}",
            shown=found == list(range(len(found))),
        ),
    ]
