"""One HTTP/2 connection on trio: its reader, its writer and its clock.

Rules of this file:

* The reader never waits for a stream.
  A stream that is not read holds what its window allows, and the others go on.
* The end of the connection is the end of all its streams, with one text that says why.
* A task in here raises nothing. A peer that breaks a rule gets a GOAWAY, and time to read it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio
from h2.errors import ErrorCodes

from penstock.spi import Connection
from penstock_http.multiplex._event_handler import EventHandler
from penstock_http.multiplex._floods import RuleBroken
from penstock_http.multiplex._frame_writer import FrameWriter
from penstock_http.multiplex._protocol import Headers, Http2Protocol
from penstock_http.multiplex._stream import Http2Stream
from penstock_http.multiplex._streams import Streams
from penstock_http.multiplex._watch import Watch

LINGER_SECONDS: Final = 1.0
"""Seconds to read on behind the last frame.
Closed over unread bytes, TCP would take the frame away from the peer.
"""


class Multiplexer:
    """One connection. A server gives `on_request`, which is called for each request."""

    def __init__(
        self,
        below: Connection,
        *,
        is_client: bool,
        ping: float,
        on_request: Callable[[Http2Stream, Headers], None] | None = None,
        on_reset: Callable[[int], None] | None = None,
    ) -> None:
        """`on_reset` is called with the id of a stream that the peer resets, also after its end."""
        self._on_reset = on_reset
        self._below = below
        self.core: Http2Protocol = Http2Protocol(is_client=is_client)
        self._watch = Watch(
            self.core.gate, ping=ping, is_server=not is_client, now=trio.current_time()
        )
        self.outgoing: FrameWriter = FrameWriter(
            below, self.core, on_failure=self._on_send_failure, give_up=self.give_up
        )
        self.streams: Streams = Streams(
            self.core, self.outgoing, is_client=is_client, on_count=self._on_count
        )
        self._incoming = EventHandler(
            self.core, self.outgoing, self.streams, on_request=on_request, give_up=self.give_up
        )
        self._scope = trio.CancelScope()
        self._pings = 0
        self.words: str = ""
        """How the connection ended, for people."""
        self.ended_well: bool = False
        """The peer has ended the connection: it had read what it wanted."""
        self.over: trio.Event = trio.Event()
        """Nothing is read or written any more."""

    def begin(self) -> None:
        """Send the first words."""
        self.core.begin()
        self.outgoing.flush()

    async def run(self, first: bytes = b"") -> None:
        """Read and write until the connection ends. `first` has arrived already."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.outgoing.run)
                    nursery.start_soon(self._watch.run, self._send_ping, self.give_up)
                    await self._read(first)
                    nursery.cancel_scope.cancel()
        finally:
            self._lose("the connection was closed")
            self.over.set()

    def go_away(self) -> None:
        """Accept no more streams, and tell the peer. Those that are open go on."""
        if not self.streams.is_closing:
            self.streams.close()
            self.core.go_away()
            self.outgoing.flush()

    async def close(self, seconds: float) -> None:
        """Say goodbye and read on until the peer has ended too, for at most `seconds`.
        Checkpoints.
        """
        self.go_away()
        with (
            trio.move_on_after(seconds),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            await self.outgoing.wait_sent()
            await self._below.send_eof()
            await self.over.wait()
        self.stop()

    def give_up(self, words: str) -> None:
        """End the connection, with a last frame if it can be sent without a wait."""
        if not self.streams.is_lost:
            self.streams.lose(words)
            self.core.terminate(ErrorCodes.NO_ERROR, words)
            self.outgoing.flush()
        self._lose(words)
        self.stop()

    def stop(self) -> None:
        """End the tasks."""
        self._scope.cancel()

    # --- inside

    async def _read(self, first: bytes) -> None:
        try:
            if first:
                await self._receive(first)
            while data := await self._below.receive():
                await self._receive(data)
            self.ended_well = True
            await self.outgoing.settle()
            self._lose("the peer ended the connection")
        except RuleBroken as error:
            await self._refuse(f"the peer broke a rule of HTTP/2 ({error.code.name}): {error}")
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            await self.outgoing.settle()
            self._lose(f"the connection broke: {error}")
        except Exception as error:
            # boundary: h2 and hpack read the bytes of a peer;
            # a fault in them ends this connection alone.
            self.core.terminate(ErrorCodes.INTERNAL_ERROR, "internal")
            await self._refuse(f"HTTP/2 failed on the bytes of the peer: {error!r}")

    async def _receive(self, data: bytes | bytearray) -> None:
        now = trio.current_time()
        is_first = True
        for events in self.core.receive(data, now):
            if not is_first:
                # A peer that sends many small frames must not starve other tasks.
                await trio.lowlevel.checkpoint()
            for event in events:
                self._incoming.handle(event, now)
            self._report_resets()
            self.outgoing.pump()
            is_first = False
        self._watch.on_bytes(now)

    def _report_resets(self) -> None:
        resets, self.core.gate.resets = self.core.gate.resets, []
        if self._on_reset is not None:
            for stream_id in resets:
                self._on_reset(stream_id)

    async def _refuse(self, words: str) -> None:
        """Send the GOAWAY that waits, and give the peer time to read it."""
        self.words = self.words or words
        self.streams.lose(words)
        with (
            trio.move_on_after(LINGER_SECONDS),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            self.outgoing.flush()
            await self.outgoing.wait_sent()
            await self._below.send_eof()
            while await self._below.receive():
                pass
        self._lose(words)

    def _lose(self, words: str) -> None:
        self.words = self.words or words
        self.outgoing.fail(self.words)
        self.streams.lose(self.words)

    def _on_send_failure(self) -> None:
        self.streams.release_sends()

    def _send_ping(self) -> None:
        self._pings += 1
        self.core.ping(self._pings)
        self.outgoing.flush()

    def _on_count(self, count: int) -> None:
        self._watch.on_streams(count, trio.current_time())
