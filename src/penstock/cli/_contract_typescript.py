"""A typed client in TypeScript, written from the contract of a service, for the JavaScript client.

Rules of this file:

* A text of the peer enters the file as a literal of ASCII, or as an identifier that `identifier`
  has made of it. Nothing else of the peer is written, also not into a comment: a comment of
  TypeScript can switch checks off.
* The file has types, one class and two functions. Values are those of JSON: a date is a string.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from penstock.cli._contract import (
    RAW,
    TEXT,
    Choice,
    Contract,
    DictOf,
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
from penstock.cli._contract_names import (
    Names,
    by_plainness,
    camel,
    class_name,
    identifier,
    words_of,
)

SCALARS: Final = {
    "any": "unknown",
    "null": "null",
    "bool": "boolean",
    "int": "number",
    "float": "number",
    "raw": "Uint8Array",
}
"""Every other scalar is a string in JSON."""

RESERVED: Final = frozenset(
    {
        "arguments",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "constructor",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "name",
        "new",
        "null",
        "options",
        "package",
        "payload",
        "private",
        "protected",
        "prototype",
        "public",
        "query",
        "segment",
        "return",
        "static",
        "super",
        "switch",
        "then",
        "this",
        "throw",
        "toString",
        "true",
        "try",
        "typeof",
        "undefined",
        "valueOf",
        "var",
        "void",
        "while",
        "with",
        "yield",
        "Array",
        "Client",
        "Connection",
        "ElementStream",
        "IterationOptions",
        "JSON",
        "Omit",
        "Pairs",
        "Promise",
        "RangeError",
        "StreamOptions",
        "String",
        "URLSearchParams",
        "Uint8Array",
        "encodeURIComponent",
    }
)
"""Words of the language, and names that the file itself uses. ``then`` would make the client a
promise.
"""

_HEAD: Final = """\
// Written by `penstock describe --typescript`. A change is lost when it is written again.
/* eslint-disable */

import type { Connection, ElementStream, IterationOptions, StreamOptions } from "penstock";

type Pairs = readonly (readonly [string, unknown])[];

/** Return an argument as a part of a name. */
function segment(value: unknown): string {
  const text = encodeURIComponent(String(value));
  if (text === "") throw new RangeError("a name has no empty part: give at least one character");
  return text;
}

