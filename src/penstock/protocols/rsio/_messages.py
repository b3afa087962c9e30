"""Every message of RS.io as a record, for control messages, tests and tools; and the fields of a
record, for encoders of other encodings than the compact one.

Elements on their way never become records: the decoder passes their bytes on, and the encoder
writes a header before them.

A field named `subscriber` is the id of a stream. The records do not check their numbers;
`encode` does.
"""

from typing import Any, TypeAlias

import attrs

from penstock.api import UsageError
from penstock.protocols.rsio import _layout as layout

# All fields are passed by name: most are integers, and two integers in the wrong order would be a
# valid message.


@attrs.frozen(kw_only=True)
class ClientHello:
    """The first message of the side that opened the connection. Sent once."""

    version: int = 0
    extensions: tuple[int, ...] = ()  # a tuple, so that the record can be hashed


# Not the same class as ClientHello, though the fields are equal: the type codes differ, and each
# side accepts only one of the two.
@attrs.frozen(kw_only=True)
class ServerHello:
    """The first message of the side that accepted the connection. Sent once."""

    version: int = 0
    extensions: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Goodbye:
    """The last message of either side. It ends every stream, and is answered by a goodbye."""

    # wire §The end of the connection: a token, and more words after a space;
    # empty for a normal end.
    reason: str = ""


@attrs.frozen(kw_only=True)
class SwitchEncoding:
    """The last compact message of its direction.
    The bytes after it are in the encoding that the extension names.
    """

    extension: int


@attrs.frozen(kw_only=True)
class Subscribe:
    """Opens a stream from the publisher named `publisher`. The sender chooses the id."""

    # wire §The model: each side has its own space of ids,
    # so the same number in the other direction is another stream.
    # bytes that are not UTF-8 are decoded as surrogates:
    # the dialect refuses the stream, and keeps the connection.
    publisher: str
    subscriber: int
    demand: int = 0


@attrs.frozen(kw_only=True)
class Request:
    """Permits `demand` more elements."""

    subscriber: int
    # wire §A stream, step by step: 0 is illegal, and an error of the stream;
    # so the codec passes it on.
    demand: int


@attrs.frozen(kw_only=True)
class Cancel:
    """Ends a stream, from its subscriber."""

    subscriber: int


@attrs.frozen(kw_only=True)
class OnSubscribe:
    """The publisher accepts the stream. If `element_size` is above 0, every element has that
    size, and is sent without a length.
    """

    subscriber: int
    element_size: int = 0  # 0: elements have different sizes, and each is sent with its length


@attrs.frozen(kw_only=True)
class OnNext:
    """One element."""

    subscriber: int
    element: bytes


@attrs.frozen(kw_only=True)
class OnNextPacked:
    """`count` elements of the size in onSubscribe, one behind the other."""

    subscriber: int
    count: int  # wire §Messages: a number of elements, not of bytes
    elements: bytes


@attrs.frozen(kw_only=True)
class OnNextPart:
    """A part of an element that more parts follow."""

    subscriber: int
    # The number of the element within its stream: parts with the same number are joined.
    element: int
    data: bytes  # may be empty; the session counts an empty part as odd


@attrs.frozen(kw_only=True)
class OnNextLastPart:
    """The last part of an element. Its number is free again."""

    # wire §A stream, step by step: without an OnNextPart before it, it is an element in one part.
    subscriber: int
    element: int
    data: bytes


@attrs.frozen(kw_only=True)
class OnComplete:
    """The stream ends, and all its elements were sent."""

    subscriber: int


@attrs.frozen(kw_only=True)
class OnError:
    """The stream failed. Before onSubscribe: the stream was refused."""

    subscriber: int
    error: str  # a text for people; version 0 has no error codes


@attrs.frozen(kw_only=True)
class ExtensionMessage:
    """A message of an extension: its type code, and its body."""

    type: int
    body: bytes  # opaque: the extension decodes it


Message: TypeAlias = (
    ClientHello
    | ServerHello
    | Goodbye
    | SwitchEncoding
    | Subscribe
    | Request
    | Cancel
    | OnSubscribe
    | OnNext
    | OnNextPacked
    | OnNextPart
    | OnNextLastPart
    | OnComplete
    | OnError
    | ExtensionMessage
)
"""Any message of RS.io, as a record."""


_CODES: dict[type, int] = {
    ClientHello: layout.CLIENT_HELLO,
    ServerHello: layout.SERVER_HELLO,
    Goodbye: layout.GOODBYE,
    SwitchEncoding: layout.SWITCH_ENCODING,
    Subscribe: layout.SUBSCRIBE,
    Request: layout.REQUEST,
    Cancel: layout.CANCEL,
    OnSubscribe: layout.ON_SUBSCRIBE,
    OnNext: layout.ON_NEXT,
    OnNextPacked: layout.ON_NEXT_PACKED,
    OnNextPart: layout.ON_NEXT_PART,
    OnNextLastPart: layout.ON_NEXT_LAST_PART,
    OnComplete: layout.ON_COMPLETE,
    OnError: layout.ON_ERROR,
}


def fields_of(message: Message) -> tuple[int, tuple[Any, ...]]:
    """Return the type of a message and its fields, each an int, bytes (also a text), or a tuple of
    ints, in the order of `FIELDS`.

    The only field of an extension's message is its body.
    Raises UsageError for a number below 0 or above 2^63-1.
    """
    if isinstance(message, ExtensionMessage):
        return message.type, (message.body,)
    code = _CODES.get(type(message))
    if code is None:  # at run time only, by a program that mypy has not checked
        raise UsageError(
            f"{message!r} is no message of RS.io; penstock.protocols.rsio.Message lists the records"
        )
    # The fields of a record have the order of the wire (wire §Messages).
    values = attrs.astuple(message, recurse=False)
    # "replace" for texts that are shown, as in the compact encoding. A name is not changed: the
    # peer would look for another one.
    errors = "replace" if code in (layout.GOODBYE, layout.ON_ERROR) else "strict"
    fields = tuple(
        value.encode(errors=errors) if isinstance(value, str) else value for value in values
    )
    for value in fields:
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and not 0 <= number <= layout.LARGEST_VARINT:
                raise UsageError(
                    "a number of a message is 0 to 2^63-1, and was given an integer of "
                    f"{number.bit_length()} bits"
                )
    return code, fields
