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
    for entry in entries:
        if entry["kind"] == "publisher":
            key = _key(entry["name"], channels)
            channels[key] = _channel(entry)
            operations[key] = _operation(entry, key)
    return {
        "asyncapi": VERSION,
        "info": {"title": f"The streams of {host}", "version": "0"},
        "servers": {"here": {"host": host, "pathname": path or "/", "protocol": protocol}},
        "channels": channels,
        "operations": operations,
    }


def _channel(entry: Mapping[str, Any]) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": f"p/{entry['name']}",
        "messages": {
            "element": {
                "contentType": CONTENT_TYPES.get(entry["serializer"], "application/octet-stream"),
                "payload": _schema(entry["elements"]),
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
