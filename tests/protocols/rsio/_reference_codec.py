"""A second codec of RS.io, written from docs/reference/rsio.md alone:
slow, literal, and without any code of penstock.

A message is a tuple: its name on the page, and then its fields in the order of the page. Two
messages are easier to write by hand: a hello is `("clientHello", version, (extension, ...))`, and
packed elements are `("onNextPacked", id, (element, ...))`.

Rules of this file:

* It imports nothing of penstock. Otherwise a fault of penstock could be in both codecs, and the
  comparison would not find it.
* The decoder takes one byte at a time: it is a generator that is sent bytes.
  So it cannot depend on where chunks end.
* Each refusal has the token and the numbers of the page, and is raised at the byte
  that the page names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Message = tuple[Any, ...]
Asked = Generator[None, int, Any]
"""A part of the decoder: it is sent one byte after another, and returns what it has decoded."""

TYPES = {
    "clientHello": 0x01,
    "serverHello": 0x02,
    "goodbye": 0x03,
    "switchEncoding": 0x04,
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
NAMES = {number: name for name, number in TYPES.items()}
WITHOUT_BOUND = 2**63 - 1


# ---- writing


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; every byte but the last has its top bit set."""
    if not 0 <= value <= WITHOUT_BOUND:
        raise ValueError(f"{value} is no varint")
    out = bytearray()
    while value > 127:
        out.append(value % 128 + 128)
        value = value // 128
    out.append(value)
    return bytes(out)


def prefixed(data: bytes | str) -> bytes:
    """`str` and `bytes`: the number of bytes, and then the bytes."""
    if isinstance(data, str):
        data = data.encode("utf-8")
    return varint(len(data)) + data


def encode(message: Message, element_size: int = 0) -> bytes:
    """The message as bytes. `element_size` is the elementSize from onSubscribe, for an onNext
    or an onNextPacked.
    """
    match message:
        case ("extension", kind, body):
            return bytes([kind]) + prefixed(body)
        case ("clientHello" | "serverHello", version, extensions):
            fields = (
                bytes([version])
                + varint(len(extensions))
                + b"".join(varint(each) for each in extensions)
            )
        case ("goodbye", reason):
            fields = prefixed(reason)
        case ("subscribe", publisher, stream_id, demand):
            fields = prefixed(publisher) + varint(stream_id) + varint(demand)
        case ("request" | "onSubscribe", stream_id, number):
            fields = varint(stream_id) + varint(number)
        case ("cancel" | "onComplete" | "switchEncoding", number):
            fields = varint(number)
        case ("onError", stream_id, error):
            fields = varint(stream_id) + prefixed(error)
        case ("onNext", stream_id, element):
            fields = varint(stream_id) + (
                _of_size(element, element_size) if element_size else prefixed(element)
            )
        case ("onNextPacked", stream_id, elements):
            fields = (
                varint(stream_id)
                + varint(len(elements))
                + b"".join(_of_size(each, element_size) for each in elements)
            )
        case ("onNextPart" | "onNextLastPart", stream_id, number, data):
            fields = varint(stream_id) + varint(number) + prefixed(data)
    return bytes([TYPES[message[0]]]) + fields


def _of_size(element: bytes, element_size: int) -> bytes:
    if len(element) != element_size:
        raise ValueError(f"{len(element)} bytes in a stream of elements of {element_size}")
    return element


# ---- reading


