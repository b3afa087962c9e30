"""The checking side of a ReactiveSocket connection: it says what it is told to, and remembers all that arrives."""

from typing import Final

from penstock.plugins import Connection
from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._line import Line
from penstock_tck.wire._rs_frames import Frame
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import fail, verify

PROBE: Final = 9001
"""The first id of the streams that show whether the connection still works."""

SHOWN: Final = 6
"""So many of the last frames are told of."""


class RsPeer(Line):
    """A client, by hand."""

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self._reader = rs.FrameReader(framed=connection.framed)
        self._probe = PROBE - 2
        self.frames: list[Frame] = []
        self._of_stream: dict[int, list[Frame]] = {}  # some requirements take thousands of streams, and ask for each after each read

    # --- saying

    def bytes_of(self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0) -> bytes:
        """Return a frame's bytes, as the transport wants them."""
        frame = rs.raw(kind, stream, body, flags=flags, version=version)
        return frame if self.connection.framed else rs.with_length(frame)

    async def say(self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0) -> None:
        """Send a frame."""
        await self.send(self.bytes_of(kind, stream, body, flags=flags, version=version))

    async def introduce(self) -> None:
        """Send the SETUP that the target accepts."""
        await self.say(rs.SETUP, 0, self._target.setup.encode())

    async def request(self, stream: int, demand: int, name: str, *, kind: int = rs.REQUEST_STREAM) -> None:
        """Ask for a stream or a subscription."""
        await self.say(kind, stream, rs.number(demand) + name.encode())

    async def grant(self, stream: int, demand: int) -> None:
        """Send REQUEST_N."""
        await self.say(rs.REQUEST_N, stream, rs.number(demand))

    async def cancel(self, stream: int) -> None:
        """Send CANCEL."""
        await self.say(rs.CANCEL, stream)

    # --- hearing

    def arrived(self, data: bytes) -> None:
        """Take the frames out of what came."""
        for frame in self._reader.take(data):
            self.frames.append(frame)
            self._of_stream.setdefault(frame.stream, []).append(frame)
        if self._reader.broken:
            fail(f"the target sent {self._reader.broken}; {self.story()}")

    @property
    def unfinished(self) -> int:
        """Bytes that have arrived of a frame that is not complete."""
        return self._reader.unfinished

    def story(self) -> str:
        """What has arrived, for people."""
        before = f"{len(self.frames) - SHOWN} more, then " if len(self.frames) > SHOWN else ""
        told = before + (", ".join(map(str, self.frames[-SHOWN:])) or "nothing")
        told += f", {self.unfinished} bytes of what is no whole frame" if self.unfinished else ""
        return f"arrived: {told}" + (f"; then the connection was {self.over}" if self.over else "")

    def on(self, stream: int, *kinds: int) -> list[Frame]:
        """Return the frames of those types, of responses and errors if none is named, that came for a stream."""
        return [frame for frame in self._of_stream.get(stream, ()) if frame.type in (kinds or (rs.RESPONSE, rs.ERROR))]

    def of(self, *kinds: int) -> list[Frame]:
        """Return the frames of those types."""
        return [frame for frame in self.frames if frame.type in kinds]

    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream, joined from their fragments; a bare end is none."""
        whole: list[bytes] = []
        parts: list[bytes] | None = None
        for frame in self.on(stream, rs.RESPONSE):
            begin, end = bool(frame.flags & rs.B), bool(frame.flags & rs.E)
            if begin == end and parts is None:
                if frame.body or not frame.flags & rs.C:
                    whole.append(frame.body)
                continue
            parts = [*(parts or []), frame.body]
            if end:
                whole.append(b"".join(parts))
                parts = None
        return whole

    def completed(self, stream: int) -> bool:
        """Whether the stream's good end has come."""
        return any(frame.flags & rs.C for frame in self.on(stream, rs.RESPONSE))

    def failed(self, stream: int) -> bool:
        """Whether an ERROR has come for it."""
        return bool(self.on(stream, rs.ERROR))

    async def wait_elements(self, stream: int, count: int) -> None:
        """Wait for so many elements."""
        await self.until(
            lambda: len(self.elements(stream)) >= count or self.failed(stream) or self.completed(stream),
            f"element {count} of stream {stream}",
        )
        verify(len(self.elements(stream)) >= count, f"stream {stream} ended before element {count}; {self.story()}")

    async def exactly(self, stream: int, count: int) -> None:
        """Wait for so many elements, and see that no more come."""
        await self.wait_elements(stream, count)
        await self.settle()
        got = len(self.elements(stream))
        verify(got == count, f"{got} elements came on stream {stream}, where {count} were asked for; {self.story()}")

    async def wait_end(self, stream: int, *, well: bool | None = None) -> None:
        """Wait for a stream's end: a good one, or an error, or either."""
        await self.until(lambda: self.completed(stream) or self.failed(stream), f"the end of stream {stream}")
        if well is not None:
            verify(self.completed(stream) is well, f"the stream ended with {'an ERROR' if well else 'COMPLETE'}; {self.story()}")

    async def works(self) -> None:
        """See that the connection still serves: a new stream gets what it asks for."""
        self._probe += 2
        await self.request(self._probe, 2, self._target.publisher)
        await self.until(
            lambda: len(self.elements(self._probe)) >= 2, "a new stream's elements, which show that the connection still works,"
        )
        await self.cancel(self._probe)

    async def refused(self, why: str, *, told: bool = False) -> str:
        """See that the target ends the connection, with an ERROR on stream 0 if it must be `told`; return what was seen."""
        await self.wait_over(why)
        errors = self.on(0, rs.ERROR)
        verify(errors or not told, f"{why}, and the target closed without an ERROR on stream 0; {self.story()}")
        verify(not errors or self.frames[-1] is errors[-1], f"{why}, and the target went on after its ERROR on stream 0; {self.story()}")
        return f"ERROR {errors[-1].body[:60].decode(errors='replace')!r}, then {self.over}" if errors else f"{self.over}, without an ERROR"
