"""The serializer ``protobuf``: elements are messages of generated classes, on the package protobuf.

Rules of this file:

* Without a type an element is a google.protobuf.Any: the name of its type, and its bytes. A name
  selects a class that the program has imported, and nothing else.
* Values of Python travel as the well-known types for them.
  A datetime has a time zone, and a timestamp no nanoseconds.
"""

import datetime as dt
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError, EncodeError, Message

from penstock.api import ProtocolError, UsageError, shown
from penstock.spi import MAX_VALUES, Serializer, WrongElementType, bare_type
from penstock_protobuf._bounds import ProtobufBounds
from penstock_protobuf._late import LateSerializer

_WRAPPERS: Final[dict[type, type[Message]]] = {
    str: wrappers_pb2.StringValue,
    bytes: wrappers_pb2.BytesValue,
    bool: wrappers_pb2.BoolValue,
    int: wrappers_pb2.Int64Value,
    float: wrappers_pb2.DoubleValue,
    dt.datetime: timestamp_pb2.Timestamp,
    dt.timedelta: duration_pb2.Duration,
}
"""By class, the well-known type of its values."""

_SUPPORTED: Final = (
    "it takes messages of generated classes, str, bytes, bool, int (64 bits), float, datetime "
    "with a time zone, and timedelta"
)

_PREFIX: Final = "type.googleapis.com/"
"""Stands before the name of the type in an Any."""

_NANOSECONDS: Final = 1000
"""In a microsecond, the least that a datetime and a timedelta have."""


class ProtobufSerializer(Serializer):
    """Elements are messages of generated classes, or str, bytes, bool, int, float, datetime,
    timedelta.

    Each element carries the name of its type. `for_type` returns the serializer for messages of one
    class, whose name is not sent.

    An element with more than `max_values` fields, those of messages inside it included, is neither
    sent nor read.
    """

    name = LateSerializer.name
    media_types = LateSerializer.media_types

    def __init__(self, *, max_values: int = MAX_VALUES) -> None:
        self._bounds = partial(ProtobufBounds, max_values)
        self._bounds()  # examines the option
        # The bound is one of types, not of streams: a type is built once.
        self._typed = lru_cache(maxsize=1024)(partial(_TypedProtobuf, bounds=self._bounds))

    def dumps(self, element: object, /) -> bytes:
        message = element if isinstance(element, Message) else _wrap(element)
        if type(message) is any_pb2.Any:
            raise UsageError(
                "an Any as an element would arrive as the message in it; send that message"
            )
        # By hand and not by Any.Pack, which would copy the bytes once more.
        value = _written(message)
        self._bounds(message.DESCRIPTOR).check_written(value)
        return _written(any_pb2.Any(type_url=_PREFIX + message.DESCRIPTOR.full_name, value=value))

    def loads(self, data: bytes, /) -> object:
        self._bounds(any_pb2.Any.DESCRIPTOR).check_received(data)
        envelope = _read(any_pb2.Any, data)
        name = envelope.type_url.rpartition("/")[2]
        kind = _class_of(name)
        if kind is None or kind is any_pb2.Any:
            # The name is the peer's text: only its repr goes into the error, cut.
            raise ProtocolError(
                f"an element of the type {name[:100]!r} arrived, of which this program has "
                "imported no class"
            )
        self._bounds(kind.DESCRIPTOR).check_received(envelope.value)
        return _unwrap(_read(kind, envelope.value))

    def for_type(self, kind: Any, /) -> Serializer:
        if kind is Message:
            return self
        bare = bare_type(kind)
        if not isinstance(bare, type) or not (
            bare in _WRAPPERS or (issubclass(bare, Message) and hasattr(bare, "DESCRIPTOR"))
        ):
            raise UsageError(
                f"the serializer 'protobuf' does not take type={shown(kind)}; {_SUPPORTED}"
            )
        return self._typed(bare)


class _TypedProtobuf(Serializer):
    """Elements of one class."""

    name = "protobuf"

    def __init__(self, kind: type, bounds: Callable[[Any], ProtobufBounds]) -> None:
        self._kind = kind
        self._message: Any = _WRAPPERS.get(kind, kind)
        self._bounds = bounds(self._message.DESCRIPTOR)

    def dumps(self, element: object, /) -> bytes:
        if type(element) is not self._kind:
            raise WrongElementType(
                (
                    f"the element is of type {type(element).__name__}, and elements of this "
                    f"stream are of type {self._kind.__name__}"
                ),
                "change the type, or the serializer",
            )
        data = _written(element if isinstance(element, Message) else _wrap(element))
        self._bounds.check_written(data)
        return data

    def loads(self, data: bytes, /) -> object:
        self._bounds.check_received(data)
        message = _read(self._message, data)
        return message if self._message is self._kind else _unwrap(message)

    def for_type(self, kind: Any, /) -> Serializer:
        raise UsageError(
            f"this serializer is for elements of type {self._kind.__name__} already; leave "
            f"type={shown(kind)} out"
        )


def _class_of(name: str) -> type[Message] | None:
    try:
        descriptor = descriptor_pool.Default().FindMessageTypeByName(name)
    except (KeyError, ValueError, TypeError):  # TypeError: a name that is not an identifier
        return None
    found: type[Message] = message_factory.GetMessageClass(descriptor)
    return found


def _written(message: Message) -> bytes:
    try:
        data: bytes = message.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise UsageError(f"the serializer 'protobuf' cannot write the element: {error}") from error
    return data


def _read(kind: Callable[[], Any], data: bytes) -> Any:
    message = kind()
    try:
        message.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"the element is no message of protocol buffers: {error}") from None
    return message


def _wrap(element: object) -> Message:
    """Return the well-known message of a value."""
    kind = _WRAPPERS.get(type(element))
    if kind is None:
        raise WrongElementType(
            f"the serializer 'protobuf' was given a {type(element).__name__}", _SUPPORTED
        )
    try:
        if isinstance(element, dt.datetime):
            if element.tzinfo is None:
                raise UsageError(
                    "a datetime without a time zone would arrive with one; give it one: "
                    "datetime.now(UTC)"
                )
            timestamp = timestamp_pb2.Timestamp()
            timestamp.FromDatetime(element)
            return timestamp
        if isinstance(element, dt.timedelta):
            duration = duration_pb2.Duration()
            duration.FromTimedelta(element)
            return duration
        made: Any = kind
        wrapped: Message = made(value=element)
    except ValueError as error:
        raise UsageError(f"the serializer 'protobuf' cannot write the element: {error}") from error
    return wrapped


def _unwrap(message: Any) -> object:
    """Return the value of a well-known message, and any other message itself."""
    kind = type(message)
    if kind is timestamp_pb2.Timestamp or kind is duration_pb2.Duration:
        if message.nanos % _NANOSECONDS:
            raise ProtocolError("a time with nanoseconds arrived, which a datetime does not have")
        try:
            value: object = (
                message.ToDatetime(dt.UTC)
                if kind is timestamp_pb2.Timestamp
                else message.ToTimedelta()
            )
        except (ValueError, OverflowError) as error:
            raise ProtocolError(f"a time arrived that Python does not have: {error}") from None
        return value
    return message.value if kind in _VALUES else message


_VALUES: Final = frozenset(_WRAPPERS.values())
