"""RS.io messages as bytes: encoded for the checking side or an attacker, correct or faulty,
and decoded from the answers of the other side.

The codec of penstock is not used. It refuses to encode faulty messages,
and a mistake in its decoder would go unnoticed here.
"""

from typing import Final

import attrs

CLIENT_HELLO: Final = 0x01
SERVER_HELLO: Final = 0x02
GOODBYE: Final = 0x03
SWITCH_ENCODING: Final = 0x04
SUBSCRIBE: Final = 0x10
REQUEST: Final = 0x11
CANCEL: Final = 0x12
ON_SUBSCRIBE: Final = 0x20
ON_NEXT: Final = 0x21
ON_NEXT_PACKED: Final = 0x22
ON_NEXT_PART: Final = 0x23
ON_NEXT_LAST_PART: Final = 0x24
ON_COMPLETE: Final = 0x25
ON_ERROR: Final = 0x26
EXTENSIONS: Final = range(0x40, 0x7F)
PING: Final = 0x40
PONG: Final = 0x41
VERDICT: Final = 0x43
TOKEN: Final = 0x48
ACKNOWLEDGE: Final = 0x49
ASK: Final = 0x4A
ANSWER: Final = 0x4B
REQUEST_DATA: Final = 0x4C
MORE_DATA: Final = 0x4D

UNBOUNDED: Final = 2**63 - 1

# The fields of each type. v: a varint; b: bytes with their length; 1: a byte; l: a list of varints;
# n: an element; p: packed elements.
FIELDS: Final[dict[int, tuple[str, str]]] = {
    CLIENT_HELLO: ("clientHello", "1l"),
    SERVER_HELLO: ("serverHello", "1l"),
    GOODBYE: ("goodbye", "b"),
    SWITCH_ENCODING: ("switchEncoding", "v"),
    SUBSCRIBE: ("subscribe", "bvv"),
    REQUEST: ("request", "vv"),
    CANCEL: ("cancel", "v"),
    ON_SUBSCRIBE: ("onSubscribe", "vv"),
    ON_NEXT: ("onNext", "vn"),
    ON_NEXT_PACKED: ("onNextPacked", "vp"),
    ON_NEXT_PART: ("onNextPart", "vvb"),
    ON_NEXT_LAST_PART: ("onNextLastPart", "vvb"),
    ON_COMPLETE: ("onComplete", "v"),
    ON_ERROR: ("onError", "vb"),
    **dict.fromkeys(EXTENSIONS, ("a message of an extension", "b")),
}


@attrs.frozen
class Message:
    """A received message. Nothing has been judged yet."""

    type: int
    stream: int = -1
    """The id of the stream, or -1 if the type has no stream."""
    numbers: tuple[int, ...] = ()
    """The other numbers, in order: version and extensions, demand, elementSize, element, count."""
    body: bytes = b""
    """The bytes or the text."""

    def __str__(self) -> str:
        name = FIELDS[self.type][0]
        where = f" {self.stream}" if self.stream >= 0 else ""
        content = (
            f" {self.body[:40]!r}"
            if self.type in (GOODBYE, ON_ERROR, SUBSCRIBE)
            else f" of {len(self.body)} bytes"
            if self.body
            else ""
        )
        return f"{name}{where}{''.join(f' {n}' for n in self.numbers[:4])}{content}"


def varint(n: int) -> bytes:
    """Return a number as a varint: seven bits a byte, the lowest first."""
    groups = bytearray()
    while n >= 0x80:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*groups, n))


def length_prefixed(data: bytes | str) -> bytes:
    """Return bytes or a text with the length before it."""
    data = data.encode() if isinstance(data, str) else data
    return varint(len(data)) + data


def hello(*extensions: int, version: int = 0) -> bytes:
    """Return a clientHello."""
    return (
        bytes((CLIENT_HELLO, version)) + varint(len(extensions)) + b"".join(map(varint, extensions))
    )


def goodbye(reason: str | bytes = "") -> bytes:
    """Return a goodbye."""
    return bytes((GOODBYE,)) + length_prefixed(reason)


def server_hello(*extensions: int, version: int = 0) -> bytes:
    """Return a serverHello."""
    return bytes((SERVER_HELLO,)) + hello(*extensions, version=version)[1:]


def subscribe(name: str | bytes, stream: int, demand: int = 0) -> bytes:
    """Return a subscribe."""
    return bytes((SUBSCRIBE,)) + length_prefixed(name) + varint(stream) + varint(demand)


def numbers(kind: int, *values: int) -> bytes:
    """Return a message that consists of numbers."""
    return bytes((kind,)) + b"".join(map(varint, values))


def request(stream: int, n: int) -> bytes:
    """Return a request."""
    return numbers(REQUEST, stream, n)


def cancel(stream: int) -> bytes:
    """Return a cancel."""
    return numbers(CANCEL, stream)


def on_subscribe(stream: int, size: int = 0) -> bytes:
    """Return an onSubscribe. `size` is the size of each element; 0 means that they differ."""
    return numbers(ON_SUBSCRIBE, stream, size)


