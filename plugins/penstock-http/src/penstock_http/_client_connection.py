"""One connection of a client of HTTP/1.1:
a request, the head of its answer, its body part by part, then the next request.

Rules of this file:

* No request is repeated here: if one fails, its caller decides whether to repeat it.
* An answer that breaks the rules of HTTP, or ends before its body does, is ConnectionLost.
* Bytes that come before their request are an answer to no request. They would be taken for the
  answer to the next one, so they are ProtocolError.
* Interim answers, and the framing of a body (the lengths and extensions of chunks), have bounds: a
  server must not keep this side reading without end.
* Through a proxy a request names the whole URL; TLS begins behind the answer to CONNECT.
"""

import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from urllib.parse import SplitResult

import attrs
import h11
import trio

from penstock.api import AuthRefused, ConnectionLost, LimitExceeded, ProtocolError, Rejected
from penstock.spi import (
    ByteConnection,
    ConnectionFacts,
    SocketConnection,
    Tls,
    TlsConnection,
    TransportOptions,
    Url,
    open_tcp,
)
from penstock_http._client_proxy import Proxy

READ_SECONDS: Final = 90.0
"""Seconds without a byte after which an answer counts as lost.
Servers hold a poll for 25 s, and proxies for 60 s.
"""

PART_SECONDS: Final = 30.0
"""Seconds from the first bytes of a head, or of the line before a chunk, to its last one."""

MAX_HEAD: Final = 64 << 10
MAX_INTERIM: Final = 16
"""Answers with a status of 1xx before the answer. A server sends one or two."""

OVERHEAD: Final = 16
"""Bytes of framing that a body may have for each byte of content, beside `MAX_HEAD`. A chunk of one
byte has six."""

READ_PASSES: Final = 3
"""Passes of the scheduler in which a task decrypts what it has taken out of a socket."""

_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
_PORTS: Final = {"http": 80, "https": 443}

RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a request is repeated if the answer has no X-Rsio-Error:
a proxy, or a server, is busy.
"""


class ProxyBusy(ConnectionLost):
    """A proxy was reached, and has not reached the server: it may the next time."""


@attrs.frozen
class Answer:
    """The head of an answer."""

    status: int
    headers: dict[str, str]
    """By name, in small letters; the last value of each."""


Open = Callable[
    [SplitResult, Proxy | None, TransportOptions, trio.Nursery], Awaitable[ByteConnection]
]


async def open_connection(
    url: SplitResult, proxy: Proxy | None, options: TransportOptions, nursery: trio.Nursery
) -> ByteConnection:
    """Connect to the server of `url`, or to the proxy; through the proxy for https://. Raises
    ConnectionLost, also if a proxy refuses.
    """
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    first = (host, port) if proxy is None else (proxy.host, proxy.port)
    stream, peer = await open_tcp(Url(transport="tcp", host=first[0], port=first[1]), options)
    plain = SocketConnection(
        stream,
        peer=peer,
        options=options,
        facts=ConnectionFacts(half_close=True, local=peer.is_loopback),
    )
    if url.scheme == "http":
        return plain
    tls = options.tls or Tls()
    try:
        if proxy is not None:
            await _open_tunnel(
                plain, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy
            )
        # In a thread: reading the system's authorities takes 50 ms, and would block every task.
        context = await trio.to_thread.run_sync(tls.client_context, ("http/1.1",))
        secured = trio.SSLStream(stream, context, server_hostname=tls.server_name or host)
        connection = TlsConnection(secured, peer=peer, options=options)
        await connection.handshake(nursery)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return connection


async def _open_tunnel(connection: ByteConnection, server: str, proxy: Proxy) -> None:
    """Ask the proxy to pass all that follows to `server`."""
    answer = await ClientConnection(connection, server).ask(server, proxy.headers, method="CONNECT")
    if answer.status == 407:
        raise AuthRefused(
            f"the proxy {proxy.name} wants other credentials than it got (HTTP 407)",
            processed=False,
        )
    if answer.status in RETRIED:
        raise ProxyBusy(f"the proxy {proxy.name} has not reached {server} (HTTP {answer.status})")
    if not 200 <= answer.status < 300:
        raise Rejected(
            f"the proxy {proxy.name} refuses to connect to {server} (HTTP {answer.status})",
            processed=False,
        )


class ClientConnection:
    """A connection to one server."""

    def __init__(self, connection: ByteConnection, host: str) -> None:
        self._connection = connection
        self._host = host
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._received = 0  # bytes since the last request

    @property
    def is_ready(self) -> bool:
        """Whether another request may be sent:
        the last answer was read to its end, and its connection stays.
        """
        return self._parser.our_state is h11.IDLE

    async def ask(
        self, target: str, headers: list[tuple[str, str]], *, method: str = "PUT"
    ) -> Answer:
        """Send a request without a body, and return the head of its answer."""
        length = [("Content-Length", "0")] if method == "PUT" else []
        request = h11.Request(
            method=method, target=target, headers=[("Host", self._host), *length, *headers]
        )
        data = (self._parser.send(request) or b"") + (self._parser.send(h11.EndOfMessage()) or b"")
        await self._check_unrequested()
        self._received = 0
        try:
            await self._connection.send(data)
        except _GONE as error:
            raise ConnectionLost(f"the request could not be sent: {error}") from None
        for _ in range(MAX_INTERIM + 1):
            event = await self._next()
            if isinstance(event, h11.Response):
                found = {}
                for name, value in event.headers:
                    found[name.decode("ascii")] = value.decode("latin-1")
                return Answer(event.status_code, found)
        raise ProtocolError(
            f"the server has sent more than {MAX_INTERIM} interim answers (1xx) to one request. "
            "The author of the server must act",
            reason="protocol:http",
        )

    async def body(self) -> AsyncIterator[bytes]:
        """Yield each part of the body when it comes, to the end."""
        content, before = 0, self._received
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                content += len(event.data)
                # Bytes that the parser has not read yet do not count yet.
                framing = self._received - before - content - len(self._parser.trailing_data[0])
                if framing > MAX_HEAD + OVERHEAD * content:
                    raise ProtocolError(
                        f"a body with {framing:,} bytes of framing for {content:,} of content "
                        "arrived. The author of the server must act",
                        reason="protocol:http",
                    )
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                if self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE:
                    self._parser.start_next_cycle()
                return

    async def whole_body(self, most: int) -> bytes:
        """Return a body of at most `most` bytes. Raises LimitExceeded for a longer one."""
        body = bytearray()
        parts = self.body()
        try:
            async for part in parts:
                body += part
                if len(body) > most:
                    raise LimitExceeded(
                        f"an answer of more than {most:,} bytes arrived",
                        limit="max_element",
                        value=most,
                    )
        finally:
            await parts.aclose()  # type: ignore[attr-defined]  # an async generator
        return bytes(body)

    async def abort(self) -> None:
        """Close at once."""
        await self._connection.abort()

    async def _check_unrequested(self) -> None:
        """Raise ProtocolError for bytes after the last answer."""
        stream = self._connection.stream
        has_come = bool(self._parser.trailing_data[0])
        if isinstance(stream, trio.SocketStream):
            has_come = has_come or _has_come(stream)
        elif not has_come and isinstance(stream, trio.SSLStream):
            has_come = await self._has_come_in_tls(stream)
        if has_come:
            raise ProtocolError(
                "the server has sent an answer that no request had asked for. The author of the "
                "server must act",
                reason="protocol:http",
            )

    async def _has_come_in_tls(self, stream: "trio.SSLStream[trio.SocketStream]") -> bool:
        """Return whether bytes of the server wait. A record that has come may hold no data: that of
        a session ticket. Raises ConnectionLost if the server has ended the connection.
        """
        if not (stream.pending() or _has_come(stream.transport_stream)):
            return False
        data: bytes | bytearray | None = b""
        error: Exception | None = None

        async def read() -> None:
            nonlocal data, error
            try:
                data = await self._connection.receive()
            except _GONE as gone:
                error = gone
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            # The bytes are here. It waits for more only if they were tickets. No clock: on a busy
            # machine it would end the read before it began.
            await trio.lowlevel.checkpoint()
            while _has_come(stream.transport_stream):
                await trio.lowlevel.checkpoint()
            for _ in range(READ_PASSES):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        if error is not None:
            raise ConnectionLost(f"the request could not be sent: {error}") from None
        if data is None:
            raise ConnectionLost("the server has ended the connection")
        return bool(data)

    async def _next(self) -> object:
        begun = math.inf  # when the part that the parser waits for began to come
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                raise ConnectionLost(f"the answer is not valid HTTP/1.1: {error}") from None
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionLost("the server has ended the connection")
            if event is not h11.NEED_DATA:
                return event
            data: bytes | bytearray | None = None
            now = trio.current_time()
            try:
                with trio.CancelScope(
                    deadline=min(now + READ_SECONDS, begun + PART_SECONDS)
                ) as scope:
                    data = await self._connection.receive()
            except _GONE as error:
                raise ConnectionLost(f"the connection broke inside an answer: {error}") from None
            if scope.cancelled_caught and begun == math.inf:
                raise ConnectionLost(f"the server has sent nothing for {READ_SECONDS:g} s")
            if scope.cancelled_caught:
                raise ConnectionLost(
                    f"the server has sent a part of a head, and not the rest of it within "
                    f"{PART_SECONDS:g} s"
                )
            # Bytes of a body are an event, however few they are.
            begun = min(begun, trio.current_time())
            self._received += len(data or b"")
            self._parser.receive_data(b"" if data is None else bytes(data))


def _has_come(stream: trio.SocketStream) -> bool:
    """Return whether bytes wait in a socket. Below TLS they may be those of a ticket."""
    # A copy, which is closed here: trio's socket has no look without a wait.
    try:
        with socket.socket(fileno=stream.socket.dup().detach()) as copy:
            copy.setblocking(False)  # noqa: FBT003 (the parameter has no name)
            return bool(copy.recv(1, socket.MSG_PEEK))
    except OSError:  # nothing has come, or the connection is gone, which the request finds
        return False
