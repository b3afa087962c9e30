"""Typed clients in TypeScript. `tests/browser/test_typed_client.py` compiles one and runs it."""

from typing import Any

import pytest

from penstock.cli._contract import contract_of
from penstock.cli._contract_typescript import typescript_client
from tests.cli import _typed_service
from tests.cli.test_contract_python import entries_of


def test_types_and_calls_are_written() -> None:
    """A record is an interface, an Enum a union of literals, and an offer a method."""
    text, notes = typescript_client(contract_of(entries_of(_typed_service.service())))
    assert sorted(notes) == [
        "above is left out: the JavaScript client sends no payload to a publisher",
        "sums is left out: the JavaScript client has no channels",
    ]
    for part in (
        'export type Side = "buy" | "sell";',
        "export interface Page_Tree {\n  items: Tree[];\n  next?: string | null;\n}",
        '  "max-price": number;',
        "  changes(options",
        "segment(symbol)",
        'if (text === "") throw new RangeError(',
        "if (Array.isArray(value) && value.length === 0) {\n      throw new RangeError(",
        '  tree(number: number, payload: Tree, options: Omit<StreamOptions<Page_Tree>, "type"> = {})',
        "): ElementStream<Opened | Closed> {",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"payload": "bytes", "needs_payload": True}, "sends no payload to a publisher"),
        (
            {"kind": "request", "payload": "int", "serializer": "msgpack"},
            "cannot write a payload as 'msgpack'",
        ),
    ],
)
def test_what_the_javascript_client_cannot_do_is_left_out(more: dict[str, Any], why: str) -> None:
    """A note says so, and the file has the other offers."""
    entry = {"name": "left", "kind": "publisher", "parameters": [], "summary": "", **more}
    other = {"name": "other", "kind": "publisher", "parameters": [], "summary": ""}
    text, [note] = typescript_client(contract_of([entry, other]))
    assert "  other(options" in text
    assert why in note
    assert "left" not in text
