"""The page of `penstock inspect` in Chromium: the slow hop is red, no name controls the page, a large
table, the keyboard, dark and light, a service that is lost, and no code but its own.
"""

import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from penstock.cli._fleet import Fleet
from penstock.cli._inspect import page_files, page_service
from penstock.runtime import serve
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER
from tests.browser._chromium import Page, run_chromium
from tests.cli._maps import map_of
from tests.cli._programs import penstock
from tests.cli.test_cause import five
from tests.cli.test_why import hops, reader

if importlib.util.find_spec("penstock_http") is None:
    pytest.skip("the plugin penstock-http is not installed", allow_module_level=True)

SECRET = "secret"
DRAWN = "document.body.dataset.drawn !== undefined"
HOSTILE = (
    "<img src=x onerror='window.owned=1'>\x1b[2J\u202e</script><script>window.owned=1</script>"
)
# An edge or a node counts as red if the browser paints it in the colour of the cause.
RED = """
    const probe = document.createElement("span");
    probe.style.color = "var(--cause)";
    document.body.append(probe);
    const red = getComputedStyle(probe).color;
    probe.remove();
    const painted = (selector) => [...document.querySelectorAll(selector)]
      .filter((each) => getComputedStyle(each).stroke === red)
      .map((each) => each.closest("[aria-label]").getAttribute("aria-label"));
    return [painted(".node rect"), painted(".edge .line")];
"""


@asynccontextmanager
async def shown(fleet: Fleet, *, width: int = 1280) -> AsyncIterator[Page]:
    """Open the page of a fleet."""
    options = TransportOptions(extra={"http.files": page_files()})
    fleet.draw(1.0)
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve(page_service(fleet, SECRET), "http://127.0.0.1:0", options=options) as server,
            run_chromium() as browser,
        ):
            page = await browser.open("about:blank")
            await page.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=800,
                deviceScaleFactor=1,
                mobile=False,
            )
            await page.call(
                "Page.addScriptToEvaluateOnNewDocument",
                source="""window.refused = []; addEventListener("securitypolicyviolation",
                    (event) => refused.push(event.violatedDirective));""",
            )
            await page.go(f"{server.addresses[0]}/#{SECRET}")
            await page.wait_for(DRAWN)
            yield page


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **text)


async def test_a_planted_slow_hop_among_five_processes_is_red() -> None:
    """Read by the command over TCP, and shown by it over HTTP, with the sentence of `why`. The node
    and the stream that it does not feed are painted in the colour of the cause, and nothing else.
    """
    with hops("abcde", slow="d") as addresses, reader(f"{addresses['a']}/a"):
        # One service is named: the others are found, because each reads from the next.
        with penstock("inspect", addresses["a"]) as program:
            assert program.stdout is not None
            address = (await trio.to_thread.run_sync(program.stdout.readline)).decode().strip()
            with trio.fail_after(HANGS_AFTER):
                async with run_chromium() as browser:
                    page = await browser.open(address)
                    await page.wait_for(
                        "document.getElementById('sentence').textContent"
                        ".endsWith('in planted_slow_hop.')"
                    )
                    nodes, edges = await page.run(RED)
                    sentence = await page.run(
                        "return document.getElementById('sentence').textContent"
                    )
                    # It shows itself, too: the page's own stream is one of its edges.
                    await page.run("document.getElementById('own').click()")
                    await page.wait_for(
                        "document.querySelector('.edge[aria-label^=\"penstock/fleet\"]')"
                    )
    assert sentence.startswith(("a waits ", "b waits ", "c waits ", "d waits "))
    assert len(nodes) == len(edges) == 1
    assert nodes[0].startswith(f"d, {addresses['d']}, a service")
    assert edges[0].startswith("d, from d to c")


