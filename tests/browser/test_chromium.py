"""The JavaScript client in Chromium, on a page of another origin than the server's."""

import json
from pathlib import Path

import pytest
import trio

from examples.browser import service as example_service
from tests._real_time import HANGS_AFTER
from tests.browser._chromium import run_chromium
from tests.browser._pages import serve_pages
from tests.browser._programs import CLIENT
from tests.browser._servers import SERVERS, serve_websocket
from tests.browser._service import service

EXAMPLE = Path(__file__).parents[2] / "examples/browser/index.html"
IMPORT = """
    const { connect: connectTo, PublisherFailed } = await import("/penstock.js");
    const connect = (url, options) => connectTo(url, { limits: { handshake: 300_000 }, ...options });
"""
"""Imports the client, with more time for the handshake than the default:
a busy machine may take longer.
"""


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_page_reads_streams_with_demand(kind: str) -> None:
    """Objects, texts and bytes, a cancelled stream, a request with a payload and a refusal,
    on one connection.
    """
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_pages() as origin,
            serve_websocket(kind, service, origin=origin) as url,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/")
            shown = await page.run(f"""{IMPORT}
                const connection = await connect({json.dumps(url)});
                const numbers = [], texts = [];
                for await (const element of connection.stream("numbers/1000", {{ type: "json" }})) numbers.push(element.number);
                for await (const text of connection.stream("texts", {{ type: "text" }})) texts.push(text);
                let bytes = 0;
                for await (const block of connection.stream("blocks/1000?size=2000", {{ type: "bytes" }})) bytes += block.length;
                for await (const block of connection.stream("blocks/100000")) break;
                const answer = await connection.ask("echo", "payload", {{ type: "text" }});
                const refused = await connection.ask("unknown").catch((error) => error instanceof PublisherFailed && error.reason);
                await connection.close();
                return [numbers.length, numbers.at(-1), texts, bytes, answer, refused, connection.state];""")
    assert shown == [
        1000,
        999,
        ["grün", "€", ""],
        2_000_000,
        "payload",
        "no such publisher",
        "closed",
    ]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_worker_reads_a_stream(kind: str) -> None:
    """A module worker uses the same file."""
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_pages() as origin,
            serve_websocket(kind, service, origin=origin) as url,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/")
            numbers = await page.run(f"""
                const worker = new Worker("/worker.js", {{ type: "module" }});
                const answer = new Promise((resolve, reject) => {{ worker.onmessage = resolve; worker.onerror = reject; }});
                worker.postMessage({json.dumps(url)});
                return (await answer).data;""")
    assert numbers == list(range(100))


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_page_that_comes_back_from_the_cache_keeps_its_demand(kind: str) -> None:
    """The page leaves with demand that is not used up, comes back with its variables, and gets
    exactly the elements it had requested.
    """
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_pages() as origin,
            serve_websocket(kind, service, origin=origin) as url,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/")
            await page.run(f"""{IMPORT}
                globalThis.states = [];
                globalThis.elements = [];
                globalThis.shown = [];
                addEventListener("pageshow", (event) => shown.push(event.persisted));
                const connection = await connect({json.dumps(url)}, {{ reconnect: true, onState: (state) => states.push(state) }});
                connection.publisher("numbers/1000", {{ type: "json" }}).subscribe({{
                  onSubscribe(subscription) {{ globalThis.subscription = subscription; subscription.request(3); }},
                  onNext(element) {{ elements.push(element.number); }},
                  onError(error) {{ elements.push(String(error)); }},
                  onComplete() {{ elements.push("complete"); }},
                }});""")
            await page.wait_for("elements.length === 3")
            # Requested in the pagehide of the page itself, which runs before that of the client:
            # this demand cannot have been served.
            await page.run(
                'addEventListener("pagehide", () => subscription.request(4), { capture: true });'
            )
            await page.call("Page.navigate", url=f"{origin}/other.html")
            await page.wait_for("location.pathname === '/other.html'")
            await page.run("history.back()")
            await page.wait_for("globalThis.elements?.length >= 7")
            shown = await page.run("return [shown, elements, states]")
    assert shown[0] == [True]
    assert shown[1] == [0, 1, 2, 0, 1, 2, 3]
    assert shown[2] == ["connecting", "open", "waiting", "connecting", "open"]


async def test_a_page_of_an_origin_that_is_not_allowed_is_told_what_to_check() -> None:
    """The browser hides the answer of the server, so the error names the causes,
    the origin among them.
    """
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_pages() as origin,
            serve_websocket("plugin", service) as url,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/")
            shown = await page.run(f"""{IMPORT}
                return connect({json.dumps(url)}).then(() => "connected", (error) => `${{error.name}}: ${{error.message}}`);""")
    assert shown.startswith("ConnectionLost:")
    assert "ws.origins" in shown


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_example_page_shows_prices_and_stops(kind: str) -> None:
    """examples/browser: the page reads its service, asks it, and stops
    when its button is pressed.
    """
    client = (CLIENT / "penstock.js").read_text(encoding="utf-8")
    files = {
        "/examples/browser/": EXAMPLE.read_text(encoding="utf-8"),
        "/clients/javascript/penstock.js": client,
    }
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_pages(files) as origin,
            serve_websocket(kind, example_service.service, origin=origin) as url,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/examples/browser/?server={url}")
            await page.wait_for("document.querySelectorAll('#prices li').length >= 3")
            await page.run("document.getElementById('stop').click()")
            await page.wait_for("document.getElementById('state').textContent === 'stopped'")
            shown = await page.run("""return [...document.querySelectorAll('#prices li')].slice(0, 3).map((line) => line.textContent)
                .concat(document.getElementById('answer').textContent);""")
    assert shown == ["104.74", "104.72", "104.77", "95"]
