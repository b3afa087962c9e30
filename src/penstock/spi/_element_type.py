"""Types of elements: which ones msgspec writes and reads whole, and what is known of their values.

Rules of this file:

* msgspec decides how a type travels. Only models of pydantic and `object` are added here.
* A type is refused before its first element if msgspec would lose a part of an element, or would
  skip code of the class.
"""

import datetime as dt
import decimal
import inspect
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, get_args, get_origin

import attrs
import msgspec
from msgspec import inspect as kinds

from penstock.api import UsageError, shown

_CLASSES: Final[dict[type, tuple[type, ...]]] = {
    kinds.AnyType: (object,),
    kinds.NoneType: (type(None),),
    kinds.BoolType: (bool,),
    kinds.IntType: (int,),
    kinds.FloatType: (float, int),
    kinds.StrType: (str,),
    kinds.BytesType: (bytes,),
    kinds.ByteArrayType: (bytearray,),
    kinds.MemoryViewType: (memoryview,),
    kinds.DateTimeType: (dt.datetime,),
    kinds.DateType: (dt.date,),
    kinds.TimeType: (dt.time,),
    kinds.TimeDeltaType: (dt.timedelta,),
    kinds.DecimalType: (decimal.Decimal,),
    kinds.UUIDType: (uuid.UUID,),
    kinds.ListType: (list, tuple),
    kinds.VarTupleType: (tuple,),
    kinds.TupleType: (tuple,),
    kinds.SetType: (set, frozenset),
    kinds.FrozenSetType: (set, frozenset),
    kinds.DictType: (dict,),
    kinds.TypedDictType: (dict,),
    kinds.RawType: (msgspec.Raw,),
}
"""The classes of the elements of a type. A type that is not here is its own class."""

_QUALIFIERS: Final = {typing.Required, typing.NotRequired, typing.Final, typing.ClassVar}

_Places: TypeAlias = dict[int, tuple[kinds.Type, str]]


@attrs.frozen(eq=False)
class ElementType:
    """A type of elements, as msgspec knows it."""

    title: str
    """Its name in messages."""
    classes: tuple[type, ...]
    """The classes that an element may have."""
    has_floats: bool
    """False if no value inside can be a float. None of them is NaN then."""
    tag: str
    """The key that tells the members of a union of records apart; empty for other types."""
    members: dict[str, Any]
    """By the text of that key: the member."""

    def takes(self, element: object) -> bool:
        """Return True for an object of one of the classes."""
        # True is an int for Python, and the reader of an int refuses it.
        return isinstance(element, self.classes) and (
            type(element) is not bool or bool in self.classes or object in self.classes
        )


def element_type(kind: Any) -> ElementType:
    """Return what is known of a type. Raises UsageError for an unsupported one."""
    title = kind.__name__ if isinstance(kind, type) else shown(kind)
    try:
        tag, members = tagged_members(kind)
        infos = [kinds.type_info(each) for each in members.values() or (kind,)]
    except NameError as error:
        raise UsageError(
            f"{title} has an annotation with {error.name!r}, which is not known when the program "
            f"runs; import or define {error.name!r} at the top of the module, and not under "
            "`if TYPE_CHECKING:`"
        ) from None
    except (TypeError, ValueError, AttributeError, SyntaxError) as error:
        advice = f". {_UNIONS}" if "union" in str(error) else ""
        raise UsageError(f"elements of type {title} cannot be sent: {error}{advice}") from None
    places: _Places = {}
    for info in infos:
        _collect(info, "the type of the elements", places)
    for info, where in places.values():
        if isinstance(info, kinds.CustomType):
            _check_custom(info.cls, where)
        if isinstance(info, kinds.DataclassType):
            _check_record(info)
    return ElementType(
        title=title,
        classes=tuple(dict.fromkeys(each for info in infos for each in _classes_of(info))),
        has_floats=any(
            isinstance(info, kinds.FloatType | kinds.AnyType | kinds.CustomType)
            for info, _ in places.values()
        ),
        tag=tag,
        members=members,
    )


