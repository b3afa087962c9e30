"""The body of a batch: elements with their lengths, read as they arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_http._batches import LengthPrefixedReader

from penstock.api import ConnectionLost, LimitExceeded


def body(*elements: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in elements)


@given(
    st.lists(st.binary(max_size=5), max_size=4),
    st.lists(st.integers(0, 50), max_size=4),
    st.sampled_from([None, 6, 2**32 - 1]),
)
def test_every_element_before_one_that_is_too_long_is_returned(
    elements: list[bytes], cuts: list[int], too_long: int | None
) -> None:
    """Wherever the body is cut. The refusal comes with the next part, or at the end."""
    whole = body(*elements) + (b"" if too_long is None else too_long.to_bytes(4, "big"))
    at = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader, seen = LengthPrefixedReader(5), list[bytes]()

    def read() -> None:
        for start, stop in pairwise(at):
            seen.extend(reader.receive(whole[start:stop]))
        reader.end()

    if too_long is None:
        read()
    else:
        with pytest.raises(LimitExceeded, match="5 are allowed"):
            read()
    assert seen == elements


def test_a_body_that_ends_inside_an_element_is_cut() -> None:
    """It is not taken for a whole one."""
    reader = LengthPrefixedReader(5)
    assert reader.receive(body(b"abc")[:-1]) == []
    with pytest.raises(ConnectionLost, match="inside an element"):
        reader.end()
