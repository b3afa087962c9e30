"""The records of messages: they hold data, never change, and are built by name."""

from typing import get_args

import attrs
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
    names = [field.name for field in attrs.fields(type(message))]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(message, names[0], None)
    assert hash(message) == hash(type(message)(**{name: getattr(message, name) for name in names}))
    assert not hasattr(message, "__dict__")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_is_built_by_name(kind: type) -> None:
    """A number at a place says nothing."""
    with pytest.raises(TypeError):
        kind(1)
