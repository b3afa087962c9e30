"""The checking side of a ReactiveSocket connection: it says what it is told to, and remembers all that arrives."""

from typing import Final

from penstock.plugins import Connection
from penstock_tck.wire import _rs_frames as rs
from penstock_tck.wire._raw_connection import RawConnection
from penstock_tck.wire._rs_frames import Frame
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import fail, verify

FIRST_PROBE_ID: Final = 9001
"""The first id of the streams that show whether the connection still works."""

MAX_SHOWN: Final = 6
"""So many of the last frames are told of."""


class RsPeer(RawConnection):
    """A client, by hand."""

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self._reader = rs.FrameReader(framed=connection.framed)
        self._probe_id = FIRST_PROBE_ID - 2
        self.frames: list[Frame] = []
        self._by_stream: dict[int, list[Frame]] = {}  # some requirements take thousands of streams, and ask for each after each read

    # --- saying

    def frame_bytes(self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0) -> bytes:
        """Return a frame's bytes, as the transport wants them."""
        frame = rs.encode_frame(kind, stream, body, flags=flags, version=version)
        return frame if self.connection.framed else rs.with_length(frame)

    async def send_frame(self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0) -> None:
        """Send a frame."""
        await self.send(self.frame_bytes(kind, stream, body, flags=flags, version=version))

    async def send_setup(self) -> None:
        """Send the SETUP that the target accepts."""
        await self.send_frame(rs.SETUP, 0, self._target.setup.encode())

    async def request(self, stream: int, demand: int, name: str, *, kind: int = rs.REQUEST_STREAM) -> None:
        """Ask for a stream or a subscription."""
        await self.send_frame(kind, stream, rs.encode_demand(demand) + name.encode())

    async def grant(self, stream: int, demand: int) -> None:
        """Send REQUEST_N."""
        await self.send_frame(rs.REQUEST_N, stream, rs.encode_demand(demand))

    async def cancel(self, stream: int) -> None:
        """Send CANCEL."""
        await self.send_frame(rs.CANCEL, stream)

    # --- hearing

    def on_data(self, data: bytes) -> None:
        """Take the frames out of what came."""
        for frame in self._reader.feed(data):
            self.frames.append(frame)
            self._by_stream.setdefault(frame.stream, []).append(frame)
        if self._reader.error:
            fail(f"the target sent {self._reader.error}; {self.describe_received()}")

    @property
    def incomplete_bytes(self) -> int:
        """Bytes that have arrived of a frame that is not complete."""
        return self._reader.incomplete_bytes

    def describe_received(self) -> str:
        """What has arrived, for people."""
        before = f"{len(self.frames) - MAX_SHOWN} more, then " if len(self.frames) > MAX_SHOWN else ""
        told = before + (", ".join(map(str, self.frames[-MAX_SHOWN:])) or "nothing")
        told += f", {self.incomplete_bytes} bytes of what is no whole frame" if self.incomplete_bytes else ""
        return f"arrived: {told}" + (f"; then the connection was {self.ending}" if self.ending else "")

    def of_stream(self, stream: int, *kinds: int) -> list[Frame]:
        """Return the frames of those types, of responses and errors if none is named, that came for a stream."""
        return [frame for frame in self._by_stream.get(stream, ()) if frame.type in (kinds or (rs.RESPONSE, rs.ERROR))]

    def of_type(self, *kinds: int) -> list[Frame]:
        """Return the frames of those types."""
        return [frame for frame in self.frames if frame.type in kinds]

    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream, joined from their fragments; a bare end is none."""
        whole: list[bytes] = []
        parts: list[bytes] | None = None
        for frame in self.of_stream(stream, rs.RESPONSE):
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
        return any(frame.flags & rs.C for frame in self.of_stream(stream, rs.RESPONSE))

    def failed(self, stream: int) -> bool:
        """Whether an ERROR has come for it."""
        return bool(self.of_stream(stream, rs.ERROR))

    async def wait_elements(self, stream: int, count: int) -> None:
        """Wait for so many elements."""
        await self.wait_until(
            lambda: len(self.elements(stream)) >= count or self.failed(stream) or self.completed(stream),
            f"element {count} of stream {stream}",
        )
        verify(len(self.elements(stream)) >= count, f"stream {stream} ended before element {count}; {self.describe_received()}")

    async def expect_exactly(self, stream: int, count: int) -> None:
        """Wait for so many elements, and see that no more come."""
        await self.wait_elements(stream, count)
        await self.settle()
        got = len(self.elements(stream))
        verify(got == count, f"{got} elements came on stream {stream}, where {count} were asked for; {self.describe_received()}")

    async def wait_end(self, stream: int, *, well: bool | None = None) -> None:
        """Wait for a stream's end: a good one, or an error, or either."""
        await self.wait_until(lambda: self.completed(stream) or self.failed(stream), f"the end of stream {stream}")
        if well is not None:
            verify(
                self.completed(stream) is well, f"the stream ended with {'an ERROR' if well else 'COMPLETE'}; {self.describe_received()}"
            )

    async def expect_working(self) -> None:
        """See that the connection still serves: a new stream gets what it asks for."""
        self._probe_id += 2
        await self.request(self._probe_id, 2, self._target.publisher)
        await self.wait_until(
            lambda: len(self.elements(self._probe_id)) >= 2, "a new stream's elements, which show that the connection still works,"
        )
        await self.cancel(self._probe_id)

    async def expect_refused(self, why: str, *, needs_error: bool = False) -> str:
        """See that the target ends the connection, with an ERROR on stream 0 if it must be `on_result`; return what was seen."""
        await self.wait_closed(why)
        errors = self.of_stream(0, rs.ERROR)
        verify(errors or not needs_error, f"{why}, and the target closed without an ERROR on stream 0; {self.describe_received()}")
        verify(
            not errors or self.frames[-1] is errors[-1],
            f"{why}, and the target went on after its ERROR on stream 0; {self.describe_received()}",
        )
        return (
            f"ERROR {errors[-1].body[:60].decode(errors='replace')!r}, then {self.ending}" if errors else f"{self.ending}, without an ERROR"
        )
