"""Connections of penstock on streams of HTTP/2: that of a server, and that of a client.

Rules of this file:

* Bytes are bytes: the boundaries of DATA frames mean nothing,
  and both protocols speak as they do over TCP.
* The end of a half is END_STREAM. A connection that is closed before the peer has ended resets its
  stream, after its own END_STREAM.
* A client has a connection of TCP for each stream.
  A server serves every stream of a client as a separate connection.
"""

from collections.abc import Callable
from types import MappingProxyType

import attrs
import trio
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from penstock.api import ConnectionLost
from penstock.spi import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    PeerIdentity,
    TransportOptions,
)
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._requests import Agreed, HeaderPairs, answer_headers, judge_answer
from penstock_http.multiplex._stream import Http2Stream

CLOSED = "this stream was closed"


class StreamConnection(Connection):
    """What both sides have in common. `handshake` of a client sets the stream."""

    framed = False

    def __init__(
        self,
        mux: Multiplexer,
        below: Connection,
        options: TransportOptions,
        *,
        stream: Http2Stream | None,
    ) -> None:
        self.peer: PeerIdentity = below.peer
        self.facts: ConnectionFacts = below.facts
        self._mux = mux
        self._options = options
        self._stream = stream
        self._is_closed = False
        self._code = ErrorCodes.CANCEL

    async def send(self, data: Bytes, /) -> None:
        await self._mux.outgoing.send(self._usable(), data)

    def send_now(self, data: Bytes, /) -> int:
        return self._mux.outgoing.send_now(self._usable(), data)

    async def receive(self) -> bytes | bytearray | None:
        stream = self._usable()
        await stream.wait_readable()
        self._usable()
        return self._mux.streams.take(stream, self._options.receive_chunk) or None

    async def send_eof(self) -> None:
        self._mux.streams.end(self._usable())
        await self._mux.outgoing.wait_sent()

    async def aclose(self) -> None:
        stream = self._stream
        if stream is None or self._is_closed:
            await self.abort()
            return
        try:
            with trio.move_on_after(self._options.close_timeout):
                self._mux.streams.end(stream)
                await self._mux.outgoing.wait_sent()
                self._code = ErrorCodes.NO_ERROR
        except trio.BrokenResourceError:
            pass  # the peer has left
        finally:
            self._end(stream)
        await trio.lowlevel.checkpoint()

    async def abort(self) -> None:
        if self._stream is not None:
            self._end(self._stream)
        self._is_closed = True
        await trio.lowlevel.checkpoint()

    def on_goodbye(self, reason: str) -> None:
        self._code = reset_code(reason)

    def farewell(self) -> str | None:
        return self._mux.words or (self._stream.words if self._stream is not None else "") or None

    def held(self) -> int:
        stream = self._stream
        if stream is None:
            return 0
        return stream.waiting + (
            self._mux.outgoing.left if self._mux.outgoing.has_unsent(stream) else 0
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"

    def _end(self, stream: Http2Stream) -> None:
        """Reset the stream, unless both sides have ended it. Nobody reads what has arrived."""
        self._is_closed = True
        self._mux.streams.drop(stream)
        self._mux.streams.reset(stream, self._code, CLOSED)
        stream.on_closed()

    def _usable(self) -> Http2Stream:
        if self._stream is None or self._is_closed:
            raise trio.ClosedResourceError(CLOSED)
        return self._stream

    def _agree(self, protocol: str | None) -> None:
        details = MappingProxyType({**self.facts.details, "http": "2"})
        # TLS below knows the name h2; the protocol of the request is the one
        # that this connection carries.
        self.facts = attrs.evolve(self.facts, half_close=True, protocol=protocol, details=details)


class ServedStream(StreamConnection):
    """The connection of a server on a stream that a client has opened."""

    def __init__(
        self,
        mux: Multiplexer,
        below: Connection,
        options: TransportOptions,
        *,
        stream: Http2Stream,
        agreed: Agreed,
        on_hello: Callable[[], None],
    ) -> None:
        """`on_hello` is called when both sides have said hello on this stream."""
        super().__init__(mux, below, options, stream=stream)
        self._agreed = agreed
        self._on_hello = on_hello
        self._agree(agreed.protocol)

    async def handshake(self, nursery: trio.Nursery) -> None:
        """Answer the request: the client waits for the headers."""
        if self._stream is not None:
            self._mux.streams.answer(self._stream, answer_headers(self._agreed))
        await trio.lowlevel.checkpoint()

    def on_open(self) -> None:
        if self._stream is not None and not self._is_closed:
            self._mux.streams.trust(self._stream)
        self._on_hello()


class Http2ClientConnection(StreamConnection):
    """The connection of a client: one request on a connection of TCP or TLS."""

    def __init__(
        self,
        below: ByteConnection,
        options: TransportOptions,
        *,
        request: HeaderPairs,
        protocol: str | None,
        ping: float,
    ) -> None:
        """`protocol` is named by the request, if its encoding was chosen outside the stream."""
        super().__init__(Multiplexer(below, is_client=True, ping=ping), below, options, stream=None)
        self._below = below
        self._request = request
        self._protocol = protocol

    async def handshake(self, nursery: trio.Nursery) -> None:
        address, seconds = self.peer.address, self._options.handshake_timeout
        is_done = False
        try:
            with trio.fail_after(seconds):
                await self._below.handshake(nursery)
                self.peer, self.facts = self._below.peer, self._below.facts
                self._check_alpn()
                self._mux.begin()
                nursery.start_soon(self._mux.run)
                stream = self._mux.streams.open(self._request)
                await stream.answered.wait()
                self._judge(stream)
                self._stream = stream
            self._agree(self._protocol)
            is_done = True
        except trio.TooSlowError:
            raise ConnectionLost(
                f"{address} did not answer the request of HTTP/2 within {seconds:g} s"
            ) from None
        except (trio.BrokenResourceError, ProtocolError) as error:
            raise ConnectionLost(
                f"the handshake of HTTP/2 with {address} failed: {error}"
            ) from None
        finally:
            if not is_done:
                await self.abort()

    def _check_alpn(self) -> None:
        if self.facts.secure and self.facts.protocol not in {None, "h2"}:
            raise ConnectionLost(
                f"{self.peer.address} speaks {self.facts.protocol}, and not HTTP/2"
            )

    def _judge(self, stream: Http2Stream) -> None:
        refusal = (
            stream.words or "it ended the connection"
            if stream.answer is None
            else judge_answer(stream.answer)
        )
        if refusal is not None:
            raise ConnectionLost(f"{self.peer.address} opens no stream: {refusal}")

    async def aclose(self) -> None:
        try:
            with trio.move_on_after(self._options.close_timeout):
                await super().aclose()
                # Closed over unread bytes, TCP would take the last frames away from the peer.
                await self._mux.close(self._options.close_timeout)
        finally:
            self._mux.stop()
            await self._below.aclose()

    async def abort(self) -> None:
        await super().abort()
        self._mux.stop()
        await self._below.abort()


def reset_code(reason: str) -> ErrorCodes:
    """Return the code of the RST_STREAM after a goodbye with this reason."""
    if not reason or reason in {"shutdown", "draining"}:
        return ErrorCodes.CANCEL
    if reason.startswith(("protocol", "version")):
        return ErrorCodes.PROTOCOL_ERROR
    return ErrorCodes.INTERNAL_ERROR if reason == "internal" else ErrorCodes.ENHANCE_YOUR_CALM
