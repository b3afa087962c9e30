"""A small scripted server of ReactiveSocket, with a switch for each fault. It encodes with the
kit's frames, and uses no code of penstock's protocols.
"""

from collections.abc import Iterable, Iterator

import attrs
import trio
from penstock_tck.wire import large_element
from penstock_tck.wire._target import SLOW_ATTEMPTS
from penstock_tck.wire.reactivesocket import (
    CANCEL,
    ERROR,
    EXT,
    REQUEST_N,
    RESPONSE,
    SETUP,
    UNBOUNDED,
    B,
    C,
    E,
    I,
    encode_frame,
)
from penstock_tck.wire.reactivesocket import REQUEST_FNF as FNF
from penstock_tck.wire.reactivesocket import REQUEST_RESPONSE as RR
from penstock_tck.wire.reactivesocket import REQUEST_STREAM as STREAM
from penstock_tck.wire.reactivesocket import REQUEST_SUB as SUB

from penstock.spi import Connection

KNOWN = {SETUP, RR, FNF, STREAM, SUB, REQUEST_N, CANCEL, RESPONSE, ERROR, EXT}
FRAGMENT = 50_000
RELAY_DEMAND = 4

PUBLISHERS: dict[bytes, Iterable[bytes]] = {
    b"numbers": [b"a number"] * 2000,
    b"three": [b"one", b"two", b"three"],
    b"one": [b"one"],
    b"empty": [],
    b"large": [large_element(number) for number in range(3)],
    b"failing": [b"one"],
    b"slow": [b"late"],
}


class ConnectionEnded(Exception):
    """The server has ended the connection."""


@attrs.define(eq=False)
class ServedStream:
    """A stream that the server sends to the checking side."""

    id: int
    kind: int
    demand: int
    name: bytes
    is_over: bool = False
    demand_changed: trio.Event = attrs.field(factory=trio.Event)

    def wake(self) -> None:
        self.demand_changed.set()
        self.demand_changed = trio.Event()


@attrs.define(eq=False)
class RelaySource:
    """A stream that the server requests from the checking side, to pass it on."""

    id: int
    served: ServedStream
    left: int = RELAY_DEMAND
    parts: list[bytes] | None = None
    is_over: bool = False
    ready: list[bytes] = attrs.field(factory=list)
    end: int = 0


