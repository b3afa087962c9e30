"""The tables of messages between the parent and a worker."""

import typing
from typing import Any

import msgspec
import pytest

from penstock.workers import _messages

SAMPLES: dict[Any, Any] = {
    int: 7,
    float: 2.5,
    str: "text",
    bytes: b"\0\xff",
    bool: True,
    str | None: None,
    int | None: 7,
    dict[str, int]: {"places:address": 3},
}


def sample(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """A message of that kind."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: hints[field.name] for field in msgspec.structs.fields(kind)}
    return kind(**{name: SAMPLES.get(hint, []) for name, hint in fields.items()})


@pytest.mark.parametrize("table", ["to_worker", "to_parent"])
def test_each_message_of_a_table_arrives_as_it_was_sent(table: str) -> None:
    """And is told from all others."""
    union = {"to_worker": _messages.ToWorker, "to_parent": _messages.ToParent}[table]
    decoder = getattr(_messages, table)
    messages = [sample(kind) for kind in typing.get_args(union)]
    assert [decoder.decode(msgspec.msgpack.encode(each)) for each in messages] == messages


def test_a_message_of_another_version_is_not_read() -> None:
    """The parent says so, and does not guess."""
    with pytest.raises(msgspec.ValidationError):
        _messages.to_parent.decode(msgspec.msgpack.encode({"type": "Newer", "number": 1}))
