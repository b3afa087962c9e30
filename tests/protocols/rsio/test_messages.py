"""The records of messages: they cannot be changed, and are built by name."""

from typing import get_args

import attrs
import pytest

from penstock.protocols import rsio
from tests.protocols.rsio._golden_bytes import GOLDEN

KINDS = get_args(rsio.Message)


def test_each_kind_of_message_has_golden_bytes() -> None:
    """The table that the tests of the codec use is complete."""
    assert {type(message) for message, _ in GOLDEN.values()} == set(KINDS)


@pytest.mark.parametrize("message", [message for message, _ in GOLDEN.values()], ids=GOLDEN)
def test_a_message_cannot_be_changed(message: rsio.Message) -> None:
    """It can be kept, compared and hashed, and has slots."""
    names = [field.name for field in attrs.fields(type(message))]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(message, names[0], None)
    assert hash(message) == hash(type(message)(**{name: getattr(message, name) for name in names}))
    assert not hasattr(message, "__dict__")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_is_built_by_name(kind: type) -> None:
    """A field without its name raises TypeError."""
    with pytest.raises(TypeError):
        kind(1)
