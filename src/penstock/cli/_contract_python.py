"""A typed client in Python, written from the contract of a service.

Rules of this file:

* A text of the peer enters the file as a literal of ASCII, or as an identifier that `identifier`
  has made of it. Nothing else of the peer is written, also not into a comment.
* A class is a msgspec.Struct: its fields may have any names in JSON, and unions of tagged ones can
  be read. What msgspec cannot tell apart is `Any`.
"""

import keyword
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import attrs
import msgspec

from penstock.cli._contract import (
    ANY,
    NULL,
    RAW,
    Choice,
    Contract,
    DictOf,
    Field,
    ListOf,
    Offer,
    OneOf,
    Parameter,
    Record,
    Scalar,
    TupleOf,
    Type,
    parts_of,
)
from penstock.cli._contract_names import Names, by_plainness, class_name, identifier, words_of

SCALARS: Final = {
    "any": "Any",
    "null": "None",
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
    "bytes": "bytes",
    "raw": "bytes",
    "datetime": "dt.datetime",
    "date": "dt.date",
    "time": "dt.time",
    "timedelta": "dt.timedelta",
    "Decimal": "Decimal",
    "UUID": "UUID",
}

_TEXTS: Final = frozenset(
    {"str", "bytes", "datetime", "date", "time", "timedelta", "Decimal", "UUID"}
)
"""The scalars that travel as a text: msgspec reads one of them in a union."""

_CLASSES: Final[dict[str, type]] = {
    "bytes": bytes,
    "datetime": datetime,
    "date": date,
    "time": time,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "UUID": UUID,
}

KEYWORDS: Final = frozenset({*keyword.kwlist, *keyword.softkwlist, "self"})
USED: Final = frozenset(
    {
        "Any",
        "Literal",
        "TypeAlias",
        "cast",
        "Client",
        "Peer",
        "Stream",
        "AbstractAsyncContextManager",
        "annotations",
        "bool",
        "bytes",
        "dict",
        "dt",
        "Decimal",
        "UUID",
        "ValueError",
        "float",
        "int",
        "isinstance",
        "list",
        "msgspec",
        "object",
        "quote",
        "str",
        "super",
        "tuple",
        "urlencode",
        "PlaceInStream",
    }
)
"""Names that the file itself uses."""

_LARGEST: Final = 2**63
"""msgspec reads integers of a Literal below this."""


@attrs.frozen
class Shell:
    """One of the three clients of penstock, and how its calls are written."""

    standard: str
    imports: str
    stream: str
    """The type of what `subscribe` returns, with a place for that of the elements."""
    define: str
    wait: str
    has_request_stream: bool = False


SHELLS: Final = {
    "trio": Shell(
        "from contextlib import AbstractAsyncContextManager\n",
        "from penstock import Peer, Stream",
        "AbstractAsyncContextManager[Stream[{}]]",
        "async def",
        "await ",
        has_request_stream=True,
    ),
    "asyncio": Shell(
        "", "from penstock.aio import Peer, Stream", "Stream[{}]", "async def", "await "
    ),
    "blocking": Shell("", "from penstock.blocking import Peer, Stream", "Stream[{}]", "def", ""),
}

_HEAD: Final = '''\
# Written by `penstock describe --python`. A change is lost when it is written again.
# ruff: noqa
"""A typed client of a service of penstock."""

from __future__ import annotations

import datetime as dt
{standard}from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec

{imports}
from penstock.api import PlaceInStream


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dt.date, dt.time, dt.timedelta)):
        return str(msgspec.to_builtins(value))
    return str(value)


def _segment(value: object) -> str:
    if not (text := _text(value)):
        raise ValueError("a name has no empty part: give this argument at least one character")
    return quote(text, safe="")


def _texts(key: str, value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        return [_text(value)]
    if not value:
        raise ValueError(
            f"a name cannot carry an empty list: give {{key}} at least one value, or leave it out "
            "if the service has a default"
        )
    return [_text(each) for each in cast("list[object]", value)]


def _name(segments: list[object], query: list[tuple[str, object]]) -> str:
    pairs = [(key, each) for key, value in query for each in _texts(key, value)]
    path = "/".join(map(str, segments))
    return f"{{path}}?{{urlencode(pairs)}}" if pairs else path
'''
"""The beginning of the file. Its functions make the name of a publisher: a parameter is escaped, as
in a URL, and a list is a key that is given several times.
"""

