"""The page's side of the table of a notebook, in Chromium: the rows that are seen decide which ones
are asked for.
"""

from pathlib import Path
from typing import Any

import trio

from tests._real_time import HANGS_AFTER
from tests.browser._chromium import Page, run_chromium
from tests.browser._pages import serve_pages

HERE = Path(__file__).parents[2] / "src/penstock/notebook"
ROWS = 5

# A model as Jupyter and other hosts of anywidget give it; it keeps what the table asks for.
PAGE = """<!doctype html><meta charset="utf-8"><title>notebook</title>
<style>STYLE</style>
<div id="cell"></div><div style="height: 5000px"></div>
<script type="module">
  import table from "/table.js";
  const listeners = new Set();
  const model = {
    get: (name) => ({ rows: ROWS, kept: 20 })[name],
    send: ({ wants }) => asked.push(wants),
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
  };
  globalThis.asked = [];
  globalThis.hear = (message) => listeners.forEach((listener) => listener(message));
  globalThis.frame = () => document.querySelector(".penstock-table");
  globalThis.close = await table.render({ model, el: document.getElementById("cell") });
</script>"""

NEXT_FRAMES = (
    "await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => "
    "setTimeout(go, 50))));"
)


async def _page(browser: Any, origin: str) -> Page:
    page: Page = await browser.open(f"{origin}/notebook.html")
    await page.wait_for("globalThis.close")
    return page


def _files() -> dict[str, str]:
    style = (HERE / "table.css").read_text(encoding="utf-8")
    return {
        "/table.js": (HERE / "table.js").read_text(encoding="utf-8"),
        "/notebook.html": PAGE.replace("STYLE", style).replace("ROWS", str(ROWS)),
    }


async def test_a_table_asks_for_the_rows_that_are_seen() -> None:
    """It asks once it is on the screen, and again when rows were drawn. Scrolled away, or with its
    reader at older rows, it asks for none.
    """
    with trio.fail_after(HANGS_AFTER):
        async with serve_pages(_files()) as origin, run_chromium() as browser:
            page = await _page(browser, origin)
            await page.wait_for("asked.length === 1")
            seen = await page.run(f"""
                const rows = (from, to) => ({{ rows: Array.from({{ length: to - from }},
                    (_, index) => ({{ number: String(from + index), text: "<b>" }})) }});
                hear(rows(0, 5)); {NEXT_FRAMES}
                const drawn = asked.length;
                hear(rows(5, 30)); {NEXT_FRAMES}
                const follows = frame().scrollTop + frame().clientHeight >= frame().scrollHeight - 4;
                const before = asked.length;
                frame().scrollTop = 0; {NEXT_FRAMES}
                hear(rows(30, 32)); {NEXT_FRAMES}
                const scrolledBack = asked.length;
                frame().scrollTop = frame().scrollHeight; {NEXT_FRAMES}
                const atTheEnd = asked.length;
                window.scrollTo(0, 4000); {NEXT_FRAMES}
                hear(rows(32, 34)); {NEXT_FRAMES}
                const away = asked.length;
                window.scrollTo(0, 0); {NEXT_FRAMES}
                const back = asked.length;
                hear({{ end: "complete" }}); {NEXT_FRAMES}
                const body = [...frame().querySelectorAll("tbody tr")];
                return {{
                    wanted: [...new Set(asked)], drawn, follows, before, scrolledBack, atTheEnd, away,
                    back, ended: asked.length, kept: body.length, last: body.at(-1).textContent,
                    head: frame().querySelector("thead").textContent, bold: frame().querySelector("b"),
                    state: document.querySelector(".penstock-state").textContent,
                }};""")
    assert seen == {
        "wanted": [ROWS],
        "drawn": 2,
        "follows": True,
        "before": 3,
        "scrolledBack": 3,
        "atTheEnd": 4,
        "away": 4,
        "back": 5,
        "ended": 5,
        "kept": 20,
        "last": "33<b>",
        "head": "numbertext",
        "bold": None,
        "state": "34 elements, complete",
    }


async def test_a_table_of_a_hidden_tab_asks_for_nothing() -> None:
    """It asks when the tab is shown again. A table whose cell is gone listens to nothing."""
    with trio.fail_after(HANGS_AFTER):
        async with serve_pages(_files()) as origin, run_chromium() as browser:
            page = await _page(browser, origin)
            await page.wait_for("asked.length === 1")
            seen = await page.run(f"""
                let hidden = true;
                Object.defineProperty(document, "hidden", {{ get: () => hidden }});
                hear({{ rows: [{{ number: "0" }}] }}); {NEXT_FRAMES}
                const away = asked.length;
                hidden = false; document.dispatchEvent(new Event("visibilitychange"));
                const back = asked.length;
                close();
                hear({{ rows: [{{ number: "1" }}] }});
                document.dispatchEvent(new Event("visibilitychange")); {NEXT_FRAMES}
                return [away, back, asked.length, frame().querySelectorAll("tbody tr").length];""")
    assert seen == [1, 2, 2, 1]
