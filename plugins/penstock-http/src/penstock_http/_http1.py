"""One connection of HTTP/1.1: it reads requests, lets the engine answer them, and writes the answers.

Rules of this file:

* One task serves the connection. While a request waits for elements, a second one reads: so the end of the connection is seen at once.
* No write waits longer than `Limits.write_stall` for a client that does not read, and no more than one answer is in memory.
* An answer with elements counts as lost if it was not written to its end, or if the connection is reset before the next request.
"""

import re
from functools import partial
from typing import Final

import trio

from penstock.api import AuthRefused, ConnectionLost, PenstockError, quoted_text
from penstock.plugins import ConnectionHost, PeerIdentity
from penstock_http._engine import Subscribe, refused
from penstock_http._exchanges import Events, Poll, StreamedBatch
from penstock_http._heads import LAST_CHUNK, BadRequest, Head, HeadReader, chunk, response_head
from penstock_http._messages import Outcome, Request, Response, answer, refusal
from penstock_http._site import Site
from penstock_http._site_connection import SiteConnection
from penstock_http._subscription import FULL

PIECE: Final = 64 << 10
"""Bytes of an answer that are written at a time: each has its own deadline."""

IDLE_SECONDS: Final = 75.0
"""Seconds that a connection without a request stays open."""

LINGER_SECONDS: Final = 1.0
LINGER: Final = 64 << 10

_SECRET: Final = re.compile(r"^/s/[^/]*")
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionLost)


