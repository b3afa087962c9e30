"""One connection of HTTP/2: it reads requests, lets the engine answer them, and writes the answers,
many at a time.

Rules of this file:

* Each request has a task, which is cancelled when its stream breaks.
  A fault in it resets its stream, and no other.
* The elements of at most `MAX_BODIES` answers are in memory at a time. No write waits longer than
  `Limits.write_stall` for the client.
* An answer with elements counts as lost if it was not written to its end, if the client resets its
  stream, or if the connection breaks soon and the client's system has not acknowledged its bytes.
* A request with the content type of RS.io or ReactiveSocket opens a stream of bytes,
  as at ``h2://``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
from h2.errors import ErrorCodes

from penstock.spi import ConnectionHost, TransportOptions
from penstock_http._answering import Answering
from penstock_http._heads import MAX_BODY, BadRequest, Head
from penstock_http._messages import Outcome, Request, Response, answer
from penstock_http._outlet import GONE, Outlet, stalled, write_in_pieces
from penstock_http._site import Site
from penstock_http._site_connection import SiteConnection
from penstock_http.multiplex import (
    MAX_HEADERS,
    MAX_STREAMS,
    Attendance,
    Headers,
    Http2Stream,
    Mount,
    asks_for_bytes,
)

MAX_BODIES: Final = 4
"""Answers whose elements are in memory at a time: with 100 streams, a client that reads slowly
would make a server hold 100 MiB.
"""


class Http2Connection:
    """One connection."""

    def __init__(
        self,
        connection: SiteConnection,
        host: ConnectionHost,
        site: Site,
        options: TransportOptions,
        *,
        place: Mount,
        ping: float,
        is_loopback: bool,
    ) -> None:
        self._connection = connection
        self._host = host
        self._answering = Answering(host, site, is_loopback=is_loopback)
        self._attendance = Attendance(
            connection,
            options,
            host,
            place=place,
            ping=ping,
            on_http=self._receive,
            on_reset=self._lose,
        )
        self._written: dict[int, tuple[Outcome, int | None]] = {}
        """The elements of the last `MAX_STREAMS` answers, by stream, and how many bytes had been
        sent on the connection with the last of them, as in `SiteConnection.has_acknowledged`.
        """
        self._nursery: trio.Nursery
        self.site: Site = site
        self.bodies: trio.Semaphore = trio.Semaphore(MAX_BODIES)
        self.stall: float = host.limits.write_stall
        self.mux = self._attendance.mux

    async def run(self, first: bytes) -> None:
        """Serve requests until the connection ends; `first` begins with the preface."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._watch_shutdown)
                await self._attendance.run(first)
                nursery.cancel_scope.cancel()
        finally:
            # Only the bytes up to the end of an answer count, not the goodbye after it: the system
            # of a client that has left does not acknowledge that.
            for stream_id, (_, sent) in tuple(self._written.items()):
                is_known = self._connection.has_acknowledged(sent)
                if not (self.mux.ended_well if is_known is None else is_known):
                    self._lose(stream_id)

    def acknowledged(self) -> bool | None:
        """Return whether the client's system has acknowledged all that was sent to it."""
        return self._connection.acknowledged()

    def note_written(self, stream: Http2Stream, outcome: Outcome) -> None:
        """Remember the elements of an answer, which the system has taken."""
        self._written[stream.id] = outcome, self._connection.sent()
        if len(self._written) > MAX_STREAMS:
            del self._written[next(iter(self._written))]

    # --- inside

    def _lose(self, stream_id: int) -> None:
        """Note that the client has not read an answer:
        it has reset the stream, or the connection broke.
        """
        outcome, _ = self._written.pop(stream_id, (None, None))
        if outcome is not None:
            outcome.on_lost()

    async def _watch_shutdown(self) -> None:
        await self._host.wait_draining()
        self._answering.on_draining()

    def _receive(self, stream: Http2Stream, headers: Headers) -> bool:
        if asks_for_bytes(headers):
            return False
        self._nursery.start_soon(self._serve, stream, headers)
        return True

    async def _serve(self, stream: Http2Stream, headers: Headers) -> None:
        if not stream.state.can_send:
            return  # it was reset before this task began
        code = ErrorCodes.CANCEL
        with trio.CancelScope() as scope:
            stream.on_gone = scope.cancel
            try:
                await self._answer(stream, headers)
            except GONE:
                pass
            except Exception as error:  # boundary: one request; the others go on
                code = ErrorCodes.INTERNAL_ERROR
                self._host.start_soon(_raise, error, name="penstock http request")
        stream.on_gone = None
        # An answer that was written to its end has ended the stream already.
        self.mux.streams.drop(stream)
        self.mux.streams.reset(stream, code, "the answer was not written")

    async def _answer(self, stream: Http2Stream, headers: Headers) -> None:
        try:
            head = head_of(headers, accepts_pushes=self.mux.core.permits_pushes)
            await self._read_body(stream)
        except BadRequest as error:
            await _Answer(self, stream, _UNREADABLE).write(answer(error.status, text=str(error)))
            return
        # A whole request: the client is not a stranger.
        self._host.recognise()
        await self._answering.answer(head, self._connection.client, _Answer(self, stream, head))
        self.mux.core.floods.on_answered()

    async def _read_body(self, stream: Http2Stream) -> None:
        """Read and drop the body: it means nothing here."""
        size = 0
        with trio.move_on_after(self._host.limits.handshake_timeout) as scope:
            while stream.state.can_receive:
                await stream.wait_readable()
                size += stream.waiting
                self.mux.streams.drop(stream)
                if size > MAX_BODY:
                    raise BadRequest(413, "a request needs no body here")
        if scope.cancelled_caught:
            raise BadRequest(408, "the body of the request took too long")


