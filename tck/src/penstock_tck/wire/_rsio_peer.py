"""An RS.io client for the checks:
it sends the messages that a check gives it, and records every message that it receives.
"""

from typing import Final

import trio

from penstock.spi import Connection
from penstock_tck.wire import rsio as io
from penstock_tck.wire._raw_connection import RawConnection
from penstock_tck.wire._rsio_forms import Form
from penstock_tck.wire._rsio_translation import Incoming, Outgoing
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import fail, verify
from penstock_tck.wire.rsio import Message

FIRST_PROBE_ID: Final = 9001
"""The id of the first stream that tests whether the connection still works."""

MAX_SHOWN: Final = 6
"""How many of the last messages `describe_received` shows."""

ENDS: Final = (io.ON_COMPLETE, io.ON_ERROR)


class RsioPeer(RawConnection):
    """A client that a check drives message by message."""

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
        self.messages: list[Message] = []
        # An index: a check with 100 streams looks at each stream after each read.
        self._by_stream: dict[int, list[Message]] = {}

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
        for message in self.incoming.feed(data):
            self.messages.append(message)
            self._by_stream.setdefault(message.stream, []).append(message)
        if self.incoming.error:
            fail(f"the target sent {self.incoming.error}; {self.describe_received()}")

    def describe_received(self) -> str:
        """Describe the last `MAX_SHOWN` messages, and the end of the connection."""
        before = (
            f"{len(self.messages) - MAX_SHOWN} more, then "
            if len(self.messages) > MAX_SHOWN
            else ""
        )
        shown = before + (", ".join(map(str, self.messages[-MAX_SHOWN:])) or "nothing")
        return f"arrived: {shown}" + (
            f"; then the connection was {self.ending}" if self.ending else ""
        )

    def of_type(self, *kinds: int) -> list[Message]:
        """Return the messages of these types."""
        return [message for message in self.messages if message.type in kinds]

    def of_stream(self, stream: int, *kinds: int) -> list[Message]:
        """Return the messages of these types that came for a stream that this side opened.
        Without types: all that a publisher may send.
        """
        wanted = kinds or tuple(range(io.ON_SUBSCRIBE, io.ON_ERROR + 1))
        return [message for message in self._by_stream.get(stream, ()) if message.type in wanted]

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

    async def wait_end(self, stream: int, kind: int) -> None:
        """Wait for the end of a stream, and fail unless it has the type `kind`."""
        await self.wait_until(lambda: self.ended(stream), f"the end of stream {stream}")
        verify(
            self.of_stream(stream, kind),
            f"{io.FIELDS[kind][0]} is due for stream {stream}; {self.describe_received()}",
        )

    async def wait_elements(self, stream: int, count: int) -> None:
        """Wait for `count` elements."""
        await self.wait_until(
            lambda: len(self.elements(stream)) >= count or self.ended(stream),
            f"element {count} of stream {stream}",
        )
        verify(
            len(self.elements(stream)) >= count,
            f"stream {stream} ended before element {count}; {self.describe_received()}",
        )

    async def expect_exactly(self, stream: int, count: int) -> None:
        """Wait for `count` elements, and fail if more come."""
        await self.wait_elements(stream, count)
        await self.settle()
        got = len(self.elements(stream))
        verify(
            got == count,
            (
                f"{got} elements came on stream {stream}, where {count} were requested; "
                f"{self.describe_received()}"
            ),
        )

    async def expect_working(self) -> None:
        """Fail unless the connection still works: a new stream gets two elements."""
        self._probe_id += 1
        await self.subscribe(self._probe_id, 2, self._target.publisher)
        await self.wait_until(
            lambda: len(self.elements(self._probe_id)) >= 2,
            "two elements of a new stream, which show that the connection still works,",
        )
        await self.send(io.cancel(self._probe_id))

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
            self.messages[-1].type == io.GOODBYE,
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
