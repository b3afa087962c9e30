"""Errors for an element that a serializer cannot convert, and for a serializer
that breaks its contract.

Rules of this file:

* A message begins with the place of the element:
  its number in the stream, counted from 0, and its length.
* Text of the element is not repeated here; the reason is the serializer's own.
"""

from typing import Any

from penstock.api import PluginError, ProtocolError, UsageError, shown
from penstock.spi._serializer import Serializer, WrongElementType


def load_error(error: Exception, serializer: Serializer, position: int, length: int) -> Exception:
    """Return the error that ends a stream whose element `loads` refused. Often this side has
    named another serializer than the peer.
    """
    place, name = f"element {position} ({length} bytes)", serializer.name
    explained: Exception
    # The advice stands behind the reason:
    # most often the two sides have named different serializers.
    if isinstance(error, ProtocolError):
        explained = ProtocolError(
            f"{place}: {error}; is serializer={name!r} what the publisher has, too?",
            reason=error.reason,
        )
    elif isinstance(error, UsageError):
        explained = UsageError(f"{place}: {error}")
    else:
        # `shown` cuts the text and cannot raise: the error comes from foreign code.
        explained = PluginError(
            f"{place}: the serializer {name!r} raised {shown(error)}, where only ProtocolError and "
            "UsageError are due"
        )
    # Set and not raised from: the error is handed to a subscriber, and no `raise` stands here.
    explained.__cause__ = error
    return explained


def dump_error(error: Exception, type_place: str) -> Exception:
    """Return the error that ends a stream whose element `dumps` refused. If the program gave the
    type, it says where to change it.
    """
    if not type_place or not isinstance(error, WrongElementType):
        return error
    explained = UsageError(f"{error.fact}; change {type_place}, or give serializer= there")
    explained.__cause__ = error
    return explained


def loaded_none(serializer: Serializer, position: int, length: int) -> Exception:
    """Return the error that ends a stream if `loads` returned None."""
    return PluginError(
        f"element {position} ({length} bytes): the serializer {serializer.name!r} returned None "
        "from loads, which is never an element (rule 2.13); return a value that stands for "
        "nothing, or raise ProtocolError"
    )


def dumped_bytes(data: Any, serializer: Serializer, element: object) -> bytes:
    """Return what `dumps` returned as bytes.
    Raises PluginError if it is neither bytes nor a bytearray or memoryview.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    # A text is the mistake that is made most: json.dumps returns one.
    advice = (
        "encode the text, for example with .encode()" if isinstance(data, str) else "return bytes"
    )
    kind = type(element).__name__
    raise PluginError(
        f"the serializer {serializer.name!r} returned {type(data).__name__} from dumps for an "
        f"element of type {kind}; {advice}"
    )
