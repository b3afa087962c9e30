"""Runs are joined with their headers: each element comes after its own."""

import pytest

from penstock.wire import join_each, join_same, length_of_all


@pytest.mark.parametrize(
    ("elements", "length"),
    [
        ([b""], 0),
        ([b"abc"], 3),
        ([b"ab", b"cd", b"ef"], 2),
        ([b"", b"", b""], 0),
        ([b"ab", b"cd", b"e"], -1),
        ([b"a", b"cd", b"e"], -1),
        ([b"a", b"bc", b"d", b"e"], -1),
        ([b"a", b"b", b"c", b"de", b"f", b"g", b"h"], -1),
    ],
)
def test_one_length_is_found_only_if_all_elements_have_it(
    elements: list[bytes], length: int
) -> None:
    """A different one is found wherever it is."""
    assert length_of_all(elements) == length


def test_each_element_is_behind_its_header() -> None:
    """Empty elements too; the list of elements is not changed."""
    elements = [b"a", b"", b"cc"]
    assert join_same(b"H:", elements) == b"H:aH:H:cc"
    assert join_each([b"1", b"0", b"2"], [b":"] * 3, elements) == b"1:a0:2:cc"
    assert elements == [b"a", b"", b"cc"]
