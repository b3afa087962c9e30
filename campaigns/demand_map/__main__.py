"""What the map of demand costs, and how soon it is seen: ``python -m campaigns demand_map``.

Speeds are compared in pairs: a round with and one without take turns. The exit status is 1 if a row
is above its bar.
"""

import compileall
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

import trio

import penstock
from penstock.api import Limits
from penstock.cli._demand_map import DemandMap
from penstock.cli._fleet import Fleet
from penstock.cli._inspect import page_files, page_service
from penstock.cli._top_view import View, screen_of
from penstock.runtime import DEMAND_MAP, Service, connect, serve, subscribe
from penstock.spi import TransportOptions
from tests.browser._chromium import Page, run_chromium
from tests.cli._maps import map_of
from tests.cli._programs import line_of
from tests.cli._programs import penstock as running
from tests.cli._pseudo_terminal import penstock_on, terminal

ROUNDS: Final = 11
ELEMENTS: Final = 500_000
MANY: Final = 10_000
PEERS: Final = 10
SECRET: Final = "secret"  # of a page that lives for a second

BARS: Final = {
    "unseen": 2.0,
    "seen": 4.0,
    "look at 10,000": 60.0,
    "screen of 10,000": 300.0,
    "top above help": 300.0,
    "page of 1,000": 1000.0,
    "page of 10,000": 3000.0,
}
"""Of each row; the first two are per cent, the third seconds, the others milliseconds. `seen` is two
per cent, and what one core without rest leaves uncertain.
"""


def endless() -> Service:
    service = Service()

    @service.publisher("endless")
    async def numbers() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 64

    @service.publisher("ticks/{number}")
    async def ticks(number: int) -> AsyncIterator[bytes]:
        while True:
            await trio.sleep(1 + number % 7)
            yield b"x"

    return service


async def cost_of_a_read(*, inspect: bool, is_seen: bool) -> float:
    """Return the processor time to read `ELEMENTS`."""
    async with serve(endless(), "memory://map", inspect=inspect), trio.open_nursery() as nursery:
        if is_seen:
            await nursery.start(look)
        async with subscribe("memory://map/endless") as stream:
            await anext(stream)
            began, count = process_time(), 0
            async for _ in stream:
                count += 1
                if count == ELEMENTS:
                    break
            spent = process_time() - began
        nursery.cancel_scope.cancel()
    return spent


async def look(*, task_status: trio.TaskStatus[None]) -> None:
    """Be an inspector."""
    async with subscribe(f"memory://map/{DEMAND_MAP}", serializer="json") as stream:
        await anext(stream)
        task_status.started()
        async for _ in stream:
            pass


async def cost_in_pairs(*, is_seen: bool) -> float:
    """Return by how many per cent a read costs more with the map than without."""
    ratios = []
    for number in range(ROUNDS):
        order = (True, False) if number % 2 else (False, True)
        spent = {
            inspect: await cost_of_a_read(inspect=inspect, is_seen=is_seen and inspect)
            for inspect in order
        }
        ratios.append(spent[True] / spent[False])
    return (median(ratios) - 1) * 100


async def seconds_between_looks() -> float:
    """Return how long the server waits between two looks at `MANY` streams that move."""
    limits = Limits(max_subscriptions=2 * MANY, max_connections_per_address=4 * PEERS)
    async with (
        serve(endless(), "memory://map", inspect=True, limits=limits),
        trio.open_nursery() as nursery,
    ):
        for number in range(PEERS):
            await nursery.start(read_many, number, limits)
        pauses = []
        async with subscribe(f"memory://map/{DEMAND_MAP}", serializer="json") as stream:
            async for message in stream:
                if message["kind"] == "looked":
                    pauses.append(message["pause"])
                    if len(pauses) == 2:
                        break
        nursery.cancel_scope.cancel()
    return float(pauses[-1])


