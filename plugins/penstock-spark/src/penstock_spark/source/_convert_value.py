"""Values of JSON or MessagePack, as Python has them, become values
that `pyarrow.array` takes for a column.

Rules of this file:

* A value that does not fit its column is refused. Arrow alone would cut 1.5 to 1, and make the date
  1970-01-06 of the number 5.
* What JSON and MessagePack write as a text is read from a text: dates, times and decimals.
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from penstock.api import ProtocolError, shown

_TOO_FINE: Final = re.compile(r"[.,]\d{7}")
"""In a time: more places of a second than six."""


def convert_value(value: Any, kind: pa.DataType) -> Any:
    """Return `value` for a column of the type `kind`.
    Raises ProtocolError for one that does not fit.
    """
    if value is None:
        return None
    for is_type, convert in _CONVERTERS:
        if is_type(kind):
            try:
                return convert(value, kind)
            except InvalidOperation:  # its text is a list of classes
                raise _refuse(value, kind) from None
            except ValueError as error:
                raise ProtocolError(f"{shown(value)} is no {kind}: {error}") from None
    return value


def _refuse(value: Any, kind: pa.DataType) -> ProtocolError:
    return ProtocolError(f"{shown(value)} is no {kind}")


def _integer(value: Any, kind: pa.DataType) -> Any:
    # A bool is an int for Python.
    if type(value) is not int:
        raise _refuse(value, kind)
    return value


def _number(value: Any, kind: pa.DataType) -> Any:
    if type(value) not in (int, float):
        raise _refuse(value, kind)
    return value


def _decimal(value: Any, kind: pa.DataType) -> Any:
    if type(value) is str or type(value) is int:
        return Decimal(value)
    if type(value) is float:
        # As it was written: 1.1, and not the 1.100000000000000088… that the float is.
        return Decimal(repr(value))
    raise _refuse(value, kind)


def _date(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not str:
        raise _refuse(value, kind)
    return dt.date.fromisoformat(value)


def _time(value: Any, kind: pa.DataType) -> Any:
    if type(value) is str:
        if _TOO_FINE.search(value):  # Python would cut it
            raise ValueError("a column of times has six places of a second")
        value = dt.datetime.fromisoformat(value)
    if type(value) is not dt.datetime:
        raise _refuse(value, kind)
    # A time without a zone is one of UTC, as Arrow reads it from JSON.
    return (
        value
        if value.tzinfo is None
        else value.astimezone(dt.UTC).replace(tzinfo=dt.UTC if kind.tz else None)
    )


def _list(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not list:
        raise _refuse(value, kind)
    return [convert_value(each, kind.value_type) for each in value]


def _struct(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not dict:
        raise _refuse(value, kind)
    return {field.name: convert_value(value.get(field.name), field.type) for field in kind}


def _map(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not dict:
        raise _refuse(value, kind)
    return [
        (convert_value(key, kind.key_type), convert_value(each, kind.item_type))
        for key, each in value.items()
    ]


_CONVERTERS: Final[
    tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], Any]], ...]
] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _number),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _time),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_struct, _struct),
)
"""How a value becomes one of a type. Each other type is judged by Arrow alone."""
