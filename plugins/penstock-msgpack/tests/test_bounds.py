"""How many values an element has, judged before it is read."""

from datetime import UTC

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_msgpack import MsgpackSerializer
from penstock_msgpack._bounds import RUN, MsgpackBounds

from penstock.api import ProtocolError, UsageError

EMPTY = b"\x90"
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=70)
    | st.binary(max_size=70)
    | st.builds(bytes, st.integers(0, 70_000))
    | st.datetimes(timezones=st.just(UTC))
    | st.builds(msgspec.msgpack.Ext, st.integers(0, 127), st.binary(max_size=40))
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=60,
)


def count(value: object) -> int:
    """The values of an element, those inside it included."""
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    if isinstance(value, dict):
        return 1 + sum(1 + count(each) for each in value.values())
    return 1


@given(VALUES, st.integers(0, 600))
def test_each_value_counts(value: object, more: int) -> None:
    """Whatever its kind and its length is; in runs and one by one."""
    element = [value, *[1] * more]
    data, values = msgspec.msgpack.encode(element), count(element)
    assert MsgpackBounds(values).why_too_large(data) == ""
    if values > 1:
        assert MsgpackBounds(values - 1).why_too_large(data) == MsgpackBounds(values - 1).too_many


@pytest.mark.parametrize("values", [RUN - 1, RUN, RUN + 1, 5 * RUN])
def test_a_run_ends_where_the_bound_does(values: int) -> None:
    """Not at the next multiple of its length."""
    data = msgspec.msgpack.encode([1] * (values - 1))
    assert MsgpackBounds(values).why_too_large(data) == ""
    assert MsgpackBounds(values - 1).why_too_large(data)


@given(st.binary(max_size=700))
def test_any_bytes_are_judged(data: bytes) -> None:
    """Those that are not MessagePack get any verdict, and are refused when they are read."""
    MsgpackBounds(100).why_too_large(data)


def test_an_element_that_is_too_large_is_neither_sent_nor_read() -> None:
    """3.9 MB of empty arrays took 2.5 s and 357 MiB. The message says how to allow more."""
    arrays = b"\xdd" + (3_900_000).to_bytes(4) + EMPTY * 3_900_000
    plain = MsgpackSerializer()
    for serializer in (plain, plain.for_type(list[list[int]])):
        with pytest.raises(
            ProtocolError,
            match=r"more than 100,000 values; .* give serializer=MsgpackSerializer\(max_values=…",
        ):
            serializer.loads(arrays)
        with pytest.raises(UsageError, match="'msgpack' does not send this element: it has more"):
            serializer.dumps([[]] * 100_000)
    more = MsgpackSerializer(max_values=200_000)
    assert more.loads(more.dumps([[]] * 100_000)) == [[]] * 100_000
    with pytest.raises(UsageError, match=r"MsgpackSerializer\(max_values=0\)"):
        MsgpackSerializer(max_values=0)