def on_next(stream: int, element: bytes) -> bytes:
    """Return an onNext of a stream without a fixed size."""
    return numbers(ON_NEXT, stream) + length_prefixed(element)


def on_next_packed(stream: int, count: int, elements: bytes = b"") -> bytes:
    """Return an onNextPacked that announces `count` elements."""
    return numbers(ON_NEXT_PACKED, stream, count) + elements


def part(stream: int, element: int, data: bytes, *, last: bool = False) -> bytes:
    """Return a part of an element."""
    return numbers(ON_NEXT_LAST_PART if last else ON_NEXT_PART, stream, element) + length_prefixed(
        data
    )


def on_complete(stream: int) -> bytes:
    """Return an onComplete."""
    return numbers(ON_COMPLETE, stream)


def on_error(stream: int, text: str) -> bytes:
    """Return an onError."""
    return numbers(ON_ERROR, stream) + length_prefixed(text)


def of_extension(kind: int, body: bytes = b"") -> bytes:
    """Return a message of an extension."""
    return bytes((kind,)) + length_prefixed(body)


def ping(body: bytes = b"") -> bytes:
    """Return a ping of the extension keepalive."""
    return of_extension(PING, body)


def request_data(stream: int, length: int, data: bytes = b"") -> bytes:
    """Return the beginning of a request's data, of `length` bytes in all."""
    return of_extension(REQUEST_DATA, varint(stream) + varint(length) + data)


def more_data(stream: int, data: bytes) -> bytes:
    """Return more of a request's data."""
    return of_extension(MORE_DATA, varint(stream) + data)


def acknowledge(position: int) -> bytes:
    """Return how many bytes have come, in the extension resume."""
    return of_extension(ACKNOWLEDGE, position.to_bytes(8))


def ask(token: bytes, position: int) -> bytes:
    """Return the request to go on with the connection of a token, in the extension resume."""
    return of_extension(ASK, token + position.to_bytes(8))


class _Incomplete(Exception):
    """The message is not complete yet."""


class MessageReader:
    """Decodes bytes of the compact encoding to messages, up to a switchEncoding.

    It records the element size of each stream, because onNext of a fixed size has no length.
    """

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self.sizes: dict[int, int] = {}
        """The element size of each stream for which onSubscribe has come."""
        self.error: str = ""
        """Why the bytes can no longer be decoded; empty while they can."""

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that these bytes complete."""
        self._data += data
        found = []
        self._at = end = 0  # one cut for each chunk: a cut for each message copies the rest
        while not self.error and self._at < len(self._data):
            try:
                message = self._message()
            except _Incomplete:
                break
            # `error` is set: the length of this message is unknown, so no later one can be found.
            if message is None:
                break
            end = self._at
            if message.type == ON_SUBSCRIBE:
                self.sizes[message.stream] = message.numbers[0]
            found.append(message)
            if message.type == SWITCH_ENCODING:
                break
        self._data = self._data[end:]
        return found

    def take_rest(self) -> bytes:
        """Return the bytes behind the last message, and forget them, with the error in them."""
        rest, self._data, self.error = self._data, b"", ""
        return rest

    def _message(self) -> Message | None:
        kind = self._bytes(1)[0]
        if kind not in FIELDS:
            self.error = f"type {kind:#04x}, which does not exist"
            return None
        values, body = self.read_fields(kind, FIELDS[kind][1])
        if self.error:
            return None
        has_stream = SUBSCRIBE <= kind <= ON_ERROR
        stream, numbers = (values[0], values[1:]) if has_stream else (-1, values)
        return Message(kind, stream, tuple(numbers), body)

    def read_fields(self, kind: int, fields: str) -> tuple[list[int], bytes]:
        """Return the numbers of a message of the type `kind`, and its bytes or text."""
        values: list[int] = []
        body = b""
        for field in fields:
            if field == "v":
                values.append(self.read_varint())
            elif field == "1":
                values.append(self._bytes(1)[0])
            elif field == "l":
                values += [self.read_varint() for _ in range(self.read_varint())]
            elif field == "n" and self.sizes.get(values[0]):
                body = self._bytes(self.sizes[values[0]])
            elif field == "p":
                values.append(self.read_varint())
                body = self._bytes(values[1] * self.sizes.get(values[0], 0))
            else:
                body = self._bytes(self.read_varint())
        return values, body

    def check_packed(self, field: str, values: list[int], body: bytes) -> None:
        """Note an error if the packed elements of an encoding with lengths are not as many as
        were announced.
        """
        if field == "p" and len(body) != values[1] * self.sizes.get(values[0], 0):
            self.error = (
                f"{len(body)} bytes of {values[1]} packed elements, each of "
                f"{self.sizes.get(values[0], 0)} bytes"
            )

    def read_varint(self) -> int:
        """Return a number."""
        n = 0
        for index in range(9):
            byte = self._bytes(1)[0]
            n |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if index and not byte:
                    self.error = "a varint that is longer than necessary"
                return n
        self.error = "a varint of more than nine bytes"
        return 0

    def _bytes(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise _Incomplete
        self._at += count
        return self._data[self._at - count : self._at]