async def read_many(first: int, limits: Limits, *, task_status: trio.TaskStatus[None]) -> None:
    """Read a part of the streams over one connection."""
    opened = 0

    async def read(peer: Any, number: int) -> None:
        nonlocal opened
        async with peer.subscribe(f"ticks/{number}", demand=4) as stream:
            opened += 1
            if opened == MANY // PEERS:
                task_status.started()
            async for _ in stream:
                pass

    async with connect("memory://map", limits=limits) as peer, trio.open_nursery() as nursery:
        for number in range(MANY // PEERS):
            nursery.start_soon(read, peer, first * MANY + number)


def many(count: int) -> DemandMap:
    streams = [
        {"key": f"{number}", "name": f"orders/{number}", "peer": f"10.0.{number % 99}.1:{number}"}
        for number in range(count)
    ]
    return map_of("tcp://a:1", *streams)


def screen_of_many() -> float:
    """Return the milliseconds that `penstock top` needs for a screen of `MANY` streams."""
    found, view = many(MANY), View()
    spent = []
    for _ in range(ROUNDS):
        began = process_time()
        screen_of([found], view, width=80, height=24)
        spent.append(process_time() - began)
    return median(spent) * 1000


def start_above_help() -> float:
    """Return how many milliseconds later the first screen of `top` comes than the help."""
    # As an installation has it. Where Python may write no bytecode, each start compiles the sources
    # anew, and that was more than half of what was measured.
    compileall.compile_dir(Path(penstock.__file__).parent, quiet=2)
    found = []
    serving = ("serve", "tests.cli._service:service", "tcp://127.0.0.1:0", "--inspect")
    with running(*serving) as server:
        address = line_of(server).split()[-1]
        for _ in range(ROUNDS):
            began = perf_counter()
            subprocess.run(
                [sys.executable, "-m", "penstock", "--help"], capture_output=True, check=True
            )
            after_help = perf_counter()
            with terminal(80) as screen, penstock_on(screen, "top", address) as program:
                screen.read_until(b"streams, by still")
                seen = perf_counter()
                screen.type(b"q")
                screen.read_until_end_of(program)
            found.append((seen - after_help) - (after_help - began))
    return median(found) * 1000


async def first_picture(count: int) -> float:
    """Return the milliseconds from the call of the page to its first picture."""
    fleet = Fleet([many(count)])
    fleet.draw(1.0)
    options = TransportOptions(extra={"http.files": page_files()})
    async with (
        serve(page_service(fleet, SECRET), "http://127.0.0.1:0", options=options) as server,
        run_chromium() as browser,
    ):
        page = await browser.open("about:blank")
        await page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="""new MutationObserver(() => {
                if (document.body?.dataset.drawn && !window.seen) requestAnimationFrame(() => { window.seen = performance.now(); });
            }).observe(document, { attributes: true, childList: true, subtree: true });""",
        )
        found = [await seen_after(page, f"{server.addresses[0]}/#{SECRET}") for _ in range(ROUNDS)]
    return median(found)


async def seen_after(page: Page, address: str) -> float:
    await page.call("Page.navigate", url="about:blank")
    await page.call("Page.navigate", url=address)
    await page.wait_for("window.seen")
    return float(await page.run("return window.seen"))


ROWS: Final[dict[str, tuple[str, Callable[[], float]]]] = {
    "unseen": ("% of a read at full speed, while nobody looks", lambda: trio.run(pairs, False)),
    "seen": ("% of a read at full speed, with one inspector", lambda: trio.run(pairs, True)),
    "look at 10,000": ("s between two looks, all moving", lambda: trio.run(seconds_between_looks)),
    "screen of 10,000": ("ms of a processor for a screen of `top`", screen_of_many),
    "top above help": ("ms from `--help` to the first screen", start_above_help),
    "page of 1,000": ("ms to the first picture", lambda: trio.run(first_picture, 1_000)),
    "page of 10,000": ("ms to the first picture", lambda: trio.run(first_picture, 10_000)),
}
"""What each row says, and how it is measured."""


async def pairs(is_seen: bool) -> float:  # trio.run passes by place
    return await cost_in_pairs(is_seen=is_seen)


def main(names: list[str]) -> int:
    """Measure the rows that are named, or all."""
    bad = []
    for name, (unit, measure) in ROWS.items():
        if names and name not in names:
            continue
        figure = measure()
        if figure > BARS[name]:
            bad.append(name)
        print(f"{name}: {figure:.1f} {unit} (bar {BARS[name]:g})", flush=True)
    print(f"{len(bad)} rows above their bars{': ' if bad else ''}{', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
