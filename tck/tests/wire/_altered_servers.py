"""Faulty servers that no one has written by hand: a scripted server without a fault, one kind of
whose messages is altered on its way.

The scripted servers send one message with each call, so no stream of bytes has to be cut. Each
alteration is made on every message of one kind, or on the third one of a connection only: a fault
that begins late.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import attrs
import trio
from penstock_tck.wire import Verdict, check_target, requirements

from penstock.spi import Connection
from penstock.testing import run_virtual
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._rsio_saboteur import rsio_server, varint
from tck.tests.wire._scripted_target import REGISTRY, URL, serve_script

THIRD: Final = 2

Alter = Callable[[bytes], list[bytes]]


@attrs.frozen
class Protocol:
    """The facts about a protocol that the alterations need."""

    script: Callable[[Connection, str], Awaitable[None]]
    kind_of: Callable[[bytes], int]
    kinds: dict[str, int]
    alterations: dict[str, Alter]


# --- RS.io: a type, varints, perhaps a length and bytes


def _parse(data: bytes) -> tuple[int, list[int], bytes]:
    """Return the type of an RS.io message, its numbers, and the bytes of its last field."""
    kind, at, numbers = data[0], 1, []
    if kind in (0x02, 0x03, 0x10):
        return kind, [], data[1:]
    counts = {0x11: 2, 0x12: 1, 0x20: 2, 0x21: 1, 0x22: 2, 0x23: 2, 0x24: 2, 0x25: 1, 0x26: 1}
    for _ in range(counts.get(kind, 0)):
        end = next(index for index in range(at, len(data)) if data[index] < 0x80) + 1
        numbers.append(sum((byte & 0x7F) << 7 * index for index, byte in enumerate(data[at:end])))
        at = end
    return kind, numbers, data[at:]


def _next_id(data: bytes) -> list[bytes]:
    kind, numbers, rest = _parse(data)
    return (
        [bytes((kind,)) + b"".join(map(varint, (numbers[0] + 1, *numbers[1:]))) + rest]
        if numbers
        else [data]
    )


def _second_number(data: bytes) -> list[bytes]:
    kind, numbers, rest = _parse(data)
    return (
        [bytes((kind,)) + varint(numbers[0]) + varint(numbers[1] + 1) + rest]
        if len(numbers) > 1
        else [data]
    )


def _shorter(data: bytes) -> list[bytes]:
    kind, numbers, rest = _parse(data)
    if (
        kind not in (0x21, 0x23, 0x24, 0x26)
        or not rest
        or len(varint(len(rest) - 1)) + len(rest) - 1 < 2
    ):
        return [data]
    body = rest[len(varint(len(rest) - 1)) :][:-1]
    return [bytes((kind,)) + b"".join(map(varint, numbers)) + varint(len(body)) + body]


COMMON: Final[dict[str, Alter]] = {
    "lost": lambda _: [],
    "doubled": lambda data: [data, data],
    "cut": lambda data: [data[:-1]],
    "with another last byte": lambda data: [data[:-1] + bytes((data[-1] ^ 1,))],
    "with zeros behind it": lambda data: [data + bytes(1)],
}

RSIO_KINDS: Final = {
    "serverHello": 0x02,
    "goodbye": 0x03,
    "subscribe": 0x10,
    "request": 0x11,
    "cancel": 0x12,
    "onSubscribe": 0x20,
    "onNext": 0x21,
    "onNextPacked": 0x22,
    "onNextPart": 0x23,
    "onNextLastPart": 0x24,
    "onComplete": 0x25,
    "onError": 0x26,
}
RSIO: Final = Protocol(
    rsio_server,
    lambda data: data[0],
    RSIO_KINDS,
    {
        **COMMON,
        "of the next stream": _next_id,
        "with a number one higher": _second_number,
        "one byte shorter": _shorter,
        "as onComplete": lambda data: [
            b"\x25" + varint(numbers[0]) if (numbers := _parse(data)[1]) else data
        ],
    },
)

# --- ReactiveSocket: a length, a header of 12 bytes, and bytes


def _with_body(data: bytes, body: bytes) -> list[bytes]:
    return [(16 + len(body)).to_bytes(4) + data[4:16] + body]


def _flag(bit: int) -> Alter:
    return lambda data: [data[:5] + bytes((data[5] ^ bit,)) + data[6:]]


RS: Final = Protocol(
    rs_server,
    lambda data: int.from_bytes(data[6:8]),
    {"REQUEST_STREAM": 0x13, "REQUEST_N": 0x15, "CANCEL": 0x16, "RESPONSE": 0x20, "ERROR": 0x21},
    {
        **COMMON,
        "of the next stream": lambda data: [
            data[:8] + (int.from_bytes(data[8:16]) + 1).to_bytes(8) + data[16:]
        ],
        "of stream 0": lambda data: [data[:8] + bytes(8) + data[16:]],
        "one byte shorter": lambda data: (
            _with_body(data, data[16:-1]) if len(data) > 16 else [data]
        ),
        "of version 1": lambda data: [data[:4] + b"\x01" + data[5:]],
        "with the reserved bit": lambda data: [bytes((data[0] | 0x80,)) + data[1:]],
        "with B changed": _flag(0x40),
        "with E changed": _flag(0x20),
        "with C changed": _flag(0x10),
        "with I changed": _flag(0x80),
        "with a reserved flag": _flag(0x01),
        "as COMPLETE": lambda data: [b"\0\0\0\x10\0\x10\0\x20" + data[8:16]],
    },
)

PROTOCOLS: Final = {"rsio": RSIO, "reactivesocket": RS}


@attrs.frozen
class Alteration:
    """One faulty server."""

    protocol: str
    kind: str
    alteration: str
    is_late: bool

    def __str__(self) -> str:
        """Name it as a test shows it."""
        return (
            f"{self.protocol}: {'the third' if self.is_late else 'each'} {self.kind} "
            f"{self.alteration}"
        )


def alterations() -> Iterator[Alteration]:
    """Return each faulty server."""
    for name, protocol in PROTOCOLS.items():
        for kind in protocol.kinds:
            for alteration in protocol.alterations:
                for is_late in (False, True):
                    yield Alteration(name, kind, alteration, is_late)


class AlteredConnection(Connection):
    """A connection of a scripted server, whose messages are altered."""

    def __init__(self, inner: Connection, each: Alteration, changed: list[bytes]) -> None:
        self.framed, self.peer, self.facts = inner.framed, inner.peer, inner.facts
        protocol = PROTOCOLS[each.protocol]
        self._inner = inner
        self._kind_of = protocol.kind_of
        self._kind = protocol.kinds[each.kind]
        self._alter = protocol.alterations[each.alteration]
        self._is_late = each.is_late
        self._changed = changed
        self._count = 0

    async def send(self, data: bytes | bytearray | memoryview, /) -> None:
        message = bytes(data)
        sent = [message]
        if self._kind_of(message) == self._kind:
            if not self._is_late or self._count == THIRD:
                sent = self._alter(message)
            self._count += 1
        if sent != [message]:
            self._changed.append(message)
        for part in sent:
            await self._inner.send(part)
        if not sent:
            await trio.lowlevel.checkpoint()

    async def receive(self) -> bytes | bytearray | None:
        return await self._inner.receive()

    async def send_eof(self) -> None:
        await self._inner.send_eof()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def abort(self) -> None:
        await self._inner.abort()


def failed_by(each: Alteration) -> str | None:
    """Return the first requirement that this server fails, or "" if it passes all. None if
    nothing that it sent was altered.
    """
    changed: list[bytes] = []
    protocol = PROTOCOLS[each.protocol]

    async def script(connection: Connection, _fault: str) -> None:
        await protocol.script(AlteredConnection(connection, each, changed), "")

    async def run() -> str:
        async with trio.open_nursery() as nursery:
            await nursery.start(serve_script, script, "")
            for row in requirements(each.protocol):
                for result in await check_target(
                    f"{each.protocol}+{URL}", only=[row.name], registry=REGISTRY
                ):
                    if result.verdict is Verdict.FAIL:
                        nursery.cancel_scope.cancel()
                        return result.name
            nursery.cancel_scope.cancel()
        return ""

    failed = run_virtual(run)
    return failed if changed else None


def _names(protocol: str, kind: str, *alterations: str) -> Iterator[str]:
    for alteration in alterations:
        for when in ("each", "the third"):
            yield f"{protocol}: {when} {kind} {alteration}"


LEGAL: Final[dict[str, str]] = {
    **dict.fromkeys(
        _names("rsio", "subscribe", "with another last byte"),
        "the initial demand is the target's choice",
    ),
    **dict.fromkeys(
        [
            *_names("rsio", "request", "doubled", "with a number one higher"),
            *_names("reactivesocket", "REQUEST_N", "doubled"),
        ],
        "how much the target requests is its choice",
    ),
    "rsio: the third request lost": "the target requests less, and goes on",
    "reactivesocket: the third REQUEST_N lost": "the target requests less, and goes on",
    "rsio: the third request of the next stream": (
        "the target requests one element more of one of its streams, and one less of another"
    ),
    **dict.fromkeys(
        [
            "rsio: the third onNext one byte shorter",
            *_names("rsio", "onNextPacked", "with another last byte"),
        ],
        "the content of elements is prescribed for large ones only",
    ),
    **dict.fromkeys(
        [
            *_names("rsio", "onError", "with another last byte", "one byte shorter"),
            *_names("reactivesocket", "ERROR", "one byte shorter"),
        ],
        "the text of an error is the target's choice",
    ),
    **dict.fromkeys(
        [
            name
            for kind in ("REQUEST_STREAM", "REQUEST_N", "CANCEL", "RESPONSE", "ERROR")
            for name in _names("reactivesocket", kind, "with I changed")
        ],
        "I says what to do with a frame that is not understood, and these are",
    ),
}
"""The alterations after which a server still keeps every requirement, each with the reason."""


def fault_of(each: Alteration) -> str | None:
    """Return what is wrong with the verdict on one server; "" if nothing is. None if nothing
    that the server sent was altered.
    """
    failed = failed_by(each)
    if failed is None:
        return None
    if failed and str(each) in LEGAL:
        return f"{each}: fails {failed}, and is legal: {LEGAL[str(each)]}"
    return "" if failed or str(each) in LEGAL else f"{each}: is not found"
