"""The encodings msgpack and protobuf of RS.io messages,
written by hand from the reference page of RS.io.

The codecs of penstock's plugins are not used: they are under test. A form is a writer of messages,
and a reader that takes the place of `MessageReader`, which reads the compact encoding.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from penstock_tck.wire import rsio as io
from penstock_tck.wire.rsio import MessageReader

TEXTS: Final = frozenset({io.GOODBYE, io.SUBSCRIBE, io.ON_ERROR})
"""The types whose field with a length is a text, and not bytes."""

Field: TypeAlias = "tuple[int, int | bytes]"
"""The wire type of a field of protocol buffers, and its value."""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


class Form(ABC):
    """One encoding of the messages."""

    name: str
    id: int
    """The id in a hello."""

    huge_name: bytes
    """The beginning of a subscribe whose name is announced with 4 GiB or more."""

    unreadable: Sequence[bytes]
    """Bytes in place of a cancel that this encoding does not permit."""

    @abstractmethod
    def encode(self, message: io.Message) -> bytes:
        """Return the bytes of a message."""

    @abstractmethod
    def reader(self) -> MessageReader:
        """Return a reader for one direction of one connection."""


def values_of(message: io.Message) -> list[int]:
    """Return the numbers of a message in the order of its fields."""
    return [message.stream, *message.numbers] if message.stream >= 0 else list(message.numbers)


# --- msgpack


class _MsgpackReader(MessageReader):
    """Each field is one object behind the type."""

    def read_fields(self, kind: int, fields: str) -> tuple[list[int], bytes]:
        values: list[int] = []
        body = b""
        for field in fields:
            if field == "l":
                values += [
                    self._uint() for _ in range(self._size("array", 0x90, 15, {0xDC: 2, 0xDD: 4}))
                ]
            elif field in "v1":
                values.append(self._uint())
            elif field == "b" and kind in TEXTS:
                body = self._bytes(self._size("str", 0xA0, 31, {0xD9: 1, 0xDA: 2, 0xDB: 4}))
            else:
                if field == "p":
                    values.append(self._uint())
                body = self._bytes(self._size("bin", 0, -1, {0xC4: 1, 0xC5: 2, 0xC6: 4}))
                self.check_packed(field, values, body)
            if self.error:
                break
        return values, body

    def _uint(self) -> int:
        head = self._bytes(1)[0]
        if head < 0x80:
            return head
        if not 0xCC <= head <= 0xD3:
            self.error = f"an object that begins with {head:#04x}, where a uint is due"
            return 0
        n = int.from_bytes(self._bytes(1 << (head & 3)), signed=head >= 0xD0)
        if not 0 <= n <= io.UNBOUNDED:
            self.error = f"the number {n}, which is not from 0 to 2^63-1"
        return n

    def _size(self, what: str, first: int, most: int, heads: Mapping[int, int]) -> int:
        head = self._bytes(1)[0]
        if first <= head <= first + most:
            return head - first
        if head not in heads:
            self.error = f"an object that begins with {head:#04x}, where a {what} is due"
            return 0
        return int.from_bytes(self._bytes(heads[head]))


class Msgpack(Form):
    """MessagePack."""

    name = "msgpack"
    id = 16
    huge_name = bytes((io.SUBSCRIBE,)) + b"\xdb\xff\xff\xff\xff"
    # nil, a bool, a float, an array, a map, an ext, a negative number, and 2^63.
    unreadable = tuple(
        bytes((io.CANCEL,)) + wrong
        for wrong in (
            b"\xc0",
            b"\xc3",
            b"\xca\0\0\0\0",
            b"\x91\0",
            b"\x80",
            b"\xd4\0\0",
            b"\xff",
            b"\xcf\x80" + bytes(7),
        )
    )

    def encode(self, message: io.Message) -> bytes:
        """Return the type and the objects, each with the shortest head."""
        found, values = bytes((message.type,)), values_of(message)
        for field in io.FIELDS[message.type][1]:
            if field == "l":
                found += _head(len(values), 0x90, 15, (0xDC, 2), (0xDD, 4)) + b"".join(
                    map(_uint, values)
                )
            elif field in "v1":
                found += _uint(values.pop(0))
            elif field == "b" and message.type in TEXTS:
                found += (
                    _head(len(message.body), 0xA0, 31, (0xD9, 1), (0xDA, 2), (0xDB, 4))
                    + message.body
                )
            else:
                count = _uint(values.pop(0)) if field == "p" else b""
                found += (
                    count
                    + _head(len(message.body), 0, -1, (0xC4, 1), (0xC5, 2), (0xC6, 4))
                    + message.body
                )
        return found

    def reader(self) -> MessageReader:
        """Return a reader of objects."""
        return _MsgpackReader()


def _head(n: int, first: int, most: int, *heads: tuple[int, int]) -> bytes:
    if n <= most:
        return bytes((first + n,))
    head, width = next(each for each in heads if n < 1 << 8 * each[1])
    return bytes((head,)) + n.to_bytes(width)


def _uint(n: int) -> bytes:
    return _head(n, 0, 0x7F, (0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


# --- protobuf


class _ProtobufReader(MessageReader):
    """The type, the length of the body, and a body of numbered fields."""

    def read_fields(self, kind: int, fields: str) -> tuple[list[int], bytes]:
        found = self._bytes(self.read_varint())
        if kind in io.EXTENSIONS:
            return [], found
        received = self._received(found)
        values: list[int] = []
        body, number = b"", 0
        for field in fields:
            number += 1
            if field == "l":
                values += self._listed(received.get(number, []))
            elif field in "v1p":
                values.append(self._number(received.get(number, [])))
            if field == "p":
                number += 1
            if field in "bnp":
                body = self._content(received.get(number, []))
                self.check_packed(field, values, body)
        return values, body

    def _received(self, body: bytes) -> dict[int, list[Field]]:
        """Return the fields of a body by their numbers."""
        found: dict[int, list[Field]] = {}
        at = 0
        while at < len(body) and not self.error:
            tag, at = self._padded(body, at)
            number, kind = tag >> 3, tag & 7
            value: int | bytes = 0
            if kind == VARINT:
                value, at = self._padded(body, at)
            elif kind in (BYTES, FIXED_32, FIXED_64):
                length = {FIXED_32: 4, FIXED_64: 8}.get(kind, 0)
                if kind == BYTES:
                    length, at = self._padded(body, at)
                value, at = body[at : at + length], at + length
            else:
                self.error = f"a field of the wire type {kind}"
            if not number or at > len(body):
                self.error = (
                    self.error or "a field with the number 0, or one that goes past its body"
                )
            found.setdefault(number, []).append((kind, value))
        return found

    def _padded(self, body: bytes, at: int) -> tuple[int, int]:
        """Return a varint, which may be longer than necessary, and the position after it."""
        n = 0
        for index, byte in enumerate(body[at : at + 10]):
            n |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if n > io.UNBOUNDED:
                    self.error = "a number above 2^63-1"
                return n, at + index + 1
        self.error = "a varint without an end"
        return 0, len(body)

    def _number(self, fields: Sequence[Field]) -> int:
        value = self._last(fields, 0)
        return value if isinstance(value, int) else 0

    def _content(self, fields: Sequence[Field]) -> bytes:
        value = self._last(fields, b"")
        return value if isinstance(value, bytes) else b""

    def _last(self, fields: Sequence[Field], default: int | bytes) -> int | bytes:
        """Return the last value of a field, which must have the type of `default`."""
        if any(type(value) is not type(default) for _, value in fields):
            self.error = self.error or "a field of another wire type than that of its message"
        return fields[-1][1] if fields else default

    def _listed(self, fields: Sequence[Field]) -> list[int]:
        found: list[int] = []
        for _, value in fields:
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value) and not self.error:
                number, at = self._padded(value, at)
                found.append(number)
        return found


class Protobuf(Form):
    """Protocol buffers."""

    name = "protobuf"
    id = 17
    huge_name = bytes((io.SUBSCRIBE,)) + io.varint(1 << 62)
    # A group, the wire types 6 and 7, the number 0, bytes for a number, a field past the body,
    # and 2^63.
    unreadable = tuple(
        bytes((io.CANCEL,)) + io.length_prefixed(wrong)
        for wrong in (
            b"\x0b\x0c",
            b"\x0e\0",
            b"\x0f\0",
            b"\0\0",
            b"\x0a\x01\0",
            b"\x1a\x05\0",
            b"\x08" + b"\x80" * 9 + b"\x01",
        )
    )

    def encode(self, message: io.Message) -> bytes:
        """Return the type, the length, and the fields that are not 0 or empty."""
        if message.type in io.EXTENSIONS:
            return bytes((message.type,)) + io.length_prefixed(message.body)
        found, values, number = b"", values_of(message), 0
        for field in io.FIELDS[message.type][1]:
            number += 1
            if field == "l":
                found += _content(number, b"".join(map(io.varint, values)))
            elif field in "v1p":
                value = values.pop(0)
                found += io.varint(number << 3) + io.varint(value) if value else b""
            if field == "p":
                number += 1
            if field in "bnp":
                found += _content(number, message.body)
        return bytes((message.type,)) + io.length_prefixed(found)

    def reader(self) -> MessageReader:
        """Return a reader of bodies."""
        return _ProtobufReader()


def _content(number: int, content: bytes) -> bytes:
    return io.varint(number << 3 | BYTES) + io.length_prefixed(content) if content else b""


MSGPACK: Final = Msgpack()
PROTOBUF: Final = Protobuf()

FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {form.name: form for form in (MSGPACK, PROTOBUF)}
)
"""The encodings that the checks know beside the compact one, by name."""

FORMS_BY_ID: Final[Mapping[int, Form]] = MappingProxyType(
    {form.id: form for form in FORMS.values()}
)
