"""Chromium without a window, driven over its DevTools protocol by trio-websocket:
no driver program is needed.
"""

import json
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
import trio_websocket

from tests.browser._programs import chromium

# The last five keep Chromium from connecting to other machines.
SWITCHES = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-port=0",
        "--no-first-run",
    ),
    *(
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-default-browser-check",
    ),
)
LARGEST_ANSWER = 16 * 1024 * 1024  # bytes of a message of DevTools


class Page:
    """A tab of Chromium."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session

    async def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of DevTools."""
        return await self._browser.call(method, session=self._session, **parameters)

    async def go(self, url: str) -> None:
        """Load a page, and return when its scripts have run."""
        await self.call("Page.navigate", url=url)
        await self.wait_for(
            f"document.readyState === 'complete' && location.href === {json.dumps(url)}"
        )

    async def run(self, body: str) -> Any:
        """Run the body of an async function in the page, and return its value."""
        expression = f"(async () => {{ {body} }})()"
        done = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def wait_for(self, condition: str) -> None:
        """Wait until an expression is true in the page. A page that is just being replaced has
        no answer, and is asked again.
        """
        while True:
            try:
                if await self.run(f"return Boolean({condition})"):
                    return
            except (DevToolsError, AssertionError):
                pass
            await trio.sleep(0.02)


class DevToolsError(Exception):
    """DevTools answers a call with an error."""


class Browser:
    """A connection to the DevTools of a Chromium."""

    def __init__(self, socket: trio_websocket.WebSocketConnection) -> None:
        self._socket = socket
        self._last = 0
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}

    async def read(self) -> None:
        """Give each answer to its caller, until the connection ends."""
        while True:
            try:
                message = json.loads(await self._socket.get_message())
            except trio_websocket.ConnectionClosed:
                return
            answer = self._answers.pop(message.get("id", 0), None)
            if answer is not None:
                answer.send_nowait(message)

    async def call(self, method: str, *, session: str = "", **parameters: Any) -> Any:
        """Call a method of DevTools, and return its result."""
        self._last += 1
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[self._last] = send
        message = {"id": self._last, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        await self._socket.send_message(json.dumps(message))
        answer = await receive.receive()
        if "error" in answer:
            raise DevToolsError(f"{method}: {answer['error']}")
        return answer["result"]

    async def open(self, url: str) -> Page:
        """Open a tab."""
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = Page(self, attached["sessionId"])
        await page.call("Page.enable")
        await page.go(url)
        return page


@asynccontextmanager
async def run_chromium() -> AsyncIterator[Browser]:
    """Start Chromium with an empty profile, and end it behind the block."""
    program = chromium()
    with tempfile.TemporaryDirectory(
        prefix="penstock-chromium-", ignore_cleanup_errors=True
    ) as profile:
        async with trio.open_nursery() as nursery:
            command = [program, *SWITCHES, f"--user-data-dir={profile}", "about:blank"]
            start = partial(
                trio.run_process,
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            await nursery.start(start)
            endpoint = await _endpoint(Path(profile) / "DevToolsActivePort")
            async with trio_websocket.open_websocket_url(
                endpoint, max_message_size=LARGEST_ANSWER
            ) as socket:
                browser = Browser(socket)
                nursery.start_soon(browser.read)
                yield browser
                nursery.cancel_scope.cancel()


async def _endpoint(file: Path) -> str:
    """Return the URL of DevTools, which Chromium writes into its profile when it listens."""
    while True:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        await trio.sleep(0.05)
