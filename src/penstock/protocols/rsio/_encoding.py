"""The interface of an encoding: how the messages of RS.io become bytes, and bytes messages.

The compact encoding is one, and each connection begins with it unless the transport or the URL has chosen another. A plugin offers others
through the hook ``penstock_encodings``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final

from penstock.protocols.rsio import _encode
from penstock.protocols.rsio._decode import RsioDecoder, WireLimits
from penstock.protocols.rsio._messages import Cancel, Message, OnComplete, OnSubscribe, Request, Subscribe
from penstock.protocols.rsio._sink import RsioSink, WireStream
from penstock.wire import BufferedDecoder, join_same, length_of_all


class Encoding(ABC):
    """Encodes messages, and makes a decoder for each connection. It has no state of its own: one object may serve many connections.

    Elements are not passed to an encoding one by one: it returns the bytes in front of an element, which is the last field of its message.
    The methods that are not abstract are made of the others. Replace them where speed matters: `join_run` first.
    """

    name: ClassVar[str]
    """The name of the `Factory` that offers it: ``msgpack``."""

    @abstractmethod
    def encode(self, message: Message, /) -> bytes:
        """Return the bytes of any message. Raises UsageError for a number that does not fit."""

    @abstractmethod
    def next_header(self, subscriber: int, length: int, /) -> bytes:
        """Return the bytes in front of an element of `length` bytes."""

    @abstractmethod
    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        """Return the bytes in front of `count` elements of fixed size, which have `length` bytes together."""

    @abstractmethod
    def part_header(self, subscriber: int, element: int, length: int, /, *, last: bool) -> bytes:
        """Return the bytes in front of a part of `length` bytes."""

    @abstractmethod
    def extension_header(self, code: int, length: int, /) -> bytes:
        """Return the bytes in front of the body of an extension's message."""

    @abstractmethod
    def decoder(self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /) -> BufferedDecoder:
        """Return the decoder of one connection; `MessageDecoder` is a base for it.

        `streams` has a cancelled stream until the peer ends it.
        """

    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:
        """Return the messages of one or more elements."""
        length = length_of_all(elements)
        if length >= 0:
            return join_same(self.next_header(subscriber, length), elements)
        parts = [b""] * (2 * len(elements))
        parts[::2], parts[1::2] = [self.next_header(subscriber, len(element)) for element in elements], elements
        return bytearray().join(parts)

    def encode_subscribe(self, publisher: str, subscriber: int, demand: int, /) -> bytes:
        """Return a subscribe."""
        return self.encode(Subscribe(publisher=publisher, subscriber=subscriber, demand=demand))

    def encode_request(self, subscriber: int, demand: int, /) -> bytes:
        """Return a request, the control message that is sent most."""
        return self.encode(Request(subscriber=subscriber, demand=demand))

    def encode_cancel(self, subscriber: int, /) -> bytes:
        """Return a cancel."""
        return self.encode(Cancel(subscriber=subscriber))

    def encode_on_subscribe(self, subscriber: int, element_size: int, /) -> bytes:
        """Return an onSubscribe."""
        return self.encode(OnSubscribe(subscriber=subscriber, element_size=element_size))

    def encode_on_complete(self, subscriber: int, /) -> bytes:
        """Return an onComplete."""
        return self.encode(OnComplete(subscriber=subscriber))


class CompactEncoding(Encoding):
    """The encoding that every peer of RS.io has."""

    name: ClassVar[str] = "compact"

    # Static methods: the functions themselves, without a call between.
    encode = staticmethod(_encode.encode)
    next_header = staticmethod(_encode.next_header)
    part_header = staticmethod(_encode.part_header)
    extension_header = staticmethod(_encode.extension_header)
    join_run = staticmethod(_encode.join_run)
    encode_subscribe = staticmethod(_encode.encode_subscribe)
    encode_request = staticmethod(_encode.encode_request)
    encode_cancel = staticmethod(_encode.encode_cancel)
    encode_on_subscribe = staticmethod(_encode.encode_on_subscribe)
    encode_on_complete = staticmethod(_encode.encode_on_complete)

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        # Without the length: the size of an element is known from onSubscribe.
        return _encode.packed_header(subscriber, count)

    def decoder(self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /) -> RsioDecoder:
        return RsioDecoder(sink, streams, limits)


COMPACT: Final = CompactEncoding()
"""The compact encoding."""
