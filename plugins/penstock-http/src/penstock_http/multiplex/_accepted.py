"""The server's side of one HTTP/2 connection:
each request that opens a stream of bytes is a connection for the server.

Rules of this file:

* A request is judged and answered by plain calls.
  A stream for which the server has no place gets 503, and the others go on.
* The client is a stranger until both sides have said hello on one of its streams.
* At a shutdown the client gets a GOAWAY. Its streams say their own goodbyes, and the connection
  ends behind the last of them.
"""

from collections.abc import Callable
from typing import Final

import trio

from penstock.spi import ByteConnection, Bytes, Connection, ConnectionHost, TransportOptions
from penstock_http.multiplex import _floods as floods
from penstock_http.multiplex._connection import ServedStream
from penstock_http.multiplex._frame_filter import PREFACE
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._protocol import Headers
from penstock_http.multiplex._requests import Mount, Refused, judge_request, refusal_headers
from penstock_http.multiplex._stream import Http2Stream

_WRONG_VERSION: Final = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 66\r\nConnection: close\r\n\r\n"
    b"this port speaks HTTP/2 alone (curl: use --http2-prior-knowledge)\n"
)


class AcceptedConnection(Connection):
    """A connection of TCP or TLS, and what its listener was told.
    The server attends it after its handshake.
    """

    framed = False

    def __init__(
        self, below: ByteConnection, options: TransportOptions, *, place: Mount, ping: float
    ) -> None:
        self.below: ByteConnection = below
        self.options: TransportOptions = options
        self.place: Mount = place
        self.ping: float = ping
        self.peer = below.peer
        self.facts = below.facts

    async def handshake(self, nursery: trio.Nursery) -> None:
        await self.below.handshake(nursery)
        self.peer, self.facts = self.below.peer, self.below.facts

    async def send(self, data: Bytes, /) -> None:
        await self.below.send(data)

    async def receive(self) -> bytes | bytearray | None:
        return await self.below.receive()

    async def aclose(self) -> None:
        await self.below.aclose()

    async def abort(self) -> None:
        await self.below.abort()

    def farewell(self) -> str | None:
        return self.below.farewell()


class Attendance:
    """The service of one client, from its preface to its end."""

    def __init__(
        self,
        below: Connection,
        options: TransportOptions,
        host: ConnectionHost,
        *,
        place: Mount,
        ping: float,
        on_http: Callable[[Http2Stream, Headers], bool] | None = None,
        on_reset: Callable[[int], None] | None = None,
    ) -> None:
        """`on_http` returns whether it has taken a request that opens no stream of bytes.
        `on_reset` is that of `Multiplexer`.
        """
        self._below = below
        self._options = options
        self._host = host
        self._place = place
        self._on_http = on_http
        self.mux: Multiplexer = Multiplexer(
            below, is_client=False, ping=ping, on_request=self._receive_request, on_reset=on_reset
        )

    async def run(self, first: bytes = b"") -> None:
        """Serve the streams of the client. `first` has the whole preface, if that has come already.

        Returns when the client has left, or at a shutdown behind the last stream.
        """
        first = first or await self._read_preface()
        if not first:
            return
        self.mux.begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drain)
            await self.mux.run(first)
            nursery.cancel_scope.cancel()

    async def _read_preface(self) -> bytes:
        """Return the first bytes of the client, with the whole preface; nothing if it speaks
        something else, or has left.
        """
        below, first = self._below, b""
        while len(first) < len(PREFACE):
            data = await below.receive()
            if not data:
                return b""
            first += data
            if not PREFACE.startswith(first[: len(PREFACE)]):
                if b" HTTP/1." in first:
                    await below.send(_WRONG_VERSION)
                return b""
        return first

    async def _drain(self) -> None:
        await self._host.wait_draining()
        self.mux.go_away()
        await self.mux.streams.wait_unused()
        await self.mux.close(self._options.close_timeout)

    def _receive_request(self, stream: Http2Stream, headers: Headers) -> None:
        if self._on_http is not None and self._on_http(stream, headers):
            return
        verdict = judge_request(headers, self._place)
        if not isinstance(verdict, Refused):
            served = ServedStream(
                self.mux,
                self._below,
                self._options,
                stream=stream,
                agreed=verdict,
                on_hello=self._host.recognise,
            )
            reason = self._host.adopt(served)
            if reason is None:
                return
            verdict = Refused(
                status=503,
                text=f"the server has no place: {reason}",
                headers=(("retry-after", "1"),),
            )
        body = f"{verdict.text}\n".encode()
        self.mux.streams.answer(stream, refusal_headers(verdict, len(body)), body)
        self.mux.core.count(floods.REFUSALS, trio.current_time())
