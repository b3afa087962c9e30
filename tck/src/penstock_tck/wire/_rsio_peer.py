"""An RS.io client for the checks:
it sends the messages that a check gives it, and records every message that it receives.
"""

from typing import Final

import trio

from penstock.spi import Connection
from penstock_tck.wire import rsio as io
from penstock_tck.wire._recording_peer import RecordingPeer
from penstock_tck.wire._rsio_forms import Form
from penstock_tck.wire._rsio_translation import Incoming, Outgoing
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import verify
from penstock_tck.wire.rsio import Message

FIRST_PROBE_ID: Final = 9001
"""The id of the first stream that tests whether the connection still works."""

ENDS: Final = (io.ON_COMPLETE, io.ON_ERROR)


class RsioPeer(RecordingPeer[Message]):
    """A client that a check drives message by message."""

    # Of streams that this side opened: both sides may use the same ids.
    of_publishers = tuple(range(io.ON_SUBSCRIBE, io.ON_ERROR + 1))

    def __init__(
        self,
        connection: Connection,
        target: Target,
        *,
        form: Form | None = None,
        is_outside: bool = False,
    ) -> None:
        """`form` is the encoding of the messages; with `is_outside` the transport or the URL has
        chosen it. None is the compact one.
        """
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self.outgoing = Outgoing(form, is_outside=is_outside)
        self.incoming = (
            Incoming(form) if is_outside else Incoming(agreed=() if form is None else (form.id,))
        )
        self._probe_id = FIRST_PROBE_ID - 1

    async def subscribe(self, stream: int, demand: int, name: str) -> None:
        """Subscribe to a publisher of the target."""
        await self.send(io.subscribe(name, stream, demand))

    async def send(self, *data: bytes) -> None:
        """Send compact messages, in the encoding of the connection.
        Otherwise as `RawConnection.send`.
        """
        await super().send(*map(self.encoded, data))

    async def send_as_it_is(self, data: bytes) -> None:
        """Send bytes that are in the encoding of the connection already."""
        await super().send(data)

    async def send_cut(self, data: bytes) -> None:
        """Send compact messages as `send` does, one byte at a time."""
        for byte in self.encoded(data):
            await super().send(bytes([byte]))

    def encoded(self, data: bytes) -> bytes:
        """Return the bytes that `send` sends for compact messages."""
        form = self.outgoing.form
        return self.outgoing.encode(data, is_agreed=form is not None and form.id in self.listed)

    @property
    def listed(self) -> tuple[int, ...]:
        """The ids in the target's hello; empty before it."""
        hello = self.of_type(io.SERVER_HELLO)
        return hello[0].numbers[1:] if hello else ()

    async def change_encoding(self, form: Form) -> None:
        """Send a switchEncoding, and everything after it in the encoding."""
        await self.send_as_it_is(self.outgoing.change(form))

    def on_data(self, data: bytes) -> None:
        """Decode the received bytes and record the messages."""
        self.record(self.incoming.feed(data), self.incoming.error)

    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream: single, unpacked, or joined from their parts."""
        size = self.incoming.sizes.get(stream, 0)
        found: list[bytes] = []
        parts: dict[int, bytes] = {}
        for message in self.of_stream(stream):
            if message.type == io.ON_NEXT:
                found.append(message.body)
            elif message.type == io.ON_NEXT_PACKED:
                found += [
                    message.body[start : start + size]
                    for start in range(0, len(message.body), size or 1)
                ]
            elif message.type in (io.ON_NEXT_PART, io.ON_NEXT_LAST_PART):
                parts[message.numbers[0]] = parts.get(message.numbers[0], b"") + message.body
                if message.type == io.ON_NEXT_LAST_PART:
                    found.append(parts.pop(message.numbers[0]))
        return found

    def ended(self, stream: int) -> Message | None:
        """Return the message that ended a stream, or None."""
        return next(iter(self.of_stream(stream, *ENDS)), None)

    def completed(self, stream: int) -> bool:
        """Return whether an onComplete has come for the stream."""
        return bool(self.of_stream(stream, io.ON_COMPLETE))

    def failed(self, stream: int) -> bool:
        """Return whether an onError has come for the stream."""
        return bool(self.of_stream(stream, io.ON_ERROR))

    async def cancel(self, stream: int) -> None:
        """Send cancel."""
        await self.send(io.cancel(stream))

    async def expect_working(self) -> None:
        """Fail unless the connection still works: a new stream gets two elements."""
        self._probe_id += 1
        await self.subscribe(self._probe_id, 2, self._target.publisher)
        await self.expect_probe(self._probe_id)

    async def expect_refused(self, why: str) -> str:
        """Fail unless the target sends goodbye as its last message and closes the connection.
        Return what was seen.
        """
        await self.wait_until(
            lambda: self.of_type(io.GOODBYE) or self.ending, f"a goodbye, because {why},"
        )
        verify(
            self.of_type(io.GOODBYE),
            f"{why}, and the target closed without a goodbye; {self.describe_received()}",
        )
        await self.end_output()
        await self.wait_closed(f"{why}, and the target said goodbye")
        verify(
            self.received[-1].type == io.GOODBYE,
            f"{why}, and the target went on after its goodbye; {self.describe_received()}",
        )
        verify(
            len(self.of_type(io.GOODBYE)) == 1,
            f"more than one goodbye came; {self.describe_received()}",
        )
        return str(self.of_type(io.GOODBYE)[0])

    async def end_output(self) -> None:
        """End the output of this side if the transport can:
        then the target does not wait for a goodbye in answer.
        """
        try:
            await self.connection.send_eof()
        except trio.BrokenResourceError:
            self.ending = self.ending or "reset"
