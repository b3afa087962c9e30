"""Bytes to messages. This file reads the fields;
`MessageDecoder` reads the messages that they are in.

Rules of this file:

* A message is read when its body is complete. Its length is judged before: a body may be as long as
  the field in it that may be long, and `SLACK` bytes more, so that a peer may send fields that are
  not known here.
* Elements do not become records. The form that every writer should use (the stream, then the
  element, and nothing after it) has its own path: neighbouring elements of one stream, of any
  lengths, are a run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.api import ProtocolError
from penstock.protocols.rsio import (
    FIELDS,
    NEED_MORE,
    FieldKind,
    MessageDecoder,
    RsioSink,
    WireLimits,
    WireStream,
    decode_varint,
)
from penstock.wire import LONGEST_RUN, deliver_run, has_equal_headers
from penstock_protobuf._fields import (
    BYTES,
    VARINT,
    read_length,
    read_number,
    read_tag,
    skip_field,
    wrong_type,
)

SLACK: Final = 256
"""Bytes of a body beside its long field: for numbers, and for fields that are not known."""

LONGEST_ID: Final = 9
"""Bytes of an id in a hello."""

_ON_NEXT: Final = 0x21
_SUBSCRIBER: Final = 0x08  # the tag of field 1, a varint
_ELEMENT: Final = 0x12  # the tag of field 2, bytes
_EMPTY: Final[Mapping[FieldKind, Any]] = {
    FieldKind.NUMBER: 0,
    FieldKind.TEXT: b"",
    FieldKind.BYTES: b"",
    FieldKind.NUMBERS: (),
}


class ProtobufDecoder(MessageDecoder):
    """Decodes one direction of a connection."""

    __slots__ = ("_longest",)

    def __init__(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits
    ) -> None:
        super().__init__(sink, streams, limits)
        # An element in one message is bounded by both.
        self._longest = min(limits.frame, limits.element)

    def read_number(self, data: bytes, position: int, /) -> tuple[int, int]:
        # Only the lengths of messages are read with this,
        # and these are varints of the compact encoding.
        return decode_varint(data, position)

    def read_message(self, data: bytes, start: int, fields: Sequence[FieldKind], /) -> int:
        code = data[start]
        size, position = decode_varint(data, start + 1)
        if position < 0:
            return NEED_MORE
        self._check_body(code, size, fields)
        end = position + size
        if end > len(data):
            return self.wait_for(end - start)
        values = [_EMPTY[kind] for kind in fields]
        while position < end:
            number, wire_type, position = read_tag(data, position, end)
            if number > len(fields):
                position = skip_field(data, position, end, wire_type)
            else:
                kind = fields[number - 1]
                values[number - 1], position = _read_field(
                    data, position, end, kind, wire_type, values[number - 1]
                )
        for index, (kind, value) in enumerate(zip(fields, values, strict=True)):
            if kind is FieldKind.NUMBER:
                self.check_number(code, index, value)
            else:
                self.check_length(code, len(value), values)
        self.deliver(code, values)
        return end

    def read_elements(self, data: bytes, start: int, /) -> int:  # noqa: PLR0911  # a call for each case would cost as much as the case
        # Varints of one byte are read here, without a call. An index behind the end raises
        # IndexError, which is cheaper than comparisons.
        try:
            size, body = data[start + 1], start + 2
        except IndexError:
            return NEED_MORE
        if size > 0x7F:
            size, body = decode_varint(data, start + 1)
            if body < 0:
                return NEED_MORE
        end = body + size
        if size > self._longest:
            self._check_body(_ON_NEXT, size, FIELDS[_ON_NEXT])
        if end > len(data):
            return self.wait_for(end - start)
        subscriber, head, position = _read_usual(data, body, end)
        if position < 0:
            return self.read_message(data, start, FIELDS[_ON_NEXT])
        stream = self.streams.get(subscriber)
        if stream is None or stream.element_size < 0:
            stream = self.stream_of(subscriber)  # raises
        length = end - position
        if length > self._longest:
            self.check_length(_ON_NEXT, length, ())
        fixed = stream.element_size
        if fixed and fixed != length:
            self.deliver_element(stream, data[position:end])
            return end
        if has_equal_headers(data, start, position - start, end - start):
            return deliver_run(data, start, position - start, end - start, stream)
        if fixed or head == end or data[end : end + 1] != b"\x21":
            stream.receive_element(data[position:end])
            return end
        return self._deliver_run(data, data[body : head + 1], position, end, stream)

    def _deliver_run(
        self, data: bytes, field: bytes, position: int, end: int, stream: WireStream
    ) -> int:
        """Deliver the element from `position` to `end`, and the following ones of the same stream.

        `field` are the bytes from the beginning of a body to the tag of the element. A case that
        the loop does not know is left to `read_elements`.
        """
        width, last, longest = len(field), len(data), self._longest
        least = width + 3  # bytes of a header. Those of the others are counted in `more`.
        second, more, elements = end, 0, [data[position:end]]
        append = elements.append  # local names: this loop runs for each element
        try:
            while len(elements) < LONGEST_RUN and data[end] == _ON_NEXT:
                size, body = data[end + 1], end + 2
                if size > 0x7F:
                    high = data[body]
                    body += 1
                    if not 0 < high < 0x80:
                        break
                    size += (high - 1) << 7  # the top bit of the low byte counts 0x80 already
                position, after = body + width, body + size
                if data[body:position] != field or after > last:
                    break
                length = data[position]
                position += 1
                if length > 0x7F:
                    high = data[position]
                    position += 1
                    if not 0 < high < 0x80:
                        break
                    length += (high - 1) << 7
                if position + length != after or length > longest:
                    break
                append(data[position:after])
                if position - end > least:
                    more += position - end - least
                end = after
        except IndexError:
            pass  # the bytes end inside a header
        if len(elements) == 1:
            stream.receive_element(elements[0])
        else:
            stream.receive_run(
                elements, len(elements[0]) + end - second - (len(elements) - 1) * least - more
            )
        return end

    def _check_body(self, code: int, size: int, fields: Sequence[FieldKind]) -> None:
        what, reason, most = self.bound_of(code)
        if FieldKind.NUMBERS in fields:
            most *= LONGEST_ID
        elif all(kind is FieldKind.NUMBER for kind in fields):
            most = 0
        if size > most + SLACK:
            raise ProtocolError(
                (
                    f"the peer announced a message of {size} bytes for the {what}; the limit of "
                    f"this side is {most + SLACK}"
                ),
                reason=f"{reason} {size} > {most + SLACK}",
            )


def _read_usual(data: bytes, body: int, end: int) -> tuple[int, int, int]:
    """Return the stream, where the tag of the element is, and where the element begins.

    The last is NEED_MORE if the body has another form than the usual one: the stream, then the
    element up to the end. The tag is at the end of the body if the element is empty. The body is
    complete.
    """
    subscriber, position = 0, body
    # A byte behind the body may be read here as one of it. The last comparison finds that: the
    # positions do not fit together then.
    try:
        if position < end and data[position] == _SUBSCRIBER:
            subscriber, position = data[position + 1], position + 2
            if subscriber > 0x7F:
                subscriber, position = read_number(data, position - 1, end)
        head = position
        if position == end:
            return subscriber, head, end
        if data[position] != _ELEMENT:
            return 0, 0, NEED_MORE
        length, position = data[position + 1], position + 2
        if length > 0x7F:
            begin, stop = read_length(data, position - 1, end)
            length, position = stop - begin, begin
    except IndexError:
        return 0, 0, NEED_MORE
    return (subscriber, head, position) if position + length == end else (0, 0, NEED_MORE)


def _read_field(
    data: bytes, position: int, end: int, kind: FieldKind, wire_type: int, before: Any
) -> tuple[Any, int]:
    """Return the value of a field and the position after it.
    `before` is the value of the same field before.
    """
    if kind is FieldKind.NUMBER and wire_type == VARINT:
        return read_number(data, position, end)
    if kind is FieldKind.NUMBERS and wire_type == VARINT:
        number, position = read_number(data, position, end)
        return (*before, number), position
    if kind is FieldKind.NUMBER or wire_type != BYTES:
        raise wrong_type(wire_type)
    position, end = read_length(data, position, end)
    if kind is not FieldKind.NUMBERS:
        return data[position:end], end
    numbers = list(before)
    while position < end:
        number, position = read_number(data, position, end)
        numbers.append(number)
    return tuple(numbers), end
