"""Type-checked by pyright only, never run: pipes in which mypy knows less, because it does not
infer a function from its neighbours.

mypy accepts these pipes. A lambda inside `pipe` becomes `Any`, and a function of `object`, such as
`print`, makes a source of `object`.
A chain of methods has no such gap: see pipelines.py.
"""

from collections.abc import AsyncIterator
from typing import assert_type

import penstock
from penstock import Source, ops


async def numbers() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


def lambdas() -> None:
    """Element types follow the pipe into lambdas and out of them."""
    assert_type(
        penstock.pipe(numbers, ops.filter(lambda n: n > 1), ops.map(lambda n: n / 2)), Source[float]
    )
    assert_type(
        penstock.pipe(
            numbers, ops.take(3), ops.map(lambda n: [n]), ops.map(lambda found: found[0])
        ),
        Source[int],
    )
    assert_type(penstock.pipe(numbers, ops.flat_map(lambda n: [str(n)])), Source[str])
    assert_type(
        penstock.pipe(numbers, ops.scan(lambda total, n: total + n / 2, 0.0), ops.skip(1)),
        Source[float],
    )
    assert_type(
        penstock.pipe(
            numbers, ops.distinct_until_changed(lambda n: n % 10), ops.map(lambda n: n + 1)
        ),
        Source[int],
    )


def functions_of_object() -> None:
    """A function that takes every object does not change the element type."""
    assert_type(penstock.pipe(numbers, ops.tap(print), ops.drop(on_drop=print)), Source[int])
    assert_type(penstock.pipe(numbers, ops.filter(bool), ops.map(str)), Source[str])


def splitting() -> None:
    """A group has the type of its key, and of the elements."""
    assert_type(penstock.pipe(numbers, ops.window(2)), Source[Source[int]])
    assert_type(penstock.pipe(numbers, ops.group_by(lambda n: n > 1)), Source[ops.Group[bool, int]])


async def initial(word: str) -> str:
    """An async function is also a key function."""
    return word[0]


def grouping_by_method(words: Source[str]) -> None:
    """The lambda after it gets a group with the type of its key, and of the elements."""
    assert_type(words.group_by(len), Source[ops.Group[int, str]])
    assert_type(words.group_by(initial), Source[ops.Group[str, str]])
    assert_type(
        words.group_by(lambda word: word[0]).map(lambda group: group.key.upper()), Source[str]
    )
    assert_type(
        words.group_by(lambda word: word[0]).flat_map(lambda group: group.pairwise()),
        Source[tuple[str, str]],
    )
