"""One side of RSocket for the checks: it sends the frames that a check gives it, and records every
frame that it receives.
"""

from collections.abc import Collection
from itertools import count
from typing import Final

from penstock_tck.wire import CheckContext, RecordingPeer, Target, verify

from penstock.spi import Connection
from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._frames import Frame

RSOCKET: Final = "RSocket 1.0"


class RsocketSide(RecordingPeer[Frame]):
    """One side of a connection, client or server, that a check drives frame by frame."""

    def __init__(self, connection: Connection, *, quiet: float, patience: float) -> None:
        super().__init__(connection, quiet=quiet, patience=patience)
        self._reader = rs.FrameReader(framed=connection.framed)

    # --- sending

    def frame(self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0) -> bytes:
        """Return a frame as the transport sends it:
        with its length if the transport does not delimit messages.
        """
        frame = rs.encode(kind, stream, body, flags=flags)
        return frame if self.connection.framed else rs.with_length(frame)

    async def send_frame(
        self, kind: int, stream: int, body: bytes = b"", *, flags: int = 0
    ) -> None:
        """Send a frame."""
        await self.send(self.frame(kind, stream, body, flags=flags))

    async def grant(self, stream: int, demand: int) -> None:
        """Send REQUEST_N."""
        await self.send_frame(rs.REQUEST_N, stream, rs.number(demand))

    async def cancel(self, stream: int) -> None:
        """Send CANCEL."""
        await self.send_frame(rs.CANCEL, stream)

    # --- receiving

    def on_data(self, data: bytes) -> None:
        """Split the received bytes and record the frames."""
        self.record(self._reader.feed(data), self._reader.error)

    @property
    def incomplete_bytes(self) -> int:
        """Received bytes of a frame that is not complete yet."""
        return self._reader.incomplete_bytes

    def elements(self, stream: int) -> list[bytes]:
        """Return the data of the elements of a stream, joined from fragments."""
        whole: list[bytes] = []
        parts: list[bytes] = []
        is_open = False
        for frame in self.of_stream(stream, rs.PAYLOAD):
            if not is_open and not frame.flags & rs.N:
                continue
            parts.append(frame.data)
            is_open = bool(frame.flags & rs.F and not frame.flags & rs.C)
            if not is_open:
                whole.append(b"".join(parts))
                parts = []
        return whole

    def completed(self, stream: int) -> bool:
        """Return whether a PAYLOAD with COMPLETE has come for the stream."""
        return any(frame.flags & rs.C for frame in self.of_stream(stream, rs.PAYLOAD))

    def failed(self, stream: int) -> bool:
        """Return whether an ERROR has come for the stream."""
        return bool(self.of_stream(stream, rs.ERROR))

    def granted(self, stream: int) -> int:
        """Return the sum of the REQUEST_N of the target."""
        return sum(frame.number for frame in self.of_stream(stream, rs.REQUEST_N))

    async def expect_ended(self, stream: int) -> None:
        """Wait for the ERROR of a stream, and fail if a frame follows it."""
        await self.wait_end(stream, well=False)
        await self.settle()
        last = self.of_stream(stream)[-1]
        verify(
            self.of_stream(stream, rs.ERROR) == [last],
            f"an ERROR ends the stream, and {self.describe_received()}",
        )

    async def expect_nothing(self, stream: int, why: str) -> None:
        """Fail if a frame comes for a stream after what has come."""
        before = len(self.of_stream(stream))
        await self.settle()
        verify(len(self.of_stream(stream)) == before, f"{why}, and {self.describe_received()}")

    async def expect_refused(self, why: str, codes: Collection[int]) -> str:
        """Fail unless the target sends an ERROR with one of these codes on stream 0, and then
        ends the connection. Return what was seen.
        """
        await self.wait_closed(why)
        errors = self.of_stream(0, rs.ERROR)
        verify(
            errors,
            f"{why}, and no ERROR came on stream 0; {self.describe_received()}",
        )
        named = " or ".join(f"{code:#05x}" for code in codes)
        verify(
            errors[-1].number in codes,
            f"{why}, and the code was {errors[-1].number:#05x}, not {named}",
        )
        verify(
            self.received[-1] is errors[-1],
            f"{why}, and the target went on after its ERROR; {self.describe_received()}",
        )
        return f"{errors[-1]}, then {self.ending}"


class RsocketPeer(RsocketSide):
    """A client, for checks of servers."""

    def __init__(self, connection: Connection, target: Target) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self.target = target
        self._ids = count(1, 2)

    def setup(self, *, flags: int = 0, token: bytes | None = None) -> bytes:
        """Return the SETUP that the target accepts."""
        body = rs.setup_body(self.target.setup.encode(), token=token)
        return self.frame(rs.SETUP, 0, body, flags=flags)

    def next_id(self) -> int:
        """Return the next id of a client."""
        return next(self._ids)

    def request_frame(
        self,
        kind: int,
        stream: int,
        name: str,
        data: bytes = b"",
        *,
        demand: int = 1,
        flags: int = 0,
    ) -> bytes:
        """Return a request with the route `name`."""
        body = rs.with_metadata(rs.route(name), data)
        if kind in rs.WITH_DEMAND:
            body = rs.number(demand) + body
        return self.frame(kind, stream, body, flags=flags | rs.M)

    async def stream(self, name: str, demand: int) -> int:
        """Send REQUEST_STREAM, and return its id."""
        return await self.request(rs.REQUEST_STREAM, name, demand=demand)

    async def request(
        self, kind: int, name: str, data: bytes = b"", *, demand: int = 1, flags: int = 0
    ) -> int:
        """Send a request with the next id, and return the id."""
        stream = self.next_id()
        await self.send(self.request_frame(kind, stream, name, data, demand=demand, flags=flags))
        return stream

    async def expect_working(self) -> None:
        """Fail unless the connection still works: a new stream gets two elements."""
        await self.expect_probe(await self.stream(self.target.publisher, 2))

    async def refused_or_working(
        self, why: str, codes: Collection[int], *, silent: bool = False
    ) -> str:
        """Fail unless the target does one of two things: what `expect_refused` wants, or it goes
        on as if nothing had come. If `silent`, it may also close without an ERROR.
        """
        await self.settle()
        if self.ending is None and not self.of_stream(0, rs.ERROR):
            await self.expect_working()
            return "the connection continues"
        if silent and not self.of_stream(0, rs.ERROR):
            return f"{self.ending}, without an ERROR"
        return await self.expect_refused(why, codes)


async def connect(context: CheckContext, *, setup: bool = True) -> RsocketPeer:
    """Open a connection, and send a SETUP on it unless `setup` is False."""
    peer = RsocketPeer(await context.connect(), context.target)
    if setup:
        await peer.send(peer.setup())
    return peer
