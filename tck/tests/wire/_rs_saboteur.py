"""An honest small server of ReactiveSocket, written byte by byte, with a switch for each fault. No code of penstock's protocol is used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import trio

from penstock.plugins import Connection

SETUP, RR, FNF, STREAM, SUB, REQUEST_N, CANCEL, RESPONSE, ERROR, EXT = 1, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x20, 0x21, 0xFFFF
KNOWN = {SETUP, RR, FNF, STREAM, SUB, REQUEST_N, CANCEL, RESPONSE, ERROR, EXT}
I, B, E, C = 0x80, 0x40, 0x20, 0x10  # noqa: E741 (the draft's names)
TOP = 2**63 - 1
FRAGMENT = 50_000
ASKED = 4

PUBLISHERS: dict[bytes, Iterable[bytes]] = {
    b"numbers": [b"a number"] * 2000,
    b"three": [b"one", b"two", b"three"],
    b"one": [b"one"],
    b"empty": [],
    b"large": [b"x" * 120_000] * 3,
    b"failing": [b"one"],
    b"slow": [b"late"],
}


class Ended(Exception):
    """The connection is over."""


@dataclass(eq=False)
class Out:
    """A stream that is served."""

    id: int
    kind: int
    demand: int
    name: bytes
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
    parts: list[bytes] | None = None
    over: bool = False
    ready: list[bytes] = field(default_factory=list)
    end: int = 0


class RsServer:
    def __init__(self, connection: Connection, fault: str) -> None:
        self.connection = connection
        self.fault = fault
        self.rest = b""
        self.greeted = False
        self.outs: dict[int, Out] = {}
        self.ins: dict[int, In] = {}
        self.used: set[int] = set()
        self.next_id = 0
        self.sending = trio.Lock()
        self.chunk_of_setup = False

    def bad(self, *faults: str) -> bool:
        return self.fault in faults

    # --- saying

    async def say(self, kind: int, stream: int, body: bytes = b"", flags: int = 0) -> None:
        if self.bad("reserved-flags-sent") and kind == RESPONSE:
            flags |= 1
        version = 1 if self.bad("version-sent") and kind == RESPONSE else 0
        if self.bad("ids-32-bits"):
            stream &= 0xFFFFFFFF
        frame = bytes([version, flags]) + kind.to_bytes(2) + stream.to_bytes(8) + body
        length = len(frame) + 4
        if self.bad("reserved-bit-sent"):
            length |= 1 << 31
        data = length.to_bytes(4) + frame
        if self.bad("bytes-between-frames") and kind == ERROR:
            data += b"\0\0"
        async with self.sending:
            await self.connection.send(data)

    async def refuse(self, text: str, *, silent: bool = False) -> None:
        if not silent:
            await self.say(ERROR, 0, text.encode())
        raise Ended

    # --- hearing

    async def run(self) -> None:
        if self.bad("speaks-first"):
            await self.say(EXT, 0, bytes(4), I)
        async with trio.open_nursery() as self.nursery:
            try:
                while data := await self.connection.receive():
                    await self.take(bytes(data))
            except Ended:
                if self.bad("stays-open-after-refusal"):
                    await trio.sleep_forever()
                async with self.sending:
                    await self.connection.send_eof()
            self.nursery.cancel_scope.cancel()

    async def take(self, data: bytes) -> None:
        if self.bad("cut-frames-lost") and len(data) < 4:
            return
        self.chunk_of_setup = not self.greeted and self._types(data) == [SETUP, STREAM, STREAM, REQUEST_N]
        self.rest += data
        while len(self.rest) >= 4:
            length = int.from_bytes(self.rest[:4])
            if length >> 31:
                if not self.bad("reserved-bit-taken"):
                    await self.refuse("reserved bit")
                length &= TOP >> 32
            if length < 16 and not self.bad("short-length-taken"):
                await self.refuse("too short")
            if length > 1 << 20 and not self.bad("huge-length-awaited"):
                await self.refuse("too long")
            if len(self.rest) < length:
                return
            frame, self.rest = self.rest[4:length], self.rest[length:]
            if len(frame) >= 12:
                await self.frame(frame[0], frame[1], int.from_bytes(frame[2:4]), int.from_bytes(frame[4:12]), frame[12:])

    @staticmethod
    def _types(data: bytes) -> list[int]:
        types = []
        while len(data) >= 16:
            types.append(int.from_bytes(data[6:8]))
            data = data[max(16, int.from_bytes(data[:4])) :]
        return types

    async def frame(  # noqa: C901, PLR0912 (one branch for each type of frame)
        self, version: int, flags: int, kind: int, stream: int, body: bytes
    ) -> None:
        if self.bad("ids-32-bits"):
            stream &= 0xFFFFFFFF
        if version and not self.bad("version-taken" if self.greeted else "setup-version-taken"):
            await self.refuse("version", silent=self.bad("refuses-without-words"))
        if kind not in KNOWN:
            if flags & I and not self.bad("ignorable-type-refused"):
                return
            if not self.bad("unknown-type-taken"):
                await self.refuse("unknown type")
            return
        if flags & 0x0F and self.bad("reserved-flags-refused"):
            await self.refuse("reserved flags")
        if not self.greeted:
            await self.introduced(kind, stream, body)
        elif kind == EXT:
            if (not flags & I and not self.bad("extension-taken")) or (flags & I and self.bad("ignorable-extension-refused")):
                await self.refuse("unknown extension")
        elif kind in (RR, FNF, STREAM, SUB):
            await self.requested(kind, stream, body)
        elif kind in (RESPONSE, ERROR):
            await self.answered(kind, flags, stream, body)
        elif kind == REQUEST_N:
            await self.granted(stream, int.from_bytes(body[:8]))
        elif kind == CANCEL:
            await self.cancelled(stream)
        elif self.bad("second-setup-ends"):
            await self.refuse("a second SETUP")

    async def introduced(self, kind: int, stream: int, body: bytes) -> None:
        if kind != SETUP:
            if not self.bad("serves-without-setup"):
                await self.refuse("no SETUP")
            self.greeted = True
            await self.requested(kind, stream, body)
            return
        if stream and not self.bad("setup-stream-taken"):
            await self.refuse("a SETUP on another stream", silent=self.bad("refuses-without-words"))
        if body == b"refuse me" and not self.bad("all-setups-taken"):
            if self.bad("serves-behind-refusal") and self.rest:
                await self.say(RESPONSE, 1, b"served all the same", B | E)
            if self.bad("speaks-after-refusal"):
                await self.say(ERROR, 0, b"refused")
                await self.say(EXT, 0, bytes(4), I)
                raise Ended
            await self.refuse("refused", silent=self.bad("refuses-without-words"))
        self.greeted = True
        if self.bad("acknowledges-setup"):
            await self.say(RESPONSE, 0, b"", B | E)
        if self.bad("false-start-lost") and self.chunk_of_setup:
            self.rest = b""

    # --- serving

    async def requested(self, kind: int, stream: int, body: bytes) -> None:
        demand = 1
        if kind in (STREAM, SUB):
            if len(body) < 8 and not self.bad("short-request-taken"):
                await self.refuse("too short")
            demand, body = int.from_bytes(body[:8]), body[8:]
        if kind == FNF:
            if self.bad("fnf-answered"):
                await self.say(RESPONSE, stream, b"", C)
            return
        if (not stream and not self.bad("id-zero-served")) or await self._live_again(stream):
            return
        if demand > TOP:
            if not self.bad("initial-bit-63-taken"):
                await self.say(ERROR, stream, b"illegal demand")
                return
            demand = TOP
        if self.bad("demand-32-bits"):
            demand &= 0xFFFFFFFF
        if self.bad("data-must-be-text") and b"\xff" in body:
            await self.refuse("no text")
        if self.bad("few-streams") and len(self.outs) >= 50:
            await self.say(ERROR, stream, b"too many")
            return
        if (
            (self.bad("initial-one-more") and kind == STREAM)
            or (self.bad("sub-one-more") and kind == SUB)
            or (not demand and self.bad("zero-is-one"))
        ):
            demand += 1
        await self.opened(Out(stream, kind, demand, body))

    async def _live_again(self, stream: int) -> bool:
        if stream not in self.outs:
            return False
        if self.bad("live-id-fails"):
            await self.say(ERROR, stream, b"in use")
        if self.bad("live-id-ends-connection"):
            await self.refuse("in use")
        return not self.bad("live-id-replaced")

    async def opened(self, out: Out) -> None:
        if out.name == b"relay":
            await self.relay(out)
        elif out.name in PUBLISHERS:
            self.outs[out.id] = out
            self.nursery.start_soon(self.serve, out)
        elif not (self.bad("missing-is-silent") and out.kind == RR):
            await self.say(ERROR, out.id, b"no such publisher")
            if self.bad("stream-error-ends-connection"):
                await self.refuse("no such publisher")

    async def serve(self, out: Out) -> None:
        if out.name == b"slow":
            await trio.sleep(0.25)
        for element in self.elements(out):
            while out.demand <= 0 and not out.over:
                await out.mended.wait()
            if out.over:
                return
            if out.demand < TOP:
                out.demand -= 1
            await self.element(out, element)
            if out.kind == RR:
                break
            await trio.lowlevel.checkpoint()
        if out.name == b"numbers" and out.kind != RR:
            return  # it has no end; but virtual time stands still while elements come
        if not out.over:
            await self.end(out)

    @staticmethod
    def elements(out: Out) -> Iterator[bytes]:
        return iter(PUBLISHERS[out.name])

    async def element(self, out: Out, element: bytes) -> None:
        last = C if out.kind == RR and not self.bad("response-without-complete") else 0
        if out.kind == RR and out.name == b"failing":
            return
        if len(element) <= FRAGMENT:
            flags = 0 if self.bad("whole-unmarked") else B | E
            if self.bad("speaks-as-requester") and out.name == b"numbers":
                await self.say(REQUEST_N, out.id, (1).to_bytes(8))
            await self.say(RESPONSE, out.id, element, flags | last)
            if self.bad("response-twice") and out.kind == RR:
                await self.say(RESPONSE, out.id, element, flags | last)
            return
        for start in range(0, len(element), FRAGMENT):
            if out.over and not self.bad("cancel-ignored"):
                return
            is_last = start + FRAGMENT >= len(element)
            flags = (0 if start else B) | (E if is_last else 0)
            if self.bad("fragments-unmarked"):
                flags = 0
            if last and (is_last or self.bad("complete-too-early")):
                flags |= C
            if self.bad("fragments-cost") and start:
                out.demand -= 1
            if self.bad("fragment-lost") and start and not is_last and out.id == 1:
                continue
            await self.say(RESPONSE, out.id, element[start : start + FRAGMENT], flags)

    async def end(self, out: Out) -> None:
        out.over = True
        self.outs.pop(out.id, None)
        if out.name == b"failing":
            if out.kind == SUB and self.bad("sub-failure-completes"):
                await self.say(RESPONSE, out.id, b"", C)
            elif not (out.kind == STREAM and self.bad("failure-is-silent")):
                await self.say(ERROR, out.id, b"failed")
        elif out.kind == SUB:
            if self.bad("sub-completed"):
                await self.say(RESPONSE, out.id, b"", C)
        elif out.kind == STREAM and not self.bad("never-completes"):
            await self.say(RESPONSE, out.id, b"", C)
        if self.bad("ends-twice") and out.kind == STREAM:
            await self.say(ERROR, out.id, b"really")
        self.used.add(out.id)

    async def granted(self, stream: int, n: int) -> None:
        out = self.outs.get(stream)
        if out is None:
            if self.bad("unexpected-grant-refused"):
                await self.refuse("REQUEST_N for nothing")
            if self.bad("speaks-after-end") and stream in self.used:
                await self.say(RESPONSE, stream, b"one more", B | E)
            return
        if (n == 0 and not self.bad("zero-taken")) or (n > TOP and not self.bad("bit-63-taken")):
            out.over = True
            out.wake()
            del self.outs[stream]
            await self.say(ERROR, stream, b"illegal demand")
            return
        await self.add(out, n)

    async def add(self, out: Out, n: int) -> None:
        if self.bad("grants-ignored") or out.kind == RR:
            return
        if self.bad("demand-32-bits"):
            n &= 0xFFFFFFFF
        if self.bad("overflow-fails") and out.demand + n > TOP:
            out.over = True
            del self.outs[out.id]
            await self.say(ERROR, out.id, b"too much demand")
            return
        for each in list(self.outs.values()) if self.bad("demand-shared") else [out]:
            before = 0 if self.bad("grants-replace") else each.demand
            each.demand = min(TOP, before + n)
            each.wake()
        if out.name == b"relay":
            await self.pass_on(next(each for each in self.ins.values() if each.out is out))

    async def cancelled(self, stream: int) -> None:
        if self.bad("relay-one-space") and stream in self.ins:
            self.ins[stream].over = True
            await self.say(CANCEL, stream)
        out = self.outs.get(stream)
        if out is None:
            if self.bad("unexpected-cancel-refused"):
                await self.refuse("CANCEL for nothing")
            return
        if self.bad("cancel-ignored"):
            return
        out.over = True
        out.wake()
        del self.outs[stream]
        if self.bad("cancel-completes"):
            await self.say(RESPONSE, stream, b"", C)
        if self.bad("response-despite-cancel") and out.kind == RR:
            await self.say(RESPONSE, stream, b"late", B | E | C)
        self.used.add(stream)
        for each in [each for each in self.ins.values() if each.out is out and not each.over]:
            each.over = True
            if not self.bad("relay-never-cancels"):
                await self.say(CANCEL, each.id)
            if self.bad("relay-cancels-twice"):
                await self.say(CANCEL, each.id)

    # --- asking

    async def relay(self, out: Out) -> None:
        self.outs[out.id] = out
        self.next_id += 0 if self.bad("relay-same-id", "relay-id-zero") else 2
        asked = In(2 if self.bad("relay-same-id") else self.next_id, out)
        self.ins[asked.id] = asked
        await self.say(STREAM, asked.id, ASKED.to_bytes(8) + (b"tick" if self.bad("relay-other-name") else b"tck"))
        if self.bad("relay-asks-for-none"):
            await self.say(REQUEST_N, asked.id, bytes(8))

    async def answered(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        asked = self.ins.get(stream)
        if not stream and kind == ERROR:
            if not self.bad("error-on-zero-ignored"):
                raise Ended
            return
        if self.bad("one-space") and stream in self.outs:
            await self.end(self.outs[stream])
        if asked is None or asked.over:
            if asked is not None and self.bad("late-response-refused"):
                await self.refuse("late")
            if asked is None and self.bad("unexpected-response-refused" if kind == RESPONSE else "unexpected-error-refused"):
                await self.refuse("nobody asked")
            return
        if kind == ERROR:
            asked.over, asked.end = True, ERROR
            if self.bad("half-element-passed-on") and asked.parts:
                asked.ready += asked.parts
        else:
            await self.response(asked, flags, body)
        await self.pass_on(asked)

    async def response(self, asked: In, flags: int, body: bytes) -> None:
        begin, end, complete = flags & B, flags & E, flags & C
        if self.bad("bare-lost") and not begin and not end and asked.parts is None:
            return
        if not begin and (not end or self.bad("end-alone-taken")) and asked.parts is None:
            begin = end = 1
        wrong = (begin and asked.parts is not None and not self.bad("begin-twice-taken")) or (end and not begin and asked.parts is None)
        if (begin or not asked.parts) and (body or not complete):
            asked.left -= 1
        if wrong or (asked.left < 0 and not self.bad("overrun-taken")):
            asked.over = True
            await self.say(CANCEL, asked.id)
            await self.end(asked.out)
            return
        asked.parts = [*(asked.parts or []), body]
        if end or self.bad("fragments-not-joined"):
            whole, asked.parts = b"".join(asked.parts), None
            if body or not complete:
                asked.ready.append(whole)
        if complete:
            asked.over, asked.end = True, RESPONSE
            if self.bad("relay-cancels-what-ended"):
                await self.say(CANCEL, asked.id)

    async def pass_on(self, asked: In) -> None:
        out = asked.out
        while asked.ready and out.demand and not out.over:
            if out.demand < TOP:
                out.demand -= 1
            await self.say(RESPONSE, out.id, asked.ready.pop(0), B | E)
            if not asked.over and not self.bad("relay-asks-once"):
                asked.left += 1
                await self.say(REQUEST_N, asked.id, (1).to_bytes(8))
        if asked.end and not asked.ready and not out.over:
            out.over = True
            self.outs.pop(out.id, None)
            well = (asked.end == RESPONSE and not self.bad("relay-fails-well")) or self.bad("relay-ends-failure-well")
            await self.say(RESPONSE if well else ERROR, out.id, b"", C if well else 0)


async def rs_server(connection: Connection, fault: str) -> None:
    """Serve one connection."""
    await RsServer(connection, fault).run()