_CLIENT: Final = '''

class Client:
    """What the service offers. Make it of the peer that `connect` gives."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer'''


def python_client(contract: Contract, shell: str) -> tuple[str, list[str]]:
    """Return the text of the file, and notes for a person: what was left out, or became Any."""
    writer = _Writer(contract, SHELLS[shell])
    text = writer.file()
    return text, [*contract.notes, *writer.notes]


def literal(text: str) -> str:
    """Return a Python literal of a text, in ASCII and on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = "".join(each if " " <= each != "\x7f" else f"\\x{ord(each):02x}" for each in escaped)
    return f'"{plain.encode("ascii", "backslashreplace").decode()}"'


class _Writer:
    def __init__(self, contract: Contract, shell: Shell) -> None:
        self._contract = contract
        self._shell = shell
        self.notes: list[str] = []
        self._names = Names(KEYWORDS | USED)
        self._records: dict[Record, str] = {}
        self._choices: dict[tuple[str, Choice], str] = {}
        self._tags: dict[Record, str] = {}
        self._declared: list[Record | Choice] = []
        self._writers: dict[type, Callable[[Any], str]] = {
            Record: lambda kind: self._records[kind],
            Scalar: lambda kind: SCALARS[kind.kind],
            Choice: self._named,
            ListOf: self._list,
            DictOf: self._dict,
            TupleOf: self._tuple,
            OneOf: self._union,
        }

    def file(self) -> str:
        for offer in self._contract.offers:
            for kind in _types_of(offer):
                self._declare(kind, offer.name)
        classes = [
            line
            for each in self._declared
            for line in (self._record(each) if isinstance(each, Record) else self._choice(each))
        ]
        methods = [
            line for offer, name in self._method_names() for line in self._method(offer, name)
        ]
        head = _HEAD.format(standard=self._shell.standard, imports=self._shell.imports)
        return head + "\n".join([*classes, _CLIENT, *methods, ""])

    # --- types

    def _declare(self, kind: Type, where: str) -> None:
        """Give each class and each Enum inside a type its name."""
        waiting = [kind]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Record):
                if each in self._records:
                    continue
                if not _fits_struct(each):
                    self._records[each] = "dict[str, Any]"
                    self.notes.append(
                        f"{where}: msgspec has no fields with the names of {each.title!r}, so it "
                        "is a dict"
                    )
                    continue
                self._records[each] = self._names.take(class_name(each.title))
                self._declared.append(each)
                waiting += [field.type for field in reversed(each.fields)]
            elif isinstance(each, Choice) and each.title:
                key = each.title, each
                if key not in self._choices:
                    self._choices[key] = self._names.take(class_name(each.title))
                    self._declared.append(each)
            else:
                if isinstance(each, OneOf):
                    self._tag(each, where)
                waiting += reversed(parts_of(each))

    def _tag(self, union: OneOf, where: str) -> None:
        """Decide by which key the records of a union are told apart."""
        records = [each for each in union.members if isinstance(each, Record)]
        if len(records) < 2:
            return
        tag = union.tag or _common_tag(records)
        fits = all(_fits_struct(each) and self._tags.get(each, tag) == tag for each in records)
        if tag and fits:
            values = [_only_value(each, tag) for each in records]
            is_one_type = len({*map(type, values)}) == 1 and None not in values
            is_small = all(isinstance(each, str) or _is_small(each) for each in values)
            if is_one_type and is_small and len(set(values)) == len(values):
                self._tags.update(dict.fromkeys(records, tag))
                return
        self.notes.append(
            f"{where}: nothing tells the records of a union apart for msgspec, so it is Any"
        )

    def type(self, kind: Type) -> str:
        """Return an annotation."""
        write: Callable[[Any], str] = self._writers[type(kind)]
        return write(kind)

    def _list(self, kind: ListOf) -> str:
        return f"list[{self.type(kind.item)}]"

    def _dict(self, kind: DictOf) -> str:
        return f"dict[{self.type(kind.key)}, {self.type(kind.value)}]"

    def _tuple(self, kind: TupleOf) -> str:
        return f"tuple[{', '.join(map(self.type, kind.items)) or '()'}]"

    def _named(self, kind: Choice) -> str:
        return self._choices.get((kind.title, kind)) or self._literal(kind)

    def _literal(self, choice: Choice) -> str:
        if any(not isinstance(each, str) and not _is_small(each) for each in choice.values):
            return "int" if all(isinstance(each, int) for each in choice.values) else "Any"
        values = ", ".join(_plain(each) for each in choice.values)
        return f"Literal[{values}]"

    def _union(self, union: OneOf) -> str:
        """Return a union that msgspec can read: one type for each kind of value in JSON."""
        by_kind: dict[str, list[Type]] = {}
        for each in union.members:
            by_kind.setdefault(_kind_in_json(each), []).append(each)
        if "mixed" in by_kind and {"text", "integer", "float"} & by_kind.keys():
            return "Any"
        members = []
        for kind, found in by_kind.items():
            text = self._members_of_one_kind(kind, found)
            if text == "Any":
                return "Any"
            members.append(text)
        return " | ".join(sorted(members, key=lambda text: text == "None"))

    def _members_of_one_kind(self, kind: str, found: Sequence[Type]) -> str:
        if len(found) == 1:
            return self.type(found[0])
        if kind == "object":
            records = [each for each in found if isinstance(each, Record)]
            tags = {self._tags.get(each) for each in records}
            if len(records) == len(found) and len(tags) == 1 and None not in tags:
                return " | ".join(map(self.type, records))
            return "Any"
        if all(isinstance(each, Choice) for each in found):
            values = [one for each in found if isinstance(each, Choice) for one in each.values]
            return self._literal(Choice(tuple(dict.fromkeys(values))))
        return {"text": "str", "integer": "int", "array": "list[Any]"}.get(kind, "Any")

    # --- classes

    def _choice(self, choice: Choice) -> Iterator[str]:
        yield from ("", "")
        yield f"{self._choices[choice.title, choice]}: TypeAlias = {self._literal(choice)}"

    def _record(self, record: Record) -> Iterator[str]:
        tag = self._tags.get(record, "")
        options = (
            f", tag_field={literal(tag)}, tag={_plain(_only_value(record, tag))}" if tag else ""
        )
        yield from ("", "")
        yield f"class {self._records[record]}(msgspec.Struct, kw_only=True{options}):"
        yield f"    {_docstring(record.summary or 'A type of the service.')}"
        fields = [each for each in record.fields if not tag or each.key != tag]
        scope = self._names.inner()
        if fields:
            yield ""
        for field in fields:
            yield f"    {self._field(field, scope.take(_field_name(field.key)))}"

    def _field(self, field: Field, name: str) -> str:
        kind = self.type(field.type)
        only = field.type.values if isinstance(field.type, Choice) else ()
        options = [] if name == field.key else [f"name={literal(field.key)}"]
        if field.is_required and len(only) == 1 and kind != "Any":
            default: str | None = _plain(only[0])
        elif field.is_required:
            default = None
        else:
            default = _default(field)
            if default is None:
                kind, default = f"{kind} | msgspec.UnsetType", "msgspec.UNSET"
        if default is not None and default.startswith("lambda: "):
            options.append(f"default_factory={default}")
        elif default is not None:
            if not options:
                return f"{name}: {kind} = {default}"
            options.append(f"default={default}")
        return (
            f"{name}: {kind} = msgspec.field({', '.join(options)})"
            if options
            else f"{name}: {kind}"
        )

    # --- methods

    def _method_names(self) -> list[tuple[Offer, str]]:
        scope = self._names.inner()
        found = []
        for offer in by_plainness(self._contract.offers):
            if why := self._why_left_out(offer):
                self.notes.append(f"{offer.name} is left out: {why}")
            else:
                found.append((offer, scope.take(*words_of(offer))))
        return sorted(found, key=lambda each: each[0].name)

    def _why_left_out(self, offer: Offer) -> str:
        if offer.takes_channel:
            return "a channel has no typed call; use Peer.request_channel"
        if not offer.is_request and offer.needs_payload and not self._shell.has_request_stream:
            return "its payload needs Peer.request_stream, which the client on trio alone has"
        return ""

    def _method(self, offer: Offer, method: str) -> Iterator[str]:
        own = () if offer.is_request else ("demand", "start", "stop")
        scope = self._names.inner(*own, *(() if offer.payload is None else ("payload",)))
        segments, before, after, query = [], [], [], []
        for segment in offer.segments:
            if isinstance(segment, str):
                segments.append(literal(segment))
                continue
            name = scope.take(_field_name(segment.name))
            before.append(f"{name}: {self.type(segment.type)}")
            segments.append(f"_segment({name})")
        takes_payload = offer.payload is not None and (offer.is_request or offer.needs_payload)
        if offer.payload is not None and takes_payload:
            kind = self.type(offer.payload)
            before.append(
                f"payload: {kind}" if offer.needs_payload else f"payload: {kind} | None = None"
            )
        for each in sorted(offer.query, key=lambda each: not each.is_required):
            name = scope.take(_field_name(each.name))
            kind = self.type(each.type)
            after.append(f"{name}: {kind}" if each.is_required else f"{name}: {kind} | None = None")
            query.append(f"({literal(each.name)}, {name})")
        called = f"_name([{', '.join(segments)}], [{', '.join(query)}])"
        if offer.is_request:
            yield from self._request(offer, method, before, after, called)
        else:
            yield from self._publisher(offer, method, before, after, called)

    def _publisher(
        self, offer: Offer, method: str, before: list[str], after: list[str], called: str
    ) -> Iterator[str]:
        passed = ["demand=demand"]
        after = [*after, "demand: int = 256"]
        if offer.has_positions:
            after += ["start: PlaceInStream | None = None", "stop: PlaceInStream | None = None"]
            passed += ["start=start", "stop=stop"]
        returns = self._shell.stream.format(self.type(offer.value))
        yield from _signature("def", method, before, after, returns)
        yield f"        {_docstring(offer.summary or 'Subscribe.')}"
        kind = self._type_options(offer)
        if offer.needs_payload:
            yield "        return self._peer.request_stream("
            yield from _lines([_payload(offer), f"name={called}", *kind, "demand=demand"])
        else:
            yield "        return self._peer.subscribe("
            yield from _lines([called, *kind, *passed])
        yield "        )"

    def _request(
        self, offer: Offer, method: str, before: list[str], after: list[str], called: str
    ) -> Iterator[str]:
        returns = self.type(offer.value)
        yield from _signature(self._shell.define, method, before, after, returns)
        yield f"        {_docstring(offer.summary or 'Send the request.')}"
        arguments = [called]
        if offer.payload is not None:
            arguments.append(_payload(offer))
        yield f"        _answer: {returns} = {self._shell.wait}self._peer.request("
        yield from _lines([*arguments, *self._type_options(offer)])
        yield "        )"
        yield "        return _answer"

    def _type_options(self, offer: Offer) -> list[str]:
        """Return the arguments that say how elements or an answer are read."""
        kind, serializer = offer.value, offer.serializer
        if kind == RAW:
            return ["type=bytes"] if not offer.is_request else []
        text = self.type(kind)
        if text == "Any":
            return [f"serializer={literal(serializer or 'json')}"]
        usual = "text" if text == "str" else "json"
        found = [f"type={text}"]
        if serializer and serializer != usual:
            found.append(f"serializer={literal(serializer)}")
        return found


def _payload(offer: Offer) -> str:
    """Return the argument that is the payload. One that travels as JSON is encoded here, unless it
    is a record: penstock takes the format of a list or of a text by its class.
    """
    kind, serializer = offer.payload, offer.serializer
    if (
        kind is None
        or kind == RAW
        or isinstance(kind, Record)
        or (isinstance(kind, Scalar) and kind.kind == "str")
    ):
        return "payload"
    if serializer in ("", "json"):
        encoded = (
            "msgspec.json.encode(payload)" if not serializer else "msgspec.to_builtins(payload)"
        )
    else:
        encoded = "msgspec.to_builtins(payload, builtin_types=(bytes,))"
    return encoded if offer.needs_payload else f"None if payload is None else {encoded}"


def _types_of(offer: Offer) -> Iterator[Type]:
    for each in (*offer.segments, *offer.query):
        if isinstance(each, Parameter):
            yield each.type
    if offer.payload is not None:
        yield offer.payload
    yield offer.value


def _only_value(record: Record, key: str) -> str | int | None:
    """Return the one value that a field may have; None if it may have others."""
    for field in record.fields:
        if field.key == key and isinstance(field.type, Choice) and len(field.type.values) == 1:
            return field.type.values[0]
    return None


def _common_tag(records: Sequence[Record]) -> str:
    for field in records[0].fields:
        values = [_only_value(each, field.key) for each in records]
        if None not in values and len(set(values)) == len(values):
            return field.key
    return ""


def _is_key(text: str) -> bool:
    """Return whether msgspec takes a text as the name of a field."""
    return not any(each in '"\\' or each < " " for each in text)


def _is_small(value: int | None) -> bool:
    """Return whether msgspec takes an integer as a value of a Literal, or as a tag."""
    return value is not None and abs(value) < _LARGEST


def _fits_struct(record: Record) -> bool:
    return all(_is_key(field.key) for field in record.fields)


def _kind_in_json(kind: Type) -> str:
    if isinstance(kind, Record | DictOf):
        return "object"
    if isinstance(kind, ListOf | TupleOf):
        return "array"
    if isinstance(kind, Choice):
        kinds = {"text" if isinstance(each, str) else "integer" for each in kind.values}
        return kinds.pop() if len(kinds) == 1 else "mixed"
    if isinstance(kind, Scalar):
        return "text" if kind.kind in _TEXTS else {"int": "integer"}.get(kind.kind, kind.kind)
    return "mixed"


def _default(field: Field) -> str | None:
    """Return the default as an expression; None if there is none that fits the type."""
    value, kind = field.default, field.type
    members = kind.members if isinstance(kind, OneOf) else (kind,)
    if value is None:
        return "None" if NULL in members or kind == ANY else None
    found = (_default_of(each, value) for each in members)
    return next((text for text in found if text is not None), None)


def _default_of(kind: Type, value: Any) -> str | None:
    if isinstance(kind, Scalar):
        return _scalar_default(kind.kind, value)
    if isinstance(kind, Choice) and type(value) in (str, int) and value in kind.values:
        return _plain(value)
    if isinstance(kind, ListOf) and value == []:
        return "lambda: []"
    return "lambda: {}" if isinstance(kind, DictOf) and value == {} else None


def _scalar_default(kind: str, value: Any) -> str | None:
    is_plain = (
        (kind == "bool" and type(value) is bool)
        or (kind in ("int", "float") and type(value) is int and _is_small(value))
        # NaN and the infinities have no literal.
        or (kind == "float" and type(value) is float and value - value == 0)
        or (kind == "str" and isinstance(value, str))
    )
    if is_plain:
        return _plain(value)
    if isinstance(value, str) and _is_readable(value, kind):
        return f"lambda: msgspec.convert({literal(value)}, {SCALARS[kind]})"
    return None


def _is_readable(text: str, kind: str) -> bool:
    if kind not in _CLASSES:
        return False
    try:
        msgspec.convert(text, _CLASSES[kind])
    except msgspec.ValidationError:
        return False
    return True


def _plain(value: Any) -> str:
    return literal(value) if isinstance(value, str) else repr(value)


def _field_name(key: str) -> str:
    return identifier(key, "field")


def _docstring(text: str) -> str:
    return f'""{literal(text)}""'


def _signature(
    define: str, method: str, before: list[str], after: list[str], returns: str
) -> Iterator[str]:
    yield ""
    yield f"    {define} {method}("
    yield "        self,"
    for each in before:
        yield f"        {each},"
    if after:
        yield "        *,"
    for each in after:
        yield f"        {each},"
    yield f"    ) -> {returns}:"


def _lines(arguments: Sequence[str]) -> list[str]:
    return [f"            {each}," for each in arguments]
