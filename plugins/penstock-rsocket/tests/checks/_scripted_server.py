"""A small scripted server of RSocket, with a switch for each fault. It encodes with the frames of
the checks, and uses no code of the plugin.
"""

from collections.abc import Callable, Iterator
from itertools import repeat

import attrs
import trio
from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._frames import C, F, Frame, I, M, N, R
from penstock_tck.wire import large_element

from penstock.spi import Connection

FRAGMENT = 50_000
WINDOW = 4
SMALL = 64
LEASED = 3
HALF = 1 << 30
CHANNELS = ("channel", "pair", "greedy")
KNOWN = set(rs.NAMES)
TRACKED = {*rs.REQUESTS, rs.REQUEST_N, rs.CANCEL, rs.PAYLOAD, rs.ERROR}
PUBLISHERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "numbers": lambda: repeat(b"a number", 2000),
    "three": lambda: iter([b"one", b"two", b"three"]),
    "one": lambda: iter([b"one"]),
    "empty": lambda: iter([]),
    "large": lambda: map(large_element, range(5)),
    "failing": lambda: iter([b"one"]),
    "slow": lambda: iter([b"late"]),
}


class ConnectionEnded(Exception):
    """The server ends the connection."""


@attrs.define(eq=False)
class Stream:
    """A stream that the server serves."""

    id: int
    kind: int
    name: str
    demand: int
    elements: Iterator[bytes] = attrs.field(factory=lambda: iter([]))
    is_over: bool = False
    waiting: list[bytes] = attrs.field(factory=list)
    """A channel: elements of the requester that were not answered."""
    taken: int = 0
    granted: int = 1
    is_complete: bool = False
    """A channel: the requester has completed."""
    ready: bool = True
    next: bytes | None = None


@attrs.define(eq=False)
class Parts:
    """A request or an element whose last fragment has not come."""

    kind: int
    demand: int
    flags: int
    metadata: bytes = b""
    data: bytes = b""