async def test_no_name_controls_the_page() -> None:
    """Names, peers and places of a service are text on it, in the graph, the table, the details and
    the sentence; nothing of them runs, and the policy had nothing to refuse.
    """
    fields = dict.fromkeys(("name", "peer", "principal", "state", "protocol", "place"), HOSTILE)
    found = map_of(
        "tcp://a:1", {"key": "k", **fields, "waits": "publisher", "parts": [[HOSTILE, 1]]}
    )
    async with shown(Fleet([found])) as page:
        await page.run("""
            document.querySelector(".node").dispatchEvent(new MouseEvent("click"));
            document.getElementById("tab-table").click();""")
        await page.wait_for("document.querySelector('tbody tr[aria-rowindex]')")
        await page.run("document.querySelector('tbody tr[aria-rowindex]').click()")
        await page.wait_for("document.querySelector('.detail .why')")
        seen = await page.run("""return {
            owned: window.owned ?? null, refused, images: document.querySelectorAll("img").length,
            scripts: document.querySelectorAll("script").length,
            text: document.body.innerText,
        };""")
    assert (seen["owned"], seen["refused"], seen["images"], seen["scripts"]) == (None, [], 0, 1)
    assert "<img src=x onerror=" in seen["text"]
    assert "\\x1b[2J\\u202e" in seen["text"]
    assert not {"\x1b", "\u202e"} & set(seen["text"])


async def test_the_policy_forbids_code_within_the_page() -> None:
    """Also if some text became HTML: a script, a handler, a style and an image of another server."""
    async with shown(Fleet(five("c"))) as page:
        seen = await page.run("""
            const holder = document.createElement("div");
            holder.innerHTML = `<img src="https://evil.example/x" onerror="window.owned=1"><p style="color:red"></p>`;
            document.body.append(holder);
            const script = document.createElement("script");
            script.textContent = "window.owned = 1";
            document.body.append(script);
            await fetch("https://evil.example/").catch(() => {});
            await new Promise((go) => setTimeout(go, 100));
            return [window.owned ?? null, [...new Set(refused)].sort()];""")
    assert seen[0] is None
    assert {"connect-src", "img-src", "script-src-elem", "style-src-attr"} <= set(seen[1])


def many(count: int) -> Fleet:
    streams: list[dict[str, Any]] = [
        {
            "key": f"{number}",
            "name": f"orders/{number}",
            "peer": f"10.0.{number % 250}.1:{number % 6000 + 1000}",
            "demand": number,
            "since": float(number % 10),
        }
        for number in range(count)
    ]
    return Fleet([map_of("tcp://a:1", *streams)])


async def test_a_table_of_ten_thousand_streams_draws_what_is_seen() -> None:
    """Some dozens of rows exist, and the scroll bar, the keyboard, the filter and the order reach
    the others.
    """
    async with shown(many(10_000)) as page:
        await page.run("document.getElementById('tab-table').click()")
        await page.wait_for("document.getElementById('count').textContent.startsWith('10,000 ')")
        await page.wait_for("document.querySelectorAll('tbody tr[aria-rowindex]').length > 0")
        assert await page.run("return document.querySelectorAll('tbody tr').length") < 80
        assert await page.run("return document.querySelectorAll('.graph .node').length") < 60
        first = "document.querySelector('tbody tr[aria-rowindex=\"2\"] td')?.textContent"
        await page.run("""
            const button = [...document.querySelectorAll("th button")].find((each) => each.textContent === "Demand");
            button.click();""")
        await page.wait_for(f"{first} === '→ orders/9999'")
        assert (
            await page.run(
                "return document.querySelector('th[aria-sort]').textContent + "
                "document.querySelector('th[aria-sort]').ariaSort"
            )
            == "Demanddescending"
        )
        # Three keys before the next picture, as those of a key that is held down.
        await page.run("""
            const table = document.querySelector("table");
            table.focus();
            for (let each = 0; each < 3; each += 1)
                table.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));""")
        chosen = "document.querySelector('tr[aria-selected] td')?.textContent"
        await page.wait_for(f"{chosen} === '→ orders/9997'")
        await press(page, "ArrowDown", "End")
        await page.wait_for(f"{chosen} === '→ orders/0'")
        assert await page.run("return document.getElementById('table').scrollTop") > 200_000
        await press(page, "Enter")
        await page.wait_for("document.activeElement.id === 'detail-title'")
        await press(page, "/")
        await page.wait_for("document.activeElement.id === 'filter'")
        await page.run("""
            const filter = document.getElementById("filter");
            filter.value = "ORDERS/77"; filter.dispatchEvent(new Event("input"));""")
        await page.wait_for("document.getElementById('count').textContent.startsWith('111 of ')")


