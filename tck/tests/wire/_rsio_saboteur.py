"""An honest small server of RS.io, written byte by byte, with a switch for each fault. No code of penstock's protocol is used."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from penstock.plugins import Connection

TOP = 2**63 - 1
ASKED = 4
PART = 50_000

PUBLISHERS: dict[str, tuple[int, Iterable[bytes]]] = {
    "numbers": (0, [b"a number"] * 2000),
    "fixed": (8, [b"a number"] * 2000),
    "three": (0, [b"one", b"two", b"three"]),
    "one": (0, [b"one"]),
    "empty": (0, []),
    "large": (0, [b"x" * 120_000] * 3),
    "failing": (0, [b"one"]),
    "slow": (0, [b"late"]),
}
SERVED_WITHOUT_END = ("numbers", "fixed")


class Ended(Exception):
    """The connection is over."""


class Short(Exception):
    """More bytes are needed."""


@dataclass(eq=False)
class Out:
    """A stream that is served."""

    id: int
    demand: int
    name: str
    over: bool = False
    mended: trio.Event = field(default_factory=trio.Event)

    def wake(self) -> None:
        self.mended.set()
        self.mended = trio.Event()


@dataclass(eq=False)
class In:
    """A stream that is asked for, for the relay."""

    id: int
    out: Out
    left: int = ASKED
    size: int = -1
    parts: dict[int, bytes] = field(default_factory=dict)
    over: bool = False
    cancelled: bool = False
    ready: list[bytes] = field(default_factory=list)
    end: str = ""


def varint(n: int) -> bytes:
    groups = bytearray()
    while n >= 0x80:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*groups, n))


class RsioServer:
    def __init__(self, connection: Connection, fault: str) -> None:
        self.connection = connection
        self.fault = fault
        self.rest = b""
        self.at = 0
        self.greeted = False
        self.outs: dict[int, Out] = {}
        self.ins: dict[int, In] = {}
        self.next_id = 0
        self.sending = trio.Lock()
        self.used: set[int] = set()

    def bad(self, *faults: str) -> bool:
        return self.fault in faults

    # --- saying

    async def say(self, kind: int, *numbers: int, body: bytes | None = None, bare: bytes = b"") -> None:
        sized = b"" if body is None else varint(len(body)) + body
        async with self.sending:
            await self.connection.send(bytes((kind,)) + b"".join(map(varint, numbers)) + sized + bare)

    async def leave(self, reason: str) -> None:
        if not self.bad("closes-without-goodbye"):
            await self.say(3, body=reason.encode())
        if self.bad("speaks-after-goodbye"):
            await self.say(0x26, 1, body=b"over")
        if self.bad("stays-after-goodbye"):
            await trio.sleep_forever()
        raise Ended

    async def refuse(self, fault: str, reason: str) -> None:
        if not self.bad(fault):
            await self.leave(reason)

    # --- hearing

    async def run(self) -> None:
        if self.bad("speaks-before-hello"):
            await self.say(0x20, 1, 0)
        async with trio.open_nursery() as self.nursery:
            try:
                while data := await self.connection.receive():
                    await self.take(bytes(data))
            except Ended:
                await self.close()
            self.nursery.cancel_scope.cancel()

    async def close(self) -> None:
        async with self.sending:
            if not self.bad("goodbye-answered-twice"):
                await self.connection.send_eof()
        while data := await self.connection.receive():
            if self.bad("goodbye-answered-twice") and b"crossing" in bytes(data):
                await self.say(3, body=b"")

    async def take(self, data: bytes) -> None:
        if self.bad("cut-messages-lost") and len(data) == 1:
            return
        self.rest += data
        while self.rest:
            self.at = 0
            try:
                act = await self.message()
            except Short:
                return
            self.rest = self.rest[self.at :]
            await act

    def cut(self, count: int) -> bytes:
        if len(self.rest) < self.at + count:
            raise Short
        self.at += count
        return self.rest[self.at - count : self.at]

    async def varint(self) -> int:
        n = index = 0
        while True:
            byte = self.cut(1)[0]
            n |= (byte & 0x7F) << 7 * index
            index += 1
            if index >= 9 and byte > 0x7F:
                await self.refuse("long-varint-taken", "protocol:varint")
            if byte < 0x80:
                if index > 1 and not byte:
                    await self.refuse("padded-varint-taken", "protocol:varint")
                return n

    async def text(self) -> bytes:
        length = await self.varint()
        if length > 1 << 20:
            await self.refuse("huge-length-awaited", "limit")
        return self.cut(length)

    async def message(self):  # noqa: C901, PLR0911, PLR0912 (one branch for each type of message)
        kind = self.cut(1)[0]
        if not self.greeted and kind not in (1, 3) and not self.bad("serves-without-hello"):
            await self.leave("protocol:hello")
        if kind == 1:
            version = self.cut(1)[0]
            if version:
                if self.bad("version-answered"):
                    await self.say(2, 0, 0)
                await self.refuse("version-taken", "version 0")
            return self.hello([await self.varint() for _ in range(await self.varint())])
        if kind == 3:
            return self.goodbye(await self.text())
        if kind == 0x10:
            return self.subscribed(await self.text(), await self.varint(), await self.varint())
        if kind == 0x11:
            return self.requested(await self.varint(), await self.varint())
        if kind == 0x12:
            return self.cancelled(await self.varint())
        if 0x20 <= kind <= 0x26:
            return await self.published(kind)
        if 0x40 <= kind < 0x7F:
            if not self.bad("extension-taken"):
                await self.leave("protocol:type")
            await self.text()
        elif kind == 4:
            await self.refuse("switch-taken", "protocol:type")
        else:
            await self.refuse("reserved-type-taken", "protocol:type")
        return self.nothing()

    async def nothing(self) -> None:
        pass

    async def hello(self, extensions: list[int]) -> None:
        if self.greeted:
            await self.refuse("second-hello-taken", "protocol:hello")
            return
        self.greeted = True
        if self.bad("extensions-must-be-known") and TOP in extensions:
            await self.leave("unknown extension")
        self.changed = self.bad("meaning-changed-unasked") and 5 in extensions
        if self.bad("client-hello-from-server"):
            await self.say(1, 0, 0)
        await self.say(2, 1 if self.bad("another-version-said") else 0, 0)
        if self.bad("hello-said-twice"):
            await self.say(2, 0, 0)
        if self.bad("extension-unasked"):
            await self.say(0x40, body=b"ping")
        if self.bad("optimism-lost") and self.rest.count(b"numbers") == 2 and b"\x11\0" in self.rest:
            self.rest = b""

    async def goodbye(self, reason: bytes) -> None:
        if self.bad("goodbye-ignored"):
            return
        if self.bad("long-reason-refused") and len(reason) > 100:
            raise Ended
        if self.bad("served-after-goodbye") and len(self.rest) > 0 and b"numbers" in self.rest:
            await self.say(0x21, 1, body=b"one more")
        await self.leave("")

    # --- serving

    async def subscribed(self, name: bytes, stream: int, demand: int) -> None:  # noqa: C901, PLR0912 (one branch for each fault)
        self.greeted = True
        if self.bad("ids-32-bits"):
            stream &= 0xFFFFFFFF
        if stream in self.outs:
            await self.refuse("live-id-taken", "protocol:subscribe")
            return
        if self.bad("ids-used-once") and stream in self.used:
            await self.say(0x26, stream, body=b"used")
            return
        if self.bad("long-names-refused") and len(name) > 200:
            await self.leave("limit")
        if self.bad("few-streams") and len(self.outs) > 50:
            await self.say(0x26, stream, body=b"too many")
            return
        if self.bad("demand-32-bits"):
            demand &= 0xFFFFFFFF
        if self.bad("initial-one-more") and demand:
            demand += 1
        if self.bad("zero-is-one"):
            demand = demand or 1
        out = Out(stream, demand, name.decode(errors="replace"))
        if out.name == "relay":
            self.outs[stream] = out
            await self.say(0x20, stream, 0)
            await self.relay(out)
        elif out.name in PUBLISHERS:
            self.outs[stream] = out
            self.nursery.start_soon(self.serve, out)
        else:
            if self.bad("stream-error-ends-connection"):
                await self.leave("no such publisher")
            if not self.bad("missing-is-silent"):
                await self.say(0x26, stream, body=b"no such publisher")

    async def serve(self, out: Out) -> None:
        size, elements = PUBLISHERS[out.name]
        if not self.bad("never-begins") or size:
            await self.say(0x20, out.id, size)
        if self.bad("begins-twice"):
            await self.say(0x20, out.id, size)
        if out.name == "slow":
            await trio.sleep(0.25)
        left = list(elements)
        while left:
            while out.demand <= 0 and not out.over:
                await out.mended.wait()
            if out.over:
                if self.bad("old-stream-speaks") and out.name == "slow":
                    await self.say(0x21, out.id, body=b"late")
                return
            count = min(len(left), out.demand, 16 if size else 1)
            if out.demand < TOP:
                out.demand -= count
            elements, left = left[:count], left[count:]
            await self.elements(out, size, elements)
            await trio.lowlevel.checkpoint()
        if out.name not in SERVED_WITHOUT_END and not out.over:
            await self.end(out)

    async def elements(self, out: Out, size: int, elements: list[bytes]) -> None:
        if getattr(self, "changed", False):
            elements = [elements[0]] * 2
        if size and len(elements) > 1:
            extra = 1 if self.bad("packed-one-more") else 0
            await self.say(0x22, out.id, len(elements) + extra, bare=b"".join(elements) + bytes(size * extra))
            if self.bad("packs-nothing"):
                await self.say(0x22, out.id, 0)
        elif size:
            await self.say(0x21, out.id, bare=elements[0])
        elif self.bad("packs-without-size") and out.name == "numbers":
            await self.say(0x22, out.id, 1)
            await self.say(0x21, out.id, body=elements[0])
        elif len(elements[0]) > PART and not self.bad("never-splits"):
            await self.split(out, elements[0])
        else:
            for element in elements:
                await self.say(0x21, out.id, body=element)

    async def split(self, out: Out, element: bytes) -> None:
        for start in range(0, len(element), PART):
            if out.over and not self.bad("cancel-ignored"):
                return
            is_last = start + PART >= len(element)
            if self.bad("part-lost") and start and not is_last and out.demand:
                continue
            if self.bad("parts-cost") and start:
                out.demand -= 1
            await self.say(0x24 if is_last and not self.bad("last-part-unmarked") else 0x23, out.id, 0, body=element[start : start + PART])

    async def end(self, out: Out) -> None:
        out.over = True
        if self.outs.get(out.id) is out:
            del self.outs[out.id]
        self.used.add(out.id)
        if out.name == "failing":
            if self.bad("failure-completes"):
                await self.say(0x25, out.id)
            else:
                await self.say(0x26, out.id, body=b"failed")
        elif not self.bad("never-completes"):
            await self.say(0x25, out.id)
        if self.bad("ends-twice"):
            await self.say(0x25, out.id)

    async def requested(self, stream: int, n: int) -> None:
        out = self.outs.get(stream)
        if out is None:
            if self.bad("late-request-refused"):
                await self.leave("unknown stream")
            if self.bad("speaks-after-end") and stream in self.used:
                await self.say(0x21, stream, body=b"one more")
            return
        if not n and not self.bad("zero-taken"):
            out.over = True
            out.wake()
            del self.outs[stream]
            await self.say(0x26, stream, body=b"illegal demand")
            return
        if self.bad("requests-ignored"):
            return
        if self.bad("demand-32-bits"):
            n &= 0xFFFFFFFF
        for each in list(self.outs.values()) if self.bad("demand-shared") else [out]:
            each.demand = n if self.bad("requests-replace") else min(TOP, each.demand + n)
            each.wake()
        if self.bad("overflow-fails") and n == TOP:
            out.over = True
            await self.say(0x26, stream, body=b"too much")
        for each in self.ins.values():
            await self.pass_on(each)

    async def cancelled(self, stream: int) -> None:
        out = self.outs.get(stream)
        if out is None or self.bad("cancel-ignored"):
            return
        out.over = True
        out.wake()
        del self.outs[stream]
        self.used.add(stream)
        if self.bad("id-held-after-cancel"):
            self.outs[stream] = Out(stream, 0, "", over=True)
        for each in [each for each in self.ins.values() if each.out is out and not each.over]:
            await self.stop(each)

    # --- asking

    async def stop(self, asked: In) -> None:
        asked.over = asked.cancelled = True
        if not self.bad("never-cancels"):
            await self.say(0x12, asked.id)
        if self.bad("cancels-twice"):
            await self.say(0x12, asked.id)

    async def relay(self, out: Out) -> None:
        self.next_id += 0 if self.bad("relay-id-reused") else 1
        asked = In(self.next_id, out)
        self.ins[asked.id] = asked
        await self.say(0x10, body=b"tick" if self.bad("relay-other-name") else b"tck", bare=varint(asked.id) + varint(ASKED))
        if self.bad("asks-for-none"):
            await self.say(0x11, asked.id, 0)

    async def published(self, kind: int):
        stream = await self.varint()
        asked = self.ins.get(stream)
        if asked is None or (asked.over and not asked.cancelled) or (kind in (0x21, 0x22, 0x23, 0x24) and asked.size < 0):
            if not self.bad("unknown-stream-taken" if asked is None else "early-element-taken"):
                await self.leave("protocol:stream")
            asked = asked or In(stream, Out(0, 0, ""), over=True, cancelled=True)
        if kind == 0x20:
            size = await self.varint()
            return self.begun(asked, size)
        if kind == 0x21:
            count = asked.size if asked.size > 0 and not self.bad("size-not-heeded") else await self.varint()
            return self.heard(asked, [self.cut(count)])
        if kind == 0x22:
            count = await self.varint()
            if asked.size <= 0:
                await self.refuse("unsized-packed-taken", "protocol:packed")
            data = self.cut(count * max(asked.size, 0))
            return self.heard(asked, [data[index * asked.size :][: asked.size] for index in range(count)])
        if kind in (0x23, 0x24):
            return self.part(asked, await self.varint(), await self.text(), kind == 0x24)
        return self.over(asked, "error" if kind == 0x26 else "complete", await self.text() if kind == 0x26 else b"")

    async def begun(self, asked: In, size: int) -> None:
        asked.size = size

    async def heard(self, asked: In, elements: list[bytes], *, costs: int | None = None) -> None:
        if asked.over:
            if self.bad("late-element-refused"):
                await self.leave("late")
            return
        asked.left -= len(elements) if costs is None else costs
        if asked.left < 0 and not self.bad("overrun-taken"):
            await self.stop(asked)
            return
        if self.bad("large-elements-refused") and any(len(element) > 60_000 for element in elements):
            await self.stop(asked)
        asked.ready += elements
        await self.pass_on(asked)

    async def part(self, asked: In, element: int, data: bytes, is_last: bool) -> None:
        costs = 0 if element in asked.parts else 1
        if self.bad("parts-not-joined"):
            await self.heard(asked, [data], costs=costs)
            return
        key = 0 if self.bad("parts-of-one-stream-mixed") else element
        asked.parts[key] = asked.parts.get(key, b"") + data
        await self.heard(asked, [asked.parts.pop(key)] if is_last else [], costs=costs)

    async def over(self, asked: In, how: str, text: bytes) -> None:
        if self.bad("one-space") and asked.id in self.outs:
            self.outs.pop(asked.id).over = True
        if asked.over:
            return
        asked.over = True
        if asked.parts:
            if self.bad("half-passed-on"):
                asked.ready += asked.parts.values()
            if not self.bad("half-completes"):
                how = "error"
        if self.bad("long-error-refused") and len(text) > 1000:
            await self.leave("limit")
        asked.end = "error" if self.bad("completion-fails") else "complete" if self.bad("error-completes") else how
        if self.bad("cancels-what-ended"):
            await self.say(0x12, asked.id)
        await self.pass_on(asked)

    async def pass_on(self, asked: In) -> None:
        out = asked.out
        while asked.ready and out.demand and not out.over:
            if out.demand < TOP:
                out.demand -= 1
            await self.element_passed_on(out, asked.ready.pop(0))
            if not asked.over and not self.bad("asks-once"):
                asked.left += 1
                await self.say(0x11, asked.id, 1)
        if asked.end and not asked.ready and not out.over:
            out.over = True
            self.outs.pop(out.id, None)
            await self.say(
                *((0x25, out.id) if asked.end == "complete" else (0x26, out.id)), body=None if asked.end == "complete" else b"failed"
            )

    async def element_passed_on(self, out: Out, element: bytes) -> None:
        for start in range(0, len(element) or 1, PART):
            is_last = start + PART >= len(element)
            await self.say(0x24 if is_last else 0x23, out.id, 0, body=element[start : start + PART])


async def rsio_server(connection: Connection, fault: str) -> None:
    """Serve one connection."""
    await RsioServer(connection, fault).run()