class Refused(Exception):
    """The bytes are refused, with the reason for a goodbye."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Limits:
    """The limits in the column *at least* of the page."""

    extensions: int = 64
    name: int = 255
    text: int = 4_096
    reason: int = 255
    body: int = 65_536
    element_size: int = 4_096


@dataclass
class Decoder:
    """Bytes in, messages out, in any chunks.

    It must know the messages that its own side sends: call `on_subscribe_sent`, and `on_end_sent`
    for onComplete and onError.
    """

    is_server: bool
    limits: Limits = field(default_factory=Limits)
    extensions: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The extensions in the hello of this side, each with the types of its messages."""

    def __post_init__(self) -> None:
        self.mine: dict[int, int | None] = {}
        """The open streams that this side has subscribed to, with their elementSize;
        None before onSubscribe.
        """
        self.theirs: set[int] = set()
        self.active: set[int] = set()
        """The types of the extensions that both hellos list."""
        self.consumed = 0
        self.refused: str | None = None
        self.said_goodbye = False
        self._messages: list[Message] = []
        self._reader = self._read()
        next(self._reader)

    def on_subscribe_sent(self, stream_id: int) -> None:
        """Enter a stream of this side. A cancel needs no such call:
        for the decoder a cancelled stream is like any other.
        """
        self.mine[stream_id] = None

    def on_end_sent(self, stream_id: int) -> None:
        """Remove a stream of the peer: the peer may use its id again."""
        self.theirs.discard(stream_id)

    def feed(self, data: Iterable[int]) -> list[Message]:
        """Every message that `data` completes.
        Bytes after a refusal or a goodbye are discarded.
        """
        for byte in data:
            if self.refused is not None or self.said_goodbye:
                break
            self.consumed += 1
            try:
                self._reader.send(byte)
            except Refused as refusal:
                self.refused = refusal.reason
        messages, self._messages = self._messages, []
        return messages

    def _read(self) -> Asked:
        kind = yield
        if kind not in (
            TYPES["clientHello"] if self.is_server else TYPES["serverHello"],
            TYPES["goodbye"],
        ):
            raise Refused("protocol:hello")
        while True:
            message = yield from self._message(kind)
            self._messages.append(message)
            self.said_goodbye = message[0] == "goodbye"
            kind = yield
            if kind in (TYPES["clientHello"], TYPES["serverHello"]):
                raise Refused("protocol:hello")

    def _message(self, kind: int) -> Asked:
        if 0x40 <= kind <= 0x7E:
            return (yield from self._extension(kind))
        readers: dict[str, Callable[[str], Asked]] = {
            "clientHello": self._hello,
            "serverHello": self._hello,
            "goodbye": self._goodbye,
            "switchEncoding": self._switch_encoding,
            "subscribe": self._subscribe,
            "request": self._request,
            "cancel": self._cancel,
            "onSubscribe": self._on_subscribe,
            "onNext": self._on_next,
            "onNextPacked": self._on_next_packed,
            "onNextPart": self._on_next_part,
            "onNextLastPart": self._on_next_part,
            "onComplete": self._on_complete,
            "onError": self._on_error,
        }
        if kind not in NAMES:
            raise Refused(f"protocol:type {kind:#04x}")
        return (yield from readers[NAMES[kind]](NAMES[kind]))

    # -- parts of messages

    def _varint(self) -> Asked:
        value = 0
        for place in range(9):
            byte = yield
            value += byte % 128 * 128**place
            if byte < 128:
                if byte == 0 and place > 0:
                    raise Refused("protocol:varint")
                return value
        raise Refused("protocol:varint")

    def _exactly(self, count: int) -> Asked:
        out = bytearray()
        for _ in range(count):
            byte = yield
            out.append(byte)
        return bytes(out)

    def _bytes(self, limit: int, token: str) -> Asked:
        """A length above a limit is refused with its last byte, before the bytes after it."""
        length = yield from self._varint()
        _within(length, limit, token)
        return (yield from self._exactly(length))

    def _begun(self) -> Asked:
        """The id of a stream that this side has subscribed to and that onSubscribe has begun."""
        stream_id = yield from self._varint()
        if self.mine.get(stream_id) is None:
            raise Refused(f"protocol:stream {stream_id}")
        return stream_id

    def _must_be_mine(self, stream_id: int) -> None:
        if stream_id not in self.mine:
            raise Refused(f"protocol:stream {stream_id}")

    # -- messages

    def _hello(self, name: str) -> Asked:
        version = yield
        if version != 0:
            raise Refused("version 0")
        count = yield from self._varint()
        _within(count, self.limits.extensions, "limit:extensions")
        listed = []
        for _ in range(count):
            extension = yield from self._varint()
            listed.append(extension)
        for extension in listed:
            self.active |= self.extensions.get(extension, frozenset())
        return (name, version, tuple(listed))

    def _goodbye(self, name: str) -> Asked:
        reason = yield from self._bytes(self.limits.reason, "limit:reason")
        return (name, reason.decode("utf-8", "replace"))

    def _switch_encoding(self, name: str) -> Asked:
        extension = yield from self._varint()
        raise Refused(f"protocol:switch {extension}")

    def _extension(self, kind: int) -> Asked:
        length = yield from self._varint()
        _within(length, self.limits.body, "limit:frame")
        if kind not in self.active:
            raise Refused(f"protocol:type {kind:#04x}")
        return ("extension", kind, (yield from self._exactly(length)))

    def _subscribe(self, name: str) -> Asked:
        raw = yield from self._bytes(self.limits.name, "limit:name")
        stream_id = yield from self._varint()
        demand = yield from self._varint()
        if stream_id in self.theirs:
            raise Refused(f"protocol:subscribe {stream_id}")
        self.theirs.add(stream_id)
        try:
            return (name, raw.decode("utf-8"), stream_id, demand)
        except UnicodeDecodeError:
            return (name, None, stream_id, demand)  # the answer is onError

    def _request(self, name: str) -> Asked:
        stream_id = yield from self._varint()
        demand = yield from self._varint()
        return (name, stream_id, demand)

    def _cancel(self, name: str) -> Asked:
        stream_id = yield from self._varint()
        self.theirs.discard(stream_id)
        return (name, stream_id)

    def _on_subscribe(self, name: str) -> Asked:
        stream_id = yield from self._varint()
        element_size = yield from self._varint()
        _within(element_size, self.limits.element_size, "limit:frame")
        self._must_be_mine(stream_id)
        if self.mine[stream_id] is not None:
            raise Refused(f"protocol:stream {stream_id}")
        self.mine[stream_id] = element_size
        return (name, stream_id, element_size)

    def _on_next(self, name: str) -> Asked:
        stream_id = yield from self._begun()
        element_size = self.mine[stream_id]
        if element_size:
            element = yield from self._exactly(element_size)
        else:
            element = yield from self._bytes(self.limits.body, "limit:frame")
        return (name, stream_id, element)

    def _on_next_packed(self, name: str) -> Asked:
        stream_id = yield from self._begun()
        element_size = self.mine[stream_id]
        if not element_size:
            raise Refused("protocol:packed")
        count = yield from self._varint()
        if count == 0:
            raise Refused("protocol:packed")
        _within(count * element_size, self.limits.body, "limit:frame")
        elements = []
        for _ in range(count):
            element = yield from self._exactly(element_size)
            elements.append(element)
        return (name, stream_id, tuple(elements))

    def _on_next_part(self, name: str) -> Asked:
        stream_id = yield from self._begun()
        number = yield from self._varint()
        data = yield from self._bytes(self.limits.body, "limit:frame")
        return (name, stream_id, number, data)

    def _on_complete(self, name: str) -> Asked:
        stream_id = yield from self._varint()
        self._must_be_mine(stream_id)
        del self.mine[stream_id]
        return (name, stream_id)

    def _on_error(self, name: str) -> Asked:
        stream_id = yield from self._varint()
        error = yield from self._bytes(self.limits.text, "limit:text")
        self._must_be_mine(stream_id)
        del self.mine[stream_id]
        return (name, stream_id, error.decode("utf-8", "replace"))


