"""`pipe` composes blueprints, runs nothing, and refuses what it cannot compose."""

import pytest

from penstock import operators as ops
from penstock.api import UsageError
from penstock.core import Source, single, subscribe


async def test_operators_apply_in_the_order_in_which_they_are_written() -> None:
    """The first operator is the nearest to the source."""
    piped = ops.pipe([1, 2, 3, 4], ops.map(lambda n: n * 10), ops.filter(lambda n: n > 10), ops.take(2))
    async with subscribe(piped) as stream:
        assert [element async for element in stream] == [20, 30]


async def test_a_pipe_is_a_blueprint_that_starts_anew_for_each_subscriber() -> None:
    """State belongs to the stream, not to the pipe."""
    piped = ops.pipe([1, 2, 3], ops.scan(lambda total, n: total + n, 0))
    for _ in range(2):
        async with subscribe(piped) as stream:
            assert [element async for element in stream] == [1, 3, 6]


async def test_a_pipe_can_be_piped_further() -> None:
    """The result of `pipe` is a source like any other."""
    async with subscribe(ops.pipe(ops.pipe([1, 2, 3], ops.skip(1)), ops.skip(1))) as stream:
        assert [element async for element in stream] == [3]


def test_composing_runs_nothing() -> None:
    """No subscriber, no work: not even where no run loop exists."""
    seen: list[int] = []
    piped = ops.pipe([1], ops.tap(seen.append))
    assert isinstance(piped, Source)
    assert seen == []


def test_a_pipe_of_nothing_is_the_source_itself() -> None:
    """Without operators, `pipe` is `as_source`."""
    source = single(1)
    assert ops.pipe(source) is source


def test_a_pipe_tells_what_it_is_made_of() -> None:
    """Its repr names the source and each operator, in order."""
    assert repr(ops.pipe(single(1), ops.take(2), ops.map(str))) == "<source single> | <operator take(2)> | <operator map(str)>"


def test_a_function_in_the_place_of_an_operator_is_refused() -> None:
    """The likeliest mistake is answered with the words that repair it."""
    with pytest.raises(UsageError, match=r"pipe\(\) was given <class 'str'>, which is not an operator.*write map\(<class 'str'>\)"):
        ops.pipe([1], str)  # type: ignore[call-overload]  # the mistake that is tested


def test_what_is_no_source_is_refused() -> None:
    """The first argument is a source, or can be made one."""
    with pytest.raises(UsageError, match="'int' cannot be subscribed to"):
        ops.pipe(5, ops.take(1))  # type: ignore[call-overload]  # the mistake that is tested