class Http1Connection:
    """One connection."""

    def __init__(self, connection: SiteConnection, host: ConnectionHost, site: Site, *, is_loopback: bool) -> None:
        self._connection = connection
        self._host = host
        self._site = site
        self._is_loopback = is_loopback
        self._reader = HeadReader()
        self._something = trio.Event()
        """Set when a request that waits should look again."""
        self._is_gone = False
        self._idle = trio.CancelScope()
        self._last: Outcome | None = None
        """The elements of the last answer, until another request comes."""

    async def run(self, first: bytes | bytearray) -> None:
        """Serve requests until the connection ends; `first` are its first bytes."""
        self._reader.receive(first)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_shutdown)
            try:
                await self._serve()
            except _GONE:
                self._lose()
            finally:
                nursery.cancel_scope.cancel()

    # --- reading

    async def _serve(self) -> None:
        while True:
            try:
                head = await self._next_head()
                if head is None:
                    return
                await self._read_body(head)
            except BadRequest as error:
                await self._write(answer(error.status, text=str(error)), Request(method="", path="/"), closes=True)
                await self._read_out()
                return
            self._last = None
            # A whole request: the client is no stranger, and has no more than the time for one next.
            self._host.recognise()
            closes = not head.keeps_alive or self._host.is_draining
            began = trio.current_time()
            status = await self._answer(head, closes=closes)
            if self._host.logs_access:
                self._log(head.request, status, trio.current_time() - began)
            if closes or self._host.is_draining:
                await self._read_out()
                return

    async def _next_head(self) -> Head | None:
        """Return the next request, or None at the end of the connection."""
        if not await self._wait_for_bytes():
            return None
        try:
            with trio.fail_after(self._host.limits.handshake_timeout):
                while (head := self._reader.next_head()) is None:
                    if not await self._receive():
                        return None
        except trio.TooSlowError:
            raise BadRequest(408, "the head of the request took too long") from None
        return head

    async def _wait_for_bytes(self) -> bool:
        """Return whether something of the next request has come; False at the end of the connection, and in a shutdown."""
        if self._reader.is_empty:
            self._idle = trio.CancelScope(deadline=trio.current_time() + IDLE_SECONDS)
            # The shutdown cancels this wait.
            with self._idle:
                return not self._host.is_draining and await self._receive()
            return False
        return True

    async def _read_body(self, head: Head) -> None:
        if not head.has_body or head.expects_continue:
            return
        try:
            with trio.fail_after(self._host.limits.handshake_timeout):
                while not self._reader.discard_body():
                    if not await self._receive():
                        raise ConnectionLost("the client has ended the connection inside a body")
        except trio.TooSlowError:
            raise BadRequest(408, "the body of the request took too long") from None

    async def _receive(self) -> bool:
        data = await self._connection.receive()
        if data is None:
            return False
        self._reader.receive(data)
        return True

    async def _read_out(self) -> None:
        """Say that nothing follows, and read until the client ends too: closed over unread bytes, TCP would take the answer away."""
        most = LINGER
        with trio.move_on_after(LINGER_SECONDS):
            await self._connection.send_eof()
            while most > 0:
                data = await self._connection.receive()
                if data is None:
                    return
                most -= len(data)

    async def _watch_shutdown(self) -> None:
        await self._host.wait_draining()
        self._idle.cancel()
        self._something.set()

    # --- answering

    async def _answer(self, head: Head, *, closes: bool) -> int:
        """Answer a request, and return the status."""
        request, engine = head.request, self._site.engine
        response = self._site.judge(head, is_loopback=self._is_loopback, draining=self._host.is_draining)
        if response is None:
            response = await self._site.pages.answer(
                request, self._site.engine.credentials_of(request), self._client_of(request), self._host
            )
        if response is None and engine.needs_credentials(request):
            response = await self._check_owner(request)
        if response is not None:
            return await self._write(response, request, closes=closes)
        exchange = engine.receive(request, trio.current_time())
        if isinstance(exchange, Subscribe):
            exchange = await self._subscribe(exchange, request)
        if isinstance(exchange, Response):
            return await self._write(exchange, request, closes=closes)
        exchange.begin(self._wake)
        try:
            if isinstance(exchange, Poll):
                return await self._poll(exchange, request, closes=closes)
            return await self._stream(exchange, head, closes=closes)
        finally:
            exchange.release(trio.current_time())

    async def _subscribe(self, subscribe: Subscribe, request: Request) -> Response:
        if self._host.is_draining:
            return answer(503, ("Retry-After", "1"), text="the server shuts down")
        subscription, release = subscribe.subscription, None
        try:
            peer = await self._host.authenticate(*self._site.engine.credentials_of(request), self._client_of(request))
            # The elements of a stream that has ended wait for the client, and must count too.
            release = self._host.reserve(peer, subscription.kept_bytes, partial(subscription.cancel, FULL))
            await self._host.open(subscribe.name, peer, subscription, protocol="http")
            response = self._site.engine.opened(subscribe, request, peer.principal, release)
            release = None
        except PenstockError as error:
            return refused(error)
        finally:
            if release is not None:
                release()
        self._site.watch(self._host)
        return response

    async def _check_owner(self, request: Request) -> Response | None:
        try:
            peer = await self._host.authenticate(*self._site.engine.credentials_of(request), self._client_of(request))
        except AuthRefused as error:
            return refused(error)
        # The answer to a wrong secret: another principal must not learn that this one is right.
        return None if self._site.engine.belongs_to(request, peer.principal) else refusal(404, "no such subscription")

    async def _poll(self, poll: Poll, request: Request, *, closes: bool) -> int:
        response = poll.advance(trio.current_time())
        if response is None:
            response = await self._wait_for(poll)
        return await self._write(response, request, closes=closes)

    async def _wait_for(self, poll: Poll) -> Response:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_client)
            response = None
            while response is None:
                await self._wait(poll.due)
                if self._is_gone:
                    break
                response = poll.advance(trio.current_time(), draining=self._host.is_draining)
            nursery.cancel_scope.cancel()
        if response is None:
            raise ConnectionLost("the client has gone")
        return response

    async def _stream(self, stream: StreamedBatch | Events, head: Head, *, closes: bool) -> int:
        request = head.request
        response = stream.first(trio.current_time())
        if response is not None:
            return await self._write(response, request, closes=closes)
        closes = closes or not head.is_chunkable
        framing = (("Transfer-Encoding", "chunked"),) if head.is_chunkable else ()
        is_whole = False
        try:
            await self._send(response_head(200, (*stream.head.headers, *framing, *self._connection_headers(request, closes=closes))))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_client)
                is_whole = await self._send_parts(stream, is_chunked=head.is_chunkable)
                nursery.cancel_scope.cancel()
            if is_whole and head.is_chunkable:
                await self._send(LAST_CHUNK)
        except BaseException:  # a cancel too: the elements were not written
            is_whole = False
            raise
        finally:
            if is_whole:
                stream.on_written()
                self._last = stream
            else:
                stream.on_lost()
        if not is_whole:
            raise ConnectionLost("the client has gone")
        return 200

    async def _send_parts(self, stream: StreamedBatch | Events, *, is_chunked: bool) -> bool:
        """Send the parts of a body; return False if the client has gone."""
        while True:
            part = stream.advance(trio.current_time(), draining=self._host.is_draining)
            if part is None:
                return True
            if part:
                try:
                    await self._send(chunk(part) if is_chunked else part)
                except _GONE:
                    return False
            else:
                await self._wait(stream.due)
            if self._is_gone:
                return False

    async def _wait(self, until: float) -> None:
        """Wait until there is something new, the client has gone, or the server shuts down."""
        with trio.move_on_at(until):
            await self._something.wait()
        if not (self._is_gone or self._host.is_draining):
            self._something = trio.Event()

    def _wake(self) -> None:
        self._something.set()

    async def _watch_client(self) -> None:
        """Read while a request waits: the next request may come, or the connection may end."""
        try:
            while self._reader.has_room:
                if not await self._receive():
                    break
            else:
                return
        except _GONE:
            pass
        self._is_gone = True
        self._something.set()

    def _client_of(self, request: Request) -> PeerIdentity:
        return self._site.settings.proxies.client_of(request, self._connection.client)

    # --- writing

    async def _write(self, response: Response, request: Request, *, closes: bool) -> int:
        headers = (*response.headers, *self._connection_headers(request, closes=closes))
        # A 204 has no body, and so no length.
        if response.status != 204:
            headers = (*headers, ("Content-Length", str(len(response.body))))
        body = b"" if request.method == "HEAD" else response.body
        outcome, is_written = response.outcome, False
        try:
            await self._send(response_head(response.status, headers) + body)
            is_written = True
        finally:
            if outcome is not None:
                if is_written:
                    outcome.on_written()
                    self._last = outcome
                else:
                    outcome.on_lost()
        return response.status

    def _connection_headers(self, request: Request, *, closes: bool) -> tuple[tuple[str, str], ...]:
        shared = self._site.shared_headers(request)
        return (*shared, ("Connection", "close")) if closes or self._host.is_draining else shared

    async def _send(self, data: bytes) -> None:
        """Send `data`. Raises ConnectionLost if the client does not read."""
        view, stall = memoryview(data), self._host.limits.write_stall
        for start in range(0, len(data), PIECE):
            with trio.move_on_after(stall) as scope:
                await self._connection.send(view[start : start + PIECE])
            if scope.cancelled_caught:
                raise ConnectionLost(f"the client has read nothing for {stall:g} s (Limits.write_stall)")

    def _lose(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.on_lost()

    def _log(self, request: Request, status: int, seconds: float) -> None:
        # The secret of a subscription opens it, and a query may have a token: neither is written.
        path = quoted_text(_SECRET.sub("/s/...", request.path))
        method = quoted_text(request.method)
        self._host.write_access(self._client_of(request), "http", f"method={method} path={path} status={status} seconds={seconds:.3f}")
