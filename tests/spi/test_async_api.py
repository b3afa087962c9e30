"""The document of AsyncAPI for a service. plugins/penstock-http serves it as well."""

from typing import Any

from penstock.spi import asyncapi_document


def test_names_that_differ_have_keys_that_differ() -> None:
    """Braces and slashes are not permitted in a key."""
    entries = [
        {
            "name": name,
            "kind": "publisher",
            "serializer": "text",
            "elements": "Tick",
            "summary": "",
            "parameters": [],
        }
        for name in ("a/b", "a_b")
    ]
    page = asyncapi_document(entries, host="h", path="", protocol="http")
    assert [(key, channel["address"]) for key, channel in page["channels"].items()] == [
        ("a_b", "p/a/b"),
        ("a_b_", "p/a_b"),
    ]
    assert page["channels"]["a_b"]["messages"]["element"] == {
        "contentType": "text/plain",
        "payload": {"title": "Tick"},
    }


REQUEST: dict[str, Any] = {
    "name": "order/{symbol}",
    "kind": "request",
    "summary": "Place an order.",
    "parameters": [
        {"name": "symbol", "type": "str", "in": "name", "required": True},
        {"name": "most", "type": "int", "in": "query", "required": True},
    ],
    "payload": "Quote",
    "payload_schema": {
        "$ref": "#/$defs/Quote",
        "$defs": {"Quote": {"type": "object", "properties": {"price": {"type": "integer"}}}},
    },
    "answer": "str",
}


def test_a_request_is_an_operation_with_a_reply() -> None:
    """RS.io has requests by name, and its channels have the names alone as addresses."""
    page = asyncapi_document([REQUEST], host="h:7000", path="", protocol="rsio")
    assert page["servers"] == {"here": {"host": "h:7000", "protocol": "rsio"}}
    channel = page["channels"]["order__symbol_"]
    assert channel["address"] == "order/{symbol}"
    assert channel["messages"]["answer"] == {
        "contentType": "text/plain",
        "payload": {"type": "string"},
    }
    assert channel["messages"]["request"] == {
        "contentType": "application/json",
        "payload": {"$ref": "#/components/schemas/order__symbol_.payload.Quote"},
    }
    operation = page["operations"]["order__symbol_"]
    assert operation["action"] == "receive"
    assert operation["reply"]["messages"] == [{"$ref": "#/channels/order__symbol_/messages/answer"}]
    assert operation["x-query"] == {
        "type": "object",
        "properties": {"most": {"type": "integer"}},
        "required": ["most"],
    }


def test_http_has_no_requests() -> None:
    """They are left out of its document."""
    page = asyncapi_document([REQUEST], host="h", path="/live", protocol="https")
    assert (page["channels"], page["operations"]) == ({}, {})
    assert page["servers"]["here"] == {"host": "h", "protocol": "https", "pathname": "/live"}
