"""The serializer ``protobuf``."""

import contextlib
import datetime as dt
from typing import Any

import pytest
from google.protobuf import any_pb2, empty_pb2, struct_pb2, timestamp_pb2, type_pb2, wrappers_pb2
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from penstock_protobuf import ProtobufSerializer

from penstock.api import ProtocolError, UsageError

SERIALIZER = ProtobufSerializer()
FIELD = type_pb2.Field(name="price", number=1)  # a message of a class that every installation has

values = st.one_of(
    st.text(),
    st.binary(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(dt.timedelta(days=-3_000_000), dt.timedelta(days=3_000_000)),
)


@given(element=values)
def test_a_value_is_restored(element: object) -> None:
    """As the well-known type for it, with the name of the type and without."""
    for serializer in (SERIALIZER, SERIALIZER.for_type(type(element))):
        restored = serializer.loads(serializer.dumps(element))
        assert (restored, type(restored)) == (element, type(element))


@pytest.mark.parametrize(
    "element",
    [FIELD, empty_pb2.Empty(), struct_pb2.Struct(), type_pb2.Type(name="x", fields=[FIELD])],
    ids=repr,
)
def test_a_message_is_restored_by_the_name_of_its_type(element: Message) -> None:
    """The bytes are those of an Any, which any implementation reads."""
    data = SERIALIZER.dumps(element)
    packed = any_pb2.Any()
    packed.Pack(element)
    assert any_pb2.Any.FromString(data) == packed
    assert SERIALIZER.loads(data) == element


def test_messages_of_a_class_are_sent_without_its_name() -> None:
    """Their bytes are those of the class itself."""
    typed = SERIALIZER.for_type(type_pb2.Field)
    assert typed.dumps(FIELD) == FIELD.SerializeToString()
    assert typed.loads(typed.dumps(FIELD)) == FIELD
    assert SERIALIZER.for_type(type_pb2.Field) is typed
    assert SERIALIZER.for_type(Message) is SERIALIZER


def test_another_time_zone_is_the_same_instant() -> None:
    """A timestamp has no time zone, and is read as UTC."""
    summer = dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert SERIALIZER.loads(SERIALIZER.dumps(summer)) == summer


@pytest.mark.parametrize(
    ("element", "why"),
    [
        (None, "a NoneType"),
        ({"a": 1}, "a dict"),
        (2**63, "cannot write"),
        ("\ud800", "cannot write"),
        (dt.datetime(2026, 1, 1), "without a time zone"),  # noqa: DTZ001  # that it has none is the point
        (any_pb2.Any(), "the message in it"),
    ],
)
def test_an_unsupported_element_is_a_usage_error(element: object, why: str) -> None:
    """The message says why."""
    with pytest.raises(UsageError, match=why):
        SERIALIZER.dumps(element)


def packed(message: Message, cut: int = 0) -> bytes:
    data = message.SerializeToString()
    return any_pb2.Any(
        type_url=f"type.googleapis.com/{message.DESCRIPTOR.full_name}",
        value=data[: len(data) - cut],
    ).SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\x0a\x05abc",
        any_pb2.Any(type_url="type.googleapis.com/no.Such").SerializeToString(),
        any_pb2.Any(type_url="type.googleapis.com/").SerializeToString(),
        any_pb2.Any(type_url="..//\x00").SerializeToString(),
        packed(any_pb2.Any()),
        packed(FIELD, cut=1),
        packed(wrappers_pb2.StringValue(value="text"), cut=1),
        packed(timestamp_pb2.Timestamp(nanos=1)),
        packed(timestamp_pb2.Timestamp(seconds=1 << 60)),
        b"\x0a\x2ctype.googleapis.com/google.protobuf.StringValue\x12\x04\x0a\x02\xff\xfe",
    ],
)
def test_bytes_that_are_no_element_are_a_protocol_error(data: bytes) -> None:
    """An unknown name, a message that is cut, a text that is not UTF-8, and a time that Python does
    not have.
    """
    with pytest.raises(ProtocolError):
        SERIALIZER.loads(data)


def test_a_message_that_is_nested_too_deeply_is_refused() -> None:
    """The package bounds the depth."""
    data = b""
    for _ in range(1000):  # a Value with a ListValue with a Value
        data = b"\x0a" + _length(data) + data
        data = b"\x32" + _length(data) + data
    with pytest.raises(ProtocolError):
        SERIALIZER.for_type(struct_pb2.Value).loads(data)


def _length(data: bytes) -> bytes:
    return wrappers_pb2.UInt64Value(value=len(data)).SerializeToString()[1:] or b"\x00"


@given(junk=st.binary(max_size=100))
def test_random_bytes_are_an_element_or_a_protocol_error(junk: bytes) -> None:
    """Never another exception, and never None."""
    for serializer in (
        SERIALIZER,
        SERIALIZER.for_type(dt.datetime),
        SERIALIZER.for_type(type_pb2.Type),
    ):
        with contextlib.suppress(ProtocolError):
            assert serializer.loads(junk) is not None


def test_the_type_of_an_element_is_checked() -> None:
    """When it is sent; a bool is not an int."""
    with pytest.raises(
        UsageError, match="of type Empty, and elements of this stream are of type Field"
    ):
        SERIALIZER.for_type(type_pb2.Field).dumps(empty_pb2.Empty())
    with pytest.raises(
        UsageError, match="of type bool, and elements of this stream are of type int"
    ):
        SERIALIZER.for_type(int).dumps(True)


@pytest.mark.parametrize("kind", [dict, list[int], "text", object])
def test_an_unsupported_type_is_a_usage_error(kind: Any) -> None:
    """When the stream is opened."""
    with pytest.raises(UsageError, match="does not take type="):
        SERIALIZER.for_type(kind)


def test_a_serializer_of_a_type_cannot_be_bound_again() -> None:
    """The type is part of it."""
    with pytest.raises(UsageError, match="already"):
        SERIALIZER.for_type(int).for_type(str)
