"""Runs in memory are sequences of bytes, like lists."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import EqualRun, ShortRun


def equal(elements: list[bytes], head: bytes) -> EqualRun:
    return EqualRun(
        b"".join(head + element for element in elements), len(head), len(head) + len(elements[0])
    )


def short(elements: list[bytes]) -> ShortRun:
    pieces = [bytes([len(element)]) + element for element in elements]
    return ShortRun(b"".join(pieces), bytes(map(len, pieces)))


def check(run: Sequence[bytes], elements: list[bytes]) -> None:
    assert list(run) == elements
    assert len(run) == len(elements)
    assert [run[index] for index in range(-len(elements), len(elements))] == elements * 2
    assert list(reversed(run)) == elements[::-1]
    assert run[1:] == elements[1:]
    assert run[::-2] == elements[::-2]
    for index in (len(elements), -len(elements) - 1):
        with pytest.raises(IndexError):
            run[index]
    assert f"{len(elements):,} elements" in repr(run)


@given(
    st.integers(0, 9).flatmap(
        lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1)
    ),
    st.binary(min_size=1),
)
def test_a_run_of_one_length_has_its_elements_without_the_headers(
    elements: list[bytes], head: bytes
) -> None:
    """Whatever the bytes are."""
    run = equal(elements, head)
    check(run, elements)
    assert run.size == sum(map(len, elements))


@given(st.lists(st.binary(max_size=127), min_size=1))
def test_a_run_of_short_elements_has_them_without_their_lengths(elements: list[bytes]) -> None:
    """Also empty ones, and the longest."""
    run = short(elements)
    check(run, elements)
    assert run.size == sum(map(len, elements))
