"""A small scripted server of RS.io with a switch for each fault. It encodes with the kit's messages,
and uses no code of penstock's protocols.
"""

from collections.abc import Iterable

import attrs
import trio
from penstock_tck.wire import large_element
from penstock_tck.wire._target import SLOW_ATTEMPTS
from penstock_tck.wire.rsio import (
    FIELDS,
    UNBOUNDED,
    length_prefixed,
    numbers,
    of_extension,
    on_subscribe,
    varint,
)

from penstock.spi import Connection

RELAY_DEMAND = 4
PART = 50_000

PUBLISHERS: dict[str, tuple[int, Iterable[bytes]]] = {
    "numbers": (0, [b"a number"] * 2000),
    "fixed": (8, [b"a number"] * 2000),
    "three": (0, [b"one", b"two", b"three"]),
    "one": (0, [b"one"]),
    "empty": (0, []),
    "large": (0, [large_element(number) for number in range(3)]),
    "failing": (0, [b"one"]),
    "slow": (0, [b"late"]),
}
SERVED_WITHOUT_END = ("numbers", "fixed")


EXTENSION_OF = {0x40: 1, 0x41: 1, 0x42: 2, 0x43: 2, 0x44: 3, 0x45: 6}
"""The extension of each message of one, without those of requests."""
ENCODINGS = frozenset({16, 17})
"""The extensions that stand for msgpack and protobuf."""


class ConnectionEnded(Exception):
    """The server has ended the connection."""


class Incomplete(Exception):
    """The message is not complete yet."""


@attrs.define(eq=False)
class ServedStream:
    """A stream that the server sends to the checking side."""

    id: int
    demand: int
    name: str
    is_over: bool = False
    demand_changed: trio.Event = attrs.field(factory=trio.Event)

    def wake(self) -> None:
        self.demand_changed.set()
        self.demand_changed = trio.Event()


@attrs.define(eq=False)
class RelaySource:
    """A stream to which the server subscribes at the checking side, to pass it on."""

    id: int
    served: ServedStream
    left: int = RELAY_DEMAND
    size: int = -1
    parts: dict[int, bytes] = attrs.field(factory=dict)
    is_over: bool = False
    cancelled: bool = False
    ready: list[bytes] = attrs.field(factory=list)
    end: str = ""


