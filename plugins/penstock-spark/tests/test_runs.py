"""Elements become a column of bytes. The runs in which they have arrived make no difference."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_spark.source import _runs
from penstock_spark.source._runs import Runs, bytes_column, lines_of

from penstock.api import EqualRun, ShortRun, UsageError


def short(elements: list[bytes]) -> ShortRun:
    return ShortRun(
        b"".join(bytes([len(element)]) + element for element in elements),
        bytes(len(element) + 1 for element in elements),
    )


def equal(elements: list[bytes]) -> EqualRun:
    length = len(elements[0])
    return EqualRun(
        b"".join(b"hh" + element.ljust(length)[:length] for element in elements), 2, 2 + length
    )


LISTS = st.lists(st.binary(max_size=127), min_size=1)
RUNS = st.one_of(LISTS, LISTS.map(short), LISTS.map(equal))


@given(st.lists(RUNS))
def test_a_column_has_the_elements_in_order(runs: list[list[bytes]]) -> None:
    """Of runs of each kind, and of empty elements; no value is null."""
    elements = Runs(runs)
    column = bytes_column(elements)
    column.validate(full=True)
    assert column.type == pa.binary()
    assert column.to_pylist() == [*elements] == [element for run in runs for element in run]
    assert (len(elements), elements.size, column.null_count) == (
        len(column),
        sum(map(len, elements)),
        0,
    )


def test_elements_are_found_by_their_place() -> None:
    """The last one without a look at the others."""
    elements = Runs([equal([b"ab", b"cd"]), short([b"e", b""]), [b"fgh"], []])
    assert elements[-1] == b"fgh"
    assert [elements[index] for index in range(5)] == [*elements]
    assert elements[1:3] == [b"cd", b"e"]


def test_more_bytes_than_a_column_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets are numbers of 32 bits, and would begin anew."""
    monkeypatch.setattr(_runs, "MOST_BYTES", 10)
    assert len(bytes_column(Runs([[b"12345", b"67890"]]))) == 2
    with pytest.raises(UsageError, match="demandWindow"):
        bytes_column(Runs([[b"12345", b"678901"]]))


@given(st.lists(RUNS))
def test_elements_become_lines_whatever_their_runs_are(runs: list[Sequence[bytes]]) -> None:
    """As if each were cut out; their own line breaks stay, for the reader to count."""
    elements = Runs(runs)
    assert lines_of(elements) == lines_of([*elements]) == b"\n".join(elements)
