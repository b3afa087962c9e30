"""The description of a service as a document of AsyncAPI 3, made of the entries that
``Service(describe=True)`` publishes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

VERSION: Final = "3.0.0"
PATH: Final = "/asyncapi.json"

CONTENT_TYPES: Final = {
    "json": "application/json",
    "text": "text/plain",
    "msgpack": "application/vnd.msgpack",
}
_TYPES: Final[Mapping[str, dict[str, str]]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "binary"},
}
_NO_KEY: Final = re.compile(r"[^A-Za-z0-9_.-]")
_DEMAND: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "the demand: how many elements may be sent",
}


def document(
    entries: Iterable[Mapping[str, Any]], *, host: str, path: str, protocol: str
) -> dict[str, Any]:
    """Return the document for a server at `host` whose publishers are below `path`. Requests by
    name are not served over HTTP.
    """
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for entry in entries:
        if entry["kind"] == "publisher":
            key = _key(entry["name"], channels)
            channels[key] = _channel(entry, _elements(entry, key, schemas))
            operations[key] = _operation(entry, key)
    components = {"components": {"schemas": schemas}} if schemas else {}
    return {
        "asyncapi": VERSION,
        "info": {"title": f"The streams of {host}", "version": "0"},
        "servers": {"here": {"host": host, "pathname": path or "/", "protocol": protocol}},
        "channels": channels,
        "operations": operations,
        **components,
    }


def _channel(entry: Mapping[str, Any], elements: Mapping[str, Any]) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": f"p/{entry['name']}",
        "messages": {
            "element": {
                "contentType": CONTENT_TYPES.get(entry["serializer"], "application/octet-stream"),
                "payload": elements,
            }
        },
    }
    if entry["summary"]:
        channel["description"] = entry["summary"]
    parameters = {
        each["name"]: {"description": each["type"]}
        for each in entry["parameters"]
        if each["in"] == "name"
    }
    if parameters:
        channel["parameters"] = parameters
    return channel


def _operation(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return how a client subscribes: the elements are what this server sends."""
    arguments = [each for each in entry["parameters"] if each["in"] != "name"]
    query: dict[str, Any] = {
        "type": "object",
        "properties": {
            **{each["name"]: _schema(each["type"]) for each in arguments},
            "request": _DEMAND,
        },
    }
    required = [each["name"] for each in arguments if each["required"]]
    if required:
        query["required"] = required
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{key}"},
        "bindings": {"http": {"method": "PUT", "query": query, "bindingVersion": "0.3.0"}},
    }


def _elements(entry: Mapping[str, Any], key: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the elements of a channel. Its definitions go to `schemas`, below the
    key of the channel: two modules may have classes of one name.
    """
    schema = entry.get("elements_schema")
    if schema is None:
        return _schema(entry["elements"])
    definitions = schema.get("$defs", {})
    names = {f"#/$defs/{name}": f"{key}.{_NO_KEY.sub('_', name)}" for name in definitions}
    for name, definition in definitions.items():
        schemas[names[f"#/$defs/{name}"]] = _placed(definition, names)
    placed: dict[str, Any] = _placed(
        {name: value for name, value in schema.items() if name != "$defs"}, names
    )
    return placed


def _placed(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a schema whose references lead to the definitions at their new places."""
    if isinstance(schema, list):
        return [_placed(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # JSON Schema in AsyncAPI has the name of the property alone as its discriminator.
    return {
        key: f"#/components/schemas/{names[value]}"
        if key == "$ref" and value in names
        else value["propertyName"]
        if key == "discriminator" and isinstance(value, dict) and "propertyName" in value
        else _placed(value, names)
        for key, value in schema.items()
    }


def _schema(type_text: str) -> dict[str, Any]:
    """Return the JSON Schema of a type by its name;
    its name alone if it is a class of the program.
    """
    if type_text in _TYPES:
        return dict(_TYPES[type_text])
    return {"title": type_text} if type_text else {}


def _key(name: str, taken: Mapping[str, Any]) -> str:
    """Return a key for a channel:
    the specification permits letters, digits and ``_.-`` in references.
    """
    key = _NO_KEY.sub("_", name)
    while key in taken:
        key += "_"
    return key
