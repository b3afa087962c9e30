"""A ReactiveSocket client for the checks: it sends the frames that a check gives it, and records
every frame that it receives.
"""

from typing import Final

from penstock.spi import Connection
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._recording_peer import RecordingPeer
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import verify
from penstock_tck.wire.reactivesocket import Frame

FIRST_PROBE_ID: Final = 9001
"""The id of the first stream that tests whether the connection still works."""


class RsPeer(RecordingPeer[Frame]):
    """A client that a check drives frame by frame."""

    of_publishers = (rs.RESPONSE, rs.ERROR)

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._target = target
        self._reader = rs.FrameReader(framed=connection.framed)
        self._probe_id = FIRST_PROBE_ID - 2

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
        self.record(self._reader.feed(data), self._reader.error)

    @property
    def incomplete_bytes(self) -> int:
        """Received bytes of a frame that is not complete yet."""
        return self._reader.incomplete_bytes

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

    async def expect_working(self) -> None:
        """Fail unless the connection still works: a new stream gets two elements."""
        # A new id for each probe: a request with the id of an open stream is ignored.
        self._probe_id += 2
        await self.request(self._probe_id, 2, self._target.publisher)
        await self.expect_probe(self._probe_id)

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
            not errors or self.received[-1] is errors[-1],
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
