"""Encodings: how the messages of RS.io become bytes, and bytes messages; and how the two sides of a
connection agree on one.

The compact encoding is one, and each connection begins with it unless the transport or the URL has
chosen another. A plugin offers others through the hook ``penstock_encodings``.
Rules of this file:

* The agreed encoding is the first one of the client's hello
  that the server's hello lists too (wire §Encodings).
* Each side changes its own direction once, with a switchEncoding.
  The bytes after it are in the agreed encoding.
* Any other switchEncoding ends the connection: ``protocol:switch``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, cast

from penstock.api import PluginError, ProtocolError, UsageError
from penstock.protocols.rsio import _codec
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio._codec import RsioDecoder, RsioSink, WireLimits, WireStream
from penstock.protocols.rsio._layout import encode_varint
from penstock.protocols.rsio._message_decoder import FIELDS, FieldKind
from penstock.protocols.rsio._messages import (
    Cancel,
    Message,
    OnComplete,
    OnSubscribe,
    Request,
    Subscribe,
    fields_of,
)
from penstock.session import EncodingOffer
from penstock.wire import BufferedDecoder, join_same, length_of_all


class Encoding(ABC):
    """Encodes messages, and makes a decoder for each connection. It is stateless: one object may
    serve many connections.

    Elements are not passed to an encoding one by one: it returns the bytes before an element, which
    is the last field of its message. If a message is its type and then its fields one after the
    other, `encode_number` and `decoder` are enough: the other methods are made of these.
    Replace them for other forms, and where speed matters: `join_run` first.
    """

    name: ClassVar[str]
    """The name of the `Factory` that offers it: ``msgpack``."""

    @abstractmethod
    def encode_number(self, number: int, /) -> bytes:
        """Return a number of 0 to 2^63-1."""

    @abstractmethod
    def decoder(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /
    ) -> BufferedDecoder:
        """Return the decoder of one connection; `MessageDecoder` is a base for it.

        `streams` has a cancelled stream until the peer ends it.
        """

    def encode_length(self, length: int, _: FieldKind, /) -> bytes:
        """Return the length of a field of that kind.
        For `FieldKind.NUMBERS` it is how many they are.
        """
        return self.encode_number(length)

    def encode(self, message: Message, /) -> bytes:
        """Return the bytes of any message. Raises UsageError for a number that does not fit."""
        code, fields = fields_of(message)
        if code not in FIELDS:
            return self.extension_header(code, len(fields[0])) + cast("bytes", fields[0])
        parts = [bytes([code])]
        for kind, field in zip(FIELDS[code], fields, strict=True):
            if kind is FieldKind.NUMBER:
                parts.append(self.encode_number(field))
            elif kind is FieldKind.NUMBERS:
                parts += (self.encode_length(len(field), kind), *map(self.encode_number, field))
            else:
                parts += (self.encode_length(len(field), kind), field)
        return b"".join(parts)

    def next_header(self, subscriber: int, length: int, /) -> bytes:
        """Return the bytes before an element of `length` bytes."""
        return (
            bytes([layout.ON_NEXT])
            + self.encode_number(subscriber)
            + self.encode_length(length, FieldKind.BYTES)
        )

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        """Return the bytes before `count` elements of fixed size, which have `length` bytes
        together.
        """
        numbers = self.encode_number(subscriber) + self.encode_number(count)
        return (
            bytes([layout.ON_NEXT_PACKED]) + numbers + self.encode_length(length, FieldKind.BYTES)
        )

    def part_header(self, subscriber: int, element: int, length: int, /, *, last: bool) -> bytes:
        """Return the bytes before a part of `length` bytes."""
        numbers = self.encode_number(subscriber) + self.encode_number(element)
        return (
            bytes([layout.ON_NEXT_LAST_PART if last else layout.ON_NEXT_PART])
            + numbers
            + self.encode_length(length, FieldKind.BYTES)
        )

    def extension_header(self, code: int, length: int, /) -> bytes:
        """Return the bytes before the body of an extension's message. Raises UsageError for a code
        that no extension may have.
        """
        if not layout.FIRST_EXTENSION <= code <= layout.LAST_EXTENSION:
            raise UsageError(f"type={code:#x}; an extension's messages take the codes 0x40 to 0x7e")
        return bytes([code]) + self.encode_length(length, FieldKind.BYTES)

    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:
        """Return the messages of one or more elements."""
        # Elements of one length have one header, which is encoded once for all.
        length = length_of_all(elements)
        if length >= 0:
            return join_same(self.next_header(subscriber, length), elements)
        # Headers and elements by turns, in one list for one join: nothing is copied twice.
        parts = [b""] * (2 * len(elements))
        parts[::2], parts[1::2] = (
            [self.next_header(subscriber, len(element)) for element in elements],
            elements,
        )
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
    encode_number = staticmethod(encode_varint)
    encode = staticmethod(_codec.encode)
    next_header = staticmethod(_codec.next_header)
    part_header = staticmethod(_codec.part_header)
    extension_header = staticmethod(_codec.extension_header)
    join_run = staticmethod(_codec.join_run)
    encode_subscribe = staticmethod(_codec.encode_subscribe)
    encode_request = staticmethod(_codec.encode_request)
    encode_cancel = staticmethod(_codec.encode_cancel)
    encode_on_subscribe = staticmethod(_codec.encode_on_subscribe)
    encode_on_complete = staticmethod(_codec.encode_on_complete)

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        # Without the length: the size of an element is known from onSubscribe.
        return _codec.packed_header(subscriber, count)

    def decoder(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /
    ) -> RsioDecoder:
        return RsioDecoder(sink, streams, limits)


COMPACT: Final[Encoding] = CompactEncoding()
"""The compact encoding."""


# --- the agreement on an encoding


def make_encoding(offer: EncodingOffer) -> Encoding:
    """Return the encoding that is offered.
    Raises PluginError if a plugin raises, or makes something else.
    """
    try:
        encoding = offer.make()
    except Exception as error:  # boundary: a plugin
        raise PluginError(
            f"the encoding {offer.name!r} raised when it was made: {error!r}"
        ) from error
    if not isinstance(encoding, Encoding):
        raise PluginError(
            f"the encoding {offer.name!r} was made as {encoding!r}; return a "
            "penstock.protocols.rsio.Encoding"
        )
    return encoding


def refuse_switch(extension_id: int) -> ProtocolError:
    """Return the error for a switchEncoding that is not allowed."""
    # The same for all cases: a peer that asks for one it may not have need not be told
    # which rule it broke.
    return ProtocolError(
        (
            f"a change to the encoding {extension_id}, which was not agreed on, or is the second "
            "change"
        ),
        reason=f"protocol:switch {extension_id}",
    )


class EncodingSwitch:
    """The change of encoding on one connection."""

    __slots__ = ("_agreed", "_agreed_id", "_offers")

    def __init__(self, offers: Sequence[EncodingOffer]) -> None:
        """`offers` have ids; this side's hello lists them in this order."""
        self._offers = offers
        self._agreed: Encoding | None = None
        self._agreed_id = -1

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids for this side's hello."""
        return tuple(offer.id for offer in self._offers if offer.id is not None)

    def agree(
        self, of_client: Sequence[int], of_server: Sequence[int]
    ) -> tuple[int, Encoding] | None:
        """Choose by the ids of both hellos, and return the id and the encoding, or None. Raises
        PluginError as `make_encoding` does.
        """
        mine = {offer.id: offer for offer in self._offers if offer.id is not None}
        chosen = next((each for each in of_client if each in mine and each in of_server), None)
        if chosen is None:
            return None
        # Kept until the peer switches: its bytes before that are in the encoding of the start.
        self._agreed, self._agreed_id = make_encoding(mine[chosen]), chosen
        return chosen, self._agreed

    def receive(self, extension_id: int) -> Encoding:
        """Return the encoding of the bytes behind the peer's switchEncoding. Raises
        ProtocolError for one that is not allowed.
        """
        encoding, self._agreed = self._agreed, None  # the second one finds None
        if encoding is None or extension_id != self._agreed_id:
            raise refuse_switch(extension_id)
        return encoding