def bare_type(kind: Any) -> Any:
    """Return the type that a NewType, a ``type X = ...`` statement, or Required and Final wrap."""
    while True:
        if get_origin(kind) in _QUALIFIERS:
            kind = get_args(kind)[0]
        elif isinstance(kind, typing.NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        else:
            return type(None) if kind is None else kind


def is_model(kind: Any) -> bool:
    """Return True for a class that inherits from pydantic.BaseModel."""
    # pydantic is not imported: if the class exists, the program has imported it.
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate")


def tagged_members(kind: Any) -> tuple[str, dict[str, Any]]:
    """Return the key and the members of a union of records that a Literal of texts tells apart.

    msgspec reads such a union of Structs only. This is for a whole element, and not for its parts.
    """
    bare = bare_type(kind)
    if get_origin(bare) not in (typing.Union, types.UnionType):
        return "", {}
    members = get_args(bare)
    infos = [kinds.type_info(each) for each in members]
    if not all(isinstance(each, kinds.DataclassType | kinds.TypedDictType) for each in infos):
        return "", {}
    tables = [_literals_of(each) for each in infos]
    for key in tables[0]:
        texts = [each.get(key, ()) for each in tables]
        found = {text: member for member, own in zip(members, texts, strict=True) for text in own}
        if all(texts) and len(found) == sum(map(len, texts)):
            return key, found
    return "", {}


def _literals_of(record: Any) -> dict[str, tuple[Any, ...]]:
    """Return the fields of a record that are Literals of texts, with these texts."""
    return {
        field.encode_name: field.type.values
        for field in record.fields
        if isinstance(field.type, kinds.LiteralType)
        and all(isinstance(each, str) for each in field.type.values)
    }


def _collect(info: kinds.Type, where: str, places: _Places) -> None:
    """Add a type and all types inside it, each with its place for messages."""
    if id(info) in places:  # a class that contains itself
        return
    places[id(info)] = info, where
    for inner, place in _parts_of(info, where):
        _collect(inner, place, places)


def _parts_of(info: Any, where: str) -> Iterator[tuple[kinds.Type, str]]:
    if hasattr(info, "fields"):
        for field in info.fields:
            yield field.type, f"the field {_name_of(info.cls)}.{field.name}"
    elif isinstance(info, kinds.Metadata):
        yield info.type, where
    elif isinstance(info, kinds.UnionType):
        yield from ((each, where) for each in info.types)
    elif isinstance(info, kinds.DictType):
        yield info.key_type, f"a key in {where}"
        yield info.value_type, f"a value in {where}"
    elif isinstance(info, kinds.TupleType):
        yield from ((each, f"a part of {where}") for each in info.item_types)
    elif hasattr(info, "item_type"):
        yield info.item_type, f"a part of {where}"


def _classes_of(info: Any) -> tuple[type, ...]:
    if isinstance(info, kinds.Metadata):
        return _classes_of(info.type)
    if isinstance(info, kinds.UnionType):
        return tuple(one for each in info.types for one in _classes_of(each))
    if isinstance(info, kinds.LiteralType):
        return tuple(type(each) for each in info.values)
    return _CLASSES.get(type(info)) or (get_origin(info.cls) or info.cls,)


def _name_of(cls: Any) -> str:
    return str((get_origin(cls) or cls).__name__)


def _check_custom(cls: Any, where: str) -> None:
    """Raise UsageError for a class that neither msgspec nor `decode_hook` knows."""
    if cls is not object and not is_model(cls):
        raise UsageError(f"{where} is {shown(cls)}, which cannot be sent; {_FORMS}")


def _check_record(record: kinds.DataclassType) -> None:
    """Raise UsageError for a dataclass or attrs class whose objects would not arrive whole.

    msgspec sets the fields itself, and calls `__post_init__` and the validators of attrs only.
    """
    cls: Any = get_origin(record.cls) or record.cls
    names = [field.name for field in record.fields]
    hidden = [name for name in names if name.startswith("_")]
    computed = [name for name in names if isinstance(getattr(cls, name, None), property)]
    wrong = ""
    if hasattr(cls, "__pydantic_validator__"):
        wrong = "its validators would not run: let it inherit from pydantic.BaseModel"
    elif hidden:
        wrong = f"the field {hidden[0]} would not be sent: its name begins with '_'"
    elif not _has_generated_init(cls) or set(inspect.signature(cls).parameters) - set(names):
        wrong = "its constructor would not run, and it does more than to set the fields"
    elif any(each.converter is not None for each in getattr(cls, "__attrs_attrs__", ())):
        wrong = "its converters would not run: convert in __attrs_post_init__"
    elif computed:
        wrong = f"the field {computed[0]} would not be sent: it is a property"
    if wrong:
        raise UsageError(
            f"elements of type {cls.__name__} would not arrive whole, as {wrong}; change the "
            "class, or give a serializer of your own as serializer="
        )


def _has_generated_init(cls: Any) -> bool:
    """Return True if dataclasses or attrs made the constructor. Generated code has no file."""
    code = getattr(cls.__init__, "__code__", None)
    return cls.__init__ is object.__init__ or (
        code is not None and code.co_filename.startswith("<")
    )


_FORMS: Final = (
    "use a dataclass, an attrs class, a TypedDict, a NamedTuple, a msgspec.Struct, a pydantic "
    "model, or lists and dicts of str, int, float, bool, None, date, datetime, time, Decimal, "
    "UUID, bytes, Literal and Enum; for other types give a serializer of your own as serializer="
)

_UNIONS: Final = (
    "Records in a union need msgspec.Struct with tag=True. If the union is the whole element, "
    "dataclasses with a field like kind: Literal['a'] = 'a' can be told apart as well"
)