/** Return the name of a publisher. A list is a key that is given several times. */
function name(segments: readonly string[], pairs: Pairs): string {
  const query = new URLSearchParams();
  for (const [key, value] of pairs) {
    if (Array.isArray(value) && value.length === 0) {
      throw new RangeError(
        `a name cannot carry an empty list: give ${key} at least one value, or leave it out ` +
          "if the service has a default",
      );
    }
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(key, String(each));
    }
  }
  const [path, text] = [segments.join("/"), query.toString()];
  return text === "" ? path : `${path}?${text}`;
}
"""

_CLIENT: Final = """
/** What the service offers. Make it of the connection that `connect` gives. */
export class Client {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }"""


def typescript_client(contract: Contract) -> tuple[str, list[str]]:
    """Return the text of the file, and notes for a person: what was left out, or became unknown."""
    writer = _Writer(contract)
    text = writer.file()
    return text, [*contract.notes, *writer.notes]


class _Writer:
    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self.notes: list[str] = []
        self._names = Names(RESERVED)
        self._named: dict[Record | tuple[str, Choice], str] = {}
        self._declared: list[Record | Choice] = []
        self._writers: dict[type, Callable[[Any], str]] = {
            Record: lambda kind: self._named[kind],
            Scalar: lambda kind: SCALARS.get(kind.kind, "string"),
            Choice: lambda kind: self._named.get((kind.title, kind)) or _choice(kind),
            ListOf: self._list,
            DictOf: lambda kind: f"{{ [key: string]: {self.type(kind.value)} }}",
            TupleOf: self._tuple,
            OneOf: self._union,
        }

    def file(self) -> str:
        for offer in self._contract.offers:
            for each in (*offer.segments, *offer.query):
                if isinstance(each, Parameter):
                    self._declare(each.type)
            if offer.payload is not None:
                self._declare(offer.payload)
            self._declare(offer.value)
        lines = [line for each in self._declared for line in self._declaration(each)]
        methods = [
            line for offer, method in self._methods() for line in self._method(offer, method)
        ]
        return _HEAD + "\n".join([*lines, _CLIENT, *methods, "}", ""])

    # --- types

    def _declare(self, kind: Type) -> None:
        """Give each class and each Enum inside a type its name."""
        waiting = [kind]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Record):
                if each not in self._named:
                    self._named[each] = self._names.take(class_name(each.title))
                    self._declared.append(each)
                    waiting += [field.type for field in reversed(each.fields)]
            elif isinstance(each, Choice):
                if each.title and (each.title, each) not in self._named:
                    self._named[each.title, each] = self._names.take(class_name(each.title))
                    self._declared.append(each)
            else:
                waiting += reversed(parts_of(each))

    def type(self, kind: Type) -> str:
        """Return a type."""
        write: Callable[[Any], str] = self._writers[type(kind)]
        return write(kind)

    def _list(self, kind: ListOf) -> str:
        inside = self.type(kind.item)
        return f"({inside})[]" if " | " in inside else f"{inside}[]"

    def _tuple(self, kind: TupleOf) -> str:
        items = [
            self.type(each) if number < kind.least else f"({self.type(each)})?"
            for number, each in enumerate(kind.items)
        ]
        return f"[{', '.join(items)}]"

    def _union(self, kind: OneOf) -> str:
        return " | ".join(dict.fromkeys(map(self.type, kind.members)))

    def _declaration(self, kind: Record | Choice) -> Iterator[str]:
        yield ""
        if isinstance(kind, Choice):
            yield f"export type {self._named[kind.title, kind]} = {_choice(kind)};"
            return
        yield f"export interface {self._named[kind]} {{"
        for field in kind.fields:
            yield f"  {_key(field.key)}{'' if field.is_required else '?'}: {self.type(field.type)};"
        yield "}"

    # --- methods

    def _methods(self) -> list[tuple[Offer, str]]:
        scope = self._names.inner()
        found = []
        for offer in by_plainness(self._contract.offers):
            if why := _why_left_out(offer):
                self.notes.append(f"{offer.name} is left out: {why}")
            else:
                found.append((offer, scope.take(*map(camel, words_of(offer)))))
        return sorted(found, key=lambda each: each[0].name)

    def _method(self, offer: Offer, method: str) -> Iterator[str]:
        scope = self._names.inner()
        segments, arguments = [], []
        for each in offer.segments:
            if isinstance(each, str):
                segments.append(json.dumps(each))
                continue
            parameter = scope.take(identifier(each.name, "value"))
            arguments.append(f"{parameter}: {self._argument(each)}")
            segments.append(f"segment({parameter})")
        if offer.is_request and offer.payload is not None:
            kind = self.type(offer.payload)
            arguments.append(f"payload: {kind}" if offer.needs_payload else f"payload?: {kind}")
        if offer.query:
            fields = [
                f"{_key(each.name)}{'' if each.is_required else '?'}: {self._argument(each)}"
                for each in offer.query
            ]
            # A default value may not be given if one of them is required.
            needed = any(each.is_required for each in offer.query)
            before = any("?:" in each.partition(" ")[0] for each in arguments)
            if needed and before:
                arguments = [
                    each.replace("payload?: ", "payload: undefined | ") for each in arguments
                ]
            arguments.append(f"query: {{ {'; '.join(fields)} }}{'' if needed else ' = {}'}")
        pairs = [
            f"[{json.dumps(each.name)}, query[{json.dumps(each.name)}]]" for each in offer.query
        ]
        called = f"name([{', '.join(segments)}], [{', '.join(pairs)}])"
        yield from self._call(offer, method, arguments, called)

    def _call(self, offer: Offer, method: str, arguments: list[str], called: str) -> Iterator[str]:
        kind = self.type(offer.value)
        serializer = json.dumps(_serializer(offer))
        options = "StreamOptions" if offer.is_request else "IterationOptions"
        arguments = [*arguments, f'options: Omit<{options}<{kind}>, "type"> = {{}}']
        returns = f"Promise<{kind}>" if offer.is_request else f"ElementStream<{kind}>"
        yield ""
        yield f"  {method}({', '.join(arguments)}): {returns} {{"
        if offer.is_request:
            yield (
                f"    return this.#connection.ask<{kind}>({called}, {_payload(offer)}, "
                f"{{ ...options, type: {serializer} }});"
            )
        else:
            # The overloads for "text" and "bytes" have no place for the type of the elements.
            place = "" if serializer in ('"text"', '"bytes"') else f"<{kind}>"
            yield (
                f"    return this.#connection.stream{place}({called}, "
                f"{{ ...options, type: {serializer} }});"
            )
        yield "  }"

    def _argument(self, parameter: Parameter) -> str:
        # A number, a date: what String() makes of it is what the service reads.
        return self.type(parameter.type)


def _why_left_out(offer: Offer) -> str:
    if offer.takes_channel:
        return "the JavaScript client has no channels"
    if not offer.is_request and offer.needs_payload:
        return "the JavaScript client sends no payload to a publisher"
    if offer.payload is not None and offer.serializer not in ("", "json", "text", "bytes"):
        return f"the JavaScript client cannot write a payload as {offer.serializer!r}"
    return ""


def _serializer(offer: Offer) -> str:
    if offer.value == RAW:
        return "bytes"
    if offer.serializer:
        return offer.serializer
    return "text" if offer.value == TEXT else "json"


def _payload(offer: Offer) -> str:
    """Return the argument that is the payload. A text travels unchanged, and any other value as
    JSON.
    """
    if offer.payload is None:
        return "undefined"
    is_unchanged = offer.payload == RAW or (
        isinstance(offer.payload, Scalar)
        and offer.payload.kind == "str"
        and offer.serializer in ("", "text")
    )
    if is_unchanged:
        return "payload"
    encoded = "JSON.stringify(payload)"
    return encoded if offer.needs_payload else f"payload === undefined ? undefined : {encoded}"


def _choice(choice: Choice) -> str:
    return " | ".join(json.dumps(each) for each in choice.values)


def _key(text: str) -> str:
    """Return the name of a property. One that is no plain word is a literal."""
    return text if identifier(text, "") == text else json.dumps(text)
