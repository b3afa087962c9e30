"""Scene: streams in a site on asyncio, read with a plain HTTP client."""

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import trio

from demo_parts.one_port import PlainClient
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A site on asyncio"
STORY = """\
FastAPI under uvicorn, in a program of its own, mounts a service whose generator awaits asyncio. A page reads it as server-sent
events: it requests 20 tokens, reads 10 and stops. Then it goes away."""
REQUESTED, READ = 20, 10
PROGRAM = Path(__file__).with_name("site.py")
PATIENCE = 60.0
NEEDED = ("fastapi", "uvicorn", "penstock_http")


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    lacking = [name for name in NEEDED if find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


class _Page:
    """What a page in a browser does, with requests of the standard library. It blocks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.events: list[str] = []

    def seen(self) -> dict[str, int]:
        """Return what the site tells: tokens made, generators open."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request("GET", "/seen")
        found: dict[str, int] = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def read(self) -> tuple[int, int]:
        """Read some events, stop, and go away. Return how many tokens were made when it stopped,
        and how many generators are open at the end.
        """
        client = PlainClient(self._port)
        stream = client.subscribe("tokens", REQUESTED, below="/streams")
        events = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        events.request("GET", f"{stream}/events?text=1")
        answer = events.getresponse()
        while len(self.events) < READ:
            line = answer.readline().decode()
            if line.startswith("data: "):
                self.events.append(line.removeprefix("data: ").strip())
        made = _settled(lambda: self.seen()["made"])
        events.close()
        client.put(f"{stream}/cancel")  # as http.js does with a beacon
        return made, _settled(lambda: self.seen()["open"])


def _settled(count: Callable[[], int]) -> int:
    """Return the count when it has not changed for half a second."""
    before = count()
    while True:
        sleep(0.5)
        if (now := count()) == before:
            return now
        before = now


async def play(screen: Screen) -> list[Finding]:
    """Start the site, be a page, and stop the site."""
    program = await trio.lowlevel.open_process(
        [sys.executable, str(PROGRAM)], stdout=subprocess.PIPE
    )
    if program.stdout is None:
        raise RuntimeError("the program was started with a pipe")
    try:
        page = _Page(int(await program.stdout.receive_some()))

        def look() -> Iterator[Gauge]:
            yield Gauge("events", f"{len(page.events)} of {READ}", len(page.events) / READ)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(screen.watch, look)
            made, left = await trio.to_thread.run_sync(page.read)
            nursery.cancel_scope.cancel()
    finally:
        program.kill()
        with trio.CancelScope(shield=True):
            await program.wait()  # a killed program ends
    expected = [f"token-{number}" for number in range(1, READ + 1)]
    return [
        Finding(
            "a page gets events, and the generator on asyncio makes no more than was requested",
            f"{len(page.events)} events in order; {made} tokens made of {REQUESTED} requested",
            shown=page.events == expected and made <= REQUESTED,
        ),
        Finding(
            "the generator ends with the page",
            f"{left} generators are open afterwards",
            shown=left == 0,
        ),
    ]
