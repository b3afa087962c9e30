"""One connection of HTTP/1.1: it reads requests, lets the engine answer them,
and writes the answers.

Rules of this file:

* One task serves the connection. While a request waits for elements, it reads: so the end of the
  connection is seen at once.
* No write waits longer than `Limits.write_stall` for a client that does not read,
  and no more than one answer is in memory.
* An answer with elements counts as lost if it was not written to its end, or if the connection is
  reset before the client's system has acknowledged all of it. A proxy that resets a connection
  that it needs no more has read the answer.
"""

from contextlib import suppress
from typing import Final

import trio

from penstock.api import ConnectionLost
from penstock.spi import ConnectionHost
from penstock_http._answering import Answering
from penstock_http._heads import (
    CHUNK_END,
    LAST_CHUNK,
    BadRequest,
    Head,
    HeadReader,
    chunk_head,
    response_head,
)
from penstock_http._messages import Outcome, Request, Response, answer
from penstock_http._outlet import GONE, PIECE, Outlet, write_in_pieces
from penstock_http._site import Site
from penstock_http._site_connection import SiteConnection
from penstock_http._websocket import NOT_INSTALLED, is_installed

IDLE_SECONDS: Final = 75.0
"""Seconds that a connection without a request stays open."""

LINGER_SECONDS: Final = 1.0
LINGER: Final = 64 << 10

_UNREADABLE: Final = Head(
    request=Request(method="", path="/"),
    host="",
    keeps_alive=False,
    is_chunkable=False,
    has_body=False,
    expects_continue=False,
)
"""In place of a request that cannot be read."""


class Http1Connection:
    """One connection."""

    def __init__(
        self, connection: SiteConnection, host: ConnectionHost, site: Site, *, is_loopback: bool
    ) -> None:
        self._connection = connection
        self._host = host
        self._site = site
        self._answering = Answering(host, site, is_loopback=is_loopback)
        self._reader = HeadReader()
        self._idle = trio.CancelScope()
        self._last: Outcome | None = None
        """The elements of the last answer, until another request comes."""

    async def run(self, first: bytes | bytearray) -> bytes:
        """Serve requests until the connection ends; `first` are its first bytes.

        Returns the bytes of a request that asks for a WebSocket, if that ends the service.
        """
        self._reader.receive(first)
        upgrade = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_shutdown)
            try:
                upgrade = await self._serve()
            except GONE:
                self._lose()
            finally:
                nursery.cancel_scope.cancel()
        return upgrade

    # --- reading

    async def _serve(self) -> bytes:
        while True:
            try:
                head = await self._next_head()
                if head is None:
                    return b""
                if head.asks_for_websocket:
                    return self._upgrade()
                await self._read_body(head)
            except BadRequest as error:
                await _Answer(self, _UNREADABLE, closes=True).write(
                    answer(error.status, text=str(error))
                )
                await self._read_out()
                return b""
            self._last = None
            # A whole request: the client is not a stranger,
            # and has no more than the time for one next.
            self._host.recognise()
            closes = not head.keeps_alive or self._host.is_draining
            await self._answering.answer(
                head, self._connection.client, _Answer(self, head, closes=closes)
            )
            if closes or self._host.is_draining:
                await self._read_out()
                return b""

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
        """Return whether something of the next request has come; False at the end of the
        connection, and in a shutdown.
        """
        if self._reader.is_empty:
            self._idle = trio.CancelScope(deadline=trio.current_time() + IDLE_SECONDS)
            # The shutdown cancels this wait.
            with self._idle:
                return not self._host.is_draining and await self._receive()
            return False
        return True

    def _upgrade(self) -> bytes:
        """Return all bytes from the request on, for the plugin of WebSocket.
        Raises BadRequest without that.
        """
        if not is_installed():
            raise BadRequest(501, NOT_INSTALLED)
        return self._reader.take()

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
        """Say that nothing follows, and read until the client ends too: closed over unread
        bytes, TCP would take the answer away.
        """
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
        self._answering.on_draining()

    # --- for the answers

    async def wait_gone(self) -> None:
        """Read until the connection ends: the next request may come too."""
        with suppress(*GONE):
            while self._reader.has_room:
                if not await self._receive():
                    return
            await trio.sleep_forever()

    def note_written(self, outcome: Outcome) -> None:
        """Remember the elements of the last answer, until another request comes."""
        self._last = outcome

    def acknowledged(self) -> bool | None:
        """Return whether the client's system has acknowledged all that was sent."""
        return self._connection.acknowledged()

    async def send(self, *parts: bytes) -> None:
        """Send `parts`. Raises ConnectionLost if the client does not read."""
        # Large ones are not joined: a client that does not read would make two copies wait.
        for part in parts if sum(map(len, parts)) > PIECE else (b"".join(parts),):
            await write_in_pieces(part, self._connection.send, self._host.limits.write_stall)

    def headers(self, request: Request, *, closes: bool) -> tuple[tuple[str, str], ...]:
        """Return the headers of every answer to `request`."""
        shared = self._site.shared_headers(request)
        return (*shared, ("Connection", "close")) if closes or self._host.is_draining else shared

    def _lose(self) -> None:
        last, self._last = self._last, None
        if last is not None and not self._connection.acknowledged():
            last.on_lost()


class _Answer(Outlet):
    """The answer to one request."""

    def __init__(self, connection: Http1Connection, head: Head, *, closes: bool) -> None:
        self._connection = connection
        self._head = head
        self._closes = closes
        self._is_chunked = head.is_chunkable

    async def write(self, response: Response) -> None:
        headers = (
            *response.headers,
            *self._connection.headers(self._head.request, closes=self._closes),
        )
        # A 204 has no body, and so no length.
        if response.status != 204:
            headers = (*headers, ("Content-Length", str(len(response.body))))
        body = b"" if self._head.request.method == "HEAD" else response.body
        await self._connection.send(response_head(response.status, headers), body)

    async def begin(self, response: Response, *, length: int | None = None) -> None:
        closes = self._closes
        framing: tuple[tuple[str, str], ...] = ()
        if length is not None:
            self._is_chunked = False
            framing = (("Content-Length", str(length)),)
        elif self._is_chunked:
            framing = (("Transfer-Encoding", "chunked"),)
        else:
            closes = True  # nothing else tells where the body ends
        shared = self._connection.headers(self._head.request, closes=closes)
        await self._connection.send(
            response_head(response.status, (*response.headers, *framing, *shared))
        )

    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        if self._is_chunked:
            end = CHUNK_END + LAST_CHUNK if is_last else CHUNK_END
            await self._connection.send(chunk_head(len(part)), part, end)
        else:
            await self._connection.send(part)

    async def end(self) -> None:
        if self._is_chunked:
            await self._connection.send(LAST_CHUNK)

    def note_written(self, outcome: Outcome) -> None:
        self._connection.note_written(outcome)

    def acknowledged(self) -> bool | None:
        return self._connection.acknowledged()

    async def wait_gone(self) -> None:
        await self._connection.wait_gone()
