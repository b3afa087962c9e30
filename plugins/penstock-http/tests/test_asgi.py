"""The mapping as an ASGI application: with a web server of the test on virtual time, and under
Starlette on anycorn over real sockets.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from _engine_client import elements_of
from _site_in_memory import Answer, service
from penstock_http import AsgiApp
from penstock_http._asgi import path_of
from penstock_http._messages import Response

import penstock
from penstock import Limits
from penstock.api import UsageError
from penstock.spi import TransportOptions

Clock = trio.testing.MockClock
EXAMPLES = Path(__file__).parent.parent / "examples"
URL = "asgi://streams"


class WebServer:
    """Calls the application as a web server does, and keeps what it answers."""

    def __init__(
        self,
        path: str,
        *headers: tuple[str, str],
        method: str = "PUT",
        body: tuple[bytes, ...] = (b"",),
        **scope: Any,
    ) -> None:
        path, _, query = path.partition("?")
        named = [
            (name.encode(), value.encode()) for name, value in (("host", "localhost"), *headers)
        ]
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": named,
            "scheme": "http",
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 7),
            **scope,
        }
        self._messages = [
            {"type": "http.request", "body": part, "more_body": part is not body[-1]}
            for part in body
        ]
        self.disconnects = trio.Event()
        self.raw = b""
        self.ended = trio.Event()

    async def receive(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        await self.disconnects.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            fields = b"".join(b"\r\n" + name + b": " + value for name, value in message["headers"])
            self.raw = b"HTTP/1.1 %d x" % message["status"] + fields + b"\r\n\r\n"
            return
        self.raw += message["body"]
        if not message["more_body"]:
            self.ended.set()

    async def run(self, app: AsgiApp) -> Answer:
        await app(self.scope, self.receive, self.send)
        return Answer(self.raw)


async def ask(app: AsgiApp, path: str, *headers: tuple[str, str], **more: Any) -> Answer:
    return await WebServer(path, *headers, **more).run(app)


async def subscribe(app: AsgiApp, name: str, demand: int = 0) -> str:
    created = await ask(app, f"/p/{name}?request={demand}")
    assert created.status == 201, created.raw
    return "/" + created.headers["location"].replace("../", "")


def elements(answer: Answer) -> list[bytes]:
    coding = answer.headers.get("content-encoding")
    return elements_of(
        Response(
            status=answer.status,
            headers=() if coding is None else (("Content-Encoding", coding),),
            body=answer.body,
        )
    )


@asynccontextmanager
async def serving(**extra: object) -> AsyncIterator[AsgiApp]:
    options = TransportOptions(extra={f"http.{name}": value for name, value in extra.items()})
    async with penstock.serve(service(), URL, options=options, limits=Limits(drain=5)):
        await trio.testing.wait_all_tasks_blocked()
        yield AsgiApp(URL)


async def test_the_life_of_a_stream(autojump_clock: Clock) -> None:
    """Subscribe, a batch, 204, the completion, a failure, and a cancel;
    the web server adds the date.
    """
    async with serving() as app:
        path = await subscribe(app, "numbers/3", 2)
        batch = await ask(app, path, body=(b"any", b"body"))
        assert elements(batch) == [b"0", b"1"]
        assert batch.headers["cache-control"] == "no-store"
        assert "date" not in batch.headers
        assert (await ask(app, path)).status == 204
        assert (await ask(app, f"{path}?request=5")).body == b"2"
        assert (await ask(app, path)).status == 410
        path = await subscribe(app, "failing", 5)
        assert (await ask(app, path)).body == b"0"
        assert (await ask(app, path)).headers["x-rsio-error"] == "true"
        path = await subscribe(app, "large", 1)
        assert (await ask(app, f"{path}/cancel", method="POST")).status == 200
        assert (await ask(app, "/healthz", method="HEAD")).headers["content-length"] == "3"
        assert (await ask(app, path, body=(bytes(70_000),))).status == 413
        assert (await ask(app, path, *[(f"x{number}", "") for number in range(101)])).status == 431


async def test_answers_grow_and_polls_wait(autojump_clock: Clock) -> None:
    """A streamed batch, events, and a poll that is answered after the time of its element."""
    async with serving() as app:
        began = trio.current_time()
        assert (await ask(app, await subscribe(app, "slow/10", 1))).body == b"0"
        assert trio.current_time() - began == pytest.approx(10)
        streamed = await ask(app, await subscribe(app, "slow/3", 3), ("x-rsio-delivery", "stream"))
        assert elements(streamed) == [b"0", b"1", b"2"]
        events = await ask(app, f"{await subscribe(app, 'slow/3', 4)}/events?text=1", method="GET")
        assert events.body.endswith(b"id: 2\ndata: 2\n\nevent: rsio-complete\ndata:\n\n")


async def test_a_client_that_goes_loses_nothing_of_what_it_waits_for(autojump_clock: Clock) -> None:
    """While a poll waits, and in the middle of a streamed batch."""
    async with serving() as app, trio.open_nursery() as nursery:
        for headers in ((), (("x-rsio-delivery", "stream"),)):
            path = await subscribe(app, "slow/10", 3)
            client = WebServer(path, *headers)
            nursery.start_soon(client.run, app)
            await trio.sleep(15 if headers else 5)
            client.disconnects.set()
            await trio.testing.wait_all_tasks_blocked()
            again = await ask(app, path)
            assert (elements(again)[0], again.headers["x-rsio-position"]) == (b"0", "0")


async def test_a_shutdown_answers_what_waits(autojump_clock: Clock) -> None:
    """Polls get 503. Then nothing is served any more."""
    async with trio.open_nursery() as nursery:
        async with serving() as app:
            poll = WebServer(await subscribe(app, "slow/1000", 1))
            nursery.start_soon(poll.run, app)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() - began < 1
        await poll.ended.wait()
        assert (Answer(poll.raw).status, Answer(poll.raw).headers["x-rsio-error"]) == (503, "true")
        assert (await ask(app, "/p/numbers/3")).status == 503


async def test_pages_and_hosts_are_examined(autojump_clock: Clock) -> None:
    """The origin is compared with the scheme and the Host of the request."""
    async with serving(origins="https://app.example") as app:
        for origin, scheme, status in (
            ("https://evil.example", "http", 403),
            ("http://localhost", "http", 201),
            ("https://localhost", "https", 201),
            ("https://app.example", "http", 201),
        ):
            assert (
                await ask(app, "/p/numbers/3", ("origin", origin), scheme=scheme)
            ).status == status
        rebound = WebServer("/p/numbers/3", headers=[(b"host", b"evil.example")])
        assert (await rebound.run(app)).status == 421


async def test_other_scopes_are_answered() -> None:
    """The lifespan of a web server without another program, and a WebSocket, which is closed."""
    app, sent = AsgiApp(URL), list[str]()

    async def send(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message["type"])

    def receiving(*kinds: str) -> Any:
        messages = [{"type": kind} for kind in kinds]

        async def receive() -> Any:
            await trio.lowlevel.checkpoint()
            return messages.pop(0)

        return receive

    await app({"type": "lifespan"}, receiving("lifespan.startup", "lifespan.shutdown"), send)
    await app({"type": "websocket"}, receiving("websocket.connect"), send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.mark.parametrize(
    ("root", "path", "raw", "below"),
    [
        ("", "/p/a b", b"/p/a%20b", "/p/a%20b"),
        ("/streams", "/streams/p/a", b"/streams/p/a%2Fb", "/p/a%2Fb"),
        ("/a b/c/", "/a b/c/s/x", b"/a%20b/c/s/x?y", "/s/x"),
        ("/streams", "/other", b"/other", "/other"),
        ("/streams", "/streams/p/ä", None, "/p/%C3%A4"),
    ],
)
def test_the_path_below_the_mount_stays_encoded(
    root: str, path: str, raw: bytes | None, below: str
) -> None:
    """The root is decoded, and the raw path is not."""
    assert path_of({"path": path, "raw_path": raw, "root_path": root}) == below


async def test_a_wrong_url_is_refused() -> None:
    """Another scheme, a port, no name, a name that is taken, and a client."""
    with pytest.raises(UsageError, match="asgi://streams"):
        AsgiApp("http://streams")
    async with serving():
        for url in ("asgi://x/y#", "asgi://", URL):
            with pytest.raises(UsageError, match="asgi://streams"):
                async with penstock.serve(service(), url):
                    pass
        with pytest.raises(UsageError, match="web server"):
            async with penstock.connect(URL):
                pass


async def test_the_example_serves_under_starlette_on_anycorn() -> None:
    """Its own page, and a stream that a program reads,
    with a relative URL of the subscription below the mount.
    """
    pytest.importorskip("starlette")
    pytest.importorskip("anycorn")
    command = [
        sys.executable,
        "-m",
        "anycorn",
        "--worker-class",
        "trio",
        "--bind",
        "127.0.0.1:0",
        "mounted:site",
    ]
    async with trio.open_nursery() as nursery:
        web = await nursery.start(
            partial(trio.run_process, command, cwd=EXAMPLES, stderr=-1, stdout=-1, check=False)
        )
        shown = b""
        while b"http://127.0.0.1:" not in shown:
            shown += await web.stderr.receive_some() or pytest.fail(shown.decode())
        at = shown.partition(b"http://")[2].split()[0].decode()
        async with penstock.subscribe(
            f"http://{at}/streams/p/numbers/2500", serializer="json"
        ) as stream:
            assert [number async for number in stream] == list(range(2500))
        web.terminate()
