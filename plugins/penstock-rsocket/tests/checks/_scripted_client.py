"""A small scripted client of RSocket, with a switch for each fault. It encodes with the frames of
the checks, and uses no code of the plugin.
"""

from collections.abc import Iterator
from itertools import count
from math import inf
from typing import Any

import attrs
import trio
from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._client_under_test import ASK, DONE
from penstock_rsocket.checks._frames import C, F, Frame, M, N, R
from penstock_tck.wire import Script

from penstock.api import ConnectionLost
from penstock.spi import Connection, TransportOptions, build_registry, parse_url

WORDS = [b"one", b"two", b"three", b"four", b"five"]
LARGE = bytes(index % 251 for index in range(200_000))
FRAGMENT = 60_000
RESERVED = 0x1F


class ConnectionEnded(Exception):
    """The client ends the connection."""


@attrs.define(eq=False)
class Stream:
    """A stream that the client has opened, with its events as pairs of a word and a value."""

    id: int
    kind: int
    send: trio.MemorySendChannel[tuple[str, Any]]
    events: trio.MemoryReceiveChannel[tuple[str, Any]]
    parts: list[bytes] = attrs.field(factory=list)
    is_joining: bool = False
    is_over: bool = False
    """The direction towards the client."""


@attrs.define(eq=False)
class Served:
    """A stream of the server."""

    demand: int
    elements: Iterator[bytes]
    is_over: bool = False