async def test_the_graph_is_used_with_the_keyboard_and_says_what_it_shows() -> None:
    """One element is reached by the tab key, arrows lead to the others, and each has a label. The
    focus stays where it is when a new picture comes.
    """
    fleet = Fleet(five("c"))
    async with shown(fleet) as page:
        assert (
            await page.run("return document.querySelectorAll('svg [tabindex=\"0\"]').length") == 1
        )
        await page.run("document.querySelector('svg [tabindex=\"0\"]').focus()")
        await press(page, "ArrowRight", "ArrowRight", "Enter")
        await page.wait_for("document.querySelector('.detail .name')?.textContent === 'of-c'")
        fleet.draw(2.0)
        await page.wait_for("document.activeElement.getAttribute('aria-pressed') === 'true'")
        label = await page.run("return document.activeElement.getAttribute('aria-label')")
        assert label == "of-c, tcp://c:1, a service, 2 streams, holds up the others"
        await press(page, "End")
        edge = await page.run("return document.activeElement.getAttribute('aria-label')")
        assert "elements a second" in edge
        assert "waits for its" in edge
        unnamed = await page.run("""
            return [...document.querySelectorAll("button, input, [role=button], [role=img], [role=grid]")]
                .filter((each) => !(each.getAttribute("aria-label") || each.textContent || each.labels?.length))
                .map((each) => each.outerHTML);""")
        assert unnamed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_dark_and_light_have_enough_contrast(scheme: str) -> None:
    """WCAG AA: 4.5 for text and 3 for lines, in both, on the card."""
    async with shown(Fleet(five("c"))) as page:
        await page.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        found = await page.run("""
            const read = (name) => {
              const canvas = new OffscreenCanvas(1, 1).getContext("2d");
              canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
              canvas.fillRect(0, 0, 1, 1);
              return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
            };
            const light = (rgb) => rgb.map((each) => each / 255)
              .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
              .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
            const contrast = (one, other) => {
              const [high, low] = [light(read(one)), light(read(other))].sort((a, b) => b - a);
              return (high + 0.05) / (low + 0.05);
            };
            const texts = ["--text", "--quiet", "--flows", "--demand", "--publisher", "--network", "--limit", "--cause"];
            return Object.fromEntries(texts.map((name) => [name, contrast(name, "--card")]));""")
    assert {name for name, contrast in found.items() if contrast < 4.5} == set()


async def test_a_narrow_window_has_no_sideways_scroll_and_motion_can_be_off() -> None:
    """The graph runs downward there, and nothing moves if the person wants that."""
    async with shown(Fleet(five("c")), width=400) as page:
        wide = await page.run("return document.documentElement.scrollWidth")
        assert wide <= 400
        tall = "const box = document.querySelector('svg').viewBox.baseVal; return box.height > box.width"
        assert await page.run(tall)
        await page.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
        )
        await page.run("document.querySelector('.edge').dataset.state = 'flows'")
        animation = "return getComputedStyle(document.querySelector('.edge .line')).animationName"
        assert await page.run(animation) == "none"


async def test_a_lost_service_stays_on_the_page_and_says_so() -> None:
    """With the reason in its details."""
    fleet = Fleet(five("c"))
    async with shown(fleet) as page:
        fleet.maps[1].clear()
        fleet.lost["tcp://b:1"] = "the connection was refused"
        fleet.draw(2.0)
        await page.wait_for("document.querySelector('.node[data-lost=\"true\"]')")
        await page.run(
            "document.querySelector('.node[data-lost=\"true\"]').dispatchEvent(new MouseEvent('click'))"
        )
        await page.wait_for(
            "document.querySelector('.detail dl')?.textContent.includes('the connection was refused')"
        )


@pytest.mark.parametrize("secret", ["", "wrong"])
async def test_without_the_secret_the_page_says_which_address_to_open(secret: str) -> None:
    """And shows nothing."""
    async with shown(Fleet(five("c"))) as page:
        await page.run(f"location.hash = {json.dumps(secret)}; location.reload();")
        await page.wait_for("document.getElementById('state')?.dataset.state === 'lost'")
        text = await page.run("return document.getElementById('state').textContent")
        assert "open the" in text
        assert await page.run("return document.querySelectorAll('.node').length") == 0