class Server:
    """One connection."""

    def __init__(self, connection: Connection, fault: str, kept: "dict[bytes, Server]") -> None:
        """`kept` has the connections that can be resumed, by their tokens."""
        self.connection = connection
        self.fault = fault
        self.kept = kept
        self.sent: list[bytes] = []
        """The frames of streams that were sent."""
        self.buffer = b""
        self.is_open = False
        self.is_leased = False
        self.leased = 0
        self.is_closing = False
        self.position = 0
        self.ended: set[int] = set()
        self.streams: dict[int, Stream] = {}
        self.parts: dict[int, Parts] = {}
        self.held: list[bytes] = []
        self.last = 0
        self.pumped: dict[Stream, None] = {}
        """Streams that may send. They do when all frames that have come were read."""

    def has(self, *faults: str) -> bool:
        return self.fault in faults

    # --- sending

    async def send(self, kind: int, stream: int, body: bytes = b"", flags: int = 0) -> None:
        if self.has("reserved-flags-sent") and kind == rs.PAYLOAD:
            flags |= 1
        if self.has("reserved-bit-sent") and kind == rs.PAYLOAD and self.last == 1:
            stream |= 1 << 31
        frame = rs.encode(kind, stream, body, flags=flags)
        if stream and kind in TRACKED:
            self.sent.append(frame)
        await self.connection.send(rs.with_length(frame))

    async def error(self, stream: int, code: int, text: bytes = b"hm") -> None:
        await self.send(rs.ERROR, stream, rs.number(code) + text)

    async def refuse(self, code: int) -> None:
        """Send an ERROR, and end the connection."""
        if not self.has("refuses-without-words"):
            await self.error(0, rs.APPLICATION_ERROR if self.has("refuses-with-201") else code)
        if self.has("speaks-after-refusal"):
            await self.send(rs.KEEPALIVE, 0, bytes(8), R)
        if self.has("stays-open-after-refusal"):
            await trio.sleep_forever()
        raise ConnectionEnded

    # --- receiving

    async def run(self) -> None:
        if self.has("speaks-first"):
            await self.send(rs.PAYLOAD, 1, b"hello", N)
        async with trio.open_nursery() as self.nursery:
            try:
                while data := await self.connection.receive():
                    await self.on_data(bytes(data))
            except ConnectionEnded:
                await self.connection.send_eof()
            self.nursery.cancel_scope.cancel()

    async def on_data(self, data: bytes) -> None:
        if self.has("cut-frames-lost") and len(data) < 3:
            return
        self.buffer += data
        while len(self.buffer) >= 3:
            length = int.from_bytes(self.buffer[:3])
            if length < rs.HEADER and self.has("short-awaited"):
                length = 1 << 20
            if len(self.buffer) < 3 + length:
                break
            whole, self.buffer = self.buffer[3 : 3 + length], self.buffer[3 + length :]
            if length < rs.HEADER:
                await self.refuse(rs.CONNECTION_ERROR)
            word = int.from_bytes(whole[4:6])
            frame = Frame(
                type=word >> 10,
                flags=word & 0x3FF,
                stream=int.from_bytes(whole[:4]),
                body=whole[6:],
            )
            await self.on_frame(frame)
            if frame.type in TRACKED or self.has("position-of-keepalives"):
                self.position += length + (3 if self.has("position-with-length") else 0)
        await self.pump_all()
        for answer in reversed(self.held):
            await self.send(rs.KEEPALIVE, 0, bytes(8) + answer)
        self.held.clear()

    async def on_frame(self, frame: Frame) -> None:  # noqa: C901, PLR0912 (a branch for each fault)
        if not self.is_open:
            await self.on_first(frame)
            return
        kind = frame.type
        allowed = rs.LEGAL_FLAGS.get(kind, 0x3FF) | I
        if frame.flags & ~allowed and self.has("reserved-flags-refused"):
            await self.refuse(rs.CONNECTION_ERROR)
        if kind not in KNOWN or kind == rs.EXT:
            await self.on_unknown(frame)
        elif kind == rs.SETUP:
            if self.has("second-setup-ends"):
                await self.refuse(rs.INVALID_SETUP)
        elif kind == rs.RESUME:
            if not self.has("late-resume-ignored"):
                late = rs.REJECTED_RESUME if self.has("late-resume-rejected") else 0
                await self.refuse(late or rs.CONNECTION_ERROR)
        elif kind == rs.KEEPALIVE:
            await self.on_keepalive(frame)
        elif kind == rs.METADATA_PUSH:
            if self.has("push-answered" if not frame.stream else "stray-push-refused"):
                await self.error(frame.stream, rs.INVALID)
        elif kind == rs.ERROR:
            await self.on_error(frame)
        elif kind in rs.REQUESTS:
            await self.on_request(frame)
        elif kind == rs.PAYLOAD:
            await self.on_payload(frame)
        elif kind == rs.REQUEST_N:
            await self.on_request_n(frame)
        elif kind == rs.CANCEL:
            await self.on_cancel(frame.stream)

    async def on_unknown(self, frame: Frame) -> None:
        name = "ext" if frame.type == rs.EXT else "type"
        if frame.flags & I:
            if self.has(f"ignorable-{name}-refused"):
                await self.refuse(rs.CONNECTION_ERROR)
        elif self.has(f"{name}-invalid"):
            await self.refuse(rs.INVALID_SETUP)
        else:
            await self.refuse(rs.CONNECTION_ERROR)

    # --- the first frame

    async def on_first(self, frame: Frame) -> None:
        if frame.type == rs.RESUME and not frame.stream:
            if self.has("resume-unknown-taken"):
                await self.send(rs.RESUME_OK, 0, bytes(8))
                await trio.sleep_forever()
            if await self.resume(frame.body):
                return
            code = rs.REJECTED_SETUP if self.has("resume-unknown-code") else rs.REJECTED_RESUME
            await self.refuse(code)
        if frame.type != rs.SETUP:
            if frame.type == rs.KEEPALIVE and self.has("keepalive-first"):
                await self.on_keepalive(frame)
                return
            if not self.has("serves-without-setup"):
                wrong = self.has("first-code")
                await self.refuse(rs.CONNECTION_ERROR if wrong else rs.INVALID_SETUP)
            self.is_open = True
            await self.on_frame(frame)
            return
        if frame.stream and not self.has("setup-stream-taken"):
            await self.refuse(rs.INVALID_SETUP)
        await self.on_setup(frame)

    async def resume(self, body: bytes) -> bool:
        """Go on with a connection that was lost; return False if there is none."""
        end = 6 + int.from_bytes(body[4:6])
        lost = self.kept.get(body[6:end])
        if lost is None or self.has("resume-refused"):
            return False
        received = int.from_bytes(body[end : end + 8])
        self.streams, self.ended, self.parts = lost.streams, lost.ended, lost.parts
        self.sent, self.position, self.is_open = lost.sent, lost.position, True
        position = self.position + self.has("resume-position")
        await self.send(rs.RESUME_OK, 0, position.to_bytes(8))
        at = 0
        for frame in self.sent:
            is_due = at >= received and not self.has("resume-loses")
            if is_due or self.has("resume-repeats"):
                await self.connection.send(rs.with_length(frame))
            at += len(frame)
        if self.has("resume-forgets"):
            self.streams.clear()
        return True

    async def on_setup(self, frame: Frame) -> None:  # noqa: C901, PLR0912 (a branch for each fault)
        body = frame.body
        if int.from_bytes(body[:2]) != 1 and not self.has("version-taken"):
            await self.refuse(rs.UNSUPPORTED_SETUP)
        interval, lifetime = int.from_bytes(body[4:8]), int.from_bytes(body[8:12])
        for time, name in ((interval, "interval"), (lifetime, "lifetime")):
            if not time and self.has(f"{name}-zero-ends"):
                raise ConnectionEnded
        if len(body) < 40 and not self.has("setup-cut-taken"):
            await self.refuse(rs.INVALID_SETUP)
        if frame.flags & R:
            if self.has("resume-ends-silently"):
                raise ConnectionEnded
            if self.has("resume-code"):
                await self.refuse(rs.REJECTED_RESUME)
            size = int.from_bytes(body[12:14])
            self.kept[body[14 : 14 + size]] = self
        if body.endswith(b"refuse me") and not self.has("all-setups-taken"):
            if self.has("serves-after-refusal") and self.buffer:
                await self.send(rs.PAYLOAD, 1, b"served", N)
            await self.refuse(rs.REJECTED_SETUP)
        self.is_open = True
        if self.has("acknowledges-setup"):
            await self.send(rs.RESUME_OK, 0, bytes(8))
        if frame.flags & rs.L and not self.has("lease-forgotten"):
            self.is_leased, self.leased = True, LEASED
            stream = 2 if self.has("lease-on-stream") else 0
            count = 1 << 31 if self.has("lease-32-bits") else LEASED
            await self.send(rs.LEASE, stream, rs.number(10_000) + rs.number(count))
        if self.has("false-start-lost") and self.buffer:
            self.buffer = b""
        if self.has("closes-early") and interval == 500:
            self.nursery.start_soon(self._end_after, 0.7)
        if self.has("counts-no-keepalives") and interval == 300:
            self.nursery.start_soon(self._end_after, 1.2)

    async def _end_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await self.connection.send_eof()

    async def on_keepalive(self, frame: Frame) -> None:
        if not frame.flags & R and not self.has("keepalive-always"):
            return
        if self.has("keepalive-unanswered") or (self.has("fragments-block") and self.parts):
            return
        data = frame.body[8:]
        if self.has("keepalive-data-lost"):
            data = b""
        if self.has("keepalive-data-cut"):
            data = data[:100]
        if self.has("keepalive-data-text"):
            data = data.decode(errors="replace").encode()
        if self.has("keepalive-reversed"):
            self.held.append(data)
            return
        flags = R if self.has("keepalive-asks-back") else 0
        stream = 1 if self.has("keepalive-on-stream") else 0
        position = (1 if self.has("position-from-1") else 0) + self.position
        for _ in range(2 if self.has("keepalive-twice") else 1):
            await self.send(rs.KEEPALIVE, stream, position.to_bytes(8) + data, flags)

    async def on_error(self, frame: Frame) -> None:
        if frame.stream:
            channel = self.streams.get(frame.stream)
            if channel is None:
                if self.has("unknown-error-refused"):
                    await self.refuse(rs.CONNECTION_ERROR)
                return
            if channel.kind == rs.REQUEST_CHANNEL and not self.has("channel-error-ignored"):
                self.end(channel)
                if self.has("channel-error-completes"):
                    await self.send(rs.PAYLOAD, channel.id, b"", C)
            return
        if frame.number == rs.CONNECTION_CLOSE:
            if self.has("closes-at-once"):
                raise ConnectionEnded
            self.is_closing = True
        elif frame.number == rs.CONNECTION_ERROR or self.has("setup-error-obeyed"):
            raise ConnectionEnded

    # --- requests

    async def on_request(self, frame: Frame) -> None:  # noqa: C901, PLR0911, PLR0912 (a branch for each fault)
        body, demand = frame.body, 1
        if frame.type in rs.WITH_DEMAND:
            demand, body = frame.number, body[4:]
        stream = frame.stream
        self.last = stream
        if self.has("requests-lost") and stream > 1:
            return
        split = await self.split(frame, body)
        if split is None:
            return
        if stream == 0 and not self.has("id-zero-served"):
            return
        if stream and not stream % 2 and not self.has("even-id-served"):
            return
        if stream in self.ended and self.has("id-reuse-ignored"):
            return
        if stream == rs.UNBOUNDED and self.has("id-largest-ignored"):
            return
        if stream in self.streams:
            if self.has("live-id-ends"):
                await self.refuse(rs.CONNECTION_ERROR)
            if self.has("live-id-fails"):
                await self.error(stream, rs.INVALID)
            if not self.has("live-id-served"):
                return
        parts = Parts(frame.type, demand, frame.flags, *split)
        if frame.flags & F and not self.has("request-first-only"):
            self.parts[0 if self.has("fragments-mixed-up") else stream] = parts
            if self.has("half-request-answered"):
                await self.open(stream, parts)
            return
        await self.open(stream, parts)

    async def split(self, frame: Frame, body: bytes) -> tuple[bytes, bytes] | None:
        """Return metadata and data; None if the frame is to be ignored."""
        if not frame.flags & M:
            return b"", body
        length = int.from_bytes(body[:3])
        if length > len(body) - 3:
            if self.has("long-metadata-silent"):
                raise ConnectionEnded
            if frame.flags & I and not self.has("ignorable-metadata-refused"):
                return None
            if not self.has("long-metadata-taken"):
                await self.refuse(rs.CONNECTION_ERROR)
        return body[3 : 3 + length], body[3 + length :]

    async def open(self, stream: int, parts: Parts) -> None:
        metadata, data = parts.metadata, parts.data
        _, found, entry = metadata.partition(b"\xfe\0\0")  # the entry with the route
        name = entry[2 : 2 + entry[1]].decode() if found and len(entry) > 1 else ""
        if parts.kind == rs.REQUEST_FNF:
            if self.has("forget-answered") or (
                self.has("forget-fragments-answered") and parts.flags & F
            ):
                await self.send(rs.PAYLOAD, stream, b"", C)
            if self.has("forget-fails") and name not in PUBLISHERS and name != "echo":
                await self.error(stream, rs.REJECTED)
            return
        if self.is_leased:
            self.leased -= 1
            if self.leased < 0 and not self.has("lease-ignored"):
                code = rs.APPLICATION_ERROR if self.has("lease-code") else rs.REJECTED
                await self.error(stream, code)
                return
        if parts.kind == rs.REQUEST_RESPONSE:
            await self.respond(stream, name, data)
            return
        if name not in PUBLISHERS and name not in CHANNELS:
            await self.reject(stream)
            return
        await self.open_stream(stream, name, parts)

    async def reject(self, stream: int) -> None:
        if self.has("missing-is-silent"):
            return
        await self.error(stream, 0x300 if self.has("code-reserved") else rs.REJECTED)
        if self.has("missing-fails-twice"):
            await self.error(stream, rs.REJECTED)
        if self.has("missing-ends-connection"):
            await trio.sleep(0.1)
            raise ConnectionEnded
        self.ended.add(stream)

    async def respond(self, stream: int, name: str, data: bytes) -> None:
        if name != "echo":
            await self.reject(stream)
            return
        if self.has("response-text"):
            data = data.decode(errors="replace").encode()
        self.ended.add(stream)
        if len(data) > FRAGMENT:
            await self.send_element(Stream(stream, rs.REQUEST_RESPONSE, name, 1), data, C)
            return
        if not data and self.has("empty-is-no-element"):
            await self.send(rs.PAYLOAD, stream, b"", C)
            return
        flags = N if self.has("response-without-complete") else N | C
        for _ in range(2 if self.has("response-twice") else 1):
            await self.send(rs.PAYLOAD, stream, data, flags)

    async def open_stream(self, stream: int, name: str, parts: Parts) -> None:
        demand = parts.demand
        if not demand:
            if self.has("zero-is-one"):
                demand = 1
            else:
                await self.error(stream, rs.INVALID)
                return
        if self.has("demand-16-bits"):
            demand &= 0xFFFF
        demand += self.has("initial-one-more") and parts.kind == rs.REQUEST_STREAM
        demand += self.has("one-is-two") and demand == 1
        if self.has("fragments-demand-lost") and parts.flags & F:
            demand = 1
        if self.has("few-streams") and len(self.streams) >= 20:
            await self.error(stream, rs.REJECTED)
            return
        opened = Stream(stream, parts.kind, name, demand)
        self.streams[stream] = opened
        if name in CHANNELS:
            lost = self.has("complete-first-lost") or (
                bool(parts.flags & F) and self.has("complete-of-fragments-lost")
            )
            opened.is_complete = bool(parts.flags & C) and not lost
            if not self.has("channel-first-lost"):
                opened.waiting.append(parts.data)
            opened.taken = 1
            await self.first_grant(opened)
        else:
            opened.elements = PUBLISHERS[name]()
        if name == "slow":
            opened.ready = False
            self.nursery.start_soon(self.become_ready, opened)
        self.pumped[opened] = None

    async def become_ready(self, stream: Stream) -> None:
        await trio.sleep(0.25)
        stream.ready = True
        await self.pump(stream)

    async def first_grant(self, stream: Stream) -> None:
        if stream.is_complete or self.has("channel-grants-nothing"):
            return
        first = {"channel": WINDOW, "pair": 2, "greedy": HALF}[stream.name]
        first -= not self.has("first-not-counted")
        if self.has("grants-zero"):
            await self.send(rs.REQUEST_N, stream.id, rs.number(0))
        if self.has("grants-32-bits"):
            await self.send(rs.REQUEST_N, stream.id, rs.number(1 << 31))
        stream.granted += first
        await self.send(rs.REQUEST_N, stream.id, rs.number(first))

    async def on_payload(self, frame: Frame) -> None:  # noqa: C901, PLR0911, PLR0912 (a branch for each fault)
        stream = frame.stream
        split = await self.split(frame, frame.body)
        if split is None:
            return
        metadata, data = split
        is_last = not frame.flags & F or (
            bool(frame.flags & C) and not self.has("follows-with-complete-waits")
        )
        key = 0 if self.has("fragments-mixed-up") and 0 in self.parts else stream
        parts = self.parts.get(key)
        if parts is not None:
            if not self.has("fragment-metadata-lost"):
                parts.metadata += metadata
            if len(data) < SMALL and frame.flags & F and self.has("small-fragments-refused"):
                await self.error(stream, rs.CANCELED)
                return
            parts.data += data
            if frame.flags & N or not self.has("bare-complete-of-fragments-lost"):
                parts.flags |= frame.flags & C
            if not is_last:
                return
            del self.parts[key]
            if self.has("half-request-answered"):
                return
            if parts.kind == rs.PAYLOAD:
                await self.take(stream, parts.data, complete=bool(parts.flags & C))
            elif not (self.has("request-fragments-lost")):
                await self.open(stream, parts)
            return
        channel = self.streams.get(stream)
        if channel is None or channel.kind != rs.REQUEST_CHANNEL:
            await self.on_stray(frame)
            return
        if not is_last and not self.has("channel-fragments-split"):
            self.parts[stream] = Parts(rs.PAYLOAD, 1, frame.flags, metadata, data)
            return
        if frame.flags & N:
            await self.take(stream, data, complete=bool(frame.flags & C))
        elif frame.flags & C and not self.has("bare-complete-lost"):
            channel.is_complete = True
            self.pumped[channel] = None

    async def on_stray(self, frame: Frame) -> None:
        if frame.stream in self.streams or frame.stream in self.ended:
            if self.has("late-payload-refused"):
                await self.error(frame.stream, rs.INVALID)
        elif (self.has("unknown-payload-refused") and not frame.flags & F) or (
            self.has("unknown-fragment-refused") and frame.flags & F
        ):
            await self.refuse(rs.CONNECTION_ERROR)

    async def take(self, stream: int, data: bytes, *, complete: bool) -> None:
        channel = self.streams.get(stream)
        if channel is None:
            return
        channel.waiting.append(data)
        channel.taken += 1
        channel.is_complete |= complete
        if complete and self.has("half-ends-both"):
            channel.waiting.clear()
        if not channel.is_complete and channel.name != "pair" and not self.has("grants-once"):
            more = HALF if channel.name == "greedy" else 1
            if not (self.has("greedy-saturates") and channel.granted + more > rs.UNBOUNDED):
                channel.granted += more
                await self.send(rs.REQUEST_N, stream, rs.number(more))
        self.pumped[channel] = None

    # --- serving

    async def on_request_n(self, frame: Frame) -> None:  # noqa: C901, PLR0912 (a branch for each fault)
        stream, more = self.streams.get(frame.stream), frame.number
        if stream is None:
            if frame.stream in self.ended:
                if self.has("late-grant-refused"):
                    await self.error(frame.stream, rs.INVALID)
                if self.has("speaks-after-end"):
                    await self.send(rs.PAYLOAD, frame.stream, b"more", N)
            elif self.has("unknown-grant-refused"):
                await self.refuse(rs.CONNECTION_ERROR)
            return
        if not more:
            if not self.has("grant-zero-is-one"):
                await self.error(stream.id, rs.INVALID)
                self.end(stream)
                return
            more = 1
        if self.has("grants-ignored"):
            return
        if self.has("demand-shared"):
            for each in list(self.streams.values()):
                each.demand += more
                self.pumped[each] = None
            return
        stream.demand = more if self.has("grants-replace") else stream.demand + more
        if stream.demand > rs.UNBOUNDED:
            if self.has("overflow-fails"):
                await self.error(stream.id, rs.INVALID)
                self.end(stream)
                return
            if self.has("overflow-stops"):
                stream.demand -= 1 << 32
        self.pumped[stream] = None

    async def on_cancel(self, stream: int) -> None:
        if self.parts.pop(stream, None) is not None and self.has("cancelled-fragments-answered"):
            await self.send(rs.PAYLOAD, stream, b"not wanted", N | C)
        served = self.streams.get(stream)
        if served is None:
            if stream in self.ended:
                if self.has("late-cancel-refused"):
                    await self.error(stream, rs.CANCELED)
            elif self.has("unknown-cancel-refused"):
                await self.refuse(rs.CONNECTION_ERROR)
            return
        if self.has("cancel-ignored"):
            return
        self.end(served)
        if self.has("cancel-completes"):
            await self.send(rs.PAYLOAD, stream, b"", C)
        if self.has("cancel-fails"):
            await self.error(stream, rs.CANCELED)
        if self.has("cancel-ends-connection"):
            raise ConnectionEnded

    def end(self, stream: Stream) -> None:
        stream.is_over = True
        self.streams.pop(stream.id, None)
        self.ended.add(stream.id)
        if self.is_closing and not self.streams:
            raise ConnectionEnded

    def take_next(self, stream: Stream) -> bytes | None:
        """Return the next element; None if none waits."""
        if stream.name in CHANNELS:
            if stream.name == "greedy":
                stream.waiting.clear()
            return stream.waiting.pop(0) if stream.waiting else None
        element = next(stream.elements, None)
        if element is None and stream.name == "large":
            return None
        return element

    def is_at_end(self, stream: Stream) -> bool:
        if stream.name in CHANNELS:
            return stream.is_complete or (stream.name == "pair" and stream.taken == 2)
        return stream.name != "numbers"

    async def pump_all(self) -> None:
        while self.pumped:
            await self.pump(self.pumped.popitem()[0])

    async def pump(self, stream: Stream) -> None:
        """Send what the demand allows, and the end."""
        while stream.ready and not stream.is_over:
            if stream.next is None:
                stream.next = self.take_next(stream)
            if stream.next is None:
                needs = self.has("complete-needs-demand") and stream.demand <= 0
                if self.is_at_end(stream) and not needs:
                    await self.finish(stream)
                return
            unbounded = self.has("channel-demand-ignored") and stream.name in CHANNELS
            if stream.demand <= 0 and not unbounded:
                return
            stream.demand -= 1
            element, stream.next = stream.next, None
            await self.send_element(stream, element, 0)

    async def send_element(self, stream: Stream, element: bytes, flags: int) -> None:
        if self.has("elements-twice") and stream.name == "three":
            await self.send(rs.PAYLOAD, stream.id, element, N)
        pieces = [element[at : at + FRAGMENT] for at in range(0, len(element), FRAGMENT)] or [b""]
        for index, piece in enumerate(pieces):
            is_last = index == len(pieces) - 1
            if self.has("fragment-lost") and index == 1:
                continue
            if self.has("fragments-cost") and index:
                stream.demand -= 1
            shown = (
                pieces[index ^ 1]
                if self.has("fragments-swapped") and index < 2 < len(pieces)
                else piece
            )
            more = flags if is_last else F
            if self.has("follows-unset") and not is_last:
                more = 0
            if self.has("follows-never-ends") and is_last and index:
                more |= F
            bare = self.has("fragments-bare") and index
            await self.send(rs.PAYLOAD, stream.id, shown, more | (0 if bare else N))
            if self.has("fragment-repeated") and index == 1:
                await self.send(rs.PAYLOAD, stream.id, piece, F | N)

    async def finish(self, stream: Stream) -> None:
        if stream.name == "failing" and not self.has("failure-completes"):
            text = b"failed on purpose"
            if self.has("error-ends-with-zero"):
                text += b"\0"
            if self.has("error-no-utf-8"):
                text = b"\xff\xfe"
            code = rs.CONNECTION_ERROR if self.has("code-of-connection") else 0
            await self.error(stream.id, code or rs.APPLICATION_ERROR, text)
            if self.has("fails-twice"):
                await self.error(stream.id, rs.APPLICATION_ERROR)
            if self.has("failure-ends-all"):
                raise ConnectionEnded
            self.end(stream)
            return
        if not self.has("never-completes"):
            next_too = self.has("complete-with-next")
            await self.send(rs.PAYLOAD, stream.id, b"", C | (N if next_too else 0))
        if self.has("completes-twice"):
            await self.send(rs.PAYLOAD, stream.id, b"", C)
        self.end(stream)
