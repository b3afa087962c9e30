"""Records to fields, for encoders of other encodings than the compact one."""

from typing import Any

import attrs

from penstock.api import UsageError
from penstock.protocols.rsio import _layout as layout
from penstock.protocols.rsio import _messages as messages

_CODES: dict[type, int] = {
    messages.ClientHello: layout.CLIENT_HELLO,
    messages.ServerHello: layout.SERVER_HELLO,
    messages.Goodbye: layout.GOODBYE,
    messages.SwitchEncoding: layout.SWITCH_ENCODING,
    messages.Subscribe: layout.SUBSCRIBE,
    messages.Request: layout.REQUEST,
    messages.Cancel: layout.CANCEL,
    messages.OnSubscribe: layout.ON_SUBSCRIBE,
    messages.OnNext: layout.ON_NEXT,
    messages.OnNextPacked: layout.ON_NEXT_PACKED,
    messages.OnNextPart: layout.ON_NEXT_PART,
    messages.OnNextLastPart: layout.ON_NEXT_LAST_PART,
    messages.OnComplete: layout.ON_COMPLETE,
    messages.OnError: layout.ON_ERROR,
}


def fields_of(message: messages.Message) -> tuple[int, tuple[Any, ...]]:
    """Return the type of a message and its fields, each an int, bytes (also a text), or a tuple of
    ints, in the order of `FIELDS`.

    The only field of an extension's message is its body.
    Raises UsageError for a number below 0 or above 2^63-1.
    """
    if isinstance(message, messages.ExtensionMessage):
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
