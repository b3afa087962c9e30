"""The open streams of one HTTP/2 connection, and everything
that a connection of penstock does on one of them.

Rules of this file:

* A stream is in the table from its request until both halves have ended, or until it is reset. The
  bytes that it holds can be taken later.
* Credit goes back to the peer when the bytes of a stream were taken, or
  when they are dropped with it.
* Each call sends what it has made. None of them waits.
"""

from collections.abc import Callable, Iterator
from functools import partial

import trio
from h2.errors import ErrorCodes
from h2.exceptions import H2Error

from penstock.spi import Bytes
from penstock_http.multiplex._frame_writer import FrameWriter
from penstock_http.multiplex._protocol import Http2Protocol
from penstock_http.multiplex._requests import HeaderPairs
from penstock_http.multiplex._states import Http2StreamState
from penstock_http.multiplex._stream import Http2Stream


class Streams:
    """The streams of one connection, by id.
    A server has at most `MAX_STREAMS` of them, a client one.
    """

    def __init__(
        self,
        core: Http2Protocol,
        outgoing: FrameWriter,
        *,
        is_client: bool,
        on_count: Callable[[int], None],
    ) -> None:
        """`on_count` is called with the number of open streams whenever it has changed."""
        self._core = core
        self._outgoing = outgoing
        self._is_client = is_client
        self._on_count = on_count
        self._open: dict[int, Http2Stream] = {}
        self._changed = trio.Event()
        self.is_closing: bool = False
        """No stream is opened any more:
        a GOAWAY was sent or received, or the connection is lost.
        """
        self.is_lost: bool = False
        """Nothing is sent or received any more."""

    def get(self, stream_id: int) -> Http2Stream | None:
        """Return the stream, or None if it is over."""
        return self._open.get(stream_id)

    def __iter__(self) -> Iterator[Http2Stream]:
        return iter(tuple(self._open.values()))

    def add(self, stream_id: int) -> Http2Stream:
        """Note a stream that has begun."""
        stream = self._open[stream_id] = Http2Stream(stream_id)
        self._note_changed()
        return stream

    def forget(self, stream: Http2Stream) -> None:
        """Note that a stream is over."""
        if self._open.pop(stream.id, None) is not None:
            self._note_changed()

    def close(self) -> None:
        """Open no stream any more."""
        self.is_closing = True
        self._note_changed()

    def lose(self, words: str) -> None:
        """Break every stream: the connection is lost."""
        self.is_closing = self.is_lost = True
        for stream in self:
            stream.on_broken(words)
        self._open.clear()
        self._note_changed()

    def release_sends(self) -> None:
        """Let every send that waits go on: nothing can be sent any more."""
        for stream in self:
            if stream.pending is not None:
                stream.pending.over.set()

    async def wait_unused(self) -> None:
        """Wait until no stream is open and none is opened any more. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self._open or not self.is_closing:
            await self._changed.wait()

    # --- what a connection does on its stream

    def open(self, headers: HeaderPairs) -> Http2Stream:
        """Open a stream with a request. Raises h2's ProtocolError if the server allows none."""
        stream_id = self._core.next_id()
        self._core.send_headers(stream_id, headers)
        stream = self.add(stream_id)
        self._outgoing.flush()
        return stream

    def push(self, stream: Http2Stream, headers: HeaderPairs) -> Http2Stream:
        """Promise the answer to a request, on `stream`, and return the stream of that answer.
        Raises BrokenResourceError.
        """
        stream.check_sendable()
        try:
            promised = self.add(self._core.push(stream.id, headers))
        except H2Error as error:  # the client permits none any more
            raise trio.BrokenResourceError(f"nothing can be pushed: {error}") from None
        promised.on_end()
        self._outgoing.flush()
        return promised

    def answer(self, stream: Http2Stream, headers: HeaderPairs, body: bytes | None = None) -> None:
        """Answer a request. With a body the answer is complete,
        and nothing more of the request is read.
        """
        if stream.state.can_send:
            self._core.send_headers(stream.id, headers)
            if body is not None:
                self._outgoing.post(stream, body, partial(self._end_refused, stream))
            self._outgoing.flush()

    def begin_answer(self, stream: Http2Stream, headers: HeaderPairs, *, ends: bool) -> None:
        """Answer a request; if `ends` is False, what is sent next goes into one packet with
        this. Raises BrokenResourceError.
        """
        stream.check_sendable()
        self._core.send_headers(stream.id, headers, ends=ends)
        if ends:
            self._note_sent_end(stream)
            self._outgoing.flush()

    async def send_last(
        self, stream: Http2Stream, on_sent: Callable[[], None], data: Bytes
    ) -> None:
        """Send `data`, which is not empty, and end this side's half with its last frame. Raises
        BrokenResourceError. Checkpoints.

        `on_sent` is called when the system has taken it.
        A client that counts the bytes of a body may close the connection behind the last one. A
        frame that comes then would reset it, and the answer would count as lost.
        """
        await self._outgoing.send(
            stream, data, on_end=partial(self._note_sent_end, stream), on_sent=on_sent
        )

    def _note_sent_end(self, stream: Http2Stream) -> None:
        stream.on_sent_end()
        if stream.state is Http2StreamState.CLOSED:
            self.forget(stream)

    def _end_refused(self, stream: Http2Stream) -> None:
        self.end(stream)
        self.reset(stream, ErrorCodes.NO_ERROR, "the request was refused")

    def trust(self, stream: Http2Stream) -> None:
        """Give a client its full windows: it has said hello."""
        if not self._is_client and not self.is_lost and stream.state.can_receive:
            self._core.widen(stream.id)
            self._outgoing.flush()

    def take(self, stream: Http2Stream, most: int) -> bytes:
        """Take bytes out of `stream`, and give their credit back.
        Raises as `Http2Stream.take` does.
        """
        data = stream.take(most)
        self._give_back(stream, len(data))
        return data

    def drop(self, stream: Http2Stream) -> None:
        """Drop the bytes that were not taken."""
        self._give_back(stream, stream.drop())

    def end(self, stream: Http2Stream) -> None:
        """End this side's half of `stream`."""
        if stream.state.can_send:
            self._core.end(stream.id)
            self._note_sent_end(stream)
            self._outgoing.flush()

    def reset(self, stream: Http2Stream, code: ErrorCodes, words: str) -> None:
        """End `stream` at once. Does nothing if it is over."""
        if stream.id in self._open:
            self._core.reset(stream.id, code)
            stream.on_broken(words)
            self.forget(stream)
            self._outgoing.flush()

    # --- inside

    def _give_back(self, stream: Http2Stream, size: int) -> None:
        if size and not self.is_lost:
            self._core.acknowledge(stream.id, size)
            self._outgoing.flush()

    def _note_changed(self) -> None:
        self._on_count(len(self._open))
        self._changed.set()
        self._changed = trio.Event()
