"""WebSockets of an ASGI web server, with a web server of the test on virtual time.
`test_asgi_servers` reads streams over them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from _site_in_memory import service
from _web_server import Lifespan
from penstock_http import AsgiApp, _asgi

from penstock import Limits, Rejected, Service
from penstock.spi import TransportOptions

pytest.importorskip("penstock_websocket")
Clock = trio.testing.MockClock


class WebSocket:
    """A WebSocket, as a web server calls the application for it."""

    def __init__(self, *protocols: str, **scope: Any) -> None:
        self.scope = {
            "type": "websocket",
            "path": "/",
            "headers": [(b"host", b"localhost")],
            "scheme": "ws",
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 7),
            "subprotocols": list(protocols),
            **scope,
        }
        self.sent: list[Any] = []
        self._messages, self._receiving = trio.open_memory_channel[Any](10)
        self.give("connect")

    def give(self, kind: str, **message: Any) -> None:
        """Let the application receive a message."""
        self._messages.send_nowait({"type": f"websocket.{kind}", **message})

    async def send(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(message)

    async def run(self, app: AsgiApp) -> list[Any]:
        await app(self.scope, self._receiving.receive, self.send)
        return self.sent

    @property
    def code(self) -> int:
        """The code of the close, which is the last message."""
        assert self.sent[-1]["type"] == "websocket.close"
        return int(self.sent[-1]["code"])


@asynccontextmanager
async def serving(
    served: Service | None = None, *, limits: Limits | None = None, **options: Any
) -> AsyncIterator[AsgiApp]:
    app = AsgiApp(served or service(), limits=limits or Limits(drain=5), **options)
    async with app.serving():
        yield app


@pytest.mark.parametrize(
    "scope",
    [
        {"subprotocols": ["graphql-ws"]},
        {"headers": [(b"host", b"localhost"), (b"origin", b"https://evil.example")]},
        {"headers": [(b"host", b"evil.example")]},
        {"headers": [(b"x", b"")] * 101},
    ],
    ids=["subprotocol", "origin", "rebound host", "headers"],
)
async def test_a_request_is_refused_before_it_is_accepted(scope: dict[str, Any]) -> None:
    """The web server answers 403 then."""
    async with serving() as app:
        websocket = WebSocket(**scope)
        assert await websocket.run(app) == [{"type": "websocket.close", "code": 1008}]


async def test_a_page_of_the_site_may_connect() -> None:
    """Its origin has the scheme of HTTP, and the scope that of WebSocket."""
    async with serving() as app:
        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
        websocket = WebSocket("rsio.v0", headers=headers)
        websocket.give("disconnect")
        await websocket.run(app)
        assert websocket.sent[0] == {"type": "websocket.accept", "subprotocol": "rsio.v0"}


async def test_the_function_for_principals_may_refuse() -> None:
    """It is asked for each WebSocket."""

    def nobody(scope: Any) -> None:
        raise Rejected("log in first")

    async with serving(principal=nobody) as app:
        assert await WebSocket().run(app) == [{"type": "websocket.close", "code": 1008}]


async def test_what_is_not_served_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the end, with a service that cannot be served, and without penstock-websocket."""
    refused = [{"type": "websocket.close", "code": 1013}]
    async with serving() as app:
        pass
    assert await WebSocket().run(app) == refused
    app = AsgiApp(service(), options=TransportOptions(extra={"http.hold": "long"}))
    assert await WebSocket().run(app) == refused
    async with serving() as app:
        monkeypatch.setattr(_asgi, "is_installed", lambda: False)
        assert await WebSocket().run(app) == refused


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"text": "hello"}, 1003),
        ({"bytes": bytes(200_000)}, 1009),
        ({"bytes": b"GET / HTTP/1.1"}, 1002),
    ],
    ids=["text", "large", "another protocol"],
)
async def test_a_wrong_message_closes(message: dict[str, Any], code: int) -> None:
    """Before the hello: text, more bytes than a stranger may send, and no hello."""
    async with serving() as app:
        websocket = WebSocket("rsio.v0")
        websocket.give("receive", **message)
        await websocket.run(app)
        assert websocket.code == code


async def test_a_client_that_says_nothing_is_cut(autojump_clock: Clock) -> None:
    """After the time of a handshake, and that of a goodbye."""
    async with serving(limits=Limits(handshake_timeout=3)) as app:
        began = trio.current_time()
        websocket = WebSocket("rsio.v0")
        await websocket.run(app)
        assert 3 <= trio.current_time() - began < 6


async def test_a_client_that_leaves_before_its_hello_is_forgotten() -> None:
    """It has named no protocol, so its first bytes are waited for."""
    async with serving() as app:
        websocket = WebSocket()
        websocket.give("receive", bytes=b"\x01")
        websocket.give("disconnect", code=1005)
        await websocket.run(app)
        assert [each["type"] for each in websocket.sent] == ["websocket.accept"]


async def test_a_lifespan_that_ends_closes_websockets() -> None:
    """The client has said nothing yet."""
    app = AsgiApp(service())
    async with trio.open_nursery() as nursery:
        websocket = WebSocket("rsio.v0")

        class Opening(Lifespan):
            async def send(self, message: Any) -> None:
                if message["type"] == "lifespan.startup.complete":
                    nursery.start_soon(websocket.run, app)
                    await trio.testing.wait_all_tasks_blocked()

        await Opening("startup", "shutdown").run(app)
    assert websocket.sent[0]["type"] == "websocket.accept"
