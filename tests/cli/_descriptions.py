"""Random descriptions of a hostile service, for hypothesis."""

from typing import Any, Final

from hypothesis import strategies as st

EVIL: Final = (
    '"',
    "'",
    '"""',
    "\\",
    '\\"',
    '\\"""',
    "\n",
    "\r",
    "\x00",
    "*/",
    "/*",
    "//",
    "`${process.exit()}`",
    "${evil}",
    "{evil}",
    "}}",
    '"; evil(); "',
    '"""\nimport evil\n"""',
    "*/ evil(); /*",
    "\u2028evil()",
    "\u2029",
    "\x85evil",
    "# type:" + " ignore",
    "@ts-nocheck",
    "</script>",
    "evil evil",
    "self",
    "class",
    "None",
    "constructor",
    "then",
    "__proto__",
    "__class__",
    "_peer",
    "#connection",
    "msgspec",
    "Client",
    "Any",
    "int",
    "list",
    "Literal",
    "dt",
    "name",
    "payload",
    "demand",
    "options",
    "query",
    "é",
    "ﬁ",
    "1",
    "",
    "-",
    "__",
    "a/b",
    "penstock",
    "{a}",
)

texts = st.one_of(
    st.sampled_from(EVIL),
    st.lists(st.sampled_from(EVIL), min_size=2, max_size=3).map("".join),
    st.text(max_size=6),
)

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=4,
)

references = st.sampled_from(["A", "B", "C"]).map(lambda name: {"$ref": f"#/$defs/{name}"})

plain = st.one_of(
    st.sampled_from(
        [
            {},
            True,
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "null"},
            {"type": "string"},
            {"type": "string", "contentEncoding": "base64"},
            {"type": ["string", "null"]},
            {"type": "object"},
        ]
    ),
    st.sampled_from(
        ["date-time", "date", "time", "duration", "decimal", "uuid", "evil", "int64"]
    ).map(lambda form: {"type": "string", "format": form}),
    st.lists(
        st.one_of(texts, st.integers(), st.booleans(), st.none(), st.floats()), max_size=3
    ).map(lambda each: {"enum": each}),
    st.builds(
        lambda title, each: {"title": title, "enum": each}, texts, st.lists(texts, min_size=1)
    ),
    texts.map(lambda text: {"const": text}),
    texts.map(lambda text: {"type": "string", "pattern": text, "description": text}),
    texts.map(lambda text: {"type": text}),
    references,
)


def _record(properties: dict[str, Any], required: list[str], texts_of: tuple[str, str]) -> Any:
    title, description = texts_of
    return {
        "type": "object",
        "title": title,
        "description": description,
        "properties": properties,
        "required": [*required, *list(properties)[:1]],
    }


def _with_default(schema: Any, default: Any) -> Any:
    return {**schema, "default": default} if isinstance(schema, dict) else schema


def _records(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(texts, st.builds(_with_default, inner, values) | inner, max_size=3)
    return st.builds(_record, fields, st.lists(texts, max_size=2), st.tuples(texts, texts))


schemas = st.recursive(
    plain,
    lambda inner: st.one_of(
        inner.map(lambda each: {"type": "array", "items": each}),
        st.lists(inner, max_size=3).map(lambda each: {"type": "array", "prefixItems": each}),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
        st.builds(
            lambda each, keys: {
                "type": "object",
                "additionalProperties": each,
                "propertyNames": keys,
            },
            inner,
            st.sampled_from([{"format": "uuid"}, {"enum": ["a", 'b"']}, {"format": "int64"}]),
        ),
        st.builds(
            lambda each, tag: {"anyOf": each, "discriminator": {"propertyName": tag}},
            st.lists(inner, min_size=1, max_size=3),
            texts,
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"oneOf": each}),
        inner.map(lambda each: {"allOf": [each]}),
        _records(inner),
    ),
    max_leaves=6,
)

# Records that a tag tells apart, so that unions of them are written.
tagged = st.builds(
    lambda record, tag: {
        **record,
        "properties": {**record["properties"], "type": {"enum": [tag]}},
        "required": ["type"],
    },
    _records(plain),
    st.one_of(texts, st.integers()),
)

definitions = st.fixed_dictionaries(
    {name: st.one_of(_records(schemas), tagged, schemas) for name in "ABC"}
)

whole = st.builds(
    lambda schema, defs: {**schema, "$defs": defs} if isinstance(schema, dict) else schema,
    st.one_of(
        schemas,
        st.just({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}),
    ),
    definitions,
)

parameters = st.lists(
    st.builds(
        lambda name, schema, place, required: {
            "name": name,
            "type": "evil",
            "in": place,
            "required": required,
            "schema": schema,
        },
        texts,
        whole,
        st.sampled_from(["name", "query"]),
        st.booleans(),
    ),
    max_size=3,
)

names = st.lists(
    st.one_of(texts, st.sampled_from(["{a}", "{self}", "{payload}", "{class}"])),
    min_size=1,
    max_size=3,
).map(lambda each: "/".join(each) or "name")

entries = st.builds(
    lambda name, kind, found, summary, serializer, schema, payload, needed: {
        "name": name,
        "kind": kind,
        "parameters": found,
        "summary": summary,
        "serializer": serializer,
        "elements": "evil",
        "elements_schema": schema,
        "answer": "evil",
        "answer_schema": schema,
        "positions": needed,
        **({} if payload is None else {"payload": "evil", "payload_schema": payload}),
        "needs_payload": needed,
    },
    names,
    st.sampled_from(["publisher", "request"]),
    parameters,
    texts,
    st.sampled_from(["", "json", "msgpack", "bytes", "text", '"; evil()']),
    whole,
    st.none() | whole,
    st.booleans(),
)

descriptions = st.lists(entries, min_size=1, max_size=4)
