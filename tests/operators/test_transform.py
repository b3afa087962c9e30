"""`map`, `tap` and `scan` with plain and async functions."""

from typing import Any

import pytest

from penstock import operators as ops
from penstock.api import UsageError
from penstock.core import subscribe
from penstock.operators import Operator


async def _collect_through(operator: Operator[Any, Any], elements: Any) -> list[Any]:
    async with subscribe(ops.pipe(elements, operator)) as stream:
        return [element async for element in stream]


async def test_map_passes_on_the_results_of_the_function() -> None:
    """One result for each element, in order."""
    assert await _collect_through(ops.map(str), [1, 2, 3]) == ["1", "2", "3"]


async def test_map_awaits_an_async_function() -> None:
    """The order of the elements stays."""

    async def double(n: int) -> int:
        return 2 * n

    assert await _collect_through(ops.map(double), range(50)) == [2 * n for n in range(50)]


async def test_map_refuses_none() -> None:
    """None is never an element; the error says which operator to use."""
    with pytest.raises(UsageError, match=r"map\(.*\) returned None, which is never an element.*Use filter\(\)"):
        await _collect_through(ops.map(lambda n: None), [1])


async def test_map_refuses_a_coroutine() -> None:
    """A lambda around an async function fails at the first element, and the coroutine is closed."""

    async def double(n: int) -> int:
        return 2 * n

    with pytest.raises(UsageError, match=r"so the function is async\. Give the `async def` function itself"):
        await _collect_through(ops.map(lambda n: double(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


async def test_tap_ignores_the_result_of_the_function() -> None:
    """The function is called for its effect and may return None."""
    seen: list[int] = []
    assert await _collect_through(ops.tap(seen.append), [1, 2]) == [1, 2]
    assert seen == [1, 2]


async def test_tap_with_an_async_function_keeps_the_order() -> None:
    """An element goes on when the function has returned."""
    seen: list[int] = []

    async def see(n: int) -> None:
        seen.append(n)

    assert await _collect_through(ops.tap(see), [1, 2]) == [1, 2]
    assert seen == [1, 2]


async def test_tap_refuses_a_coroutine() -> None:
    """The effect of a coroutine that is not awaited would never happen."""

    async def see(n: int) -> None: ...

    with pytest.raises(UsageError, match="so the function is async"):
        await _collect_through(ops.tap(lambda n: see(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


async def test_scan_passes_on_the_running_result_without_the_initial_one() -> None:
    """There are as many results as elements."""
    assert await _collect_through(ops.scan(lambda total, n: total + n, 10), [1, 2, 3]) == [11, 13, 16]


async def test_scan_awaits_an_async_function() -> None:
    """Each call gets the result of the call before."""

    async def add(total: int, n: int) -> int:
        return total + n

    assert await _collect_through(ops.scan(add, 0), [1, 2, 3]) == [1, 3, 6]


async def test_scan_refuses_none_as_result_and_as_initial_value() -> None:
    """None is never an element, so it cannot be a running result."""
    with pytest.raises(UsageError, match=r"scan\(.*\) returned None"):
        await _collect_through(ops.scan(lambda total, n: None, 0), [1])
    with pytest.raises(UsageError, match=r"scan\(…, None\): give the value to begin with"):
        ops.scan(lambda total, n: n, None)


@pytest.mark.parametrize("operator", [ops.map, ops.tap, lambda function: ops.scan(function, 0)])
def test_an_argument_that_is_not_a_function_is_refused(operator: Any) -> None:
    """The error names the operator and the argument."""
    with pytest.raises(UsageError, match=r"(map|tap|scan)\(\) was given 5; it takes a function, plain or async"):
        operator(5)


async def test_a_function_that_cancels_its_own_stream_stops_it_at_once() -> None:
    """No signal follows cancel(), not even for the element whose function cancelled."""
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
