"""The records of messages: they hold data, never change, and are built by name."""

from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import get_args

import pytest

from penstock.protocols import rsio
from tests.protocols.rsio._vectors import VECTORS

KINDS = get_args(rsio.Message)


def test_each_kind_of_message_has_golden_bytes() -> None:
    """None was forgotten in the table that the codec is driven from."""
    assert {type(message) for message, _ in VECTORS.values()} == set(KINDS)


@pytest.mark.parametrize("message", [message for message, _ in VECTORS.values()], ids=VECTORS)
def test_a_message_never_changes(message: rsio.Message) -> None:
    """It may be kept, compared and hashed."""
    assert is_dataclass(message)
    first = fields(message)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(message, first, None)
    assert hash(message) == hash(type(message)(**{field.name: getattr(message, field.name) for field in fields(message)}))
    assert not hasattr(message, "__dict__")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_is_built_by_name(kind: type) -> None:
    """A number at a place says nothing."""
    with pytest.raises(TypeError):
        kind(1)
