"""A packed row has one number for each column."""

from penstock.recording._columns import MOST, PACKED, ROW, ROW_BYTES


def test_a_row_holds_a_number_for_each_column() -> None:
    """Eight bytes each, also for the largest."""
    assert 8 * len(PACKED) == ROW_BYTES
    assert ROW.unpack(ROW.pack(*[MOST] * len(PACKED))) == (MOST,) * len(PACKED)
