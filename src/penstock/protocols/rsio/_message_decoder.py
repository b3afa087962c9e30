"""A base for the decoders of other encodings than the compact one: which fields each message has,
their limits, and where they are passed.

Rules of this file:

* A subclass reads fields, and this class judges them: a number with `check_number`, a length with
  `check_length`, each at once. So a peer is refused in every encoding for the same reason, and
  before the bytes that it has announced.
* A message is passed on as a whole, by `deliver`. Elements that are neighbours should be passed
  together; `read_elements` is the place.
* An element has its length in every other encoding, so its end is known in streams of fixed size
  too. If its length is not that size, the stream ends, and the connection goes on.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from penstock.api import ProtocolError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages
from penstock.protocols.rsio._codec import RsioSink, WireLimits, WireStream, no_stream, too_long
from penstock.protocols.rsio._layout import NEED_MORE
from penstock.wire import BufferedDecoder


class FieldKind(Enum):
    """The kind of a field."""

    NUMBER = "number"
    """An int from 0 to 2^63-1."""
    TEXT = "text"
    """The bytes of a text. They are passed on as bytes:
    only this library judges whether they are UTF-8.
    """
    BYTES = "bytes"
    """Bytes."""
    NUMBERS = "numbers"
    """A tuple of numbers."""


FIELDS: Final[Mapping[int, tuple[FieldKind, ...]]] = {
    layout.CLIENT_HELLO: (FieldKind.NUMBER, FieldKind.NUMBERS),
    layout.SERVER_HELLO: (FieldKind.NUMBER, FieldKind.NUMBERS),
    layout.GOODBYE: (FieldKind.TEXT,),
    layout.SWITCH_ENCODING: (FieldKind.NUMBER,),
    layout.SUBSCRIBE: (FieldKind.TEXT, FieldKind.NUMBER, FieldKind.NUMBER),
    layout.REQUEST: (FieldKind.NUMBER, FieldKind.NUMBER),
    layout.CANCEL: (FieldKind.NUMBER,),
    layout.ON_SUBSCRIBE: (FieldKind.NUMBER, FieldKind.NUMBER),
    layout.ON_NEXT: (FieldKind.NUMBER, FieldKind.BYTES),
    layout.ON_NEXT_PACKED: (FieldKind.NUMBER, FieldKind.NUMBER, FieldKind.BYTES),
    layout.ON_NEXT_PART: (FieldKind.NUMBER, FieldKind.NUMBER, FieldKind.BYTES),
    layout.ON_NEXT_LAST_PART: (FieldKind.NUMBER, FieldKind.NUMBER, FieldKind.BYTES),
    layout.ON_COMPLETE: (FieldKind.NUMBER,),
    layout.ON_ERROR: (FieldKind.NUMBER, FieldKind.TEXT),
}
"""The fields of each type of message, in order. Messages of extensions are not in it:
their only field is a body of bytes.
"""

_HELLOS: Final = (layout.CLIENT_HELLO, layout.SERVER_HELLO)
_OF_STREAMS: Final = range(layout.ON_NEXT, layout.ON_NEXT_LAST_PART + 1)

_WRONG_SIZE: Final = -1
"""The number under which an element of a wrong size is passed as a part.
No peer can send it, so no other part has it.
"""


class MessageDecoder(BufferedDecoder):
    """Decodes received bytes and calls `sink` with each complete message.
    A subclass reads the fields.

    `streams` is the sink's own table, by id. `limits` has the largest lengths that are accepted.
    """

    __slots__ = ("limits", "sink", "streams")

    def __init__(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits
    ) -> None:
        super().__init__(need=1)  # the type: it decides how many bytes are needed next
        self.sink: RsioSink = sink
        self.streams: Mapping[int, WireStream] = streams
        self.limits: WireLimits = limits

    # --- for a subclass to implement

    @abstractmethod
    def read_number(self, data: bytes, position: int, /) -> tuple[int, int]:
        """Return the number at `position` and the position after it, or ``(0, NEED_MORE)`` if
        `data` ends before it does.
        """

    def read_length(self, data: bytes, position: int, _: FieldKind, /) -> tuple[int, int]:
        """Return the length of a field of that kind, as `read_number` does. For
        `FieldKind.NUMBERS` it is how many they are.
        """
        return self.read_number(data, position)

    def read_message(self, data: bytes, start: int, fields: Sequence[FieldKind], /) -> int:
        """Read the message at `start`, which has `fields` after its type, call `deliver`, and
        return the position after it.

        Return `NEED_MORE` if `data` ends before the message, or better `wait_for(size)` if the size
        of the message is known; then the method is called again for the same message, with more
        data. Replace the method if fields do not stand one behind the other.
        """
        code, position = data[start], start + 1
        values: list[Any] = []
        for index, kind in enumerate(fields):
            number, position = (
                self.read_number(data, position)
                if kind is FieldKind.NUMBER
                else self.read_length(data, position, kind)
            )
            if position < 0:
                return NEED_MORE
            if kind is FieldKind.NUMBER:
                self.check_number(code, index, number)
                values.append(number)
                continue
            self.check_length(code, number, values)
            if kind is FieldKind.NUMBERS:
                value, position = self._read_numbers(data, position, number)
                if position < 0:
                    return NEED_MORE
                values.append(value)
                continue
            begin, position = position, position + number
            if position > len(data):
                # The fields that were read so far are read again:
                # to keep them would be a state for each kind of message.
                return self.wait_for(position - start)
            values.append(data[begin:position])
        self.deliver(code, values)
        return position

    def read_extension(self, data: bytes, start: int, /) -> int:
        """Read the message of an extension at `start`, whose only field is its body.
        Return as `read_message` does.
        """
        length, position = self.read_length(data, start + 1, FieldKind.BYTES)
        if position < 0:
            return NEED_MORE
        self.check_length(data[start], length, ())
        end = position + length
        if end > len(data):
            # The length alone may be a fault, and bytes that would be refused are not waited for.
            self.sink.check_extension(data[start], length)
            return self.wait_for(end - start)
        self.sink.receive_control(
            messages.ExtensionMessage(type=data[start], body=data[position:end])
        )
        return end

    def read_elements(self, data: bytes, start: int, /) -> int:
        """Read the onNext at `start`, and perhaps others of the same stream after it.
        Return as `read_message` does.
        """
        return self.read_message(data, start, FIELDS[layout.ON_NEXT])

    # --- for a subclass to call

    def wait_for(self, size: int) -> int:
        """Note that the message has `size` bytes, and return `NEED_MORE`.
        No reader is called before they are there.
        """
        self._need = size
        return NEED_MORE

    def stream_of(self, subscriber: int) -> WireStream:
        """Return the stream of an element. Raises ProtocolError if it has not begun."""
        # Below 0 until the acceptance, before which no element may come.
        stream = self.streams.get(subscriber)
        if stream is None or stream.element_size < 0:
            raise no_stream(subscriber)
        return stream

    def check_number(self, code: int, index: int, number: int) -> None:
        """Judge the number in the field `index` of a message of type `code`. Raises
        ProtocolError if it is refused.
        """
        if not 0 <= number <= layout.LARGEST_VARINT:
            raise encoding_error("a number that is not from 0 to 2^63-1")
        if index == 0 and code in _OF_STREAMS:
            stream = self.stream_of(number)
            if code == layout.ON_NEXT_PACKED and not stream.element_size:
                raise ProtocolError(
                    f"packed elements on stream {number}, whose elements have no fixed size",
                    reason="protocol:packed",
                )
        elif index == 0 and code in _HELLOS:
            self._check_version(code, number)
        elif index == 1 and code == layout.ON_NEXT_PACKED and not number:
            raise ProtocolError("a packed message without elements", reason="protocol:packed")

    def check_length(self, code: int, length: int, before: Sequence[Any]) -> None:
        """Judge the length of a text, of bytes, or of a list of numbers. `before` are the fields
        before it. Raises ProtocolError.
        """
        what, reason, most = self.bound_of(code)
        if length > most:
            raise too_long(what, length, reason, most)
        if (
            code == layout.ON_NEXT_PACKED
            and length != before[1] * self.stream_of(before[0]).element_size
        ):
            raise ProtocolError(
                f"a packed message of {length} bytes, which are not its elements",
                reason="protocol:packed",
            )

    def bound_of(self, code: int) -> tuple[str, str, int]:
        """Return what may be long in a message of type `code`, the token if it is too long,
        and its greatest length.
        """
        limits = self.limits
        match code:
            case layout.CLIENT_HELLO | layout.SERVER_HELLO:
                return "list of extensions", "limit:extensions", limits.extensions
            case layout.GOODBYE:
                return "reason", "limit:reason", limits.reason
            case layout.SUBSCRIBE:
                return "publisher name", "limit:name", limits.name
            case layout.ON_ERROR:
                return "error text", "limit:text", limits.text
            case layout.ON_NEXT:
                return "element", "limit:frame", min(limits.frame, limits.element)
        return "message", "limit:frame", limits.frame

    def deliver_element(self, stream: WireStream, element: bytes) -> None:
        """Pass an element to its stream."""
        size = stream.element_size
        if size and len(element) != size:
            # A part, because a stream compares joined parts with its size: it ends with the right
            # error, and the connection goes on.
            stream.receive_part(_WRONG_SIZE, element, True)  # noqa: FBT003  # as the interface has it
        else:
            stream.receive_element(element)

    def deliver(self, code: int, fields: Sequence[Any]) -> None:
        """Pass a complete message of type `code` to the sink or to its stream."""
        match code:
            case layout.ON_NEXT:
                self.deliver_element(self.stream_of(fields[0]), fields[1])
            case layout.ON_NEXT_PACKED:
                self.stream_of(fields[0]).receive_packed(fields[1], fields[2])
            case layout.ON_NEXT_PART | layout.ON_NEXT_LAST_PART:
                self.stream_of(fields[0]).receive_part(
                    fields[1], fields[2], code == layout.ON_NEXT_LAST_PART
                )
            case layout.REQUEST:
                self.sink.receive_request(fields[0], fields[1])
            case layout.ON_COMPLETE:
                self.sink.receive_on_complete(fields[0])
            case layout.ON_SUBSCRIBE:
                most = min(self.limits.frame, self.limits.element)
                if fields[1] > most:
                    raise too_long("fixed element size", fields[1], "limit:frame", most)
                self.sink.receive_on_subscribe(fields[0], fields[1])
            case _:
                self.sink.receive_control(self._record(code, fields))

    # --- inside

    def _read_numbers(self, data: bytes, position: int, count: int) -> tuple[tuple[int, ...], int]:
        numbers: list[int] = []
        # Bounded: `check_length` has judged the count.
        for _ in range(count):
            number, position = self.read_number(data, position)
            if position < 0:
                return (), NEED_MORE
            numbers.append(number)
        return tuple(numbers), position

    def _decode(self, max_messages: int) -> bool:
        data, end = self._data, len(self._data)
        position = self._position
        while position < end and max_messages:
            # The bound of one turn: a chunk of many small messages must not keep other tasks
            # waiting.
            max_messages -= 1
            code = data[position]
            if code == layout.ON_NEXT:
                after = self.read_elements(data, position)
            else:
                fields = FIELDS.get(code)
                after = (
                    self._read_other(data, position, code)
                    if fields is None
                    else self._read(data, position, code, fields)
                )
            if after < 0:
                return False  # a part of one message: more bytes must come
            # For each message, and not behind the loop:
            # the next reader may raise, and `held` must be right then.
            self._position = position = after
            self._need = 1
        if position == end:
            self._data, self._position = b"", 0  # an idle connection must not keep its last chunk
            return False
        return True

    def _read(self, data: bytes, start: int, code: int, fields: Sequence[FieldKind]) -> int:
        if code in _HELLOS and self.sink.has_hello:
            raise ProtocolError(
                f"a hello ({code:#04x}) after the hello; each side sends one",
                reason="protocol:hello",
            )
        return self.read_message(data, start, fields)

    def _read_other(self, data: bytes, start: int, code: int) -> int:
        if not layout.FIRST_EXTENSION <= code <= layout.LAST_EXTENSION:
            raise ProtocolError(
                f"{code:#04x} is not a message type of RS.io", reason=f"protocol:type {code:#04x}"
            )
        return self.read_extension(data, start)

    def _check_version(self, code: int, version: int) -> None:
        if version != layout.VERSION:
            # The sink is called first: a client must know
            # that its server speaks another version (wire §The handshake).
            self.sink.receive_control(_hello_of(code)(version=version))
            raise ProtocolError(
                (
                    f"a hello of version {version}; {layout.VERSION} is the one whose messages "
                    "can be delimited here"
                ),
                reason=f"version {layout.VERSION}",
            )

    def _record(self, code: int, fields: Sequence[Any]) -> messages.Message:
        match code:
            case layout.CLIENT_HELLO | layout.SERVER_HELLO:
                return _hello_of(code)(version=fields[0], extensions=tuple(fields[1]))
            case layout.GOODBYE:
                # "replace", because the text is only shown:
                # a wrong byte in it need not end anything.
                return messages.Goodbye(reason=fields[0].decode("utf-8", "replace"))
            case layout.SWITCH_ENCODING:
                return messages.SwitchEncoding(extension=fields[0])
            case layout.SUBSCRIBE:
                # Surrogates keep bytes that are not UTF-8, so that the dialect can refuse the
                # stream and keep the connection.
                return messages.Subscribe(
                    publisher=fields[0].decode("utf-8", "surrogateescape"),
                    subscriber=fields[1],
                    demand=fields[2],
                )
            case layout.CANCEL:
                return messages.Cancel(subscriber=fields[0])
        # "replace", as in a goodbye.
        return messages.OnError(subscriber=fields[0], error=fields[1].decode("utf-8", "replace"))


def _hello_of(code: int) -> type[messages.ClientHello] | type[messages.ServerHello]:
    return messages.ClientHello if code == layout.CLIENT_HELLO else messages.ServerHello


def encoding_error(text: str) -> ProtocolError:
    """Return the error for bytes that are not a field of the encoding."""
    return ProtocolError(text, reason="protocol:encoding")
