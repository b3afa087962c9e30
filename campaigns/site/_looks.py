"""A page in Chromium, wide and narrow, light and dark: what axe finds, and whether it scrolls
sideways.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from tests.browser._chromium import Page

WIDTHS = {"wide": 1280, "narrow": 360}
"""CSS pixels of the window; 360 is a small telephone."""

SCHEMES = ("light", "dark")

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
"""The tags of the rules of axe that are run."""

MOST_NODES = 3
"""Places that are shown for each rule of a page."""


class Fault(NamedTuple):
    """What is wrong with a page."""

    page: str
    look: str
    rule: str
    where: str

    def __str__(self) -> str:
        return f"{self.page}, {self.look}: {self.rule}: {self.where}"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """Print no line for each file."""


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a folder for a block. The value is its origin."""
    handler = partial(_Quiet, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


async def looks_of(
    page: Page, url: str, name: str, axe: str, widths: Sequence[str] = tuple(WIDTHS)
) -> list[Fault]:
    """Return the faults of one page, in each look."""
    faults: list[Fault] = []
    for width in widths:
        for scheme in SCHEMES:
            await _choose(page, WIDTHS[width], scheme)
            await page.go(url)
            look = f"{width}, {scheme}"
            found = await page.run(_SIDEWAYS)
            if found:
                faults.append(Fault(name, look, "scrolls sideways", found))
            await page.call("Runtime.evaluate", expression=axe)
            violations = await page.run(_RUN_AXE)
            faults += [Fault(name, look, each["id"], _places(each)) for each in violations]
    return faults


async def switch_version(page: Page, url: str, version: str) -> list[Fault]:
    """Choose another version in the list of a page. The same page of that version is shown."""
    await page.go(url)
    await page.wait_for("document.querySelector('.version-switcher select')")
    await page.run(
        f"""const list = document.querySelector(".version-switcher select");
        list.value = {json.dumps(version)};
        list.dispatchEvent(new Event("change"));"""
    )
    await page.wait_for(
        f"document.readyState === 'complete' && location.href !== {json.dumps(url)}"
    )
    expected = url.replace("/latest/", f"/{version}/")
    shown = await page.run("return location.href;")
    return [] if shown == expected else [Fault(url, "wide", "leads to another page", shown)]


async def _choose(page: Page, width: int, scheme: str) -> None:
    size: dict[str, Any] = {"width": width, "height": 800, "deviceScaleFactor": 1}
    await page.call("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        # A colour that is still changing has another contrast.
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    await page.call("Emulation.setEmulatedMedia", features=features)


_SIDEWAYS = """
    const root = document.documentElement;
    const width = root.clientWidth;
    if (root.scrollWidth <= width) return "";
    const wide = [...document.querySelectorAll("main *, article *")].filter(
      (each) => each.getBoundingClientRect().right > width + 1);
    return `${root.scrollWidth} of ${width} pixels: ${wide.slice(0, 3).map(
      (each) => each.outerHTML.slice(0, 120)).join(" … ")}`;"""

_RUN_AXE = f"""
    const found = await axe.run(document, {{ runOnly: {json.dumps(RULES)},
      resultTypes: ["violations"] }});
    return found.violations.map(({{ id, nodes }}) => (
      {{ id, nodes: nodes.map((each) => each.html.slice(0, 160) + " | " +
         (each.any[0]?.message ?? each.all[0]?.message ?? each.none[0]?.message ?? "")) }}));"""


def _places(violation: Mapping[str, Any]) -> str:
    nodes = violation["nodes"]
    more = f" … and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
    return f"{len(nodes)} places: " + " … ".join(nodes[:MOST_NODES]) + more
