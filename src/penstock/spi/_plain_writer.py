"""One level of a value as plain values:
the `default` of Python's JSON encoder, which calls it again for the parts.
"""

import enum
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

from penstock.api import shown
from penstock.spi._plain_readers import TypeCodeFailed
from penstock.spi._plain_texts import TEXT_FORMS, write_text
from penstock.spi._plain_types import is_model, is_struct
from penstock.spi._records import record_of


def to_plain(value: Any) -> object:
    """Return `value` as a text, a list or a dict, whose parts may need the same again.

    Raises TypeError if it has no such form, and `TypeCodeFailed` if the code of its class raises.
    """
    kind: Any = type(value)
    return _writer_of(kind)(value)


@lru_cache(maxsize=1024)  # the classes of a program; each costs a look at its fields
def _writer_of(kind: Any) -> Callable[[Any], object]:
    if kind in TEXT_FORMS:
        return write_text
    if issubclass(kind, enum.Enum):
        return attrgetter("value")
    if issubclass(kind, set | frozenset):
        return list
    if is_struct(kind):
        return sys.modules["msgspec"].to_builtins  # type: ignore[no-any-return]  # the module is not imported here
    if is_model(kind):
        return _dump_model
    record = record_of(kind)
    if record is None:
        raise TypeError(f"{kind.__name__} has no form in JSON")
    names = [(each.key, each.name) for each in record.fields]
    return partial(_read_fields, names)


def _read_fields(names: list[tuple[str, str]], value: Any) -> object:
    try:
        return {key: getattr(value, name) for key, name in names}
    except Exception as error:  # boundary: properties that a user wrote
        raise TypeCodeFailed(
            f"the code of {type(value).__name__} raised {shown(error)} when its fields were read: "
            "a property or __getattr__, and not the serializer. Correct it there"
        ) from error


def _dump_model(value: Any) -> object:
    # mode="python" keeps NaN, so that it is refused; mode="json" would send null in its place.
    return value.model_dump(by_alias=True)
