"""The mapping as an ASGI application, for a web server on trio: `AsgiApp`, and the transport
``asgi://name`` that serves through it.

Rules of this file:

* ``serve(service, "asgi://name")`` has one connection, which is attended for as long as the server
  serves. Its host opens the streams of all requests, so places, limits, authentication and the
  shutdown are those of the server.
* The web server owns the connections:
  their deadlines, their number, and the bytes that a slow client leaves unread.
* A body is read to its end before anything is answered: some web servers fail otherwise.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, ClassVar, Final
from urllib.parse import quote

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.spi import (
    Bytes,
    Connection,
    ConnectionFacts,
    ConnectionHost,
    Listener,
    PeerIdentity,
    RequestTransport,
    TransportOptions,
    Url,
    parse_url,
)
from penstock_http._answering import Answering, Outlet
from penstock_http._heads import MAX_BODY, MAX_HEADERS, BadRequest, Head
from penstock_http._messages import Outcome, Request, Response, answer
from penstock_http._settings import settings_of
from penstock_http._site import Site

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

WHY_NO_CONNECTION: Final = (
    "an ASGI application is reached through its web server; read its streams with subscribe() or "
    "remote()"
)

_NOT_SERVING: Final = answer(503, ("Retry-After", "1"), text="the streams are not served now")
_listeners: Final[trio.lowlevel.RunVar["dict[str, AsgiListener]"]] = trio.lowlevel.RunVar(
    "penstock_http_asgi"
)


class AsgiApp:
    """The streams of a service as an ASGI application, to mount in a program on trio.
    Its paths are those of ``http://``.

    Give it the URL that is served: ``AsgiApp("asgi://streams")`` and
    ``serve(service, "asgi://streams")``. While nothing is served there, each request gets 503.
    """

    def __init__(self, url: str) -> None:
        """Raises UsageError for a URL of another scheme."""
        self._url: Url = parse_url(url)
        if self._url.transport != "asgi":
            raise UsageError(
                f"{url!r} is no URL of an ASGI application; write for example asgi://streams, here "
                "and in serve()"
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Called by the web server."""
        kind = scope["type"]
        if kind == "lifespan":
            await _answer_lifespan(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif kind == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        listener = _listeners_of_run().get(self._url.host or "")
        outlet = _Answer(
            scope["method"], receive, send, None if listener is None else listener.site
        )
        try:
            head = head_of(scope)
            outlet.head = head
            await _read_body(receive)
        except BadRequest as error:
            await outlet.write(answer(error.status, text=str(error)))
            return
        except ConnectionLost:
            return
        if listener is None or listener.served is None:
            await outlet.write(_NOT_SERVING)
            return
        server = PeerIdentity(address="", host=(scope.get("server") or ("",))[0])
        with suppress(ConnectionLost):  # the client has gone
            await listener.served[server.is_loopback].answer(head, _peer_of(scope), outlet)


class AsgiTransport(RequestTransport):
    """``asgi://name``, for `serve`."""

    schemes: ClassVar[tuple[str, ...]] = ("asgi",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{str(url)!r} cannot be connected to: {WHY_NO_CONNECTION}")

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        await trio.lowlevel.checkpoint()
        name = url.host or ""
        if not name or url.port is not None or url.path:
            raise UsageError(
                f"{str(url)!r} is no name of an ASGI application; write for example asgi://streams"
            )
        if name in _listeners_of_run():
            raise UsageError(
                f"another server has {url.address} in this run loop already; choose another name"
            )
        listener = _listeners_of_run()[name] = AsgiListener(
            url, Site(settings_of(options), secure=False)
        )
        return listener

    async def serve_connection(self, connection: Connection, host: ConnectionHost, /) -> None:
        """Let the application serve with `host`, until the server shuts down."""
        # A server attends what its listener has accepted.
        assert isinstance(connection, _Application)  # noqa: S101  # for mypy
        await connection.listener.serve(host)


class AsgiListener(Listener):
    """The place of one application. It accepts one connection, which stands for all clients."""

    def __init__(self, url: Url, site: Site) -> None:
        self.addresses = (url,)
        self._name = url.host or ""
        self._is_accepted = False
        self.site: Site = site
        self.served: tuple[Answering, Answering] | None = None
        """While requests are answered:
        for clients of other addresses, and of those at a loopback address.
        """

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        if self._is_accepted:
            await trio.sleep_forever()
        self._is_accepted = True
        return _Application(self)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        _listeners_of_run().pop(self._name, None)

    async def serve(self, host: ConnectionHost) -> None:
        """Answer requests with `host`.
        Returns at a shutdown, behind the last request that waits.
        """
        host.recognise()
        self.served = (
            Answering(host, self.site, is_loopback=False),
            Answering(host, self.site, is_loopback=True),
        )
        try:
            await host.wait_draining()
            for answering in self.served:
                answering.on_draining()
                await answering.wait_idle()
        finally:
            self.served = None


class _Application(Connection):
    """The one connection of a listener. No byte crosses it."""

    framed = False

    def __init__(self, listener: AsgiListener) -> None:
        self.listener: AsgiListener = listener
        self.peer = PeerIdentity(address=str(listener.addresses[0].address))
        self.facts = ConnectionFacts()
        self._closed = trio.Event()

    async def send(self, data: Bytes, /) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError(WHY_NO_CONNECTION)

    async def receive(self) -> bytes | None:
        await self._closed.wait()
        return None

    async def aclose(self) -> None:
        await self.abort()

    async def abort(self) -> None:
        self._closed.set()
        await trio.lowlevel.checkpoint()


class _Answer(Outlet):
    """The answer to one request."""

    def __init__(self, method: str, receive: Receive, send: Send, site: Site | None) -> None:
        self._method = method
        self._receive = receive
        self._send = send
        self._site = site
        self.head: Head | None = None
        """The request, once it was read."""

    async def write(self, response: Response) -> None:
        body = b"" if self._method == "HEAD" else response.body
        length = () if response.status == 204 else (("content-length", str(len(response.body))),)
        await self._start(response, length)
        # Before the send: the client may have the answer, and send the next request,
        # before it returns.
        self.on_written()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def begin(self, response: Response) -> None:
        await self._start(response, ())

    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        if is_last:
            self.on_written()  # before the send, as in `write`
        await self._send({"type": "http.response.body", "body": part, "more_body": not is_last})

    async def end(self) -> None:
        self.on_written()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def note_written(self, outcome: Outcome) -> None:
        """Do nothing: the web server does not tell what becomes of an answer."""

    async def wait_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _start(self, response: Response, more: tuple[tuple[str, str], ...]) -> None:
        shared = (
            ()
            if self._site is None or self.head is None
            else self._site.shared_headers(self.head.request)
        )
        # The web server adds the date.
        fields = [
            (name.lower(), value)
            for name, value in (*response.headers, *more, *shared)
            if name != "Date"
        ]
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        await self._send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )


def head_of(scope: Scope) -> Head:
    """Return the request of `scope`. Raises BadRequest."""
    if len(scope["headers"]) > MAX_HEADERS:
        raise BadRequest(431, f"a request has at most {MAX_HEADERS} headers")
    headers: dict[str, tuple[str, ...]] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = (*headers.get(name, ()), value)
    request = Request(
        method=scope["method"],
        path=path_of(scope),
        query=(scope.get("query_string") or b"").decode("latin-1"),
        headers=headers,
    )
    return Head(
        request=request,
        host=headers.get("host", ("",))[0].strip().lower(),
        keeps_alive=True,
        is_chunkable=True,
        has_body=False,
        expects_continue=False,
        scheme=scope.get("scheme") or "",
    )


def path_of(scope: Scope) -> str:
    """Return the path below the place where the application is mounted,
    percent-encoded as it came.
    """
    path, root = scope["path"], (scope.get("root_path") or "").rstrip("/")
    raw = (scope.get("raw_path") or quote(path).encode()).partition(b"?")[0].decode("latin-1")
    if not root or not path.startswith(f"{root}/"):
        return raw
    # The root is decoded, and the raw path is not: they have the same number of segments.
    return "/" + "/".join(raw.split("/")[root.count("/") + 1 :])


async def _read_body(receive: Receive) -> None:
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


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


def _peer_of(scope: Scope) -> PeerIdentity:
    host, port = scope.get("client") or (None, None)
    name = f"[{host}]" if host and ":" in host else host
    return PeerIdentity(
        address="a client of the web server" if host is None else f"{name}:{port}",
        host=host,
        port=port,
    )


def _listeners_of_run() -> dict[str, AsgiListener]:
    try:
        return _listeners.get()
    except LookupError:
        listeners: dict[str, AsgiListener] = {}
        _listeners.set(listeners)
        return listeners
