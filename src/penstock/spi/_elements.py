"""Elements that a serializer loads, and the errors for those that it cannot convert, and for a
serializer that breaks its contract.

Rules of this file:

* A message begins with the place of the element: its number in the stream, counted from 0, and its
  length.
* Text of the element is not repeated here; the reason is the serializer's own.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
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


def load_elements(
    serializer: Serializer, elements: Sequence[bytes], position: int
) -> tuple[list[Any], Exception | None]:
    """Return the loaded elements, and None. If one cannot be loaded, return those before it, and
    its error.

    `position` is the number of the first one in its stream.
    """
    if len(elements) == 1:
        return _load_each(serializer, elements, position)
    loaded: Any = None
    # boundary: the serializer may be a plugin. If it raises, or returns no list, or not one value
    # for each element, the elements are loaded one by one, to find the one that fails.
    with suppress(Exception):
        loaded = serializer.loads_many(elements)
        # A copy, because the serializer may change an object of a subclass later.
        if type(loaded) is not list and isinstance(loaded, list):
            loaded = list(loaded)
    # Types and not `None in loaded`: that compares each element, and the comparison of a dataclass
    # takes 0.2 us.
    if (
        type(loaded) is not list
        or len(loaded) != len(elements)
        or NoneType in set(map(type, loaded))
    ):
        return _load_each(serializer, elements, position)
    return loaded, None


def _load_each(
    serializer: Serializer, elements: Sequence[bytes], position: int
) -> tuple[list[Any], Exception | None]:
    loads = serializer.loads
    loaded: list[Any] = []
    for element in elements:
        try:
            value = loads(element)
        except Exception as failure:  # boundary: the serializer may be a plugin
            return loaded, load_error(failure, serializer, position + len(loaded), len(element))
        # A value that is read as None would break rule 2.13 at the subscriber. So the stream fails,
        # and names the element.
        if value is None:
            return loaded, loaded_none(serializer, position + len(loaded), len(element))
        loaded.append(value)
    return loaded, None
