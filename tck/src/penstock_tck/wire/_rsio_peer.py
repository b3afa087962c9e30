"""The checking side of an RS.io connection: it says what it is told to, and remembers all that arrives."""

from typing import Final

import trio

from penstock.plugins import Connection
from penstock_tck.wire import _rsio_messages as io
from penstock_tck.wire._line import Line
from penstock_tck.wire._rsio_messages import Message
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import fail, verify

PROBE: Final = 9001
"""The first id of the streams that show whether the connection still works."""

SHOWN: Final = 6
"""So many of the last messages are told of."""

ENDS: Final = (io.ON_COMPLETE, io.ON_ERROR)


class RsioPeer(Line):
    """A client, by hand."""

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self._reader = io.MessageReader()
        self._probe = PROBE - 1
        self.messages: list[Message] = []
        self._of_stream: dict[int, list[Message]] = {}  # some requirements take thousands of streams, and ask for each after each read

    async def subscribe(self, stream: int, demand: int, name: str) -> None:
        """Subscribe to a publisher of the target's."""
        await self.send(io.subscribe(name, stream, demand))

    def arrived(self, data: bytes) -> None:
        """Take the messages out of what came."""
        for message in self._reader.take(data):
            self.messages.append(message)
            self._of_stream.setdefault(message.stream, []).append(message)
        if self._reader.broken:
            fail(f"the target sent {self._reader.broken}; {self.story()}")

    def story(self) -> str:
        """What has arrived, for people."""
        before = f"{len(self.messages) - SHOWN} more, then " if len(self.messages) > SHOWN else ""
        told = before + (", ".join(map(str, self.messages[-SHOWN:])) or "nothing")
        return f"arrived: {told}" + (f"; then the connection was {self.over}" if self.over else "")

    def of(self, *kinds: int) -> list[Message]:
        """Return the messages of those types."""
        return [message for message in self.messages if message.type in kinds]

    def on(self, stream: int, *kinds: int) -> list[Message]:
        """Return what a publisher has said for a stream of ours, of those types or of any."""
        wanted = kinds or tuple(range(io.ON_SUBSCRIBE, io.ON_ERROR + 1))
        return [message for message in self._of_stream.get(stream, ()) if message.type in wanted]

    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream: single, unpacked, or joined from their parts."""
        size = self._reader.sizes.get(stream, 0)
        found: list[bytes] = []
        parts: dict[int, bytes] = {}
        for message in self.on(stream):
            if message.type == io.ON_NEXT:
                found.append(message.body)
            elif message.type == io.ON_NEXT_PACKED:
                found += [message.body[start : start + size] for start in range(0, len(message.body), size or 1)]
            elif message.type in (io.ON_NEXT_PART, io.ON_NEXT_LAST_PART):
                parts[message.numbers[0]] = parts.get(message.numbers[0], b"") + message.body
                if message.type == io.ON_NEXT_LAST_PART:
                    found.append(parts.pop(message.numbers[0]))
        return found

    def ended(self, stream: int) -> Message | None:
        """Return the end of a stream, if it has come."""
        return next(iter(self.on(stream, *ENDS)), None)

    async def wait_end(self, stream: int, kind: int) -> None:
        """Wait for a stream's end, and see that it is of that kind."""
        await self.until(lambda: self.ended(stream), f"the end of stream {stream}")
        verify(self.on(stream, kind), f"{io.FIELDS[kind][0]} is due for stream {stream}; {self.story()}")

    async def wait_elements(self, stream: int, count: int) -> None:
        """Wait for so many elements."""
        await self.until(lambda: len(self.elements(stream)) >= count or self.ended(stream), f"element {count} of stream {stream}")
        verify(len(self.elements(stream)) >= count, f"stream {stream} ended before element {count}; {self.story()}")

    async def exactly(self, stream: int, count: int) -> None:
        """Wait for so many elements, and see that no more come."""
        await self.wait_elements(stream, count)
        await self.settle()
        got = len(self.elements(stream))
        verify(got == count, f"{got} elements came on stream {stream}, where {count} were asked for; {self.story()}")

    async def works(self) -> None:
        """See that the connection still serves: a new stream gets what it asks for."""
        self._probe += 1
        await self.subscribe(self._probe, 2, self._target.publisher)
        await self.until(
            lambda: len(self.elements(self._probe)) >= 2, "a new stream's elements, which show that the connection still works,"
        )
        await self.send(io.cancel(self._probe))

    async def refused(self, why: str) -> str:
        """See that the target says goodbye, as its last message, and closes; return what was seen."""
        await self.until(lambda: self.of(io.GOODBYE) or self.over, f"a goodbye, because {why},")
        verify(self.of(io.GOODBYE), f"{why}, and the target closed without a goodbye; {self.story()}")
        await self.connection_is_left()
        await self.wait_over(f"{why}, and the target said goodbye")
        verify(self.messages[-1].type == io.GOODBYE, f"{why}, and the target went on after its goodbye; {self.story()}")
        verify(len(self.of(io.GOODBYE)) == 1, f"more than one goodbye came; {self.story()}")
        return str(self.of(io.GOODBYE)[0])

    async def connection_is_left(self) -> None:
        """End our half, where that can be told: nobody has to wait for our answer."""
        try:
            await self.connection.send_eof()
        except trio.BrokenResourceError:
            self.over = self.over or "reset"