class Client:
    """One connection."""

    def __init__(self, connection: Connection, fault: str) -> None:
        self.connection = connection
        self.fault = fault
        self.reader = rs.FrameReader(framed=False)
        self.streams: dict[int, Stream] = {}
        self.served: dict[int, Served] = {}
        self.ids = count(1, 4 if self.has("ids-by-four") else 2)
        self.sending = trio.Lock()
        self.nursery: trio.Nursery

    def has(self, *faults: str) -> bool:
        return self.fault in faults

    async def send(self, kind: int, stream: int, body: bytes = b"", flags: int = 0) -> None:
        if self.has("reserved-flags-sent") and kind == rs.REQUEST_CHANNEL:
            flags |= 1
        async with self.sending:
            await self.connection.send(rs.with_length(rs.encode(kind, stream, body, flags=flags)))

    # --- the conversation

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as self.nursery:
                self.nursery.start_soon(self.receive)
                await self.begin()
                task = (await self.ask(ASK))[1].decode()
                outcome = await self.perform(*task.split(" ", 1))
                await self.ask(DONE, outcome)
                if self.has("setup-twice"):
                    await self.setup()
                await trio.sleep_forever()
        except* ConnectionEnded:
            pass

    async def begin(self) -> None:
        if self.has("keepalive-first"):
            await self.keepalive()
        await self.setup()
        if self.has("setup-twice"):
            await self.setup()
        if not self.has("keepalives-missing"):
            self.nursery.start_soon(self.keepalives)

    async def setup(self) -> None:
        body = rs.setup_body(
            interval=500,
            lifetime=0 if self.has("lifetime-zero") else 5000,
            minor=1 if self.has("version-1-1") else 0,
        )
        if self.has("types-empty"):
            body = body[:12] + b"\0\0"
        await self.send(rs.SETUP, 1 if self.has("setup-on-stream") else 0, body)

    async def keepalive(self, data: bytes = b"", flags: int = R) -> None:
        await self.send(rs.KEEPALIVE, 0, bytes(8) + data, flags)

    async def keepalives(self) -> None:
        while True:
            await trio.sleep(0.5)
            await self.keepalive()

    async def open(
        self, kind: int, name: str, data: bytes = b"", *, demand: int = 0, flags: int = 0
    ) -> Stream:
        events = trio.open_memory_channel[tuple[str, Any]](inf)
        stream = Stream(next(self.ids), kind, *events)
        self.streams[stream.id] = stream
        body = rs.with_metadata(rs.route(name), data)
        if kind in rs.WITH_DEMAND:
            body = rs.number(demand) + body
        await self.send(kind, stream.id, body, flags | M)
        return stream

    async def ask(self, name: str, data: bytes = b"") -> tuple[str, bytes]:
        """Send a request, in fragments if it is long, and return how it ended."""
        if name == "echo" and self.has("request-data-lost"):
            data = b""
        first, rest = data[:FRAGMENT], data[FRAGMENT:]
        stream = await self.open(rs.REQUEST_RESPONSE, name, first, flags=F if rest else 0)
        while rest:
            if self.has("fragment-lost"):
                rest = rest[FRAGMENT:]
            part, rest = rest[:FRAGMENT], rest[FRAGMENT:]
            flags = 0 if self.has("fragments-bare") and rest else N
            await self.send(rs.PAYLOAD, stream.id, part, flags | (F if rest else 0))
        word, value = await stream.events.receive()
        if word == "element" and self.has("waits-for-complete"):
            while (await stream.events.receive())[0] == "element":
                pass
        if self.has("cancels-after-end"):
            await self.send(rs.CANCEL, stream.id)
        return word, value

    async def value(self, data: bytes) -> bytes:
        word, value = await self.ask("echo", data)
        if word == "complete":
            return b"value " if self.has("empty-is-a-value") else b"empty"
        return (b"value " if word == "element" else b"error ") + value

    async def perform(self, name: str, rest: str = "") -> bytes:  # noqa: PLR0911 (a return for each task)
        if name == "request":
            return await self.value(rest.encode())
        if name == "large":
            return await self.value(LARGE)
        if name == "stream":
            return await self.read(await self.subscribe(int(rest)), int(rest))
        if name == "unbounded":
            return await self.read(await self.subscribe(rs.UNBOUNDED), 0)
        if name == "cancel":
            most = int(rest)
            return await self.read(await self.subscribe(2 * most), 2 * most, most)
        if name == "channel":
            return await self.channel()
        if name == "forget":
            stream = await self.open(rs.REQUEST_FNF, "echo", rest.encode())
            if self.has("forget-cancelled"):
                await self.send(rs.CANCEL, stream.id)
        if name == "push":
            data = (
                rs.with_metadata(rest.encode()) if self.has("push-with-length") else rest.encode()
            )
            await self.send(rs.METADATA_PUSH, 1 if self.has("push-on-stream") else 0, data, M)
        return b"done"

    async def subscribe(self, demand: int) -> Stream:
        if self.has("demand-doubled"):
            demand = min(2 * demand, rs.UNBOUNDED)
        if self.has("unbounded-32-bits") and demand == rs.UNBOUNDED:
            demand = 2**32 - 1
        return await self.open(rs.REQUEST_STREAM, "numbers", demand=demand)

    async def read(self, stream: Stream, portion: int, most: int = 0) -> bytes:
        got: list[bytes] = []
        end = b"complete"
        async for word, value in stream.events:
            if word == "element":
                got.append(value)
                if most and len(got) == most:
                    end = await self.cancel(stream)
                    break
                if portion and len(got) % portion == 0 and not self.has("grants-never"):
                    await self.grant(stream, portion)
            elif word == "error":
                end = b"error " + value
                break
            elif word == "complete":
                if self.has("cancels-after-end"):
                    await self.send(rs.CANCEL, stream.id)
                if self.has("empty-fails") and not got:
                    end = b"error no element"
                break
        if self.has("elements-swapped"):
            got[:2] = got[1::-1]
        return b"elements %s %s" % (b",".join(got), end)

    async def grant(self, stream: Stream, portion: int) -> None:
        await self.send(rs.REQUEST_N, stream.id, rs.number(portion))
        if self.has("grants-zero"):
            await self.send(rs.REQUEST_N, stream.id, rs.number(0))

    async def cancel(self, stream: Stream) -> bytes:
        if not self.has("cancel-lost"):
            await self.send(rs.CANCEL, stream.id)
        if self.has("cancels-twice"):
            await self.send(rs.CANCEL, stream.id)
        if self.has("grants-after-cancel"):
            await self.send(rs.REQUEST_N, stream.id, rs.number(1))
        stream.is_over = True
        return b"cancelled"

    # --- channels

    async def channel(self) -> bytes:
        words = iter(WORDS)
        first = b"" if self.has("channel-first-lost") else next(words)
        demand = 1 << 31 if self.has("channel-demand-32-bits") else 2
        stream = await self.open(rs.REQUEST_CHANNEL, "channel", first, demand=demand)
        answers = trio.open_memory_channel[tuple[str, Any]](inf)
        answered = Stream(stream.id, stream.kind, *answers)
        self.nursery.start_soon(self.channel_out, stream, words, answered)
        return await self.read(answered, 2)

    async def channel_out(self, stream: Stream, words: Iterator[bytes], answered: Stream) -> None:
        """Send elements on request, and pass the answers on."""
        left = list(words)
        has_ended = False
        if self.has("channel-floods"):
            left = await self.send_words(stream, left, len(left))
        async for word, value in stream.events:
            if word == "request":
                if not has_ended:
                    left = await self.send_words(stream, left, value)
                has_ended = has_ended or not left
                continue
            if word == "cancel":
                has_ended = not self.has("channel-cancel-ignored")
                if self.has("channel-cancel-ends-both"):
                    await answered.send.send(("error", b"cancelled"))
                continue
            if word == "error" and not self.has("channel-error-ignored"):
                has_ended = True
            await answered.send.send((word, value))

    async def send_words(self, stream: Stream, left: list[bytes], most: int) -> list[bytes]:
        for word in left[:most]:
            await self.send(rs.PAYLOAD, stream.id, word, N)
        if left and not left[most:] and not self.has("channel-never-completes"):
            for _ in range(2 if self.has("channel-completes-twice") else 1):
                await self.send(rs.PAYLOAD, stream.id, b"", C)
        return left[most:]

    # --- receiving

    async def receive(self) -> None:
        while data := await self.connection.receive():
            if self.has("cut-frames-lost") and len(data) < 3:
                continue
            for frame in self.reader.feed(bytes(data)):
                await self.on_frame(frame)
        raise ConnectionEnded

    async def refuse(self) -> None:
        await self.send(rs.ERROR, 0, rs.number(rs.CONNECTION_ERROR) + b"hm")
        raise ConnectionEnded

    async def on_frame(self, frame: Frame) -> None:
        if frame.flags & RESERVED and self.has("reserved-flags-refused"):
            await self.refuse()
        if frame.type not in rs.NAMES or frame.type == rs.EXT:
            if self.has("ext-refused" if frame.type == rs.EXT else "type-refused"):
                await self.refuse()
        elif frame.type == rs.KEEPALIVE:
            await self.on_keepalive(frame)
        elif not frame.stream:
            await self.on_connection_error(frame)
        elif frame.stream in self.streams:
            await self.on_own(self.streams[frame.stream], frame)
        elif not frame.stream % 2 and (frame.type in rs.REQUESTS or frame.stream in self.served):
            await self.on_served(frame)
        elif self.has(f"unknown-{rs.NAMES[frame.type].lower().replace('_', '-')}-refused"):
            await self.refuse()

    async def on_keepalive(self, frame: Frame) -> None:
        if self.has("keepalive-unanswered"):
            return
        if frame.flags & R or self.has("keepalive-always"):
            data = b"" if self.has("keepalive-data-lost") else frame.body[8:]
            await self.keepalive(data, R if self.has("keepalive-asks-back") else 0)

    async def on_connection_error(self, frame: Frame) -> None:
        if frame.type != rs.ERROR:
            return
        if frame.number in rs.SETUP_REFUSED:
            if not self.has("refusal-ignored"):
                raise ConnectionEnded
            self.nursery.start_soon(self.ask_on)
        elif frame.number == rs.CONNECTION_ERROR:
            if not self.has("connection-error-ignored"):
                raise ConnectionEnded
        elif self.has("closes-at-once"):
            raise ConnectionEnded

    async def ask_on(self) -> None:
        while True:
            await trio.sleep(0.1)
            await self.open(rs.REQUEST_RESPONSE, ASK)

    async def on_own(self, stream: Stream, frame: Frame) -> None:
        size = int.from_bytes(frame.body[:3])
        is_cut = frame.type == rs.PAYLOAD and frame.flags & M and size > len(frame.body)
        if is_cut and self.has("long-metadata-silent"):
            raise ConnectionEnded
        if is_cut and not self.has("long-metadata-taken"):
            await self.refuse()
        if stream.is_over:
            if self.has("late-refused"):
                await self.refuse()
            return
        if frame.type == rs.REQUEST_N:
            await stream.send.send(("request", frame.number))
        elif frame.type == rs.CANCEL:
            await stream.send.send(("cancel", b""))
        elif frame.type == rs.ERROR:
            text = b"" if self.has("error-text-lost") else frame.body[4:]
            await stream.send.send(("error", text))
            stream.is_over = not self.has("channel-error-ignored")
        elif frame.type == rs.PAYLOAD:
            await self.on_payload(stream, frame)

    async def on_payload(self, stream: Stream, frame: Frame) -> None:
        data = frame.body if self.has("metadata-in-data") else frame.data
        follows = frame.flags & F and not frame.flags & C
        if self.has("fragments-split"):
            follows = 0
        if frame.flags & N or stream.is_joining:
            stream.parts.append(data)
            stream.is_joining = bool(follows)
            is_lost = self.has("last-element-lost") and stream.kind == rs.REQUEST_STREAM
            if not follows and not (is_lost and frame.flags & C):
                await stream.send.send(("element", b"".join(stream.parts)))
            if not follows:
                stream.parts.clear()
        if frame.flags & C:
            stream.is_over = True
            await stream.send.send(("complete", b""))
        elif stream.kind == rs.REQUEST_RESPONSE and not follows:
            stream.is_over = not self.has("waits-for-complete")

    # --- the client answers

    async def on_served(self, frame: Frame) -> None:
        if frame.type == rs.REQUEST_RESPONSE:
            answers = 0 if self.has("serve-silent") else 2 if self.has("serve-twice") else 1
            for _ in range(answers):
                await self.send(rs.PAYLOAD, frame.stream, frame.data, N | C)
        elif frame.type == rs.REQUEST_STREAM:
            numbers = (b"%d" % number for number in count())
            self.served[frame.stream] = Served(frame.number, numbers)
        elif frame.type == rs.REQUEST_N:
            self.served[frame.stream].demand += frame.number
        elif frame.type == rs.CANCEL:
            self.served[frame.stream].is_over = not self.has("serve-cancel-ignored")
        served = self.served.get(frame.stream)
        while served is not None and served.demand and not served.is_over:
            extra = served.demand == 1 and self.has("serve-one-more")
            for _ in range(2 if extra else 1):
                await self.send(rs.PAYLOAD, frame.stream, next(served.elements), N)
            served.demand -= 1


def script_of(fault: str) -> Script:
    """Return what plays one connection with this fault."""
    return lambda connection: Client(connection, fault).run()


async def connect_again_and_again(url: str, script: Script) -> None:
    """Play a client: one connection after the other."""
    parsed = parse_url(url)
    transport = build_registry().transport(parsed.transport)
    while True:
        async with trio.open_nursery() as nursery:
            try:
                connection = await transport.connect(
                    parsed, options=TransportOptions(), nursery=nursery
                )
            except ConnectionLost:
                await trio.sleep(0.01)
                continue
            try:
                await script(connection)
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the check has closed
            finally:
                with trio.CancelScope(shield=True):
                    await connection.abort()
            await trio.sleep(0.01)
