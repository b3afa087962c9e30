"""Messages to bytes. `encode` takes any record; headers of elements are made on their own, so that elements are not copied here."""

from typing import Final

from penstock.api import UsageError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages
from penstock.protocols.rsio._varint import encode_varint

_SUBSCRIBE: Final = bytes([layout.SUBSCRIBE])
_CANCEL: Final = bytes([layout.CANCEL])
_ON_SUBSCRIBE: Final = bytes([layout.ON_SUBSCRIBE])
_ON_COMPLETE: Final = bytes([layout.ON_COMPLETE])


def encode(message: messages.Message) -> bytes:  # noqa: PLR0911  # a return for each kind of message
    """Return the bytes of `message`. Raises UsageError for a number that does not fit."""
    match message:
        case messages.ClientHello() | messages.ServerHello():
            return _hello(message)
        case messages.Goodbye():
            return bytes([layout.GOODBYE]) + _text(message.reason)
        case messages.SwitchEncoding():
            return bytes([layout.SWITCH_ENCODING]) + encode_varint(message.extension)
        case messages.Subscribe():
            return encode_subscribe(message.publisher, message.subscriber, message.demand)
        case messages.Request():
            return encode_request(message.subscriber, message.demand)
        case messages.Cancel():
            return encode_cancel(message.subscriber)
        case messages.ExtensionMessage():
            return _extension(message)
        case _:
            return _from_publisher(message)


def encode_request(subscriber: int, demand: int) -> bytes:
    """Return a request: the control message that is sent most."""
    return b"\x11" + encode_varint(subscriber) + encode_varint(demand)


def encode_subscribe(publisher: str, subscriber: int, demand: int) -> bytes:
    """Return a subscribe. This and the three below are every stream's, so they are made without a record."""
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
    """Return what stands before an element of `length` bytes in a stream without a fixed size."""
    return b"\x21" + encode_varint(subscriber) + encode_varint(length)


def fixed_header(subscriber: int) -> bytes:
    """Return what stands before an element in a stream of fixed size."""
    return b"\x21" + encode_varint(subscriber)


def packed_header(subscriber: int, count: int) -> bytes:
    """Return what stands before `count` elements of fixed size."""
    return b"\x22" + encode_varint(subscriber) + encode_varint(count)


def part_header(subscriber: int, element: int, length: int, *, last: bool) -> bytes:
    """Return what stands before a part of an element."""
    code = layout.ON_NEXT_LAST_PART if last else layout.ON_NEXT_PART
    return bytes([code]) + encode_varint(subscriber) + encode_varint(element) + encode_varint(length)


def _from_publisher(message: messages.Message) -> bytes:
    match message:
        case messages.OnSubscribe():
            return encode_on_subscribe(message.subscriber, message.element_size)
        case messages.OnNext():
            return next_header(message.subscriber, len(message.element)) + message.element
        case messages.OnNextPacked():
            return packed_header(message.subscriber, message.count) + message.elements
        case messages.OnNextPart() | messages.OnNextLastPart():
            last = isinstance(message, messages.OnNextLastPart)
            return part_header(message.subscriber, message.element, len(message.data), last=last) + message.data
        case messages.OnComplete():
            return encode_on_complete(message.subscriber)
        case messages.OnError():
            return bytes([layout.ON_ERROR]) + encode_varint(message.subscriber) + _text(message.error)
    raise UsageError(f"{message!r} is no message of RS.io; see penstock.protocols.rsio for those there are")


def _hello(message: messages.ClientHello | messages.ServerHello) -> bytes:
    if not 0 <= message.version <= layout.LARGEST_VERSION:
        raise UsageError(f"version={message.version}; the version is one byte, 0 to 255")
    code = layout.CLIENT_HELLO if isinstance(message, messages.ClientHello) else layout.SERVER_HELLO
    ids = b"".join(encode_varint(extension) for extension in message.extensions)
    return bytes([code, message.version]) + encode_varint(len(message.extensions)) + ids


def _extension(message: messages.ExtensionMessage) -> bytes:
    if not layout.FIRST_EXTENSION <= message.type <= layout.LAST_EXTENSION:
        raise UsageError(f"type={message.type:#x}; an extension's messages take the codes 0x40 to 0x7e")
    return bytes([message.type]) + encode_varint(len(message.body)) + message.body


def _text(text: str) -> bytes:
    data = text.encode()
    return encode_varint(len(data)) + data