class RsServer:
    def __init__(self, connection: Connection, fault: str) -> None:
        self.connection = connection
        self.fault = fault
        self.buffer = b""
        self.is_open = False
        self.streams: dict[int, ServedStream] = {}
        self.sources: dict[int, RelaySource] = {}
        self.ended_ids: set[int] = set()
        self.next_id = 0
        self.sending = trio.Lock()
        self.is_false_start = False
        self.asked_slow = 0  # how often the slow publisher was asked

    def has_fault(self, *faults: str) -> bool:
        return self.fault in faults

    # --- sending

    async def send(self, kind: int, stream: int, body: bytes = b"", flags: int = 0) -> None:
        if self.has_fault("reserved-flags-sent") and kind == RESPONSE:
            flags |= 1
        version = 1 if self.has_fault("version-sent") and kind == RESPONSE else 0
        if self.has_fault("ids-32-bits"):
            stream &= 0xFFFFFFFF
        frame = encode_frame(kind, stream, body, flags=flags, version=version)
        length = len(frame) + 4
        if self.has_fault("reserved-bit-sent"):
            length |= 1 << 31
        data = length.to_bytes(4) + frame
        if self.has_fault("bytes-between-frames") and kind == ERROR:
            data += b"\0\0"
        async with self.sending:
            await self.connection.send(data)

    async def refuse(self, text: str, *, silent: bool = False) -> None:
        if not silent:
            await self.send(ERROR, 0, text.encode())
        raise ConnectionEnded

    # --- receiving

    async def run(self) -> None:
        if self.has_fault("speaks-first"):
            await self.send(EXT, 0, bytes(4), I)
        async with trio.open_nursery() as self.nursery:
            try:
                while data := await self.connection.receive():
                    await self.on_data(bytes(data))
            except ConnectionEnded:
                if self.has_fault("stays-open-after-refusal"):
                    await trio.sleep_forever()
                async with self.sending:
                    await self.connection.send_eof()
            self.nursery.cancel_scope.cancel()

    async def on_data(self, data: bytes) -> None:
        if self.has_fault("cut-frames-lost") and len(data) < 4:
            return
        self.is_false_start = not self.is_open and self._types(data) == [
            SETUP,
            STREAM,
            STREAM,
            REQUEST_N,
        ]
        self.buffer += data
        while len(self.buffer) >= 4:
            length = int.from_bytes(self.buffer[:4])
            if length >> 31:
                if not self.has_fault("reserved-bit-taken"):
                    await self.refuse("reserved bit")
                length &= UNBOUNDED >> 32
            if length < 16 and not self.has_fault("short-length-taken"):
                await self.refuse("too short")
            if length > 1 << 20 and not self.has_fault("huge-length-awaited"):
                await self.refuse("too long")
            if len(self.buffer) < length:
                return
            frame, self.buffer = self.buffer[4:length], self.buffer[length:]
            if len(frame) >= 12:
                await self.on_frame(
                    frame[0],
                    frame[1],
                    int.from_bytes(frame[2:4]),
                    int.from_bytes(frame[4:12]),
                    frame[12:],
                )

    @staticmethod
    def _types(data: bytes) -> list[int]:
        types = []
        while len(data) >= 16:
            types.append(int.from_bytes(data[6:8]))
            data = data[max(16, int.from_bytes(data[:4])) :]
        return types

    async def on_frame(  # noqa: C901, PLR0912 (one branch for each type of frame)
        self, version: int, flags: int, kind: int, stream: int, body: bytes
    ) -> None:
        if self.has_fault("ids-32-bits"):
            stream &= 0xFFFFFFFF
        if version and not self.has_fault(
            "version-taken" if self.is_open else "setup-version-taken"
        ):
            await self.refuse("version", silent=self.has_fault("refuses-without-words"))
        if kind not in KNOWN:
            if flags & I and not self.has_fault("ignorable-type-refused"):
                return
            if not self.has_fault("unknown-type-taken"):
                await self.refuse("unknown type")
            return
        if flags & 0x0F and self.has_fault("reserved-flags-refused"):
            await self.refuse("reserved flags")
        if not self.is_open:
            await self.on_first_frame(kind, stream, body)
        elif kind == EXT:
            if (not flags & I and not self.has_fault("extension-taken")) or (
                flags & I and self.has_fault("ignorable-extension-refused")
            ):
                await self.refuse("unknown extension")
        elif kind in (RR, FNF, STREAM, SUB):
            await self.on_request(kind, stream, body)
        elif kind in (RESPONSE, ERROR):
            await self.on_answer(kind, flags, stream, body)
        elif kind == REQUEST_N:
            await self.on_request_n(stream, int.from_bytes(body[:8]))
        elif kind == CANCEL:
            await self.on_cancel(stream)
        elif self.has_fault("second-setup-ends"):
            await self.refuse("a second SETUP")

    async def on_first_frame(self, kind: int, stream: int, body: bytes) -> None:
        if kind != SETUP:
            if not self.has_fault("serves-without-setup"):
                await self.refuse("no SETUP")
            self.is_open = True
            await self.on_request(kind, stream, body)
            return
        if stream and not self.has_fault("setup-stream-taken"):
            await self.refuse(
                "a SETUP on another stream", silent=self.has_fault("refuses-without-words")
            )
        if body == b"refuse me" and not self.has_fault("all-setups-taken"):
            if self.has_fault("serves-behind-refusal") and self.buffer:
                await self.send(RESPONSE, 1, b"served after the refusal", B | E)
            if self.has_fault("speaks-after-refusal"):
                await self.send(ERROR, 0, b"refused")
                await self.send(EXT, 0, bytes(4), I)
                raise ConnectionEnded
            await self.refuse("refused", silent=self.has_fault("refuses-without-words"))
        self.is_open = True
        if self.has_fault("acknowledges-setup"):
            await self.send(RESPONSE, 0, b"", B | E)
        if self.has_fault("false-start-lost") and self.is_false_start:
            self.buffer = b""

    # --- serving

    async def on_request(self, kind: int, stream: int, body: bytes) -> None:
        demand = 1
        if kind in (STREAM, SUB):
            if len(body) < 8 and not self.has_fault("short-request-taken"):
                await self.refuse("too short")
            demand, body = int.from_bytes(body[:8]), body[8:]
        if kind == FNF:
            if self.has_fault("fnf-answered"):
                await self.send(RESPONSE, stream, b"", C)
            return
        if (not stream and not self.has_fault("id-zero-served")) or await self._refuse_live_id(
            stream
        ):
            return
        if demand > UNBOUNDED:
            if not self.has_fault("initial-bit-63-taken"):
                await self.send(ERROR, stream, b"illegal demand")
                return
            demand = UNBOUNDED
        if self.has_fault("demand-32-bits"):
            demand &= 0xFFFFFFFF
        if self.has_fault("data-must-be-text") and b"\xff" in body:
            await self.refuse("no text")
        if self.has_fault("few-streams") and len(self.streams) >= 50:
            await self.send(ERROR, stream, b"too many")
            return
        if (
            (self.has_fault("initial-one-more") and kind == STREAM)
            or (self.has_fault("sub-one-more") and kind == SUB)
            or (not demand and self.has_fault("zero-is-one"))
        ):
            demand += 1
        await self.open_stream(ServedStream(stream, kind, demand, body))

    async def _refuse_live_id(self, stream: int) -> bool:
        if stream not in self.streams:
            return False
        if self.has_fault("live-id-fails"):
            await self.send(ERROR, stream, b"in use")
        if self.has_fault("live-id-ends-connection"):
            await self.refuse("in use")
        return not self.has_fault("live-id-replaced")

    async def answer_named(self, served: ServedStream) -> None:
        length = int.from_bytes(served.name[4:6])
        name, payload = served.name[6 : 6 + length], served.name[6 + length :]
        if self.has_fault("named-cut-ends-connection") and len(served.name) < 6 + length:
            await self.refuse("cut")
        if (
            self.has_fault("named-cut-answered") or len(served.name) >= 6 + length
        ) and name == b"echo":
            if self.has_fault("named-payload-as-text"):
                payload = payload.decode(errors="ignore").encode()
            await self.send(
                RESPONSE,
                served.id,
                b"" if self.has_fault("named-payload-lost") else payload,
                B | E | C,
            )
        elif self.has_fault("named-unknown-answered"):
            await self.send(RESPONSE, served.id, payload, B | E | C)
        else:
            await self.send(ERROR, served.id, b"no such publisher")

    async def open_stream(self, served: ServedStream) -> None:
        if served.kind == RR and served.name.startswith(b"\xffrq\0"):
            await self.answer_named(served)
            return
        if served.name == b"relay":
            await self.relay(served)
        elif served.name in PUBLISHERS:
            self.streams[served.id] = served
            self.nursery.start_soon(self.serve, served)
        elif not (self.has_fault("missing-is-silent") and served.kind == RR):
            await self.send(ERROR, served.id, b"no such publisher")
            if self.has_fault("stream-error-ends-connection"):
                # After the elements of other streams:
                # which of two tasks is first is left to chance.
                await trio.sleep(0.1)
                await self.refuse("no such publisher")

    async def serve(self, served: ServedStream) -> None:
        if served.name == b"slow":
            self.asked_slow += 1
            is_quick = self.has_fault("slow-is-quick") or (
                self.has_fault("slow-is-quick-at-first") and self.asked_slow < SLOW_ATTEMPTS
            )
            await trio.sleep(0 if is_quick else 0.25)
        for element in self.elements(served):
            while served.demand <= 0 and not served.is_over:
                await served.demand_changed.wait()
            if served.is_over:
                return
            if served.demand < UNBOUNDED:
                served.demand -= 1
            await self.element(served, element)
            if served.kind == RR:
                break
            await trio.lowlevel.checkpoint()
        if served.name == b"numbers" and served.kind != RR:
            # A stream without end: it stops here, because virtual time stands still while elements
            # are sent.
            return
        if not served.is_over:
            await self.end(served)

    def elements(self, served: ServedStream) -> Iterator[bytes]:
        is_repeated = self.has_fault("large-element-repeated") and served.name == b"large"
        return iter([large_element(0)] * 3 if is_repeated else PUBLISHERS[served.name])

    async def element(self, served: ServedStream, element: bytes) -> None:
        last = C if served.kind == RR and not self.has_fault("response-without-complete") else 0
        if served.kind == RR and served.name == b"failing":
            return
        if len(element) <= FRAGMENT:
            flags = 0 if self.has_fault("whole-unmarked") else B | E
            if self.has_fault("speaks-as-requester") and served.name == b"numbers":
                await self.send(REQUEST_N, served.id, (1).to_bytes(8))
            await self.send(RESPONSE, served.id, element, flags | last)
            if self.has_fault("response-twice") and served.kind == RR:
                await self.send(RESPONSE, served.id, element, flags | last)
            return
        for start in range(0, len(element), FRAGMENT):
            if served.is_over and not self.has_fault("cancel-ignored"):
                return
            is_last = start + FRAGMENT >= len(element)
            shown = self.fragment_shown(start, is_last=is_last)
            flags = (0 if start else B) | (E if is_last else 0)
            if self.has_fault("fragments-unmarked"):
                flags = 0
            if last and (is_last or self.has_fault("complete-too-early")):
                flags |= C
            if self.has_fault("fragments-cost") and start:
                served.demand -= 1
            if self.has_fault("fragment-lost") and start and not is_last and served.id == 1:
                continue
            await self.send(RESPONSE, served.id, element[shown : shown + FRAGMENT], flags)

    def fragment_shown(self, start: int, *, is_last: bool) -> int:
        if self.has_fault("fragments-swapped") and not is_last and start:
            return 3 * FRAGMENT - start  # the second and the third of four
        return 0 if self.has_fault("fragment-repeated") and start == FRAGMENT else start

    async def end(self, served: ServedStream) -> None:
        served.is_over = True
        self.streams.pop(served.id, None)
        if served.name == b"failing":
            if served.kind == SUB and self.has_fault("sub-failure-completes"):
                await self.send(RESPONSE, served.id, b"", C)
            elif not (served.kind == STREAM and self.has_fault("failure-is-silent")):
                await self.send(ERROR, served.id, b"failed")
        elif served.kind == SUB:
            if self.has_fault("sub-completed"):
                await self.send(RESPONSE, served.id, b"", C)
        elif served.kind == STREAM and not self.has_fault("never-completes"):
            await self.send(RESPONSE, served.id, b"", C)
        if self.has_fault("ends-twice") and served.kind == STREAM:
            await self.send(ERROR, served.id, b"a second end")
        self.ended_ids.add(served.id)

    async def on_request_n(self, stream: int, n: int) -> None:
        served = self.streams.get(stream)
        if served is None:
            if self.has_fault("unexpected-grant-refused"):
                await self.refuse("REQUEST_N for nothing")
            if self.has_fault("speaks-after-end") and stream in self.ended_ids:
                await self.send(RESPONSE, stream, b"one more", B | E)
            return
        if (n == 0 and not self.has_fault("zero-taken")) or (
            n > UNBOUNDED and not self.has_fault("bit-63-taken")
        ):
            served.is_over = True
            served.wake()
            del self.streams[stream]
            await self.send(ERROR, stream, b"illegal demand")
            return
        await self.add(served, n)

    async def add(self, served: ServedStream, n: int) -> None:
        if self.has_fault("grants-ignored") or served.kind == RR:
            return
        if self.has_fault("demand-32-bits", "grants-32-bits"):
            n &= 0xFFFFFFFF
        if self.has_fault("overflow-fails") and served.demand + n > UNBOUNDED:
            served.is_over = True
            del self.streams[served.id]
            await self.send(ERROR, served.id, b"too much demand")
            return
        for each in list(self.streams.values()) if self.has_fault("demand-shared") else [served]:
            before = 0 if self.has_fault("grants-replace") else each.demand
            each.demand = min(UNBOUNDED, before + n)
            each.wake()
        if served.name == b"relay":
            await self.pass_on(
                next(each for each in self.sources.values() if each.served is served)
            )

    async def on_cancel(self, stream: int) -> None:
        if self.has_fault("relay-one-space") and stream in self.sources:
            self.sources[stream].is_over = True
            await self.send(CANCEL, stream)
        served = self.streams.get(stream)
        if served is None:
            if self.has_fault("unexpected-cancel-refused"):
                await self.refuse("CANCEL for nothing")
            return
        if self.has_fault("cancel-ignored"):
            return
        served.is_over = True
        served.wake()
        del self.streams[stream]
        if self.has_fault("cancel-completes"):
            await self.send(RESPONSE, stream, b"", C)
        if self.has_fault("response-despite-cancel") and served.kind == RR:
            await self.send(RESPONSE, stream, b"late", B | E | C)
        self.ended_ids.add(stream)
        for each in [
            each for each in self.sources.values() if each.served is served and not each.is_over
        ]:
            each.is_over = True
            if not self.has_fault("relay-never-cancels"):
                await self.send(CANCEL, each.id)
            if self.has_fault("relay-cancels-twice"):
                await self.send(CANCEL, each.id)

    # --- the relay

    async def relay(self, served: ServedStream) -> None:
        self.streams[served.id] = served
        self.next_id += 0 if self.has_fault("relay-same-id", "relay-id-zero") else 2
        source = RelaySource(2 if self.has_fault("relay-same-id") else self.next_id, served)
        self.sources[source.id] = source
        await self.send(
            STREAM,
            source.id,
            RELAY_DEMAND.to_bytes(8) + (b"tick" if self.has_fault("relay-other-name") else b"tck"),
        )
        if self.has_fault("relay-asks-for-none"):
            await self.send(REQUEST_N, source.id, bytes(8))

    async def on_answer(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        source = self.sources.get(stream)
        if not stream and kind == ERROR:
            if not self.has_fault("error-on-zero-ignored"):
                raise ConnectionEnded
            return
        if self.has_fault("one-space") and stream in self.streams:
            await self.end(self.streams[stream])
        if source is None or source.is_over:
            if source is not None and self.has_fault("late-response-refused"):
                await self.refuse("late")
            if source is None and self.has_fault(
                "unexpected-response-refused" if kind == RESPONSE else "unexpected-error-refused"
            ):
                await self.refuse("not requested")
            return
        if kind == ERROR:
            source.is_over, source.end = True, ERROR
            if self.has_fault("error-overtakes"):
                source.ready.clear()
            if self.has_fault("half-element-passed-on") and source.parts:
                source.ready += source.parts
        else:
            await self.on_response(source, flags, body)
        await self.pass_on(source)

    async def on_response(self, source: RelaySource, flags: int, body: bytes) -> None:
        begin, end, complete = flags & B, flags & E, flags & C
        if self.has_fault("bare-lost") and not begin and not end and source.parts is None:
            return
        if not begin and (not end or self.has_fault("end-alone-taken")) and source.parts is None:
            begin = end = 1
        wrong = (
            begin and source.parts is not None and not self.has_fault("begin-twice-taken")
        ) or (end and not begin and source.parts is None)
        if (begin or not source.parts) and (body or not complete):
            source.left -= 1
        if wrong or (source.left < 0 and not self.has_fault("overrun-taken")):
            source.is_over = True
            await self.send(CANCEL, source.id)
            await self.end(source.served)
            return
        source.parts = (
            [body, *source.parts]
            if self.has_fault("relay-fragments-swapped") and source.parts
            else [*(source.parts or []), body]
        )
        if end or self.has_fault("fragments-not-joined"):
            whole, source.parts = b"".join(source.parts), None
            if body or not complete:
                source.ready.append(whole)
        if complete:
            source.is_over, source.end = True, RESPONSE
            if self.has_fault("relay-cancels-what-ended"):
                await self.send(CANCEL, source.id)

    async def pass_on(self, source: RelaySource) -> None:
        served = source.served
        if self.has_fault("error-overtakes") and self.buffer:
            return  # what has arrived is read first
        while source.ready and served.demand and not served.is_over:
            if served.demand < UNBOUNDED:
                served.demand -= 1
            await self.send(RESPONSE, served.id, source.ready.pop(0), B | E)
            if not source.is_over and not self.has_fault("relay-asks-once"):
                source.left += 1
                await self.send(REQUEST_N, source.id, (1).to_bytes(8))
        if source.end and not source.ready and not served.is_over:
            served.is_over = True
            self.streams.pop(served.id, None)
            well = (
                source.end == RESPONSE and not self.has_fault("relay-fails-well")
            ) or self.has_fault("relay-ends-failure-well")
            await self.send(RESPONSE if well else ERROR, served.id, b"", C if well else 0)


async def rs_server(connection: Connection, fault: str) -> None:
    """Serve one connection, with this fault."""
    await RsServer(connection, fault).run()
