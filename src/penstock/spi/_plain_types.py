"""Types of elements, and how they travel as plain values: what JSON carries, and nothing else.

Rules of this file:

* A type that cannot be read unambiguously is a UsageError when its reader is built,
  before any element arrives.
* What is accepted here is what msgspec accepts, so that a program behaves in the same way with
  and without it.
* Neither msgspec nor pydantic is imported:
  if one of their classes is given, the program has imported them.
"""

import collections.abc
import enum
import inspect
import sys
import types
import typing
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal, NoReturn, TypeAlias, get_args, get_origin

import attrs

from penstock.api import UsageError, shown
from penstock.spi._annotations import class_hints, without_qualifiers
from penstock.spi._plain_readers import (
    NONE,
    TITLES,
    Reader,
    converting_reader,
    enum_reader,
    exact_reader,
    list_reader,
    literal_reader,
    mapping_reader,
    read_anything,
    read_float,
    read_integer_key,
    record_reader,
    tagged_reader,
    text_reader,
    tuple_reader,
    union_reader,
)
from penstock.spi._plain_texts import TEXT_FORMS
from penstock.spi._records import Field, Record, record_of

_LISTS: Final = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)
_SETS: Final[dict[Any, Any]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_CONTAINERS: Final = frozenset((*_LISTS, *_SETS, *_MAPPINGS, tuple))


@attrs.frozen(eq=False)
class PlainType:
    """How elements of one type travel as plain values."""

    read: Reader
    """Returns the element of a plain value. Raises `DoesNotFit`, a ValueError."""
    takes: frozenset[type]
    """The types of plain values that `read` may accept."""
    classes: tuple[type, ...] | None
    """The classes of the elements; None for any."""
    is_usual: bool = True
    """True if msgspec reads and writes this type in the same way."""
    has_floats: bool = True
    """False if no value inside can be a float, and so none can be NaN."""


_SIMPLE: Final[dict[Any, PlainType]] = {
    **{
        kind: PlainType(exact_reader(kind), frozenset((kind,)), (kind,))
        for kind in (str, int, bool, NONE)
    },
    float: PlainType(read_float, frozenset((float, int)), (float, int)),
    Any: PlainType(read_anything, frozenset(TITLES), None),
    object: PlainType(read_anything, frozenset(TITLES), None),
}

_Readers: TypeAlias = list[Reader]


def plain_type(kind: Any) -> PlainType:
    """Return how elements of type `kind` are read from plain values.
    Raises UsageError for an unsupported type.
    """
    builder = _Builder()
    built = builder.build(kind, "the type of the elements")
    return PlainType(built.read, built.takes, built.classes, builder.is_usual, builder.has_floats)


def bare_type(kind: Any) -> Any:
    """Return the type behind a NewType, a ``type X = ...``
    statement, or Required, NotRequired and Final.
    """
    while True:
        kind = without_qualifiers(kind)
        if isinstance(kind, typing.NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        else:
            return NONE if kind is None else kind


class _Builder:
    """Builds the readers of one type and of all types inside it."""

    def __init__(self) -> None:
        self.is_usual = True
        self.has_floats = False
        # A class that contains itself finds its own reader here.
        self._begun: dict[Any, _Readers] = {}

    def build(self, kind: Any, where: str) -> PlainType:  # noqa: PLR0911  # one branch for each form of a type
        kind = bare_type(kind)
        origin = get_origin(kind)
        if origin is typing.Annotated:
            return self._annotated(kind, where)
        if origin in (typing.Union, types.UnionType):
            return self._union(get_args(kind), where)
        if origin is Literal:
            return self._literal(get_args(kind))
        if _is_key(_SIMPLE, kind):
            self.has_floats = self.has_floats or kind in (float, Any, object)
            return _SIMPLE[kind]
        if _is_key(TEXT_FORMS, kind):
            takes = frozenset((str, int, float)) if kind is Decimal else frozenset((str,))
            return PlainType(text_reader(TEXT_FORMS[kind], takes), takes, (kind,))
        if _is_key(_CONTAINERS, origin or kind):
            return self._container(origin or kind, get_args(kind), where)
        return self._class(kind, origin or kind, where)

    # --- classes

    def _class(self, kind: Any, origin: Any, where: str) -> PlainType:
        if is_struct(origin):
            self.has_floats = True  # its fields are msgspec's affair
            return _struct_type((kind,), (origin,))
        if is_model(origin):
            self.is_usual = False
            return PlainType(
                converting_reader(origin.model_validate, ValueError, origin.__name__),
                frozenset((dict,)),
                (origin,),
            )
        if isinstance(origin, type) and issubclass(origin, enum.Enum):
            return self._enum(origin)
        if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):
            return self._named_tuple(kind, origin)
        record = record_of(kind)
        if record is None:
            _refuse(kind, where)
        return self._record(record, origin)

    def _record(self, record: Record, origin: type) -> PlainType:
        classes = (dict,) if record.make is dict else (origin,)
        begun = self._begun.get(record.kind)
        if begun is not None:
            return PlainType(partial(_read_later, begun), frozenset((dict,)), classes)
        holder = self._begun[record.kind] = list[Reader]()
        if not record.is_usual:
            self.is_usual = False
        _check_constructor(record, origin)
        rows = [
            (
                each.key,
                each.is_required,
                self.build(each.kind, f"the field {origin.__name__}.{each.key}").read,
            )
            for each in record.fields
        ]
        holder.append(record_reader(record.make, rows, origin.__name__))
        return PlainType(holder[0], frozenset((dict,)), classes)

    def _field(self, owner: type, name: str, kind: Any) -> Reader:
        return self.build(kind, f"the field {owner.__name__}.{name}").read

    def _named_tuple(self, kind: Any, origin: Any) -> PlainType:
        hints = class_hints(kind, origin)
        readers = [self._field(origin, name, hints.get(name, Any)) for name in origin._fields]
        least = len(readers) - len(origin._field_defaults)
        return PlainType(
            tuple_reader(lambda values: origin(*values), readers, least),
            frozenset((list,)),
            (origin,),
        )

    def _enum(self, kind: type[enum.Enum]) -> PlainType:
        values = frozenset(type(member.value) for member in kind)
        if not values <= TITLES.keys():
            names = ", ".join(sorted(each.__name__ for each in values))
            raise UsageError(
                f"the values of {kind.__name__} are of type {names}; JSON needs texts, integers, "
                "numbers, True or False"
            )
        if len(values) > 1 or not values <= {str, int} or issubclass(kind, enum.Flag):
            self.is_usual = False
        return PlainType(enum_reader(kind, values, kind.__name__), values, (kind,))

    # --- forms of types

    def _annotated(self, kind: Any, where: str) -> PlainType:
        inner, *notes = get_args(kind)
        built = self.build(inner, where)
        msgspec = sys.modules.get("msgspec")
        if msgspec is None or not any(isinstance(note, msgspec.Meta) for note in notes):
            return built
        # Its bounds are checked by msgspec, also where the rest of the type is not.
        convert = converting_reader(
            partial(msgspec.convert, type=kind), msgspec.ValidationError, f"{kind}"
        )
        return PlainType(convert, built.takes, built.classes)

    def _literal(self, allowed: tuple[Any, ...]) -> PlainType:
        takes = frozenset(type(each) for each in allowed)
        if not takes <= TITLES.keys():
            raise UsageError(
                f"{shown(Literal[allowed])} has a value that JSON has no form for; use texts, "
                "integers, True, False or None"
            )
        if not takes <= {str, int, NONE}:
            self.is_usual = False
        return PlainType(literal_reader(allowed), takes, tuple(takes))

    def _container(self, origin: Any, arguments: tuple[Any, ...], where: str) -> PlainType:
        if origin in _MAPPINGS:
            key, value = arguments or (Any, Any)
            inner = self.build(value, f"a value in {where}").read
            return PlainType(
                mapping_reader(self._key_reader(key, where), inner), frozenset((dict,)), (dict,)
            )
        lists = frozenset((list,))
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            readers = [self.build(each, f"a part of {where}").read for each in arguments]
            return PlainType(tuple_reader(tuple, readers, len(readers)), lists, (tuple,))
        inner = self.build(arguments[0] if arguments else Any, f"a part of {where}").read
        if origin in _SETS:
            return PlainType(list_reader(inner, _SETS[origin]), lists, (set, frozenset))
        if origin is tuple:
            return PlainType(list_reader(inner, tuple), lists, (tuple,))
        return PlainType(list_reader(inner), lists, (list, tuple))

    def _key_reader(self, kind: Any, where: str) -> Reader | None:
        kind = bare_type(kind)
        if kind in (str, Any):
            return None
        if kind is int:
            return read_integer_key
        built = self.build(kind, f"a key in {where}")
        # Python's json writes keys of str and its subclasses only.
        if built.takes != {str} or any(not issubclass(each, str) for each in built.classes or ()):
            raise UsageError(
                f"a key in {where} is {shown(kind)}; the keys of JSON objects are texts: use str, "
                "int or a Literal of texts"
            )
        return built.read

    def _union(self, members: tuple[Any, ...], where: str) -> PlainType:
        members = _merged([bare_type(each) for each in members])
        structs = tuple(each for each in members if is_struct(get_origin(each) or each))
        records = [
            record
            for each in members
            if not is_struct(get_origin(each) or each)
            and (record := _object_record(each)) is not None
        ]
        apart = structs if len(structs) > 1 else ()
        if len(records) > 1:
            apart = (*apart, *(each.kind for each in records))
        built = [self.build(each, where) for each in members if each not in apart]
        if len(structs) > 1:
            self.has_floats = True
            built.append(_struct_type(structs, tuple(get_origin(each) or each for each in structs)))
        if len(records) > 1:
            built.append(self._tagged(records, where))
        table: dict[type, Reader] = {}
        # The narrow types first: an integer of `int | float` stays one.
        for each in sorted(built, key=lambda one: len(one.takes)):
            for taken in each.takes:
                if taken in table and not (taken is int and float in each.takes):
                    raise UsageError(
                        f"{where} is {_listed(members)}: two of these arrive as {TITLES[taken]} "
                        "and cannot be told apart; use one of them, "
                        "or records with a field like kind: Literal['a'], whose text differs"
                    )
                table.setdefault(taken, each.read)
        classes = (
            None
            if any(each.classes is None for each in built)
            else tuple(one for each in built for one in each.classes or ())
        )
        return PlainType(union_reader(table, _listed(members)), frozenset(table), classes)

    def _tagged(self, records: list[Record], where: str) -> PlainType:
        """Build the reader for several records: a field that they have in common, with Literals
        that differ, tells them apart.
        """
        self.is_usual = False
        built = [self._record(record, get_origin(record.kind) or record.kind) for record in records]
        for field in records[0].fields:
            texts = [_tags_of(record, field) for record in records]
            tags = {
                tag: each.read for each, tagged in zip(built, texts, strict=True) for tag in tagged
            }
            if all(texts) and len(tags) == sum(map(len, texts)):
                classes = tuple(one for each in built for one in each.classes or ())
                return PlainType(tagged_reader(field.key, tags), frozenset((dict,)), classes)
        raise UsageError(
            f"{where} is {_listed([each.kind for each in records])}, and nothing in a JSON object "
            "tells them apart; give each a field like kind: Literal['a'] = 'a', with another text "
            "in each"
        )


def is_struct(kind: Any) -> bool:
    """Return True for a class that inherits from msgspec.Struct."""
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def is_model(kind: Any) -> bool:
    """Return True for a class that inherits from pydantic.BaseModel."""
    return (
        isinstance(kind, type)
        and hasattr(kind, "__pydantic_validator__")
        and hasattr(kind, "model_validate")
    )


def _read_later(begun: _Readers, value: Any) -> Any:
    return begun[0](value)


def _is_key(table: Any, kind: Any) -> bool:
    try:
        return kind in table
    except TypeError:  # it cannot be hashed, so it cannot be a type
        return False


def _struct_type(kinds: tuple[Any, ...], classes: tuple[Any, ...]) -> PlainType:
    msgspec = sys.modules["msgspec"]
    kind, title = typing.Union[kinds], _listed(kinds)  # noqa: UP007  # the members are known at run time only
    try:
        msgspec.json.Decoder(kind)
    except TypeError as error:
        raise UsageError(f"msgspec does not support {title}: {error}") from None
    takes = frozenset(list if each.__struct_config__.array_like else dict for each in classes)
    return PlainType(
        converting_reader(partial(msgspec.convert, type=kind), msgspec.ValidationError, title),
        takes,
        classes,
    )


def _object_record(kind: Any) -> Record | None:
    """Return the record of a type that arrives as a JSON object, and None for other types."""
    origin = get_origin(kind) or kind
    return (
        None if is_model(origin) or origin in (typing.Union, types.UnionType) else record_of(kind)
    )


def _tags_of(record: Record, field: Field) -> tuple[str, ...]:
    """Return the texts of the Literal of the same field in another record; empty if it has none."""
    kinds = [bare_type(each.kind) for each in record.fields if each.key == field.key]
    texts = get_args(kinds[0]) if kinds and get_origin(kinds[0]) is Literal else ()
    return texts if all(isinstance(each, str) for each in texts) else ()


def _merged(members: list[Any]) -> tuple[Any, ...]:
    """Return the members of a union with its Literals made one, and without unions inside."""
    flat = [
        one
        for each in members
        for one in (
            get_args(each) if get_origin(each) in (typing.Union, types.UnionType) else (each,)
        )
    ]
    literals = [each for each in flat if get_origin(each) is Literal]
    if len(literals) < 2:
        return tuple(flat)
    values = tuple(value for each in literals for value in get_args(each))
    return (*(each for each in flat if each not in literals), Literal[values])


def _listed(kinds: Any) -> str:
    return " or ".join(each.__name__ if isinstance(each, type) else shown(each) for each in kinds)


def _check_constructor(record: Record, origin: type) -> None:
    if record.make is dict:
        return
    try:
        inspect.signature(origin).bind(**{each.key: None for each in record.fields})
    except (TypeError, ValueError):
        raise UsageError(
            f"the constructor of {origin.__name__} takes other parameters than its fields, so no "
            "element can be made of a JSON object; give a serializer of your own as serializer="
        ) from None


def _refuse(kind: Any, where: str) -> NoReturn:
    raise UsageError(
        f"{where} is {shown(kind)}, which JSON has no form for; use a dataclass, an attrs class, "
        "a TypedDict, a NamedTuple, a "
        "msgspec.Struct, a pydantic model, or lists and dicts of str, int, float, bool, None, "
        "date, datetime, time, Decimal, UUID, bytes, Literal and Enum; for other types give a "
        "serializer of your own as serializer="
    )
