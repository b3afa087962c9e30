"""A web server of ASGI for tests, on trio or on asyncio: it calls an application, and keeps what it
sends.
"""

import asyncio
from typing import Any
from urllib.parse import urljoin

import trio
from _engine_client import elements_of
from _site_in_memory import Answer
from penstock_http._messages import Response


def runs_on_trio() -> bool:
    try:
        return asyncio.current_task() is None
    except RuntimeError:
        return True


async def checkpoint() -> None:
    if runs_on_trio():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def new_event() -> Any:
    return trio.Event() if runs_on_trio() else asyncio.Event()


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
        self.disconnects = new_event()
        self.raw = b""
        self.ended = new_event()

    async def receive(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        await self.disconnects.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await checkpoint()
        if message["type"] == "http.response.start":
            fields = b"".join(b"\r\n" + name + b": " + value for name, value in message["headers"])
            self.raw = b"HTTP/1.1 %d x" % message["status"] + fields + b"\r\n\r\n"
            return
        self.raw += message["body"]
        if not message.get("more_body"):
            self.ended.set()

    async def run(self, app: Any) -> Answer:
        await app(self.scope, self.receive, self.send)
        return Answer(self.raw)


async def ask(app: Any, path: str, *headers: tuple[str, str], **more: Any) -> Answer:
    return await WebServer(path, *headers, **more).run(app)


async def subscribe(app: Any, name: str, demand: int = 0, *, at: str = "") -> str:
    """Return the path of a new subscription of an application that is mounted `at` a path."""
    url = f"{at}/p/{name}"
    created = await ask(app, f"{url}?request={demand}")
    assert created.status == 201, created.raw
    return urljoin(url, created.headers["location"])


def elements(answer: Answer) -> list[bytes]:
    coding = answer.headers.get("content-encoding")
    return elements_of(
        Response(
            status=answer.status,
            headers=() if coding is None else (("Content-Encoding", coding),),
            body=answer.body,
        )
    )


class Lifespan:
    """Calls the application for a lifespan, as a web server does."""

    def __init__(self, *kinds: str) -> None:
        self._messages = [{"type": f"lifespan.{kind}"} for kind in kinds]
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        await checkpoint()
        return self._messages.pop(0)

    async def send(self, message: Any) -> None:
        await checkpoint()
        self.sent.append(message)

    async def run(self, app: Any) -> list[Any]:
        await app({"type": "lifespan"}, self.receive, self.send)
        return self.sent
