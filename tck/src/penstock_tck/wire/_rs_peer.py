"""A ReactiveSocket client for the checks: it sends the frames that a check gives it, and records
every frame that it receives.
"""

from typing import Final

from penstock.spi import Connection
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._raw_connection import RawConnection
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import fail, verify
from penstock_tck.wire.reactivesocket import Frame

FIRST_PROBE_ID: Final = 9001
"""The id of the first stream that tests whether the connection still works."""

MAX_SHOWN: Final = 6
"""How many of the last frames `describe_received` shows."""


class RsPeer(RawConnection):
    """A client that a check drives frame by frame."""

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self._reader = rs.FrameReader(framed=connection.framed)
        self._probe_id = FIRST_PROBE_ID - 2
        self.frames: list[Frame] = []
        # An index: a check with 100 streams looks at each stream after each read.
        self._by_stream: dict[int, list[Frame]] = {}

    # --- sending

    def frame_bytes(
        self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0
    ) -> bytes:
        """Return a frame as the transport sends it:
        with its length if the transport does not delimit messages.
        """
        frame = rs.encode_frame(kind, stream, body, flags=flags, version=version)
        return frame if self.connection.framed else rs.with_length(frame)

    async def send_frame(
        self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0
    ) -> None:
        """Send a frame."""
        await self.send(self.frame_bytes(kind, stream, body, flags=flags, version=version))

    async def send_setup(self) -> None:
        """Send the SETUP that the target accepts."""
        await self.send_frame(rs.SETUP, 0, self._target.setup.encode())

    async def request(
        self, stream: int, demand: int, name: str, *, kind: int = rs.REQUEST_STREAM
    ) -> None:
        """Send REQUEST_STREAM, or REQUEST_SUB as `kind`."""
        await self.send_frame(kind, stream, rs.encode_demand(demand) + name.encode())

    async def grant(self, stream: int, demand: int) -> None:
        """Send REQUEST_N."""
        await self.send_frame(rs.REQUEST_N, stream, rs.encode_demand(demand))

    async def cancel(self, stream: int) -> None:
        """Send CANCEL."""
        await self.send_frame(rs.CANCEL, stream)

    # --- receiving

    def on_data(self, data: bytes) -> None:
        """Decode the received bytes and record the frames."""
        for frame in self._reader.feed(data):
            self.frames.append(frame)
            self._by_stream.setdefault(frame.stream, []).append(frame)
        if self._reader.error:
            fail(f"the target sent {self._reader.error}; {self.describe_received()}")

    @property
    def incomplete_bytes(self) -> int:
        """Received bytes of a frame that is not complete yet."""
        return self._reader.incomplete_bytes

    def describe_received(self) -> str:
        """Describe the last `MAX_SHOWN` frames, and the end of the connection."""
        before = (
            f"{len(self.frames) - MAX_SHOWN} more, then " if len(self.frames) > MAX_SHOWN else ""
        )
        shown = before + (", ".join(map(str, self.frames[-MAX_SHOWN:])) or "nothing")
        shown += (
            f", {self.incomplete_bytes} bytes of an incomplete frame"
            if self.incomplete_bytes
            else ""
        )
        return f"arrived: {shown}" + (
            f"; then the connection was {self.ending}" if self.ending else ""
        )

    def of_stream(self, stream: int, *kinds: int) -> list[Frame]:
        """Return the frames of these types that came for a stream. Without types:
        its RESPONSE and ERROR frames.
        """
        return [
            frame
            for frame in self._by_stream.get(stream, ())
            if frame.type in (kinds or (rs.RESPONSE, rs.ERROR))
        ]

    def of_type(self, *kinds: int) -> list[Frame]:
        """Return the frames of these types."""
        return [frame for frame in self.frames if frame.type in kinds]

    def elements(self, stream: int) -> list[bytes]:
        """Return the elements of a stream, joined from their fragments. A RESPONSE that carries
        only COMPLETE does not count.
        """
        whole: list[bytes] = []
        parts: list[bytes] | None = None
        for frame in self.of_stream(stream, rs.RESPONSE):
            begin, end = bool(frame.flags & rs.B), bool(frame.flags & rs.E)
            # B and E, or neither: older servers send whole elements without flags.
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
        """Return whether a RESPONSE with COMPLETE has come for the stream."""
        return any(frame.flags & rs.C for frame in self.of_stream(stream, rs.RESPONSE))

    def failed(self, stream: int) -> bool:
        """Return whether an ERROR has come for the stream."""
        return bool(self.of_stream(stream, rs.ERROR))

    async def wait_elements(self, stream: int, count: int) -> None:
        """Wait for `count` elements."""
        await self.wait_until(
            lambda: (
                len(self.elements(stream)) >= count or self.failed(stream) or self.completed(stream)
            ),
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

    async def wait_end(self, stream: int, *, well: bool | None = None) -> None:
        """Wait for COMPLETE or ERROR.
        `well` is True if only COMPLETE may come, False if only ERROR may.
        """
        await self.wait_until(
            lambda: self.completed(stream) or self.failed(stream), f"the end of stream {stream}"
        )
        if well is not None:
            verify(
                self.completed(stream) is well,
                (
                    f"the stream ended with {'an ERROR' if well else 'COMPLETE'}; "
                    f"{self.describe_received()}"
                ),
            )

    async def expect_working(self) -> None:
        """Fail unless the connection still works: a new stream gets two elements."""
        # A new id for each probe: a request with the id of an open stream is ignored.
        self._probe_id += 2
        await self.request(self._probe_id, 2, self._target.publisher)
        await self.wait_until(
            lambda: len(self.elements(self._probe_id)) >= 2,
            "two elements of a new stream, which show that the connection still works,",
        )
        await self.cancel(self._probe_id)

    async def expect_refused(self, why: str, *, needs_error: bool = False) -> str:
        """Fail unless the target ends the connection. If `needs_error`, it must send an ERROR on
        stream 0 before. Return what was seen.
        """
        await self.wait_closed(why)
        errors = self.of_stream(0, rs.ERROR)
        verify(
            errors or not needs_error,
            (
                f"{why}, and the target closed without an ERROR on stream 0; "
                f"{self.describe_received()}"
            ),
        )
        verify(
            not errors or self.frames[-1] is errors[-1],
            (
                f"{why}, and the target went on after its ERROR on stream 0; "
                f"{self.describe_received()}"
            ),
        )
        return (
            f"ERROR {errors[-1].body[:60].decode(errors='replace')!r}, then {self.ending}"
            if errors
            else f"{self.ending}, without an ERROR"
        )
