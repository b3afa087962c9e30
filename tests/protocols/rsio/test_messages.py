"""The records of messages, and their fields."""

from typing import Any, get_args

import attrs
import pytest

from penstock.api import UsageError
from penstock.protocols import rsio
from penstock.protocols.rsio import FIELDS, FieldKind, fields_of
from tests.protocols.rsio._golden_bytes import GOLDEN

# --- records


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


# --- fields of records


TYPES_OF_FIELDS = {
    FieldKind.NUMBER: int,
    FieldKind.TEXT: bytes,
    FieldKind.BYTES: bytes,
    FieldKind.NUMBERS: tuple,
}


@pytest.mark.parametrize("message", [message for message, _ in GOLDEN.values()], ids=GOLDEN)
def test_each_message_has_the_fields_of_the_table(message: rsio.Message) -> None:
    """Its type is the first byte of the compact form, and its fields are of the kinds
    that `FIELDS` lists.
    """
    code, fields = fields_of(message)
    assert code == rsio.encode(message)[0]
    if isinstance(message, rsio.ExtensionMessage):
        assert fields == (message.body,)
    else:
        assert [type(field) for field in fields] == [TYPES_OF_FIELDS[kind] for kind in FIELDS[code]]


@pytest.mark.parametrize(
    "message",
    [
        rsio.Cancel(subscriber=-1),
        rsio.Request(subscriber=0, demand=1 << 63),
        rsio.ClientHello(extensions=(1, 1 << 64)),
        "no message",
    ],
)
def test_what_is_no_message_is_a_usage_error(message: Any) -> None:
    """A number out of the range, and an object of another class than the records."""
    with pytest.raises(UsageError):
        fields_of(message)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (rsio.OnError(subscriber=0, error="na\udcefve"), (0, b"na?ve")),
        (rsio.Goodbye(reason="na\udcefve"), (b"na?ve",)),
    ],
)
def test_half_a_surrogate_pair_in_a_text_is_replaced(
    message: rsio.Message, fields: tuple[object, ...]
) -> None:
    """UTF-8 cannot carry it, and the message must be sent."""
    assert fields_of(message)[1] == fields
