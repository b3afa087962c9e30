"""Type-checked by pyright alone, never run: what follows only from where an operator stands in a pipe.

mypy does not look at the neighbours of an argument, so of an operator without a function, `take(3)` say, it learns less.
With mypy, give such an operator a name and a type first: ``three: Operator[int, int] = ops.take(3)``; annotated.py shows it.
"""

from collections.abc import AsyncIterator
from typing import assert_type

import penstock
from penstock import Source, ops


async def numbers() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


async def name_of(number: int) -> str:
    """An async function where a function is accepted."""
    return str(number)


def piping() -> None:
    """Element types follow the pipe, through operators without a function, lambdas and async functions."""
    assert_type(penstock.pipe(numbers, ops.take(3)), Source[int])
    assert_type(penstock.pipe(numbers, ops.take(3), ops.map(str), ops.skip(1)), Source[str])
    assert_type(penstock.pipe(numbers, ops.map(name_of)), Source[str])
    assert_type(penstock.pipe(numbers, ops.filter(lambda n: n > 1), ops.map(lambda n: n / 2)), Source[float])
    assert_type(penstock.pipe(numbers, ops.distinct_until_changed()), Source[int])


async def words_of(number: int) -> list[str]:
    """An async function that names a stream."""
    return [str(number)]


def joining() -> None:
    """Where streams are joined, their element types are."""
    assert_type(penstock.pipe(numbers, ops.merge(["a"])), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.concat(["a"], ["b"])), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.zip(["a"], [1.5])), Source[tuple[int, str, float]])
    assert_type(penstock.pipe(numbers, ops.combine_latest(["a"])), Source[tuple[int, str]])
    assert_type(penstock.pipe(numbers, ops.flat_map(words_of, concurrency=2)), Source[str])
    assert_type(penstock.pipe(numbers, ops.flat_map(penstock.single)), Source[int])
    assert_type(penstock.pipe(numbers, ops.flat_map(lambda n: [str(n)])), Source[str])
