"""The serializer ``msgpack``: elements are values of MessagePack, on msgspec.

Rules of this file:

* An element arrives unchanged, or is refused when it is sent. Without a type msgspec writes many
  types that it reads as another one (a tuple arrives as a list, a Decimal as a str). So each value
  of an element without a type is looked at.
* The bytes come from a peer: msgspec bounds the nesting and the announced sizes, and refuses bytes
  after the element. `MsgpackBounds` bounds the number of values, each of which becomes an object.
* A timestamp is a datetime with a time zone. Every other extension type is refused.
"""

import datetime as dt
from functools import lru_cache, partial
from typing import Any, ClassVar, Final

import msgspec

from penstock.api import ProtocolError, UsageError, shown
from penstock.spi import MAX_VALUES, Serializer, TypedSerializer, WrongElementType
from penstock_msgpack._bounds import MsgpackBounds

_PLAIN: Final = frozenset({str, bytes, int, float, bool, dt.datetime, dict, list})
"""The classes that are read as themselves without a type."""

_LEAVES: Final = frozenset({str, bytes, float, bool, type(None)})
BROKEN: Final = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""Raised by msgspec for bytes that it cannot read: TypeError for a key that cannot be hashed,
OverflowError for a timestamp of no year, RecursionError for deep nesting.
"""

_SMALLEST: Final = -(1 << 63)
_LARGEST: Final = (1 << 64) - 1
_NO_ELEMENT: Final = "None is never an element (rule 2.13); wrap it, for example in a list"


class MsgpackSerializer(Serializer):
    """Elements are dict, list, str, bytes, int, float, bool, and datetime with a time zone;
    None inside of dict and list.

    `for_type` returns the serializer for elements of one type: a msgspec.Struct, a dataclass, an
    attrs class, a TypedDict, a NamedTuple, or lists, dicts and unions of these and of plain values;
    as msgspec writes and reads them.

    An element with more than `max_values` values is neither sent nor read.
    """

    name = "msgpack"
    media_types = ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack")

    def __init__(self, *, max_values: int = MAX_VALUES) -> None:
        self._bounds = MsgpackBounds(max_values)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(ext_hook=_refuse_extension).decode
        # The bound is one of types, not of streams: a type is built once.
        self._typed = lru_cache(maxsize=1024)(partial(_TypedMsgpack, bounds=self._bounds))

    def dumps(self, element: object, /) -> bytes:
        _check_plain(element)
        data = _encoded(self._encode, element)
        self._bounds.check_written(data)
        return data

    def loads(self, data: bytes, /) -> object:
        self._bounds.check_received(data)
        try:
            element = self._decode(data)
        except BROKEN as error:
            raise ProtocolError(f"the element is not MessagePack: {error}") from None
        if element is None:
            raise ProtocolError(f"nil arrived as an element. {_NO_ELEMENT}")
        return element

    def for_type(self, kind: Any, /) -> Serializer:
        try:
            hash(kind)
        except TypeError:
            raise UsageError(
                f"type={shown(kind)} is not a type; give a class, or a form like list[int]"
            ) from None
        return self._typed(kind)


class _TypedMsgpack(TypedSerializer):
    """Elements of one type."""

    name = "msgpack"
    format = "MessagePack"
    codec: ClassVar[Any] = msgspec.msgpack

    def __init__(self, kind: Any, bounds: MsgpackBounds) -> None:
        super().__init__(kind, bounds, ext_hook=_refuse_extension)


def _refuse_extension(code: int, _: memoryview) -> object:
    raise ValueError(f"an extension type (code {code}), and only timestamps are read")


def _encoded(encode: Any, element: object) -> bytes:
    try:
        data: bytes = encode(element)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"the serializer 'msgpack' cannot write the element: {error}") from error
    return data


def _check_plain(element: object) -> None:
    """Raise for an element that would arrive as another one."""
    kind = type(element)
    if kind not in _PLAIN:
        if element is None:
            raise UsageError(_NO_ELEMENT)
        raise _unsupported(element)
    if kind is dict or kind is list:
        _check_inside(element)
    else:
        _check_leaf(element)


def _check_inside(element: object) -> None:
    # A list of the values that are left, and no recursion: an element may be nested more deeply
    # than Python calls may be.
    left = [element]
    while left:
        value = left.pop()
        if type(value) is dict:
            for each in value:
                if type(each) is not str:  # here, because almost all keys are
                    _check_key(each)
            left += [each for each in value.values() if type(each) not in _LEAVES]
        elif type(value) is list:
            left += [each for each in value if type(each) not in _LEAVES]
        else:
            _check_leaf(value)


def _check_leaf(value: object) -> None:
    kind = type(value)
    if kind in _LEAVES:
        return
    if isinstance(value, int) and kind is int:
        if not _SMALLEST <= value <= _LARGEST:
            raise UsageError(
                f"an integer of {value.bit_length()} bits; MessagePack has integers from -2^63 to "
                "2^64-1"
            )
        return
    if isinstance(value, dt.datetime) and kind is dt.datetime:
        if value.tzinfo is None:
            raise UsageError(
                "a datetime without a time zone would arrive as a str; give it one: "
                "datetime.now(timezone.utc)"
            )
        return
    raise _unsupported(value)


def _check_key(key: object) -> None:
    if type(key) is not str and type(key) is not int:
        raise UsageError(f"a key of type {type(key).__name__}; the keys of a dict are str or int")
    _check_leaf(key)


def _unsupported(element: object) -> WrongElementType:
    return WrongElementType(
        f"the serializer 'msgpack' was given an element with a {type(element).__name__}",
        "without a type it takes dict, list, str, bytes, int, float, bool, datetime with a time "
        "zone, and None inside of dict and list; for elements of a class give type=, too",
    )
