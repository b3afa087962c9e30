"""`pipe` composes sources and operators, runs nothing, and refuses other arguments."""

import pytest

from penstock.api import UsageError
from penstock.streams import Source, ops, single, subscribe


async def test_operators_apply_in_written_order() -> None:
    """The first operator is next to the source."""
    piped = ops.pipe(
        [1, 2, 3, 4], ops.map(lambda n: n * 10), ops.filter(lambda n: n > 10), ops.take(2)
    )
    async with subscribe(piped) as stream:
        assert [element async for element in stream] == [20, 30]


async def test_each_subscriber_of_a_pipe_gets_a_new_stream() -> None:
    """State belongs to the stream and not to the pipe."""
    piped = ops.pipe([1, 2, 3], ops.scan(lambda total, n: total + n, 0))
    for _ in range(2):
        async with subscribe(piped) as stream:
            assert [element async for element in stream] == [1, 3, 6]


async def test_a_pipe_can_be_piped_further() -> None:
    """The result of `pipe` is a source like any other."""
    async with subscribe(ops.pipe(ops.pipe([1, 2, 3], ops.skip(1)), ops.skip(1))) as stream:
        assert [element async for element in stream] == [3]


def test_pipe_runs_nothing() -> None:
    """Without a subscriber no function is called; `pipe` works outside a trio run."""
    seen: list[int] = []
    piped = ops.pipe([1], ops.tap(seen.append))
    assert isinstance(piped, Source)
    assert seen == []


def test_a_pipe_without_operators_is_its_source() -> None:
    """Without operators `pipe` is `as_source`."""
    source = single(1)
    assert ops.pipe(source) is source


def test_the_repr_of_a_pipe_names_its_parts() -> None:
    """The repr names the source and each operator, in order."""
    assert (
        repr(ops.pipe(single(1), ops.take(2), ops.map(str)))
        == "<source single> | <operator take(2)> | <operator map(str)>"
    )


def test_a_function_instead_of_an_operator_is_refused() -> None:
    """The most likely mistake gets an error that says how to write it."""
    with pytest.raises(
        UsageError,
        match=r"pipe\(\) was given str, which is not an operator: it returned .*write map\(str\)",
    ):
        ops.pipe([1], str)  # type: ignore[call-overload]  # the mistake that is tested


def test_an_argument_that_is_not_a_source_is_refused() -> None:
    """The first argument is a source, or an object that `as_source` accepts."""
    with pytest.raises(UsageError, match="'int' cannot be subscribed to"):
        ops.pipe(5, ops.take(1))  # type: ignore[call-overload]  # the mistake that is tested
