"""The prescribed elements: each difference is found, and its text says
which bytes have come in the place of which.
"""

import pytest
from penstock_tck.wire import LARGE_BYTES, large_element
from penstock_tck.wire._large_elements import describe_difference, verify_large
from penstock_tck.wire._verdict import Failed

PART = 50_000
FIRST, SECOND = large_element(0), large_element(1)


def test_an_element_is_numbers_that_occur_once() -> None:
    """The bytes, as the page describes them."""
    assert FIRST[:12] == bytes((0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2))
    assert SECOND[:8] == bytes((1, 0, 0, 0, 1, 0, 0, 1))
    assert len(FIRST) == len(SECOND) == LARGE_BYTES
    words = {element[at : at + 4] for element in (FIRST, SECOND) for at in range(0, LARGE_BYTES, 4)}
    assert len(words) == 2 * LARGE_BYTES // 4


def test_the_right_elements_are_accepted() -> None:
    """The order of the elements counts too."""
    verify_large([FIRST, SECOND])
    with pytest.raises(
        Failed,
        match=(
            "element 0 of the large ones has at byte 0 the bytes that belong to byte 0 of element 1"
        ),
    ):
        verify_large([SECOND, FIRST])


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (
            FIRST[:PART] + FIRST[2 * PART :],
            (
                "has at byte 50000 the bytes that belong to byte 100000 of element 0; 150000 of "
                "200000 bytes came"
            ),
        ),
        (
            FIRST[:PART] * 2 + FIRST[PART:],
            (
                "has at byte 50000 the bytes that belong to byte 0 of element 0; 250000 of 200000 "
                "bytes came"
            ),
        ),
        (
            FIRST[:PART] + SECOND[PART:],
            (
                "has at byte 50000 the bytes that belong to byte 50000 of element 1; 200000 of "
                "200000 bytes came"
            ),
        ),
        (FIRST[:-PART], "ends after 150000 of 200000 bytes"),
        (FIRST + b"x", "goes on behind its 200000 bytes: 200001 came"),
    ],
)
def test_a_difference_is_described(element: bytes, text: str) -> None:
    """A part that is lost, repeated, of another element, or missing at the end;
    and bytes behind the end.
    """
    assert describe_difference(element, FIRST) == text