def _within(announced: int, limit: int, token: str) -> None:
    if announced > limit:
        raise Refused(f"{token} {announced} > {limit}")


# ---- one stream, on the side of its subscriber


class MustCancel(Exception):
    """The publisher broke the contract of one stream:
    the subscriber sends cancel, and drops later elements.
    """


@dataclass
class Incoming:
    """The elements of one stream, joined and in order, and the demand that they use up."""

    demand: int
    element_size: int = 0
    joined_limit: int = 1_048_576
    parts_limit: int = 4_096
    unfinished_limit: int = 4
    unfinished: dict[int, list[bytes]] = field(default_factory=dict)

    def request(self, demand: int) -> None:
        self.demand = min(self.demand + demand, WITHOUT_BOUND)

    def accept(self, message: Message) -> list[bytes]:
        """The elements that `message` completes. Raises MustCancel."""
        match message:
            case ("onSubscribe", _, element_size):
                self.element_size = element_size
            case ("onNext", _, element):
                self._use(1)
                return [element]
            case ("onNextPacked", _, elements):
                self._use(len(elements))
                return list(elements)
            case ("onNextPart" | "onNextLastPart" as name, _, number, data):
                return self._join(number, data, last=name == "onNextLastPart")
            case ("onComplete", _) if self.unfinished:
                raise MustCancel("the stream completed within an element")
        return []

    def _use(self, count: int) -> None:
        if count > self.demand:
            raise MustCancel("an element beyond demand")
        if self.demand != WITHOUT_BOUND:
            self.demand -= count

    def _join(self, number: int, data: bytes, *, last: bool) -> list[bytes]:
        if number not in self.unfinished:
            self._use(1)
            if not last and len(self.unfinished) == self.unfinished_limit:
                raise MustCancel("too many unfinished elements")
        parts = [*self.unfinished.pop(number, []), data]
        joined = b"".join(parts)
        if len(joined) > (self.element_size or self.joined_limit) or len(parts) > self.parts_limit:
            raise MustCancel("a joined element above the limit")
        if not last:
            self.unfinished[number] = parts
            return []
        if self.element_size and len(joined) != self.element_size:
            raise MustCancel("a joined element that is not of the fixed size")
        return [joined]
