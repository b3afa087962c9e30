"""Take the pictures of `penstock top` and `penstock inspect` on the how-to pages:
``python -m docs._ext.pictures``, with Chromium and the packages of the groups ``browser`` and
``tests``.

Five services read from one another, each in a process of its own, and one of them is slow. The
addresses and numbers of a picture are those of the run that made it.
"""

import base64
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import trio
from rich.console import Console

from penstock.cli._demand_map import read_all
from penstock.cli._main import parse
from penstock.cli._top_screen import drawn
from penstock.cli._top_view import View, screen_of
from tests.browser._chromium import Page, run_chromium
from tests.cli._programs import penstock
from tests.cli.test_why import hops, reader

HERE = Path(__file__).resolve().parents[1]

NAMES = ("shop", "orders", "billing", "rates", "prices")
SLOW = "rates"
COLUMNS, LINES = 96, 12
SECONDS = 75
"""Before the pictures: the timeline shows something then."""

SHOTS = {
    "inspect-light.png": ("light", 1240, 700, ""),
    "inspect-dark.png": ("dark", 1240, 620, "document.getElementById('tab-table').click()"),
    "inspect-narrow.png": ("light", 420, 900, ""),
}
"""The scheme of colours, the size, and what is done first."""


@contextmanager
def flowing(url: str) -> Iterator[None]:
    """Read a publisher as fast as it goes."""
    command = [sys.executable, "-m", "penstock", "cat", url, "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as program:  # noqa: S603  # our own
        try:
            yield
        finally:
            program.kill()


def line_of_output(program: "subprocess.Popen[bytes]") -> str:
    """Return the first line that a program prints."""
    return b"".join(islice(program.stdout or (), 1)).decode().strip()


async def take_top(urls: list[str], file: Path) -> None:
    """Draw the screen of `penstock top` as SVG."""
    options = parse(["top", *urls])
    maps = await read_all(urls, options, 2)
    view = View(filter_text="127.0.0.1")
    lines, cursor = screen_of(maps, view, width=COLUMNS, height=LINES)
    console = Console(record=True, width=COLUMNS, height=LINES, file=io.StringIO())
    console.print(drawn(lines, cursor))
    # Without the style sheet of another server, which rich adds for its font.
    text = console.export_svg(title="penstock top", font_aspect_ratio=0.61)
    kept = [part for part in text.split("@font-face") if "cdnjs" not in part.partition("}")[0]]
    rest = [part.partition("}")[2] for part in text.split("@font-face")[1:]]
    drawing = kept[0] + rest[-1] if rest else text
    await trio.Path(file).write_text(drawing, encoding="utf-8")


async def take_page(page: Page, address: str, shot: tuple[str, int, int, str], file: Path) -> None:
    """Take a picture of the page in one scheme of colours and one size."""
    scheme, width, height, first = shot
    size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1}
    await page.call("Emulation.setDeviceMetricsOverride", mobile=False, **size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    await page.call("Emulation.setEmulatedMedia", features=features)
    await page.call("Page.navigate", url="about:blank")
    await page.go(address)
    await page.wait_for("document.querySelector('.node[data-cause=\"true\"]')")
    await page.run(
        "document.querySelector('.edge[data-state=\"cause\"]').dispatchEvent("
        "new MouseEvent('click'))"
    )
    await page.run(first)
    await trio.sleep(2)
    taken = await page.call("Page.captureScreenshot", format="png")
    await trio.Path(file).write_bytes(base64.b64decode(taken["data"]))


async def main() -> None:
    """Take all of them."""
    with ExitStack() as stack:
        addresses = stack.enter_context(hops(NAMES, slow=SLOW))
        stack.enter_context(reader(f"{addresses['shop']}/shop"))
        urls = list(addresses.values())
        program = stack.enter_context(penstock("inspect", *urls))
        address = await trio.to_thread.run_sync(line_of_output, program)
        await trio.sleep(SECONDS)
        stack.enter_context(flowing(f"{addresses['prices']}/prices"))
        await trio.sleep(5)
        await take_top(urls[:1] + urls[3:], HERE / "top.svg")
        async with run_chromium() as browser:
            page = await browser.open("about:blank")
            for name, shot in SHOTS.items():
                await take_page(page, address, shot, HERE / name)


if __name__ == "__main__":
    trio.run(main)
