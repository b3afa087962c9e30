"""The JavaScript client over HTTP, in Node.js and in Chromium,
on a page of another origin than the server's.
"""

import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

import penstock
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER
from tests.browser._chromium import Page, run_chromium
from tests.browser._cutting import serve_cutting_relay
from tests.browser._pages import serve_pages
from tests.browser._programs import CLIENT, run_node
from tests.browser._service import service

IMPORT = 'const { stream } = await import("/http.js");'
READ = """
    const read = async (name, options) => {
      const all = [];
      for await (const element of stream(url + name, options)) all.push(element);
      return all;
    };
"""


@asynccontextmanager
async def _serve(served: penstock.Service, **extra: str) -> AsyncIterator[str]:
    """Serve over HTTP, and yield the URL of the publishers."""
    if importlib.util.find_spec("penstock_http") is None:
        pytest.skip("the plugin penstock-http is not installed")
    options = TransportOptions(extra={f"http.{name}": value for name, value in extra.items()})
    async with penstock.serve(served, "http://127.0.0.1:0", options=options) as server:
        yield f"{server.addresses[0]}/p/"


@asynccontextmanager
async def _page(
    served: penstock.Service, *, known: bool = True, **extra: str
) -> AsyncIterator[tuple[Page, str]]:
    """Open a page of another origin, and yield it and that origin.
    The URL of the publishers is `url` in the page.
    """
    files = {"/http.js": (CLIENT / "http.js").read_text(encoding="utf-8")}
    with trio.fail_after(HANGS_AFTER):
        async with serve_pages(files) as origin:
            origins = {"origins": origin} if known else {}
            async with _serve(served, **origins, **extra) as url, run_chromium() as browser:
                page = await browser.open(f"{origin}/")
                await page.run(f"globalThis.url = {json.dumps(url)};")
                yield page, origin


@pytest.mark.parametrize("delivery", ["stream", "events"])
async def test_a_page_reads_streams_with_demand(delivery: str) -> None:
    """Objects, texts and bytes, a stream that is cancelled, a failure, and a name
    that leads nowhere.
    """
    async with _page(service) as (page, _):
        shown = await page.run(f"""{IMPORT}{READ}
            const delivery = {json.dumps(delivery)};
            const numbers = await read("numbers/1000", {{ type: "json", delivery }});
            const texts = await read("texts", {{ type: "text", delivery }});
            const blocks = await read("blocks/600?size=2000", {{ delivery }});
            for await (const block of stream(url + "blocks/100000", {{ delivery }})) break;
            const failed = await read("failing", {{ type: "json", delivery }}).catch((error) => `${{error.name}} ${{error.reason}}`);
            const refused = await read("unknown", {{ delivery }}).catch((error) => `${{error.name}} ${{error.reason}}`);
            const bytes = blocks.reduce((sum, block) => sum + block.length, 0);
            return [numbers.length, numbers.at(-1).number, texts, bytes, failed, refused];""")
    assert shown == [
        1000,
        999,
        ["grün", "€", ""],
        1_200_000,
        "PublisherFailed boom",
        "PublisherFailed no such publisher",
    ]


async def test_a_page_of_an_origin_that_is_not_known_is_told_what_to_check() -> None:
    """The browser hides the answer of the server, so the error names the option."""
    async with _page(service, known=False) as (page, _):
        shown = await page.run(f"""{IMPORT}
            const clock = {{ now: () => 0, setTimeout: (callback) => setTimeout(callback), clearTimeout: (timer) => clearTimeout(timer) }};
            return stream(url + "texts", {{ clock }}).next().catch((error) => `${{error.name}}: ${{error.message}}`);""")
    assert shown.startswith("ConnectionLost:")
    assert "http.origins" in shown


