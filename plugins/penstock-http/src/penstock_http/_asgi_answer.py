"""Requests of ASGI, and their answers, as the mapping reads and writes them.

Rules of this file:

* The web server owns the connections:
  their deadlines, their number, and the bytes that a slow client leaves unread.
* A body is read to its end before anything is answered: some web servers fail otherwise.
"""

from typing import Final
from urllib.parse import quote, unquote

from penstock.api import ConnectionLost
from penstock.spi import PeerIdentity
from penstock_http._asgi_loops import Client, Message, Receive, Scope
from penstock_http._heads import MAX_BODY, MAX_HEADERS, BadRequest, Head
from penstock_http._messages import Outcome, Request, Response
from penstock_http._outlet import Outlet, write_in_pieces
from penstock_http._site import Site

_SCHEMES: Final = {"ws": "http", "wss": "https"}
"""The scheme of a page's origin, by the scheme of its WebSocket."""


class AsgiAnswer(Outlet):
    """The answer to one request."""

    def __init__(self, request: Request, client: Client, site: Site, *, stall: float) -> None:
        """`stall` is `Limits.write_stall`."""
        self._request = request
        self._client = client
        self._site = site
        self._stall = stall

    async def write(self, response: Response) -> None:
        start, body = messages_of(response, self._request, self._site)
        await self._client.send(start)
        if body["body"]:
            await self.write_part(body["body"], is_last=True)
        else:
            await self.end()

    async def begin(self, response: Response, *, length: int | None = None) -> None:
        # A stream that always has an element never waits. Then nothing else would tell that the
        # client has gone.
        self._client.watch()
        await self._client.send(_start(response, self._request, self._site))

    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        last = self._write_last if is_last else None
        await write_in_pieces(part, self._write_piece, self._stall, write_last=last)

    async def end(self) -> None:
        self.on_written()  # before the send, as in `_write_last`
        await self._client.send(_body(b"", more_body=False))

    async def _write_piece(self, piece: memoryview) -> None:
        await self._client.send(_body(bytes(piece), more_body=True))

    async def _write_last(self, piece: memoryview) -> None:
        # Before the send: the client may have the answer, and send the next request,
        # before it returns.
        self.on_written()
        await self._client.send(_body(bytes(piece), more_body=False))

    def note_written(self, outcome: Outcome) -> None:
        """Do nothing: the web server does not tell what becomes of an answer."""

    async def wait_gone(self) -> None:
        await self._client.wait_gone()


def messages_of(response: Response, request: Request, site: Site | None) -> tuple[Message, Message]:
    """Return a whole answer to `request`, as two messages."""
    length = () if response.status == 204 else (("content-length", str(len(response.body))),)
    return (
        _start(response, request, site, *length),
        _body(b"" if request.method == "HEAD" else response.body, more_body=False),
    )


def _start(
    response: Response, request: Request, site: Site | None, *more: tuple[str, str]
) -> Message:
    shared = () if site is None else site.shared_headers(request)
    # The web server adds the date.
    fields = [
        (name.lower(), value)
        for name, value in (*response.headers, *more, *shared)
        if name != "Date"
    ]
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


def _body(part: bytes, *, more_body: bool) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more_body}


def request_of(scope: Scope) -> Request:
    """Return the request of `scope`. Of too many headers it has the first `MAX_HEADERS`."""
    headers: dict[str, tuple[str, ...]] = {}
    for raw_name, raw_value in scope["headers"][:MAX_HEADERS]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = (*headers.get(name, ()), value)
    return Request(
        method=scope["method"],
        path=path_of(scope),
        query=(scope.get("query_string") or b"").decode("latin-1"),
        headers=headers,
    )


def head_of(request: Request, scope: Scope) -> Head:
    """Return `request` with what else its head says. Raises BadRequest."""
    if len(scope["headers"]) > MAX_HEADERS:
        raise BadRequest(431, f"a request has at most {MAX_HEADERS} headers")
    return Head(
        request=request,
        host=request.headers.get("host", ("",))[0].strip().lower(),
        keeps_alive=True,
        is_chunkable=True,
        has_body=False,
        expects_continue=False,
        scheme=_SCHEMES.get(scope.get("scheme") or "", scope.get("scheme") or ""),
    )


def path_of(scope: Scope) -> str:
    """Return the path below the place where the application is mounted,
    percent-encoded as it came.
    """
    path, root = scope["path"], (scope.get("root_path") or "").rstrip("/")
    raw = (scope.get("raw_path") or quote(path).encode()).partition(b"?")[0].decode("latin-1")
    if not root or not path.startswith(f"{root}/"):
        # Litestar takes the mount off the path, adds a slash to its end, and tells no root.
        whole, below = unquote(raw).rstrip("/"), path.rstrip("/")
        root = whole.removesuffix(below) if below and whole.endswith(below) else ""
    # The root is decoded, and the raw path is not: they have the same number of segments.
    return "/" + "/".join(raw.split("/")[root.count("/") + 1 :])


async def read_body(receive: Receive) -> None:
    """Read and drop the body: it means nothing here.
    Raises BadRequest, and ConnectionLost if the client goes.
    """
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionLost("the client has gone")
        size += len(message.get("body") or b"")
        if size > MAX_BODY:
            raise BadRequest(413, "a request needs no body here")
        if not message.get("more_body"):
            return


def peer_of(scope: Scope) -> PeerIdentity:
    """Return the client of `scope`."""
    host, port = scope.get("client") or (None, None)
    name = f"[{host}]" if host and ":" in host else host
    return PeerIdentity(
        address="a client of the web server" if host is None else f"{name}:{port}",
        host=host,
        port=port,
    )
