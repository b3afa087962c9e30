"""`map`, `tap` and `scan`: what they make of each element, with plain and with async functions."""

from typing import Any

import pytest

from penstock import operators as ops
from penstock.api import UsageError
from penstock.core import subscribe
from penstock.operators import Operator


async def _through(operator: Operator[Any, Any], elements: Any) -> list[Any]:
    async with subscribe(ops.pipe(elements, operator)) as stream:
        return [element async for element in stream]


async def test_map_passes_on_what_the_function_returns() -> None:
    """One result for each element, in order."""
    assert await _through(ops.map(str), [1, 2, 3]) == ["1", "2", "3"]


async def test_map_awaits_an_async_function() -> None:
    """An `async def` is accepted where a function is, and order stays."""

    async def double(n: int) -> int:
        return 2 * n

    assert await _through(ops.map(double), range(50)) == [2 * n for n in range(50)]


async def test_map_refuses_none() -> None:
    """None is never an element; the message says what to use instead."""
    with pytest.raises(UsageError, match=r"map\(.*\) returned None, which is never an element.*Use filter\(\)"):
        await _through(ops.map(lambda n: None), [1])


async def test_map_refuses_a_coroutine_that_nobody_awaits() -> None:
    """A lambda around an async function is found at the first element, and the coroutine is closed."""

    async def double(n: int) -> int:
        return 2 * n

    with pytest.raises(UsageError, match=r"so the function is async\. Give the `async def` function itself"):
        await _through(ops.map(lambda n: double(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


async def test_tap_passes_on_the_element_whatever_the_function_returns() -> None:
    """The function is called for its effect alone; it may return None."""
    seen: list[int] = []
    assert await _through(ops.tap(seen.append), [1, 2]) == [1, 2]
    assert seen == [1, 2]


async def test_tap_with_an_async_function_keeps_the_order() -> None:
    """The element goes on when the function is done with it."""
    seen: list[int] = []

    async def see(n: int) -> None:
        seen.append(n)

    assert await _through(ops.tap(see), [1, 2]) == [1, 2]
    assert seen == [1, 2]


async def test_tap_refuses_a_coroutine_that_nobody_awaits() -> None:
    """A plain function that returns a coroutine would never have its effect."""

    async def see(n: int) -> None: ...

    with pytest.raises(UsageError, match="so the function is async"):
        await _through(ops.tap(lambda n: see(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


async def test_scan_passes_on_the_running_result_without_the_initial_one() -> None:
    """As many results as elements."""
    assert await _through(ops.scan(lambda total, n: total + n, 10), [1, 2, 3]) == [11, 13, 16]


async def test_scan_awaits_an_async_function() -> None:
    """Each call gets the result of the one before."""

    async def add(total: int, n: int) -> int:
        return total + n

    assert await _through(ops.scan(add, 0), [1, 2, 3]) == [1, 3, 6]


async def test_scan_refuses_none_as_a_result_and_as_the_beginning() -> None:
    """None is never an element, so it cannot be a running result."""
    with pytest.raises(UsageError, match=r"scan\(.*\) returned None"):
        await _through(ops.scan(lambda total, n: None, 0), [1])
    with pytest.raises(UsageError, match=r"scan\(…, None\): give the value to begin with"):
        ops.scan(lambda total, n: n, None)


@pytest.mark.parametrize("operator", [ops.map, ops.tap, lambda given: ops.scan(given, 0)])
def test_what_is_no_function_is_refused(operator: Any) -> None:
    """The message names the operator and what it was given."""
    with pytest.raises(UsageError, match=r"(map|tap|scan)\(\) was given 5; it takes a function, plain or async"):
        operator(5)


async def test_a_function_that_cancels_its_own_stream_is_the_last_that_happens() -> None:
    """After cancel() there is silence, also from the very element that caused it."""
    streams: list[Any] = []
    later: list[int] = []

    def stop(n: int) -> int:
        streams[0].cancel()
        return n

    for operator in (ops.map(stop), ops.tap(stop), ops.filter(stop)):
        async with subscribe(ops.pipe([1, 2], operator, ops.tap(later.append)), demand=0) as stream:
            streams[:] = [stream]
            stream.request(2)
            assert [element async for element in stream] == []
    assert later == []
