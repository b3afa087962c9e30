"""Bytes to messages: one loop over all that has arrived, however it was cut.

Rules of this file:

* A length is judged before its body is waited for: what would be refused is refused on its header.
* Elements become no records. Neighbouring elements of one stream with the same header (the same id and length) are found as a *run*
  and cut out together.
* What is wrong raises ProtocolError with the reason for the peer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.api import ProtocolError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages
from penstock.protocols.rsio._sink import RsioSink, WireStream
from penstock.protocols.rsio._varint import NEED_MORE, decode_varint
from penstock.wire import SHORTEST_RUN, BufferedDecoder, deliver_run


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """What the decoder refuses, on the length alone: see `penstock.api.Limits` for the reasons."""

    frame: int = 1 << 20
    element: int = 4 << 20
    name: int = 1024
    text: int = 4096
    reason: int = 1024
    extensions: int = 64


class RsioDecoder(BufferedDecoder):
    """Feed it chunks; it tells `sink` every message that is complete."""

    __slots__ = ("_element", "_limits", "_readers", "_sink", "_streams")

    def __init__(self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits | None = None) -> None:
        """`streams` is the sink's own table, by id: what has begun, and what must still be delimited though nobody reads it."""
        super().__init__(need=1)
        self._sink = sink
        self._streams = streams
        self._limits = limits or WireLimits()
        self._element = min(self._limits.frame, self._limits.element)  # one that comes whole is a message, too
        self._readers: dict[int, Callable[[bytes, int], int]] = {
            layout.CLIENT_HELLO: self._hello,
            layout.SERVER_HELLO: self._hello,
            layout.GOODBYE: self._goodbye,
            layout.SWITCH_ENCODING: self._switch_encoding,
            layout.SUBSCRIBE: self._subscribe,
            layout.REQUEST: self._request,
            layout.CANCEL: self._cancel,
            layout.ON_SUBSCRIBE: self._on_subscribe,
            layout.ON_NEXT: self._on_next,
            layout.ON_NEXT_PACKED: self._on_next_packed,
            layout.ON_NEXT_PART: self._on_next_part,
            layout.ON_NEXT_LAST_PART: self._on_next_part,
            layout.ON_COMPLETE: self._on_complete,
            layout.ON_ERROR: self._on_error,
        }

    def _decode(self, max_messages: int) -> bool:
        data, end, readers = self._data, len(self._data), self._readers
        position = self._position
        while position < end and max_messages:
            max_messages -= 1
            reader = readers.get(data[position])
            after = self._extension(data, position) if reader is None else reader(data, position)
            if after < 0:
                break
            self._position = position = after
            self._need = 1
        if position == end:
            self._data, self._position = b"", 0
            return False
        return not max_messages

    # --- readers: each takes the position of a message and returns that of the next one, or NEED_MORE

    def _on_next(self, data: bytes, start: int) -> int:
        # The common case is written out: ids and lengths of one byte (and lengths of two) take no call.
        try:
            subscriber, position = data[start + 1], start + 2
            if subscriber > 0x7F:
                subscriber, position = decode_varint(data, start + 1)
                if position < 0:
                    return NEED_MORE
            stream = self._streams.get(subscriber)
            if stream is None:
                raise _no_stream(subscriber)
            size = stream.element_size
            if size <= 0:
                if size < 0:
                    raise _no_stream(subscriber)
                size = data[position]
                position += 1
                if size > 0x7F:
                    size, position = decode_varint(data, position - 1)
                    if position < 0:
                        return NEED_MORE
        except IndexError:
            return NEED_MORE
        end = position + size
        if size > self._element:
            raise _too_long("element", size, "limit:frame", self._element)
        if end > len(data):
            return self._wait_for(end - start)
        stride = end - start
        if end + SHORTEST_RUN * stride <= len(data) and data.startswith(data[start:position], end):
            return deliver_run(data, start, position - start, stride, stream)
        stream.receive_element(data[position:end])
        return end

    def _on_next_packed(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        if position < 0:
            return NEED_MORE
        stream = self._stream(subscriber)
        size = stream.element_size
        if not size:
            raise ProtocolError(f"packed elements on stream {subscriber}, whose elements have no fixed size", reason="protocol:packed")
        count, position = decode_varint(data, position)
        if position < 0:
            return NEED_MORE
        if not count:
            raise ProtocolError(f"a packed message without elements on stream {subscriber}", reason="protocol:packed")
        if count * size > self._limits.frame:
            raise _too_long("packed message", count * size, "limit:frame", self._limits.frame)
        end = position + count * size
        if end > len(data):
            return self._wait_for(end - start)
        stream.receive_packed(count, data[position:end])
        return end

    def _on_next_part(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        if position < 0:
            return NEED_MORE
        stream = self._stream(subscriber)
        element, position = decode_varint(data, position)
        if position < 0:
            return NEED_MORE
        body, end = self._bytes(data, start, position, "part", "limit:frame", self._limits.frame)
        if end < 0:
            return NEED_MORE
        stream.receive_part(element, body, data[start] == layout.ON_NEXT_LAST_PART)
        return end

    def _request(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        demand, position = decode_varint(data, position) if position > 0 else (0, NEED_MORE)
        if position > 0:
            self._sink.receive_request(subscriber, demand)
        return position

    def _subscribe(self, data: bytes, start: int) -> int:
        name, position = self._bytes(data, start, start + 1, "publisher name", "limit:name", self._limits.name)
        subscriber, position = decode_varint(data, position) if position > 0 else (0, NEED_MORE)
        demand, position = decode_varint(data, position) if position > 0 else (0, NEED_MORE)
        if position > 0:
            # A name that is no UTF-8 is refused, not fatal: the message's end is known. Surrogates say which bytes it had.
            publisher = name.decode("utf-8", "surrogateescape")
            self._sink.receive_control(messages.Subscribe(publisher=publisher, subscriber=subscriber, demand=demand))
        return position

    def _cancel(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        if position > 0:
            self._sink.receive_control(messages.Cancel(subscriber=subscriber))
        return position

    def _on_subscribe(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        size, position = decode_varint(data, position) if position > 0 else (0, NEED_MORE)
        if position < 0:
            return NEED_MORE
        if size > self._element:
            raise _too_long("fixed element size", size, "limit:frame", self._element)
        self._sink.receive_on_subscribe(subscriber, size)
        return position

    def _on_complete(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        if position > 0:
            self._sink.receive_on_complete(subscriber)
        return position

    def _on_error(self, data: bytes, start: int) -> int:
        subscriber, position = decode_varint(data, start + 1)
        if position < 0:
            return NEED_MORE
        text, end = self._bytes(data, start, position, "error text", "limit:text", self._limits.text)
        if end > 0:
            self._sink.receive_control(messages.OnError(subscriber=subscriber, error=text.decode("utf-8", "replace")))
        return end

    def _goodbye(self, data: bytes, start: int) -> int:
        text, end = self._bytes(data, start, start + 1, "reason", "limit:reason", self._limits.reason)
        if end > 0:
            self._sink.receive_control(messages.Goodbye(reason=text.decode("utf-8", "replace")))
        return end

    def _switch_encoding(self, data: bytes, start: int) -> int:
        extension, position = decode_varint(data, start + 1)
        if position > 0:
            self._sink.receive_control(messages.SwitchEncoding(extension=extension))
        return position

    def _hello(self, data: bytes, start: int) -> int:
        if start + 1 >= len(data):
            return NEED_MORE
        kind = messages.ClientHello if data[start] == layout.CLIENT_HELLO else messages.ServerHello
        version = data[start + 1]
        if version != layout.VERSION:
            self._sink.receive_control(kind(version=version))
            raise ProtocolError(
                f"a hello of version {version}; {layout.VERSION} is the one whose messages can be delimited here",
                reason=f"version {layout.VERSION}",
            )
        count, position = decode_varint(data, start + 2)
        if position < 0:
            return NEED_MORE
        if count > self._limits.extensions:
            raise _too_long("list of extensions", count, "limit:extensions", self._limits.extensions)
        extensions: list[int] = []
        while len(extensions) < count:
            extension, position = decode_varint(data, position)
            if position < 0:
                return NEED_MORE
            extensions.append(extension)
        self._readers[layout.CLIENT_HELLO] = self._readers[layout.SERVER_HELLO] = _second_hello
        self._sink.receive_control(kind(version=version, extensions=tuple(extensions)))
        return position

    def _extension(self, data: bytes, start: int) -> int:
        code = data[start]
        if not layout.FIRST_EXTENSION <= code <= layout.LAST_EXTENSION:
            raise ProtocolError(f"{code:#04x} is no message type of RS.io", reason=f"protocol:type {code:#04x}")
        body, end = self._bytes(data, start, start + 1, "extension message", "limit:frame", self._limits.frame)
        if end > 0:
            self._sink.receive_control(messages.ExtensionMessage(type=code, body=body))
        return end

    # --- parts of messages

    def _stream(self, subscriber: int) -> WireStream:
        stream = self._streams.get(subscriber)
        if stream is None or stream.element_size < 0:
            raise _no_stream(subscriber)
        return stream

    def _bytes(self, data: bytes, start: int, position: int, what: str, reason: str, limit: int) -> tuple[bytes, int]:
        """The length-prefixed bytes at `position` of the message that begins at `start`, and the position after them."""
        length, position = decode_varint(data, position)
        if position < 0:
            return b"", NEED_MORE
        if length > limit:
            raise _too_long(what, length, reason, limit)
        end = position + length
        if end > len(data):
            return b"", self._wait_for(end - start)
        return data[position:end], end

    def _wait_for(self, size: int) -> int:
        """Note that the message needs `size` bytes in all: until then there is nothing to look at."""
        self._need = size
        return NEED_MORE


def _second_hello(data: bytes, start: int) -> int:
    raise ProtocolError(f"a hello ({data[start]:#04x}) after the hello; each side says one", reason="protocol:hello")


def _no_stream(subscriber: int) -> ProtocolError:
    # Without the size that onSubscribe tells, nobody can say where the message ends.
    return ProtocolError(f"an element on stream {subscriber}, which has not begun", reason=f"protocol:stream {subscriber}")


def _too_long(what: str, size: int, reason: str, limit: int) -> ProtocolError:
    return ProtocolError(
        f"the peer announced a {what} of {size}, and {limit} is the most that is taken here", reason=f"{reason} {size} > {limit}"
    )
