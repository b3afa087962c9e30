"""The description of a service as a document of AsyncAPI 3, made of the entries that
``Service(describe=True)`` publishes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

VERSION: Final = "3.0.0"
HTTP: Final = frozenset({"http", "https"})

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


def asyncapi_document(
    entries: Iterable[Mapping[str, Any]], *, host: str, path: str, protocol: str
) -> dict[str, Any]:
    """Return the document for a server at `host` that offers `entries`, as ``penstock/describe``
    publishes them.

    With `protocol` "http" or "https" the publishers are below `path`, with the binding of HTTP,
    and requests by name are left out: HTTP has none. Any other protocol, such as "rsio", has
    requests as operations with a reply, and parameters behind ``?`` as the extension ``x-query``.
    """
    page = _Page(is_http=protocol in HTTP)
    for entry in entries:
        if entry["kind"] == "publisher":
            page.add_publisher(entry)
        elif not page.is_http:
            page.add_request(entry)
    server: dict[str, Any] = {"host": host, "protocol": protocol}
    if page.is_http or path:
        server["pathname"] = path or "/"
    components = {"components": {"schemas": page.schemas}} if page.schemas else {}
    return {
        "asyncapi": VERSION,
        "info": {"title": f"The streams of {host}", "version": "0"},
        "servers": {"here": server},
        "channels": page.channels,
        "operations": page.operations,
        **components,
    }


class _Page:
    """The channels, operations and schemas so far."""

    def __init__(self, *, is_http: bool) -> None:
        self.is_http = is_http
        self.channels: dict[str, Any] = {}
        self.operations: dict[str, Any] = {}
        self.schemas: dict[str, Any] = {}

    def add_publisher(self, entry: Mapping[str, Any]) -> None:
        """Add a publisher: its elements are what this server sends."""
        key = _key(entry["name"], self.channels)
        self.channels[key] = self._channel(
            entry, {"element": self._message(entry, "elements", key)}
        )
        self.operations[key] = {
            "action": "send",
            "channel": {"$ref": f"#/channels/{key}"},
            **self._query(entry),
        }

    def add_request(self, entry: Mapping[str, Any]) -> None:
        """Add a request, which this server receives and answers."""
        key = _key(entry["name"], self.channels)
        messages = {"request": {}, "answer": self._message(entry, "answer", f"{key}.answer")}
        if "payload" in entry:
            messages["request"] = self._message(entry, "payload", f"{key}.payload")
        self.channels[key] = self._channel(entry, messages)
        channel = {"$ref": f"#/channels/{key}"}
        self.operations[key] = {
            "action": "receive",
            "channel": channel,
            "messages": [{"$ref": f"#/channels/{key}/messages/request"}],
            "reply": {
                "channel": channel,
                "messages": [{"$ref": f"#/channels/{key}/messages/answer"}],
            },
            **self._query(entry),
        }

    def _channel(self, entry: Mapping[str, Any], messages: dict[str, Any]) -> dict[str, Any]:
        address = f"p/{entry['name']}" if self.is_http else entry["name"]
        channel: dict[str, Any] = {"address": address, "messages": messages}
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

    def _message(self, entry: Mapping[str, Any], what: str, key: str) -> dict[str, Any]:
        serializer = entry.get("serializer") or _DEFAULTS.get(entry[what], "json")
        return {
            "contentType": CONTENT_TYPES.get(serializer, "application/octet-stream"),
            "payload": self._payload(entry, what, key),
        }

    def _query(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return what says how the parameters after the name are sent."""
        arguments = [each for each in entry["parameters"] if each["in"] != "name"]
        properties = {each["name"]: _schema(each["type"]) for each in arguments}
        query: dict[str, Any] = {"type": "object", "properties": properties}
        if self.is_http:
            properties["request"] = _DEMAND
        required = [each["name"] for each in arguments if each["required"]]
        if required:
            query["required"] = required
        if self.is_http:
            binding = {"method": "PUT", "query": query, "bindingVersion": "0.3.0"}
            return {"bindings": {"http": binding}}
        return {"x-query": query} if properties else {}

    def _payload(self, entry: Mapping[str, Any], what: str, key: str) -> dict[str, Any]:
        """Return the schema of a message. Its definitions go to `schemas`, below the key of the
        channel: two modules may have classes of one name.
        """
        schema = entry.get(f"{what}_schema")
        if schema is None:
            return _schema(entry[what])
        definitions = schema.get("$defs", {})
        names = {f"#/$defs/{name}": f"{key}.{_NO_KEY.sub('_', name)}" for name in definitions}
        for name, definition in definitions.items():
            self.schemas[names[f"#/$defs/{name}"]] = _placed(definition, names)
        placed: dict[str, Any] = _placed(
            {name: value for name, value in schema.items() if name != "$defs"}, names
        )
        return placed


_DEFAULTS: Final = {"bytes": "bytes", "str": "text"}
"""The serializer of a type that has no serializer of its own; that of any other type is json."""


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
