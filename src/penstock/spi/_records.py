"""Classes with named fields: dataclasses, attrs classes, TypedDicts.
Their fields as the keys of a JSON object.

Rules of this file:

* A key is what the constructor of the class takes:
  the alias of an attrs field, and the name of the field otherwise.
* Fields that the constructor does not take are not sent.
"""

import dataclasses
import typing
from collections.abc import Callable
from typing import Any

import attrs

from penstock.spi._annotations import class_hints


@attrs.frozen
class Field:
    """One field of a record."""

    key: str
    """In the JSON object, and as an argument of the constructor."""
    name: str
    """As an attribute."""
    kind: Any
    is_required: bool


@attrs.frozen
class Record:
    """A class with named fields."""

    kind: Any
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    """Makes an object of the fields."""
    is_usual: bool
    """False if its constructor does more than to set the fields.
    Such a class is made by its constructor only.
    """


def record_of(kind: Any) -> Record | None:
    """Return the fields of a class, or of a generic class with its parameters; None for any
    other type. Raises UsageError.
    """
    origin = typing.get_origin(kind) or kind
    if not isinstance(origin, type):
        return None
    if is_typed_dict(origin):
        return _typed_dict(kind, origin)
    if dataclasses.is_dataclass(origin):
        return _dataclass(kind, origin)
    if attrs.has(origin):
        return _attrs_class(kind, origin)
    return None


def is_typed_dict(kind: Any) -> bool:
    """Return True for a TypedDict, of `typing` or of `typing_extensions`."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def _typed_dict(kind: Any, origin: Any) -> Record:
    hints = class_hints(kind, origin)
    fields = [
        Field(name, name, hint, name in origin.__required_keys__) for name, hint in hints.items()
    ]
    return Record(kind, tuple(fields), dict, is_usual=True)


def _dataclass(kind: Any, origin: Any) -> Record:
    hints, missing = class_hints(kind, origin), dataclasses.MISSING
    all_fields = dataclasses.fields(origin)
    fields = [
        Field(
            each.name,
            each.name,
            hints[each.name],
            each.default is missing and each.default_factory is missing,
        )
        for each in all_fields
        if each.init
    ]
    usual = (
        len(fields) == len(all_fields)
        and _has_generated_init(origin)
        and not hasattr(origin, "__pydantic_validator__")
    )
    return Record(kind, tuple(fields), origin, is_usual=usual)


def _attrs_class(kind: Any, origin: Any) -> Record:
    hints = class_hints(kind, origin)
    fields = [
        Field(
            each.alias or each.name,
            each.name,
            hints.get(each.name, each.type or Any),
            each.default is attrs.NOTHING,
        )
        for each in attrs.fields(origin)
        if each.init
    ]
    plain = all(
        each.init and each.converter is None and each.alias == each.name
        for each in attrs.fields(origin)
    )
    return Record(kind, tuple(fields), origin, is_usual=plain and _has_generated_init(origin))


def _has_generated_init(kind: type) -> bool:
    """Return True if the constructor was made by dataclasses or attrs for this very class.
    Generated code has no file.
    """
    code = getattr(kind.__dict__.get("__init__"), "__code__", None)
    return code is not None and code.co_filename.startswith("<")
