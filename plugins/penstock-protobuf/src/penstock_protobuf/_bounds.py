"""How many fields a message of protocol buffers has, judged before it is read.

Each field has at least two bytes, and those of messages inside it are counted as well: the classes
tell which fields are messages. A text, bytes, and packed numbers of any length are one field, whose
memory their bytes bound. The walk ends after as many fields as are allowed, and so do the time and
the memory that a peer can cost.
"""

from functools import lru_cache
from typing import Any, ClassVar, Final

import attrs

from penstock.spi import ElementBounds

VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5
_WIDTHS: Final = {FIXED_64: 8, FIXED_32: 4}


@attrs.frozen
class ProtobufBounds(ElementBounds):
    """How many fields one element may have."""

    serializer: ClassVar[str] = "protobuf"
    more: ClassVar[str] = "ProtobufSerializer(max_values=…)"
    descriptor: Any = None
    """The descriptor of the element's class."""

    @property
    def short(self) -> int:
        return 2 * self.max_values

    def why_too_large(self, data: bytes) -> str:
        """Do as the base says. For bytes that are not such a message the result means nothing."""
        left = self.max_values
        # Messages that are not walked yet, and no recursion: they may be nested more deeply than
        # Python calls may be.
        parts = [(_messages_in(self.descriptor), 0, len(data))]
        while parts:
            messages, position, end = parts.pop()
            while position < end:
                left -= 1
                if left < 0:
                    return self.too_many
                # Most tags and lengths have one byte: a call for each would take half of the time.
                tag = data[position]
                position += 1
                if tag >= 0x80:
                    tag, position = _varint(data, position - 1)
                wire = tag & 7
                if wire == LENGTH:
                    length = data[position] if position < end else 0
                    position += 1
                    if length >= 0x80:
                        length, position = _varint(data, position - 1)
                    if length and (inner := messages.get(tag >> 3)) is not None:
                        stop = position + length
                        parts.append((_messages_in(inner), position, min(end, stop)))
                    position += length
                elif wire == VARINT:
                    _, position = _varint(data, position)
                else:
                    # The begin and the end of a group are fields without a value here: its fields
                    # count, and no message inside them is looked into.
                    position += _WIDTHS.get(wire, 0)
        return ""


@lru_cache(maxsize=1024)
def _messages_in(kind: Any) -> dict[int, Any]:
    """Return the fields of a class that are messages, by number."""
    return {
        number: field.message_type
        for number, field in kind.fields_by_number.items()
        if field.message_type is not None
    }


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it. Bytes that are missing are the
    fault of the peer, and the parser finds it.
    """
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    number = shift = 0
    for byte in data[position : position + 10]:
        number |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            break
    return number, position
