"""RS.io for attackers: an encoder and a decoder that use no code of penstock."""

from typing import Any, ClassVar

UNBOUNDED = 2**63 - 1
Message = tuple[Any, ...]
"""The name of the message, then its fields."""


def varint(n: int) -> bytes:
    groups = bytearray()
    while n >= 0x80:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*groups, n))


def sized(data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(len(data)) + data


def hello(*extensions: int, version: int = 0) -> bytes:
    return bytes((1, version)) + varint(len(extensions)) + b"".join(map(varint, extensions))


def server_hello(*extensions: int, version: int = 0) -> bytes:
    return b"\x02" + hello(*extensions, version=version)[1:]


def goodbye(reason: str | bytes = "") -> bytes:
    return b"\x03" + sized(reason)


def subscribe(name: str | bytes, stream: int, demand: int = 0) -> bytes:
    return b"\x10" + sized(name) + varint(stream) + varint(demand)


def request(stream: int, n: int) -> bytes:
    return b"\x11" + varint(stream) + varint(n)


def cancel(stream: int) -> bytes:
    return b"\x12" + varint(stream)


def on_subscribe(stream: int, size: int = 0) -> bytes:
    return b"\x20" + varint(stream) + varint(size)


def on_next(stream: int, element: bytes) -> bytes:
    return b"\x21" + varint(stream) + sized(element)


def on_next_packed(stream: int, count: int, elements: bytes = b"") -> bytes:
    return b"\x22" + varint(stream) + varint(count) + elements


def part(stream: int, element: int, data: bytes) -> bytes:
    return b"\x23" + varint(stream) + varint(element) + sized(data)


def last_part(stream: int, element: int, data: bytes) -> bytes:
    return b"\x24" + varint(stream) + varint(element) + sized(data)


def on_complete(stream: int) -> bytes:
    return b"\x25" + varint(stream)


def on_error(stream: int, text: str) -> bytes:
    return b"\x26" + varint(stream) + sized(text)


def request_data(stream: int, length: int, data: bytes = b"") -> bytes:
    return b"\x4c" + sized(varint(stream) + varint(length) + data)


def more_data(stream: int, data: bytes) -> bytes:
    return b"\x4d" + sized(varint(stream) + data)


def named(name: str | bytes, payload: bytes = b"") -> bytes:
    name = name.encode() if isinstance(name, str) else name
    return b"\xffrq\x00" + len(name).to_bytes(2, "big") + name + payload


def ping(body: bytes = b"") -> bytes:
    return b"\x40" + sized(body)


def acknowledge(position: int) -> bytes:
    return b"\x49" + sized(position.to_bytes(8, "big"))


def ask(token: bytes, position: int) -> bytes:
    return b"\x4a" + sized(token + position.to_bytes(8, "big"))


class Decoder:
    """Decodes messages. Raises ValueError for bytes that no conforming peer sends."""

    NAMES: ClassVar = {
        0x01: ("clientHello", "u8", "list"),
        0x02: ("serverHello", "u8", "list"),
        0x03: ("goodbye", "text"),
        0x10: ("subscribe", "text", "varint", "varint"),
        0x11: ("request", "varint", "varint"),
        0x12: ("cancel", "varint"),
        0x20: ("onSubscribe", "varint", "varint"),
        0x21: ("onNext", "varint", "bytes"),
        0x23: ("onNextPart", "varint", "varint", "bytes"),
        0x24: ("onNextLastPart", "varint", "varint", "bytes"),
        0x25: ("onComplete", "varint"),
        0x26: ("onError", "varint", "text"),
        0x40: ("ping", "bytes"),
        0x41: ("pong", "bytes"),
        0x43: ("verdict", "bytes"),
        0x48: ("token", "bytes"),
        0x49: ("acknowledge", "bytes"),
        0x4B: ("answer", "bytes"),
    }

    def __init__(self) -> None:
        self._data = b""
        self._at = 0

    def feed(self, data: bytes) -> list[Message]:
        self._data += data
        found: list[Message] = []
        self._at = start = 0
        try:
            while self._at < len(self._data):
                found.append(self._message())
                start = self._at
        except IndexError:
            pass
        self._data = self._data[start:]
        return found

    def _message(self) -> Message:
        code = self._u8()
        if code not in self.NAMES:
            raise ValueError(
                f"a message of type {code:#04x}, followed by {self._data[self._at :][:20]!r}"
            )
        name, *fields = self.NAMES[code]
        return (name, *(getattr(self, f"_{field}")() for field in fields))

    def _u8(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _bytes(self) -> bytes:
        size = self._varint()
        if self._at + size > len(self._data):
            raise IndexError
        self._at += size
        return self._data[self._at - size : self._at]

    def _text(self) -> str:
        return self._bytes().decode()

    def _list(self) -> tuple[int, ...]:
        return tuple(self._varint() for _ in range(self._varint()))