EVENT_SOURCE = """
    const created = await fetch(url + "numbers/9?request=10", { method: "PUT" });
    const events = new EventSource(new URL(created.headers.get("Location"), created.url) + "/events?text=1");
    const all = [];
    await new Promise((resolve) => {
      events.onmessage = (event) => all.push(JSON.parse(event.data).number);
      events.addEventListener("rsio-complete", () => { events.close(); resolve(); });
    });
    return all;
"""
CLIENT_OF_EVENTS = f"""{IMPORT}{READ}
    return (await read("numbers/9", {{ type: "json", delivery: "events" }})).map((element) => element.number);
"""


@pytest.mark.parametrize("script", [EVENT_SOURCE, CLIENT_OF_EVENTS], ids=["EventSource", "http.js"])
async def test_events_that_are_cut_go_on_where_they_were(script: str) -> None:
    """They are cut after an event, and inside one: the browser says in Last-Event-ID what it has,
    and gets the rest once.
    """
    markers = [b"id: 2\n", b"id: 5\ndata: "]
    async with _page(service) as (page, _):
        server = await page.run("return new URL(url).origin;")
        async with serve_cutting_relay(server, markers) as relay:
            await page.run(f"globalThis.url = {json.dumps(f'{relay.url}/p/')};")
            assert await page.run(script) == list(range(9))
    assert markers == []
    lines = b"\r\n".join(relay.requests).split(b"\r\n")
    told = [line.partition(b": ")[2] for line in lines if line.lower().startswith(b"last-event-id")]
    assert [int(value) for value in told] == [1, 4]


async def test_a_page_shows_its_cookie_or_its_token() -> None:
    """Cookies go along with credentials: "include", for fetch and for EventSource;
    a token goes with fetch.
    """

    def authenticate(scheme: str, data: bytes, _peer: object) -> str | None:
        return data.decode() if scheme in {"cookie", "bearer"} and data == b"ann" else None

    guarded = penstock.Service(authenticate=authenticate)
    guarded.publish("texts", [b"a", b"b"])
    async with _page(guarded, cookie="session") as (page, _):
        shown = await page.run(f"""{IMPORT}{READ}
            const refused = await read("texts", {{ type: "text" }}).catch((error) => error.name);
            const bearer = await read("texts", {{ type: "text", bearer: "ann" }});
            document.cookie = "session=ann; SameSite=Strict";
            const fetched = await read("texts", {{ type: "text", credentials: "include" }});
            const events = await read("texts", {{ type: "text", credentials: "include", delivery: "events" }});
            return [refused, bearer, fetched, events];""")
    assert shown == ["AuthRefused", ["a", "b"], ["a", "b"], ["a", "b"]]


async def test_a_page_that_goes_cancels_its_stream() -> None:
    """With sendBeacon, so that the server need not wait until the subscription is idle."""
    endless, ended = penstock.Service(), trio.Event()

    @endless.publisher("ticks", serializer="json")
    async def ticks() -> AsyncIterator[int]:
        try:
            yield 1
            await trio.sleep_forever()
        finally:
            ended.set()

    async with _page(endless) as (page, origin):
        await page.run(f"""{IMPORT}
            const reading = stream(url + "ticks", {{ type: "json" }});
            globalThis.first = (await reading.next()).value;
            reading.next().catch(() => {{}});""")
        await page.call("Page.navigate", url=f"{origin}/other.html")
        await ended.wait()


async def test_node_reads_a_server() -> None:
    """With the fetch of Node.js: streams, a cancel, and a failure."""
    script = f"""
        import {{ stream }} from {json.dumps((CLIENT / "http.js").as_uri())};
        const url = process.env.PENSTOCK_URL;
        {READ}
        const numbers = await read("numbers/1000", {{ type: "json" }});
        for await (const block of stream(url + "blocks/100000", {{ demand: 10 }})) break;
        const failed = await read("failing").catch((error) => error.reason);
        console.log(JSON.stringify([numbers.length, await read("texts", {{ type: "text" }}), failed]));"""
    with trio.fail_after(HANGS_AFTER):
        async with _serve(service) as url:
            output = await run_node("--input-type=module", "--eval", script, PENSTOCK_URL=url)
    assert json.loads(output) == [1000, ["grün", "€", ""], "boom"]
