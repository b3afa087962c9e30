"""Messages to bytes. `encode` takes any record.

Rules of this file:

* Elements are not copied here: `next_header`, `packed_header`
  and `part_header` return the bytes before an element.
* Messages that belong to every stream have a function without a record: `encode_subscribe` takes a
  fifth of the time of `encode(Subscribe(...))` (298 ns instead of 1,530).
"""

from typing import Final

from penstock.api import UsageError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages
from penstock.protocols.rsio._varint import LENGTHS, encode_varint
from penstock.wire import join_each, join_same, length_of_all

# As bytes and made once: `bytes([code])` for each message takes 80 ns, a global name 10.
_SUBSCRIBE: Final = bytes([layout.SUBSCRIBE])
_REQUEST: Final = bytes([layout.REQUEST])
_CANCEL: Final = bytes([layout.CANCEL])
_ON_SUBSCRIBE: Final = bytes([layout.ON_SUBSCRIBE])
_ON_NEXT: Final = bytes([layout.ON_NEXT])
# For `map`, which takes 4/5 of the time of a list comprehension.
_length_of: Final = LENGTHS.__getitem__
_ON_NEXT_PACKED: Final = bytes([layout.ON_NEXT_PACKED])
_ON_COMPLETE: Final = bytes([layout.ON_COMPLETE])


def encode(message: messages.Message) -> bytes:  # noqa: PLR0911  # a return for each kind of message
    """Return the bytes of `message`. Raises UsageError for a number that does not fit."""
    match message:
        case messages.ClientHello() | messages.ServerHello():
            return _hello(message)
        case messages.Goodbye():
            return bytes([layout.GOODBYE]) + _text(message.reason, errors="replace")
        case messages.SwitchEncoding():
            return bytes([layout.SWITCH_ENCODING]) + encode_varint(message.extension)
        case messages.Subscribe():
            return encode_subscribe(message.publisher, message.subscriber, message.demand)
        case messages.Request():
            return encode_request(message.subscriber, message.demand)
        case messages.Cancel():
            return encode_cancel(message.subscriber)
        case messages.ExtensionMessage():
            return extension_header(message.type, len(message.body)) + message.body
        case _:
            # The other half of the table: one function with 14 cases would be longer than a screen.
            return _from_publisher(message)


def encode_request(subscriber: int, demand: int) -> bytes:
    """Return a request, the control message that is sent most."""
    return _REQUEST + encode_varint(subscriber) + encode_varint(demand)


def encode_subscribe(publisher: str, subscriber: int, demand: int) -> bytes:
    """Return a subscribe."""
    return _SUBSCRIBE + _text(publisher) + encode_varint(subscriber) + encode_varint(demand)


def encode_cancel(subscriber: int) -> bytes:
    """Return a cancel."""
    return _CANCEL + encode_varint(subscriber)


def encode_on_subscribe(subscriber: int, element_size: int) -> bytes:
    """Return an onSubscribe."""
    return _ON_SUBSCRIBE + encode_varint(subscriber) + encode_varint(element_size)


def encode_on_complete(subscriber: int) -> bytes:
    """Return an onComplete."""
    return _ON_COMPLETE + encode_varint(subscriber)


def next_header(subscriber: int, length: int) -> bytes:
    """Return the bytes before an element of `length` bytes, in a stream without a fixed size."""
    # Streams of fixed size need no such function:
    # the session sends their elements packed, or in parts.
    return _ON_NEXT + encode_varint(subscriber) + encode_varint(length)


def join_run(subscriber: int, elements: list[bytes]) -> bytearray:
    """Return the messages of `elements`, in a stream without a fixed size."""
    if len(elements) == 1:
        return bytearray(next_header(subscriber, len(elements[0]))) + elements[0]
    length = length_of_all(elements)
    if length >= 0:
        return join_same(next_header(subscriber, length), elements)
    begin = _ON_NEXT + encode_varint(subscriber)
    return join_each([begin] * len(elements), list(map(_length_of, map(len, elements))), elements)


def packed_header(subscriber: int, count: int) -> bytes:
    """Return the bytes before `count` elements of fixed size."""
    # wire §Messages: no length. The size is known from onSubscribe,
    # so the end follows from the count.
    return _ON_NEXT_PACKED + encode_varint(subscriber) + encode_varint(count)


def part_header(subscriber: int, element: int, length: int, *, last: bool) -> bytes:
    """Return the bytes before a part of `length` bytes."""
    # wire §A stream, step by step: parts have their length in streams of fixed size too.
    code = layout.ON_NEXT_LAST_PART if last else layout.ON_NEXT_PART
    return (
        bytes([code]) + encode_varint(subscriber) + encode_varint(element) + encode_varint(length)
    )


def extension_header(code: int, length: int) -> bytes:
    """Return the bytes before the body of an extension's message."""
    if not layout.FIRST_EXTENSION <= code <= layout.LAST_EXTENSION:
        # A peer would decode it as another message, or refuse the connection.
        raise UsageError(f"type={code:#x}; an extension's messages take the codes 0x40 to 0x7e")
    return bytes([code]) + encode_varint(length)


def _from_publisher(message: messages.Message) -> bytes:
    match message:
        case messages.OnSubscribe():
            return encode_on_subscribe(message.subscriber, message.element_size)
        case messages.OnNext():
            # A record does not know the element size of its stream:
            # an OnNext is always encoded with a length.
            return next_header(message.subscriber, len(message.element)) + message.element
        case messages.OnNextPacked():
            return packed_header(message.subscriber, message.count) + message.elements
        case messages.OnNextPart() | messages.OnNextLastPart():
            last = isinstance(message, messages.OnNextLastPart)
            return (
                part_header(message.subscriber, message.element, len(message.data), last=last)
                + message.data
            )
        case messages.OnComplete():
            return encode_on_complete(message.subscriber)
        case messages.OnError():
            return (
                bytes([layout.ON_ERROR])
                + encode_varint(message.subscriber)
                + _text(message.error, errors="replace")
            )
    # Reached at run time only, by a program that mypy has not checked.
    raise UsageError(
        f"{message!r} is no message of RS.io; penstock.protocols.rsio.Message lists the records"
    )


def _hello(message: messages.ClientHello | messages.ServerHello) -> bytes:
    # Any version of one byte, and not 0 alone:
    # tools test a peer with a version that it does not have.
    if not 0 <= message.version <= layout.LARGEST_VERSION:
        raise UsageError(f"version={message.version}; the version is one byte, 0 to 255")
    code = layout.CLIENT_HELLO if isinstance(message, messages.ClientHello) else layout.SERVER_HELLO
    # wire §The handshake: the order of the ids has no meaning, so the caller's order is kept.
    ids = b"".join(encode_varint(extension) for extension in message.extensions)
    return bytes([code, message.version]) + encode_varint(len(message.extensions)) + ids


def _text(text: str, *, errors: str = "strict") -> bytes:
    # "replace" for texts that are shown: half a surrogate pair, from the name of a file say, must
    # not keep the message from being sent.
    data = text.encode(errors=errors)
    # wire §Parts of messages: the length counts bytes, not characters.
    return encode_varint(len(data)) + data
