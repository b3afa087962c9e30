"""A web server for a few fixed pages, so that the page of a test has its own origin."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import trio

from tests.browser._programs import CLIENT

TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8"}
LONGEST_REQUEST = 16 * 1024
BLANK = "<!doctype html><title>page</title>"
WORKER = """
import { connect } from "/penstock.js";
onmessage = async ({ data: url }) => {
  const connection = await connect(url, { limits: { handshake: 300_000 } });
  const numbers = [];
  for await (const element of connection.stream("numbers/100", { type: "json" })) numbers.push(element.number);
  await connection.close();
  postMessage(numbers);
};
"""


@asynccontextmanager
async def serve_pages(files: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Serve a blank page, another one, a worker, the client, and `files`; yield the origin."""
    client = (CLIENT / "penstock.js").read_text(encoding="utf-8")
    pages = {
        "/": BLANK,
        "/other.html": BLANK,
        "/worker.js": WORKER,
        "/penstock.js": client,
        **(files or {}),
    }
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(
            partial(trio.serve_tcp, partial(_answer, pages), 0, host="127.0.0.1")
        )
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def _answer(pages: Mapping[str, str], stream: trio.SocketStream) -> None:
    """Answer one request, and close."""
    received = b""
    while b"\r\n\r\n" not in received and len(received) < LONGEST_REQUEST:
        chunk = await stream.receive_some()
        if not chunk:
            return
        received += chunk
    path = received.split(b" ")[1].decode().partition("?")[0]
    body = pages.get(path)
    status = "200 OK" if body is not None else "404 Not Found"
    kind = TYPES.get(path.rpartition(".")[2], TYPES["html"])
    data = (body or "").encode()
    # no-store would keep the page out of the back-forward cache.
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\nConnection: "
        "close\r\n\r\n"
    )
    with suppress(trio.BrokenResourceError):  # a browser may leave before the answer
        await stream.send_all(head.encode() + data)