class _Answer(Outlet):
    """The answer to one request."""

    def __init__(self, connection: Http2Connection, stream: Http2Stream, head: Head) -> None:
        self._connection = connection
        self._mux = connection.mux
        self._stream = stream
        self._head = head
        self.bodies = connection.bodies

    async def write(self, response: Response) -> None:
        body = b"" if self._head.request.method == "HEAD" else response.body
        length = () if response.status == 204 else (("content-length", str(len(response.body))),)
        self._mux.streams.begin_answer(self._stream, self._fields(response, length), ends=not body)
        if body:
            await write_in_pieces(
                body, self._send, self._connection.stall, write_last=self._send_last
            )
        else:
            await trio.lowlevel.checkpoint()

    async def begin(self, response: Response, *, length: int | None = None) -> None:
        self._stream.check_sendable()
        more = () if length is None else (("content-length", str(length)),)
        self._mux.streams.answer(self._stream, self._fields(response, more))
        await trio.lowlevel.checkpoint()

    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        await write_in_pieces(
            part,
            self._send,
            self._connection.stall,
            write_last=self._send_last if is_last else None,
        )

    async def _send(self, piece: memoryview) -> None:
        await self._mux.outgoing.send(self._stream, piece)

    async def _send_last(self, piece: memoryview) -> None:
        await self._mux.streams.send_last(self._stream, self.on_written, piece)

    async def end(self) -> None:
        self._stream.check_sendable()
        self._mux.streams.end(self._stream)
        if self._mux.outgoing.left:
            with trio.move_on_after(self._connection.stall) as scope:
                await self._mux.outgoing.wait_sent()
            if scope.cancelled_caught:
                raise stalled(self._connection.stall)
        self.on_written()
        await trio.lowlevel.checkpoint()

    @contextmanager
    def promise(self, path: str) -> Iterator[Outlet]:
        head = self._head
        request = [
            (":method", "GET"),
            (":scheme", head.scheme),
            (":authority", head.host),
            (":path", path),
        ]
        stream = self._mux.streams.push(self._stream, request)
        try:
            yield _Answer(self._connection, stream, head)
        finally:
            self._mux.streams.reset(stream, ErrorCodes.CANCEL, "the push was not written")

    def note_written(self, outcome: Outcome) -> None:
        self._connection.note_written(self._stream, outcome)

    def acknowledged(self) -> bool | None:
        # The system knows nothing of the bytes that wait here.
        return False if self._mux.outgoing.left else self._connection.acknowledged()

    async def wait_gone(self) -> None:
        """Wait: the task of the request is cancelled when its stream breaks."""
        await trio.sleep_forever()

    def _fields(
        self, response: Response, more: tuple[tuple[str, str], ...]
    ) -> list[tuple[str, str]]:
        shared = self._connection.site.shared_headers(self._head.request)
        fields = [(name.lower(), value) for name, value in (*response.headers, *more, *shared)]
        return [(":status", str(response.status)), *fields]


_UNREADABLE: Final = Head(
    request=Request(method="", path="/"),
    host="",
    keeps_alive=True,
    is_chunkable=True,
    has_body=False,
    expects_continue=False,
)
"""In place of a request that cannot be read."""


def head_of(headers: Headers, *, accepts_pushes: bool = False) -> Head:
    """Return a request with these headers, which h2 has checked. Raises BadRequest."""
    if len(headers) > MAX_HEADERS:
        raise BadRequest(431, f"a request has at most {MAX_HEADERS} headers")
    named: dict[str, tuple[str, ...]] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        named[name] = (*named.get(name, ()), value)
    pseudo = {
        name: named.pop(name)[0]
        for name in (":method", ":path", ":authority", ":scheme")
        if name in named
    }
    # Browsers send each cookie in its own field (RFC 9113, 8.2.3).
    if "cookie" in named:
        named["cookie"] = ("; ".join(named["cookie"]),)
    path, _, query = pseudo.get(":path", "").partition("?")
    host = pseudo.get(":authority") or named.get("host", ("",))[0]
    return Head(
        request=Request(
            method=pseudo.get(":method", ""),
            path=path or "/",
            query=query,
            headers=named,
            accepts_pushes=accepts_pushes,
        ),
        host=host.strip().lower(),
        keeps_alive=True,
        is_chunkable=True,
        has_body=False,
        expects_continue=False,
        scheme=pseudo.get(":scheme", ""),
    )


async def _raise(error: Exception) -> None:
    """Let the server report `error`."""
    await trio.lowlevel.checkpoint()
    raise error
