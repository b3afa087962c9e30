"""The payload of a request by name, and the value of its answer."""

from typing import Any

import pytest

from penstock.api import PluginError, ProtocolError, UsageError
from penstock.spi import Serializer, build_registry, encode_payload, load_answer, serializer_for

REGISTRY = build_registry()


class _Raising(Serializer):
    name = "raising"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def dumps(self, element: object, /) -> bytes:
        raise self._error

    def loads(self, data: bytes, /) -> object:
        raise self._error


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        (None, None),
        (b"x", b"x"),
        (bytearray(b"y"), b"y"),
        ("é", "é".encode()),
        ({"a": 1}, b'{"a":1}'),
        (3, b"3"),
    ],
)
def test_the_type_of_a_payload_decides(payload: Any, data: bytes | None) -> None:
    """None means no payload; bytes are sent unchanged, a text as UTF-8, and the values of JSON as
    JSON.
    """
    assert encode_payload(REGISTRY, None, payload) == data


def test_a_payload_that_bytes_cannot_carry_is_refused() -> None:
    """The error shows the payload and the serializer."""
    with pytest.raises(UsageError, match="is sent as it is by serializer='bytes'"):
        encode_payload(REGISTRY, "bytes", 3)


def test_a_serializer_that_knows_no_types_is_taken_as_it_is() -> None:
    """It refuses no element for its type."""
    serializer = _Raising(ValueError("no"))
    assert serializer_for(REGISTRY, serializer, int) is serializer


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ProtocolError("odd", reason="protocol:x"), ProtocolError),
        (UsageError("odd"), UsageError),
        (ValueError("odd"), PluginError),
    ],
)
def test_an_answer_that_cannot_be_read_says_who_must_act(
    raised: Exception, kind: type[Exception]
) -> None:
    """The peer, the program, or the plugin."""
    with pytest.raises(kind, match="odd"):
        load_answer(_Raising(raised), "price", b"x")
