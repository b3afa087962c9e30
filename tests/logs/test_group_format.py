"""Groups as bytes: a group that was written is read unchanged, and each changed bit is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.logs._group_format import checksum_of, decode_row, encode_row, is_whole

GROUPS = [[b""], [b"", b""], [b"abc"], [b"ab", b"cd"], [b"", b"x", b"yyy", b""], [b"x" * 300] * 70]


@pytest.mark.parametrize("elements", GROUPS, ids=lambda elements: f"{len(elements)} elements")
def test_a_group_is_read_as_it_was_written(elements: list[bytes]) -> None:
    """Equal lengths, mixed lengths and empty elements."""
    row = encode_row(5, elements, 1.5)
    assert (row.key, row.length, row.size, row.written) == (
        5,
        len(elements),
        sum(map(len, elements)),
        1.5,
    )
    assert is_whole(row)
    assert decode_row(row, 0, len(elements), row.size or 1) == elements


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=20))
def test_any_elements_are_read_as_they_were_written(elements: list[bytes]) -> None:
    """Whatever their lengths are."""
    row = encode_row(0, elements, 0.0)
    assert decode_row(row, 0, len(elements), row.size or 1) == elements


@given(
    st.lists(st.binary(max_size=9), min_size=1, max_size=20)
    | st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=20),
    st.data(),
)
def test_a_part_of_a_group_is_bounded_by_elements_and_bytes(
    elements: list[bytes], data: st.DataObject
) -> None:
    """It is the longest part within both bounds, and at least one element."""
    begin = data.draw(st.integers(0, len(elements) - 1))
    stop = data.draw(st.integers(begin + 1, len(elements) + 2))
    size = data.draw(st.integers(1, 60))
    part = decode_row(encode_row(0, elements, 0.0), begin, stop, size)
    end = begin + len(part)
    assert part == elements[begin:end]
    assert len(part) == 1 or (end <= stop and sum(map(len, part)) <= size)
    assert end >= min(stop, len(elements)) or sum(map(len, elements[begin : end + 1])) > size


def test_a_group_has_the_documented_bytes() -> None:
    """Four bytes for each length, least significant first, then the elements."""
    assert (
        encode_row(0, [b"ab", b"", b"c"], 0.0).elements
        == bytes.fromhex("02000000 00000000 01000000") + b"abc"
    )


def test_each_changed_bit_is_found() -> None:
    """In the elements and in their lengths."""
    row = encode_row(7, [b"ab", b"", b"c"], 2.0)
    for bit in range(8 * len(row.elements)):
        changed = bytearray(row.elements)
        changed[bit // 8] ^= 1 << bit % 8
        assert not is_whole(row._replace(elements=bytes(changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {"key": 8},
        {"key": -1},
        {"length": 4},
        {"length": -1},
        {"length": 0},
        {"length": "three"},
        {"size": 4},
        {"written": 2.5},
        {"written": None},
        {"checksum": 1},
        {"elements": "text"},
        {"elements": b"short"},
    ],
    ids=str,
)
def test_a_changed_column_is_found(changed: dict[str, object]) -> None:
    """Its value may have another type, or be beyond its range."""
    row = encode_row(7, [b"ab", b"", b"c"], 2.0)
    assert not is_whole(row._replace(**changed))


def test_a_checksum_of_values_depends_on_each_of_them() -> None:
    """Also a text that is not valid Unicode has one."""
    assert (
        len(
            {
                checksum_of(1, "a"),
                checksum_of(1, "b"),
                checksum_of(2, "a"),
                checksum_of("1a"),
                checksum_of("\udc80"),
            }
        )
        == 5
    )
