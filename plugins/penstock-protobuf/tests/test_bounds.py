"""How many fields an element has, judged before it is read."""

import pytest
from google.protobuf import any_pb2, descriptor_pb2, struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from penstock_protobuf import ProtobufSerializer
from penstock_protobuf._bounds import ProtobufBounds

from penstock.api import ProtocolError, UsageError

LIST = struct_pb2.ListValue.DESCRIPTOR
VALUES = st.recursive(
    st.booleans() | st.floats(allow_nan=False) | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=40,
)


def count(message: object) -> int:
    """The fields of a message, those of messages inside it included."""
    fields = 0
    for field, value in message.ListFields():  # type: ignore[attr-defined]  # a Message
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            fields += sum(3 + count(each) for each in value.values())
        elif field.message_type is not None:
            parts = value if field.is_repeated else [value]
            fields += sum(1 + count(each) for each in parts)
        else:
            fields += len(value) if field.is_repeated else 1
    return fields


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_each_field_counts(values: list[object]) -> None:
    """Those of messages inside of messages, and of the entries of maps."""
    message = struct_pb2.ListValue()
    message.extend(values)
    data, fields = message.SerializeToString(), count(message)
    assert ProtobufBounds(fields, LIST).why_too_large(data) == ""
    if fields > 1:
        assert ProtobufBounds(fields - 1, LIST).why_too_large(data)


def test_fields_of_each_width_count() -> None:
    """Varints, fixed numbers, packed ones, groups, and fields that the class does not know."""
    unknown = b"\x08\xff\xff\x01" + b"\x11" + bytes(8) + b"\x1d" + bytes(4) + b"\x23\x24"
    packed = b"\x2a\x83\x00" + bytes(3) + b"\xaa\xaa\x06\x01z"
    bounds = ProtobufBounds(7, descriptor_pb2.SourceCodeInfo.Location.DESCRIPTOR)
    assert bounds.why_too_large(unknown + packed) == ""
    assert bounds.why_too_large(unknown + packed + b"\x08\x00") == bounds.too_many


@given(st.binary(max_size=300))
def test_any_bytes_are_judged(data: bytes) -> None:
    """Bytes that are not a message may get either verdict. They are refused when they are read."""
    ProtobufBounds(50, LIST).why_too_large(data)


def test_an_element_that_is_too_large_is_neither_sent_nor_read() -> None:
    """With a type, and in an Any. The message says how to allow more."""
    data = b"\x0a\x00" * 1_900_000
    plain, typed = ProtobufSerializer(), ProtobufSerializer().for_type(struct_pb2.ListValue)
    wrapped = any_pb2.Any(type_url="x/google.protobuf.ListValue", value=data).SerializeToString()
    large = struct_pb2.ListValue()
    large.ParseFromString(b"\x0a\x00" * 100_001)
    for serializer, hostile in ((typed, data), (plain, wrapped)):
        with pytest.raises(
            ProtocolError,
            match=r"more than 100,000 values; .* give serializer=ProtobufSerializer\(max_values=…",
        ):
            serializer.loads(hostile)
        with pytest.raises(UsageError, match="'protobuf' does not send this element: it has more"):
            serializer.dumps(large)
    more = ProtobufSerializer(max_values=200_000)
    assert more.loads(more.dumps(large)) == large
    with pytest.raises(UsageError, match=r"ProtobufSerializer\(max_values=0\)"):
        ProtobufSerializer(max_values=0)