class RsioServer:
    def __init__(self, connection: Connection, fault: str) -> None:
        self.connection = connection
        self.fault = fault
        self.buffer = b""
        self.position = 0
        self.is_open = False
        self.streams: dict[int, ServedStream] = {}
        self.sources: dict[int, RelaySource] = {}
        self.next_id = 0
        self.sending = trio.Lock()
        self.ended_ids: set[int] = set()
        self.has_requests = False
        self.asked_slow = 0  # how often the slow publisher was asked
        self.extension = 0  # auth, content or drain, if the client lists it alone
        self.arriving: dict[int, tuple[int, bytes]] = {}

    def has_fault(self, *faults: str) -> bool:
        return self.fault in faults

    # --- sending

    async def send(
        self, kind: int, *fields: int, body: bytes | None = None, bare: bytes = b""
    ) -> None:
        sized = b"" if body is None else length_prefixed(body)
        async with self.sending:
            await self.connection.send(numbers(kind, *fields) + sized + bare)

    async def send_bytes(self, data: bytes) -> None:
        async with self.sending:
            await self.connection.send(data)

    async def say_goodbye(self, reason: str) -> None:
        if not self.has_fault("closes-without-goodbye"):
            await self.send(3, body=reason.encode())
        if self.has_fault("speaks-after-goodbye"):
            await self.send(0x26, 1, body=b"over")
        if self.has_fault("stays-after-goodbye"):
            await trio.sleep_forever()
        raise ConnectionEnded

    async def refuse(self, fault: str, reason: str) -> None:
        if not self.has_fault(fault):
            await self.say_goodbye(reason)

    # --- receiving

    async def run(self) -> None:
        if self.has_fault("speaks-before-hello"):
            await self.send_bytes(on_subscribe(1))
        async with trio.open_nursery() as self.nursery:
            try:
                while data := await self.connection.receive():
                    await self.on_data(bytes(data))
            except ConnectionEnded:
                await self.close()
            self.nursery.cancel_scope.cancel()

    async def close(self) -> None:
        async with self.sending:
            if not self.has_fault("goodbye-answered-twice"):
                await self.connection.send_eof()
        while data := await self.connection.receive():
            if self.has_fault("goodbye-answered-twice") and b"crossing" in bytes(data):
                await self.send(3, body=b"")

    async def on_data(self, data: bytes) -> None:
        if self.has_fault("cut-messages-lost") and len(data) == 1:
            return
        self.buffer += data
        while self.buffer:
            self.position = 0
            try:
                act = await self.read_message()
            except Incomplete:
                return
            self.buffer = self.buffer[self.position :]
            await act

    def read_bytes(self, count: int) -> bytes:
        if len(self.buffer) < self.position + count:
            raise Incomplete
        self.position += count
        return self.buffer[self.position - count : self.position]

    async def read_varint(self) -> int:
        n = index = 0
        while True:
            byte = self.read_bytes(1)[0]
            n |= (byte & 0x7F) << 7 * index
            index += 1
            if index >= 9 and byte > 0x7F:
                await self.refuse("long-varint-taken", "protocol:varint")
            if byte < 0x80:
                if index > 1 and not byte:
                    await self.refuse("padded-varint-taken", "protocol:varint")
                return n

    async def read_text(self) -> bytes:
        length = await self.read_varint()
        if length > 1 << 20:
            await self.refuse("huge-length-awaited", "limit")
        return self.read_bytes(length)

    async def read_message(self):  # noqa: C901, PLR0911, PLR0912 (one branch for each type of message)
        kind = self.read_bytes(1)[0]
        if not self.is_open and kind not in (1, 3) and not self.has_fault("serves-without-hello"):
            await self.say_goodbye("protocol:hello")
        if kind == 1:
            version = self.read_bytes(1)[0]
            if version:
                if self.has_fault("version-answered"):
                    await self.send(2, 0, 0)
                await self.refuse("version-taken", "version 0")
            return self.on_hello(
                [await self.read_varint() for _ in range(await self.read_varint())]
            )
        if kind == 3:
            return self.on_goodbye(await self.read_text())
        if kind == 0x10:
            return self.on_subscribe(
                await self.read_text(), await self.read_varint(), await self.read_varint()
            )
        if kind == 0x11:
            return self.on_request(await self.read_varint(), await self.read_varint())
        if kind == 0x12:
            return self.on_cancel(await self.read_varint())
        if 0x20 <= kind <= 0x26:
            return await self.on_publisher_message(kind)
        if kind in (0x4C, 0x4D) and self.has_requests:
            return self.on_request_data(kind, await self.read_text())
        if kind in EXTENSION_OF and EXTENSION_OF[kind] == self.extension:
            return self.on_extension(kind, await self.read_text())
        if 0x40 <= kind < 0x7F:
            if not self.has_fault("extension-taken"):
                await self.say_goodbye("protocol:type")
            await self.read_text()
        elif kind == 4:
            await self.refuse("switch-taken", "protocol:type")
        else:
            await self.refuse("reserved-type-taken", "protocol:type")
        return self.skip()

    async def skip(self) -> None:
        pass

    async def on_hello(self, extensions: list[int]) -> None:
        if self.is_open:
            await self.refuse("second-hello-taken", "protocol:hello")
            return
        self.is_open = True
        if self.has_fault("extensions-must-be-known") and UNBOUNDED in extensions:
            await self.say_goodbye("unknown extension")
        self.changed = self.has_fault("meaning-changed-unasked") and 5 in extensions
        if self.has_fault("client-hello-from-server"):
            await self.send(1, 0, 0)
        self.has_requests = 7 in extensions and len(extensions) == 1
        self.extension = (
            extensions[0] if len(extensions) == 1 and extensions[0] in EXTENSION_OF.values() else 0
        )
        confirmed = (1, 7) if self.has_requests else (1, self.extension) if self.extension else (0,)
        # It speaks one encoding: if it confirmed another,
        # all requirements of encodings would fail as well.
        if self.has_fault("extensions-echoed") and not ENCODINGS.intersection(extensions):
            confirmed = (len(extensions), *extensions)
        await self.send(2, 1 if self.has_fault("another-version-said") else 0, *confirmed)
        if self.has_fault("hello-said-twice"):
            await self.send(2, 0, 0)
        if self.has_fault("extension-unasked"):
            await self.send(0x40, body=b"ping")
        if (
            self.has_fault("optimism-lost")
            and self.buffer.count(b"numbers") == 2
            and b"\x11\0" in self.buffer
        ):
            self.buffer = b""

    async def on_extension(self, kind: int, body: bytes) -> None:
        if kind == 0x40:
            if len(body) > 125:
                await self.refuse("long-ping-taken", "protocol:ping")
            elif not self.has_fault("ping-unanswered"):
                await self.send(0x41, body=body[:9] if self.has_fault("pong-cut") else body)
        elif kind == 0x45:
            if not body:
                await self.refuse("drain-unread", "protocol:drain")
            if self.has_fault("drain-stops-streams"):
                for stream in self.streams.values():
                    stream.is_over = True
        elif kind == 0x44:
            await self.refuse("content-taken", f"protocol:content {body[0]}")
        else:
            end = 1 + body[0] if kind == 0x42 else 0
            is_whole = kind == 0x42 and body[end] == len(body) - end - 1
            if self.has_fault("auth-admits"):
                await self.send(0x43, body=b"\x01")
            else:
                await self.say_goodbye(
                    "auth" if is_whole or self.has_fault("auth-unread") else "protocol:auth"
                )

    async def on_goodbye(self, reason: bytes) -> None:
        if self.has_fault("goodbye-ignored"):
            return
        if self.has_fault("long-reason-refused") and len(reason) > 100:
            raise ConnectionEnded
        if (
            self.has_fault("served-after-goodbye")
            and len(self.buffer) > 0
            and b"numbers" in self.buffer
        ):
            await self.send(0x21, 1, body=b"one more")
        await self.say_goodbye("")

    # --- serving

    async def on_subscribe(self, name: bytes, stream: int, demand: int) -> None:  # noqa: C901, PLR0912 (one branch for each fault)
        self.is_open = True
        if self.extension == 2 and not self.has_fault("auth-serves-early"):
            return  # kept until the verdict, which never comes
        if self.has_fault("ids-32-bits"):
            stream &= 0xFFFFFFFF
        if stream in self.streams:
            await self.refuse("live-id-taken", "protocol:subscribe")
            return
        if self.has_fault("ids-used-once") and stream in self.ended_ids:
            await self.send(0x26, stream, body=b"used")
            return
        if self.has_fault("long-names-refused") and len(name) > 200:
            await self.say_goodbye("limit")
        if self.has_fault("few-streams") and len(self.streams) > 50:
            await self.send(0x26, stream, body=b"too many")
            return
        if self.has_fault("demand-32-bits"):
            demand &= 0xFFFFFFFF
        if self.has_fault("initial-one-more") and demand:
            demand += 1
        if self.has_fault("zero-is-one"):
            demand = demand or 1
        served = ServedStream(stream, demand, name.decode(errors="replace"))
        if served.name == "relay":
            self.streams[stream] = served
            await self.send_bytes(on_subscribe(stream))
            await self.relay(served)
        elif served.name in PUBLISHERS:
            self.streams[stream] = served
            self.nursery.start_soon(self.serve, served)
        else:
            if self.has_fault("stream-error-ends-connection"):
                await self.say_goodbye("no such publisher")
            if self.has_fault("content-of-refused"):
                await self.send_bytes(self.announcement(stream))
            if not self.has_fault("missing-is-silent"):
                await self.send(0x26, stream, body=b"no such publisher")

    def announcement(self, stream: int) -> bytes:
        body = varint(stream) + b"\x05bytes\0"
        return of_extension(0x44, body) if self.extension == 3 else b""

    async def on_request_data(self, kind: int, body: bytes) -> None:
        numbers = []
        for _ in range(2 if kind == 0x4C else 1):
            end = next(index for index, byte in enumerate(body) if byte < 0x80) + 1
            numbers.append(sum((byte & 0x7F) << 7 * index for index, byte in enumerate(body[:end])))
            body = body[end:]
        stream = numbers[0]
        if kind == 0x4D and stream not in self.arriving:
            return
        length, before = (numbers[1], b"") if kind == 0x4C else self.arriving.pop(stream)
        data = before + body
        if len(data) > length:
            await self.refuse("named-too-much-taken", "protocol:request")
        if len(data) < length and not self.has_fault("named-answered-early"):
            self.arriving[stream] = (
                length,
                b"" if self.has_fault("named-part-lost") and before else data,
            )
            return
        end = 6 + int.from_bytes(data[4:6])
        if data[6:end] == b"echo":
            payload = data[end:]
            if self.has_fault("named-payload-as-text"):
                payload = payload.decode(errors="ignore").encode()
        elif self.has_fault("named-unknown-answered"):
            payload = b"something"
        else:
            await self.send(0x26, stream, body=b"no such publisher")
            return
        if not self.has_fault("named-never-begins"):
            await self.send_bytes(on_subscribe(stream))
        await self.send(0x21, stream, body=payload)
        await self.send(0x25, stream)

    async def serve(self, served: ServedStream) -> None:
        size, elements = PUBLISHERS[served.name]
        announced = (
            b"" if self.has_fault("content-late", "content-never") else self.announcement(served.id)
        )
        if not self.has_fault("never-begins") or size:
            await self.send_bytes(announced + on_subscribe(served.id, size))
        if self.has_fault("begins-twice"):
            await self.send_bytes(on_subscribe(served.id, size))
        if self.has_fault("content-late"):
            await self.send_bytes(self.announcement(served.id))
        if served.name == "slow":
            self.asked_slow += 1
            is_quick = self.has_fault("slow-is-quick") or (
                self.has_fault("slow-is-quick-at-first") and self.asked_slow < SLOW_ATTEMPTS
            )
            await trio.sleep(0 if is_quick else 0.25)
        left = list(elements)
        while left:
            while served.demand <= 0 and not served.is_over:
                await served.demand_changed.wait()
            if served.is_over:
                if self.has_fault("old-stream-speaks") and served.name == "slow":
                    await self.send(0x21, served.id, body=b"late")
                return
            count = min(len(left), served.demand, 16 if size else 1)
            if served.demand < UNBOUNDED:
                served.demand -= count
            elements, left = left[:count], left[count:]
            await self.elements(served, size, elements)
            await trio.lowlevel.checkpoint()
        if served.name not in SERVED_WITHOUT_END and not served.is_over:
            await self.end(served)

    async def elements(self, served: ServedStream, size: int, elements: list[bytes]) -> None:
        if self.has_fault("large-element-repeated") and served.name == "large":
            elements = [large_element(0)]
        if getattr(self, "changed", False):
            elements = [elements[0]] * 2
        if size and len(elements) > 1:
            extra = 1 if self.has_fault("packed-one-more") else 0
            await self.send(
                0x22,
                served.id,
                len(elements) + extra,
                bare=b"".join(elements) + bytes(size * extra),
            )
            if self.has_fault("packs-nothing"):
                await self.send(0x22, served.id, 0)
        elif size:
            await self.send(0x21, served.id, bare=elements[0])
        elif self.has_fault("packs-without-size") and served.name == "numbers":
            await self.send(0x22, served.id, 1)
            await self.send(0x21, served.id, body=elements[0])
        elif len(elements[0]) > PART and not self.has_fault("never-splits"):
            await self.split(served, elements[0])
        else:
            for element in elements:
                await self.send(0x21, served.id, body=element)

    async def split(self, served: ServedStream, element: bytes) -> None:
        for start in range(0, len(element), PART):
            if served.is_over and not self.has_fault("cancel-ignored"):
                return
            is_last = start + PART >= len(element)
            shown = self.part_shown(start, is_last=is_last)
            if self.has_fault("part-lost") and start and not is_last and served.demand:
                continue
            if self.has_fault("parts-cost") and start:
                served.demand -= 1
            await self.send(
                0x24 if is_last and not self.has_fault("last-part-unmarked") else 0x23,
                served.id,
                0,
                body=element[shown : shown + PART],
            )

    def part_shown(self, start: int, *, is_last: bool) -> int:
        if self.has_fault("parts-swapped") and not is_last and start:
            return 3 * PART - start  # the second and the third of four
        return 0 if self.has_fault("part-repeated") and start == PART else start

    async def end(self, served: ServedStream) -> None:
        served.is_over = True
        if self.streams.get(served.id) is served:
            del self.streams[served.id]
        self.ended_ids.add(served.id)
        if served.name == "failing":
            if self.has_fault("failure-completes"):
                await self.send(0x25, served.id)
            else:
                await self.send(0x26, served.id, body=b"failed")
        elif not self.has_fault("never-completes"):
            await self.send(0x25, served.id)
        if self.has_fault("ends-twice"):
            await self.send(0x25, served.id)

    async def on_request(self, stream: int, n: int) -> None:
        served = self.streams.get(stream)
        if served is None:
            if self.has_fault("late-request-refused"):
                await self.say_goodbye("unknown stream")
            if self.has_fault("speaks-after-end") and stream in self.ended_ids:
                await self.send(0x21, stream, body=b"one more")
            return
        if not n and not self.has_fault("zero-taken"):
            served.is_over = True
            served.wake()
            del self.streams[stream]
            await self.send(0x26, stream, body=b"illegal demand")
            return
        if self.has_fault("requests-ignored"):
            return
        if self.has_fault("demand-32-bits", "request-32-bits"):
            n &= 0xFFFFFFFF
        for each in list(self.streams.values()) if self.has_fault("demand-shared") else [served]:
            each.demand = (
                n if self.has_fault("requests-replace") else min(UNBOUNDED, each.demand + n)
            )
            each.wake()
        if self.has_fault("overflow-fails") and n == UNBOUNDED:
            served.is_over = True
            await self.send(0x26, stream, body=b"too much")
        for each in self.sources.values():
            await self.pass_on(each)

    async def on_cancel(self, stream: int) -> None:
        served = self.streams.get(stream)
        if served is None or self.has_fault("cancel-ignored"):
            return
        served.is_over = True
        served.wake()
        del self.streams[stream]
        self.ended_ids.add(stream)
        if self.has_fault("cancel-completes"):
            await self.send(0x25, stream)
        if self.has_fault("cancel-fails"):
            await self.send(0x26, stream, body=b"cancelled")
        if self.has_fault("id-held-after-cancel"):
            self.streams[stream] = ServedStream(stream, 0, "", is_over=True)
        for each in [
            each for each in self.sources.values() if each.served is served and not each.is_over
        ]:
            await self.stop(each)

    # --- the relay

    async def stop(self, source: RelaySource) -> None:
        source.is_over = source.cancelled = True
        if not self.has_fault("never-cancels"):
            await self.send(0x12, source.id)
        if self.has_fault("cancels-twice"):
            await self.send(0x12, source.id)

    async def relay(self, served: ServedStream) -> None:
        self.next_id += 0 if self.has_fault("relay-id-reused") else 1
        # No fault: a server may request as it likes.
        demand = 1 if self.has_fault("relay-one-at-a-time") else RELAY_DEMAND
        source = RelaySource(self.next_id, served, demand)
        self.sources[source.id] = source
        await self.send(
            0x10,
            body=b"tick" if self.has_fault("relay-other-name") else b"tck",
            bare=varint(source.id) + varint(demand),
        )
        if self.has_fault("asks-for-none"):
            await self.send(0x11, source.id, 0)

    async def on_publisher_message(self, kind: int):
        stream = await self.read_varint()
        source = self.sources.get(stream)
        if (
            source is None
            or (source.is_over and not source.cancelled)
            or (kind in (0x21, 0x22, 0x23, 0x24) and source.size < 0)
        ):
            if not self.has_fault(
                "unknown-stream-taken" if source is None else "early-element-taken"
            ):
                await self.say_goodbye("protocol:stream")
            source = source or RelaySource(
                stream, ServedStream(0, 0, ""), is_over=True, cancelled=True
            )
        if kind == 0x20:
            size, *_ = [await self.read_varint() for _ in FIELDS[kind][1][1:]]
            return self.on_begin(source, size)
        if kind == 0x21:
            count = (
                source.size
                if source.size > 0 and not self.has_fault("size-not-heeded")
                else await self.read_varint()
            )
            return self.on_elements(source, [self.read_bytes(count)])
        if kind == 0x22:
            count = await self.read_varint()
            if source.size <= 0:
                await self.refuse("unsized-packed-taken", "protocol:packed")
            data = self.read_bytes(count * max(source.size, 0))
            return self.on_elements(
                source, [data[index * source.size :][: source.size] for index in range(count)]
            )
        if kind in (0x23, 0x24):
            return self.on_part(
                source, await self.read_varint(), await self.read_text(), kind == 0x24
            )
        return self.on_end(
            source,
            "error" if kind == 0x26 else "complete",
            await self.read_text() if kind == 0x26 else b"",
        )

    async def on_begin(self, source: RelaySource, size: int) -> None:
        source.size = size

    async def on_elements(
        self, source: RelaySource, elements: list[bytes], *, costs: int | None = None
    ) -> None:
        if source.is_over:
            if self.has_fault("late-element-refused"):
                await self.say_goodbye("late")
            return
        source.left -= len(elements) if costs is None else costs
        if source.left < 0 and not self.has_fault("overrun-taken"):
            await self.stop(source)
            return
        if self.has_fault("large-elements-refused") and any(
            len(element) > 60_000 for element in elements
        ):
            await self.stop(source)
        source.ready += elements
        await self.pass_on(source)

    async def on_part(self, source: RelaySource, element: int, data: bytes, is_last: bool) -> None:
        costs = 0 if element in source.parts else 1
        if self.has_fault("parts-not-joined"):
            await self.on_elements(source, [data], costs=costs)
            return
        key = 0 if self.has_fault("parts-of-one-stream-mixed") else element
        source.parts[key] = source.parts.get(key, b"") + data
        await self.on_elements(source, [source.parts.pop(key)] if is_last else [], costs=costs)

    async def on_end(self, source: RelaySource, how: str, text: bytes) -> None:
        if self.has_fault("one-space") and source.id in self.streams:
            self.streams.pop(source.id).is_over = True
        if source.is_over:
            return
        source.is_over = True
        if self.has_fault("error-overtakes") and how == "error":
            source.ready.clear()
        if source.parts:
            if self.has_fault("half-passed-on"):
                source.ready += source.parts.values()
            if not self.has_fault("half-completes"):
                how = "error"
        if self.has_fault("long-error-refused") and len(text) > 1000:
            await self.say_goodbye("limit")
        source.end = (
            "error"
            if self.has_fault("completion-fails")
            else "complete"
            if self.has_fault("error-completes")
            else how
        )
        if self.has_fault("cancels-what-ended"):
            await self.send(0x12, source.id)
        await self.pass_on(source)

    async def pass_on(self, source: RelaySource) -> None:
        served = source.served
        if self.has_fault("error-overtakes") and self.buffer:
            return  # what has arrived is read first
        while source.ready and served.demand and not served.is_over:
            if served.demand < UNBOUNDED:
                served.demand -= 1
            await self.element_passed_on(served, source.ready.pop(0))
            if not source.is_over and not self.has_fault("asks-once"):
                source.left += 1
                await self.send(0x11, source.id, 1)
        if source.end and not source.ready and not served.is_over:
            served.is_over = True
            self.streams.pop(served.id, None)
            await self.send(
                *((0x25, served.id) if source.end == "complete" else (0x26, served.id)),
                body=None if source.end == "complete" else b"failed",
            )

    async def element_passed_on(self, served: ServedStream, element: bytes) -> None:
        for start in range(0, len(element) or 1, PART):
            is_last = start + PART >= len(element)
            await self.send(
                0x24 if is_last else 0x23, served.id, 0, body=element[start : start + PART]
            )


async def rsio_server(connection: Connection, fault: str) -> None:
    """Serve one connection, with this fault."""
    await RsioServer(connection, fault).run()
