"""Type-checked by pyright only, never run: types that follow from the place of an operator in a pipe.

mypy does not infer from neighbouring arguments, so it knows less about an operator without a function, for example `take(3)`.
With mypy, first give such an operator a name and a type: ``three: Operator[int, int] = ops.take(3)``. See annotated.py.
"""

from collections.abc import AsyncIterator
from typing import assert_type

import penstock
from penstock import Source, ops


async def numbers() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


async def async_str(number: int) -> str:
    """An async function in the place of a plain one."""
    return str(number)


def piping() -> None:
    """Element types follow the pipe, through operators without a function, lambdas and async functions."""
    assert_type(penstock.pipe(numbers, ops.take(3)), Source[int])
    assert_type(penstock.pipe(numbers, ops.take(3), ops.map(str), ops.skip(1)), Source[str])
    assert_type(penstock.pipe(numbers, ops.map(async_str)), Source[str])
    assert_type(penstock.pipe(numbers, ops.filter(lambda n: n > 1), ops.map(lambda n: n / 2)), Source[float])
    assert_type(penstock.pipe(numbers, ops.distinct_until_changed()), Source[int])
    assert_type(penstock.pipe(numbers, ops.pairwise()), Source[tuple[int, int]])
    assert_type(penstock.pipe(numbers, ops.reduce(lambda total, n: total + n, 0.5)), Source[float])
    assert_type(penstock.pipe(numbers, ops.delay(1), ops.sample(1), ops.repeat(2)), Source[int])
    assert_type(penstock.pipe(numbers, ops.start_with("ready")), Source[int | str])


async def async_stream_function(number: int) -> list[str]:
    """An async function that returns a stream."""
    return [str(number)]


def joining() -> None:
    """A join has the union, or the tuple, of the element types of its sources."""
    assert_type(penstock.pipe(numbers, ops.merge(["a"])), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.concat(["a"], ["b"])), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.zip(["a"], [1.5])), Source[tuple[int, str, float]])
    assert_type(penstock.pipe(numbers, ops.combine_latest(["a"])), Source[tuple[int, str]])
    assert_type(penstock.pipe(numbers, ops.with_latest_from(["a"], [1.5])), Source[tuple[int, str, float]])
    assert_type(penstock.pipe(numbers, ops.take_until(penstock.timer(1))), Source[int])
    assert_type(penstock.pipe(numbers, ops.switch_map(lambda n: [str(n)])), Source[str])
    assert_type(penstock.pipe(numbers, ops.switch_map(async_stream_function)), Source[str])
    assert_type(penstock.pipe(numbers, ops.flat_map(async_stream_function, concurrency=2)), Source[str])
    assert_type(penstock.pipe(numbers, ops.flat_map(penstock.single)), Source[int])
    assert_type(penstock.pipe(numbers, ops.flat_map(lambda n: [str(n)])), Source[str])
