"""The contract of a service: its publishers and requests, with the types of their elements,
payloads, answers and parameters, read from the description of the service.

Rules of this file:

* A description comes from a peer. A malformed one raises ProtocolError; a schema that says more
  than this file knows is read as a wider type, `ANY` at the widest, and a note says so.
* Two classes of one name with different fields stay two records. The same class in two entries is
  one record.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from penstock.api import ProtocolError

MOST_DEFINITIONS: Final = 1_000
"""Classes that the schema of one type may have."""

MAX_DEPTH: Final = 64
"""Types inside each other. A deeper one is read as `ANY`."""

OWN_NAMES: Final = "penstock/"
"""How the names begin under which penstock itself offers something. They do not belong to the
contract of a program.
"""

BOUNDS: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "multipleOf",
    "pattern",
)
"""The words of JSON Schema that narrow a type, and are compared."""

_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_REFERENCE: Final = "#/$defs/"


class _Nothing:
    """A field has no default, or one that JSON Schema does not tell."""


NOTHING: Final = _Nothing()


@attrs.frozen
class Scalar:
    """A value without parts. `kind` is one of the names of `PLAIN` and `FORMATS`; "raw" is a whole
    element that travels as bytes, and "any" a value of which nothing is known.
    """

    kind: str
    bounds: tuple[tuple[str, Any], ...] = ()


@attrs.frozen
class Choice:
    """One of some texts and integers. `title` is the name of an Enum, or empty."""

    values: tuple[str | int, ...]
    title: str = attrs.field(default="", eq=False)


@attrs.frozen
class ListOf:
    """A list."""

    item: "Type"
    bounds: tuple[tuple[str, Any], ...] = ()


@attrs.frozen
class TupleOf:
    """A list with a type for each place. Those from `least` on may be missing."""

    items: tuple["Type", ...]
    least: int


@attrs.frozen
class DictOf:
    """An object with any keys."""

    key: "Type"
    value: "Type"


@attrs.frozen
class OneOf:
    """One of several types. `tag` is the key that tells its records apart, or empty."""

    members: tuple["Type", ...]
    tag: str = ""


@attrs.frozen
class Field:
    """A field of a record; `default` is a value of JSON, or NOTHING."""

    key: str
    type: "Type"
    is_required: bool
    default: Any = NOTHING


@attrs.define(eq=False)
class Record:
    """A class with fields. It may contain itself, so a record equals itself alone."""

    title: str
    summary: str = ""
    fields: tuple[Field, ...] = ()
    is_closed: bool = False
    """True if a key that names none of the fields is refused."""


Type: TypeAlias = Scalar | Choice | ListOf | TupleOf | DictOf | OneOf | Record

ANY: Final = Scalar("any")
NULL: Final = Scalar("null")
TEXT: Final = Scalar("str")
RAW: Final = Scalar("raw")

PLAIN: Final = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
    "string": "str",
}
FORMATS: Final = {
    "date-time": "datetime",
    "date": "date",
    "time": "time",
    "partial-time": "time",
    "duration": "timedelta",
    "decimal": "Decimal",
    "uuid": "UUID",
}
"""The formats of texts that have a type of their own in Python."""
KEYS: Final = frozenset({"str", "UUID", "date", "datetime", "time", "Decimal"})
"""The scalars that keys may be."""

_TYPE_TEXTS: Final = {"int": "int", "float": "float", "bool": "bool", "str": "str"}


@attrs.frozen
class Parameter:
    """A parameter of a publisher or a request."""

    name: str
    type: Type
    is_required: bool


@attrs.frozen
class Offer:
    """A publisher or a request."""

    name: str
    """Its pattern."""
    is_request: bool
    segments: tuple[str | Parameter, ...]
    query: tuple[Parameter, ...]
    value: Type
    """The type of its elements, or of its answer."""
    serializer: str
    """The name of the format; empty if the types decide."""
    payload: Type | None
    needs_payload: bool
    has_positions: bool
    takes_channel: bool
    summary: str


@attrs.frozen
class Contract:
    """The publishers and requests of a service."""

    offers: tuple[Offer, ...]
    notes: tuple[str, ...]
    """Notes for a person about parts that could not be read in full."""


def contract_of(entries: Sequence[Mapping[str, Any]]) -> Contract:
    """Read a description. Raises ProtocolError for a malformed one."""
    records: dict[str, Record] = {}
    notes: list[str] = []
    offers = [
        _offer(entry, records, notes)
        for entry in sorted(entries, key=lambda entry: str(entry.get("name")))
        if not str(entry.get("name")).startswith(OWN_NAMES)
    ]
    return Contract(tuple(offers), tuple(notes))


def _offer(entry: Mapping[str, Any], records: dict[str, Record], notes: list[str]) -> Offer:
    name, kind = _text(entry, "name"), _text(entry, "kind")
    try:
        json.dumps(entry, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _malformed(f"the entry {name!r} has half a surrogate pair") from None
    if not name or kind not in ("publisher", "request"):
        raise _malformed(f"the entry {name!r} is of the kind {kind!r}")
    is_request = kind == "request"

    def read(what: str, holder: Mapping[str, Any], place: str) -> Type | None:
        if (schema := holder.get(what)) is None:
            return None
        return _SchemaReader(schema, records, f"{name}: {place}", notes).read_whole(place)

    def value_of(what: str) -> Type:
        found = read(f"{what}_schema", entry, what)
        return _known_by_name(entry.get(what), serializer) if found is None else found

    serializer = entry.get("serializer", "")
    parameters = entry.get("parameters")
    if not isinstance(serializer, str) or not isinstance(parameters, list):
        raise _malformed(f"the entry {name!r} has no parameters, or a serializer without a name")
    in_name: dict[str, Parameter] = {}
    query = []
    for each in parameters:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise _malformed(f"a parameter of {name!r} has no name")
        kind_of = read("schema", each, f"the parameter {each['name']}")
        if kind_of is None:
            kind_of = Scalar(_TYPE_TEXTS.get(str(each.get("type")), "str"))
        found = Parameter(each["name"], without_null(kind_of), each.get("required") is True)
        if each.get("in") == "name":
            in_name[found.name] = found
        else:
            query.append(found)
    payload = value_of("payload") if "payload" in entry else None
    return Offer(
        name=name,
        is_request=is_request,
        segments=tuple(_segments(name, in_name)),
        query=tuple(query),
        value=value_of("answer" if is_request else "elements"),
        serializer=serializer,
        payload=None if payload is None else without_null(payload),
        needs_payload=payload is not None and entry.get("needs_payload") is True,
        has_positions=entry.get("positions") is True,
        takes_channel="channel" in entry,
        summary=_text(entry, "summary"),
    )


def _segments(name: str, parameters: Mapping[str, Parameter]) -> Iterator[str | Parameter]:
    for segment in name.split("/"):
        whole = _PARAMETER.fullmatch(segment)
        if whole is None:
            yield segment
        else:
            yield parameters.get(whole[1]) or Parameter(whole[1], TEXT, is_required=True)


def without_null(kind: Type) -> Type:
    """Return T for ``T | None``: a parameter or a payload is left out, and never sent as null."""
    if not isinstance(kind, OneOf):
        return kind
    return one_of([each for each in kind.members if each != NULL], kind.tag)


def _known_by_name(text: Any, serializer: str) -> Type:
    """Return the type of values that have no schema."""
    if text == "bytes" or (not text and serializer == "bytes"):
        return RAW if serializer in ("", "bytes") else Scalar("bytes")
    kind = _TYPE_TEXTS.get(str(text))
    return ANY if kind is None else Scalar(kind)


def one_of(members: Sequence[Type], tag: str = "") -> Type:
    """Return a union, without members that are there twice and unions inside it."""
    flat: list[Type] = []
    for each in members:
        for one in each.members if isinstance(each, OneOf) else (each,):
            if one not in flat:
                flat.append(one)
        if isinstance(each, OneOf):
            tag = tag or each.tag
    if not flat:
        return ANY
    if ANY in flat:
        return ANY
    return flat[0] if len(flat) == 1 else OneOf(tuple(flat), tag)


def parts_of(kind: Type) -> Sequence[Type]:
    """Return the types inside a type, except the fields of a record."""
    if isinstance(kind, ListOf):
        return (kind.item,)
    if isinstance(kind, DictOf):
        return kind.key, kind.value
    if isinstance(kind, TupleOf):
        return kind.items
    return kind.members if isinstance(kind, OneOf) else ()


class _SchemaReader:
    """Reads one schema. `records` has those of the schemas before it."""

    def __init__(
        self, schema: Any, records: dict[str, Record], where: str, notes: list[str]
    ) -> None:
        self._schema = schema
        self._records = records
        self._where = where
        self._notes = notes
        definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
        if not isinstance(definitions, dict):
            raise _malformed(f"{where} has definitions that are no object")
        if len(definitions) > MOST_DEFINITIONS:
            raise _malformed(f"{where} has more than {MOST_DEFINITIONS:,} definitions")
        self._definitions = definitions
        self._texts = {name: json.dumps(each, sort_keys=True) for name, each in definitions.items()}
        self._expanding: set[str] = set()
        self._by_name: dict[str, Record] = {}
        # By the first of these words that a schema has.
        self._readers: dict[str, Callable[[Mapping[str, Any], str, int], Type]] = {
            "$ref": self._referenced,
            "anyOf": self._union,
            "oneOf": self._union,
            "allOf": self._one_part,
            "const": self._constant,
            "enum": self._enum,
            "properties": self._object,
            "type": self._of_kind,
        }

    def read_whole(self, title: str) -> Type:
        """Return the type of the schema; `title` names a class without a name."""
        if isinstance(self._schema, dict):
            return self._read({k: v for k, v in self._schema.items() if k != "$defs"}, title, 0)
        return self._read(self._schema, title, 0)

    def _read(self, schema: Any, title: str, depth: int) -> Type:
        if schema is True:
            return ANY
        if not isinstance(schema, dict):
            raise _malformed(f"{self._where} has a schema that is no object")
        if depth > MAX_DEPTH:
            return self._unknown(f"it is more than {MAX_DEPTH} types deep")
        for word, read in self._readers.items():
            if word in schema:
                return read(schema, title, depth)
        return ANY

    def _one_part(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        parts = _listed(schema["allOf"], self._where)
        if len(parts) == 1:
            return self._read(parts[0], title, depth + 1)
        return self._unknown("it joins several schemas (allOf)")

    def _constant(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        return self._choice([schema["const"]], "")

    def _enum(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        return self._choice(_listed(schema["enum"], self._where), _title(schema))

    def _of_kind(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        kind = schema["type"]
        if isinstance(kind, list):
            return one_of([self._read({**schema, "type": each}, title, depth + 1) for each in kind])
        if kind == "array":
            return self._array(schema, title, depth)
        if kind == "object":
            return self._object(schema, title, depth)
        if isinstance(kind, str) and kind in PLAIN:
            return Scalar(_format(schema) or PLAIN[kind], _bounds(schema))
        return self._unknown(f"its type is {kind!r}")

    def _array(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        if "prefixItems" in schema:
            parts = _listed(schema["prefixItems"], self._where)
            least = schema.get("minItems", 0)
            return TupleOf(
                tuple(self._read(each, title, depth + 1) for each in parts),
                least if isinstance(least, int) and 0 <= least <= len(parts) else len(parts),
            )
        return ListOf(self._read(schema.get("items", True), title, depth + 1), _bounds(schema))

    def _object(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        rest = schema.get("additionalProperties", True)
        if "properties" in schema or rest is False:
            name = _title(schema) or title
            return self._record(json.dumps(schema, sort_keys=True), schema, name, depth)
        names = schema.get("propertyNames")
        return DictOf(
            self._key(names, title, depth) if isinstance(names, dict) else TEXT,
            self._read(rest, title, depth + 1),
        )

    def _key(self, names: Mapping[str, Any], title: str, depth: int) -> Type:
        """Return the type of the keys of an object, which are texts in JSON."""
        if names.get("format") == "int64":
            return Scalar("int")
        kind = self._read({"type": "string", **names}, title, depth + 1)
        is_texts = isinstance(kind, Choice) and all(isinstance(each, str) for each in kind.values)
        is_scalar = isinstance(kind, Scalar) and kind.kind in KEYS
        return kind if is_texts or is_scalar else TEXT

    def _referenced(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        reference = schema["$ref"]
        name = str(reference).removeprefix(_REFERENCE)
        definition = self._definitions.get(name)
        if not isinstance(definition, dict):
            raise _malformed(f"{self._where} refers to {reference!r}, which is not there")
        if "properties" in definition and not {"anyOf", "oneOf", "allOf"} & definition.keys():
            # Looked up first: the references of a class take time to find.
            if (record := self._by_name.get(name)) is None:
                record = self._by_name[name] = self._record(
                    self._texts[name], definition, _title(definition) or name, depth
                )
            return record
        # Not a record, so it is expanded in place, and must not contain itself.
        if name in self._expanding:
            return self._unknown(f"{name!r} contains itself")
        self._expanding.add(name)
        try:
            return self._read(definition, name, depth + 1)
        finally:
            self._expanding.discard(name)

    def _record(self, text: str, schema: Mapping[str, Any], title: str, depth: int) -> Record:
        # The same class has the same text, and so have all that it refers to.
        reached = [f"{name}={self._texts[name]}" for name in sorted(self._reachable(text))]
        key = "\n".join([title, text, *reached])
        found = self._records.get(key)
        if found is not None:
            return found
        record = self._records[key] = Record(title, _described(schema))
        record.is_closed = schema.get("additionalProperties") is False
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise _malformed(f"{self._where}: the fields of {title!r} are no object")
        record.fields = tuple(
            Field(
                name,
                self._read(each, f"{title}_{name}", depth + 1),
                name in required,
                each.get("default", NOTHING) if isinstance(each, dict) else NOTHING,
            )
            for name, each in properties.items()
        )
        return record

    def _reachable(self, text: str) -> set[str]:
        found: set[str] = set()
        waiting = [text]
        while waiting:
            for escaped in _REFERENCES.findall(waiting.pop()):
                name = json.loads(f'"{escaped}"')
                if name in self._texts and name not in found:
                    found.add(name)
                    waiting.append(self._texts[name])
        return found

    def _union(self, schema: Mapping[str, Any], title: str, depth: int) -> Type:
        word = "anyOf" if "anyOf" in schema else "oneOf"
        members = [
            self._read(each, f"{title}_{number}", depth + 1)
            for number, each in enumerate(_listed(schema[word], self._where), 1)
        ]
        told_apart = schema.get("discriminator")
        tag = told_apart.get("propertyName") if isinstance(told_apart, dict) else ""
        return one_of(members, tag if isinstance(tag, str) else "")

    def _choice(self, values: Sequence[Any], title: str) -> Type:
        members: list[Type] = []
        if None in values:
            members.append(NULL)
        plain = [each for each in values if type(each) in (str, int)]
        if plain:
            members.insert(0, Choice(tuple(dict.fromkeys(plain)), title))
        if any(type(each) is bool for each in values):
            members.append(Scalar("bool"))
        if any(type(each) is float for each in values):
            members.append(Scalar("float"))
        if any(isinstance(each, list | dict) for each in values):
            return self._unknown("it allows whole lists or objects only")
        return one_of(members)

    def _unknown(self, why: str) -> Type:
        self._notes.append(f"{self._where} may be any value: {why}")
        return ANY


_REFERENCES: Final = re.compile(r'"\$ref": "#/\$defs/((?:[^"\\]|\\.)*)"')


def _format(schema: Mapping[str, Any]) -> str | None:
    """Return the type in Python of a text with a format; None for any other."""
    if schema["type"] != "string":
        return None
    if schema.get("contentEncoding") == "base64":
        return "bytes"
    form = schema.get("format")
    return FORMATS.get(form) if isinstance(form, str) else None


def _bounds(schema: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (word, schema[word])
        for word in BOUNDS
        if word in schema and isinstance(schema[word], int | float | str)
    )


def _title(schema: Mapping[str, Any]) -> str:
    title = schema.get("title")
    return title if isinstance(title, str) else ""


def _described(schema: Mapping[str, Any]) -> str:
    text = schema.get("description")
    return text if isinstance(text, str) else ""


def _listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _malformed(f"{where} has a list of schemas that is none")
    return value


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise _malformed(f"an entry has no text as its {key}")
    return value


def _malformed(why: str) -> ProtocolError:
    return ProtocolError(
        f"the description of the service cannot be read: {why}; was it written by `penstock "
        "describe --json` or by a service of penstock?"
    )
