"""`map`, `tap`, `scan` and `reduce` with plain and async functions, and `pairwise`."""

import operator
from typing import Any

import pytest
import trio

from penstock.api import UNBOUNDED, UsageError
from penstock.streams import collect, ops, subscribe
from penstock.streams.ops import Operator
from tests.streams.ops.harness import MAX_ELEMENTS, OperatorHarness


async def _collect_through(through: Operator[Any, Any], elements: Any) -> list[Any]:
    async with subscribe(ops.pipe(elements, through)) as stream:
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
    with pytest.raises(
        UsageError, match=r"map\(.*\) returned None, which is never an element.*Use filter\(\)"
    ):
        await _collect_through(ops.map(lambda n: None), [1])


async def test_map_refuses_a_coroutine() -> None:
    """A lambda around an async function fails at the first element, and the coroutine is closed."""

    async def double(n: int) -> int:
        return 2 * n

    with pytest.raises(
        UsageError, match=r"so the function is async\. Give the `async def` function itself"
    ):
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
    assert await _collect_through(ops.scan(lambda total, n: total + n, 10), [1, 2, 3]) == [
        11,
        13,
        16,
    ]


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
    with pytest.raises(
        UsageError, match=r"(map|tap|scan)\(\) was given 5; it takes a function, plain or async"
    ):
        operator(5)


async def test_a_function_that_cancels_its_own_stream_stops_it_at_once() -> None:
    """No signal follows cancel(), not even for the element whose function cancelled."""
    streams: list[Any] = []
    later: list[int] = []

    def stop(n: int) -> int:
        streams[0].cancel()
        return n

    for through in (ops.map(stop), ops.tap(stop), ops.filter(stop)):
        async with subscribe(ops.pipe([1, 2], through, ops.tap(later.append)), demand=0) as stream:
            streams[:] = [stream]
            stream.request(2)
            assert [element async for element in stream] == []
    assert later == []


# ----------------------------------------------------------------------------------------- pairwise


@pytest.mark.parametrize(
    ("elements", "expected"),
    [([], []), ([1], []), ([1, 2], [(1, 2)]), (range(5), [(0, 1), (1, 2), (2, 3), (3, 4)])],
    ids=str,
)
async def test_pairwise_gives_the_pairs_of_itertools(elements: Any, expected: list[Any]) -> None:
    """One tuple less than there are elements;
    each element but the first and the last is in two tuples.
    """
    assert await _collect_through(ops.pairwise(), elements) == expected


async def test_pairwise_requests_one_more_only_once() -> None:
    """The element before the first pair is requested with the first demand.
    Later demand goes up unchanged.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.pairwise())
        recorder.request(2)
        recorder.request(3)
        recorder.request(UNBOUNDED)
        assert harness.upstreams[0].requests == [3, 3, UNBOUNDED]


async def test_pairwise_with_unbounded_demand_requests_no_more_than_that() -> None:
    """Demand saturates at 2^63-1 (rule 3.17)."""
    async with OperatorHarness() as harness:
        harness.run(ops.pairwise()).request(UNBOUNDED)
        assert harness.upstreams[0].requests == [UNBOUNDED]


async def test_pairwise_starts_anew_for_each_subscriber() -> None:
    """A second stream does not begin with the last element of the first."""
    pairs = ops.pipe([1, 2], ops.pairwise())
    assert await collect(pairs) == [(1, 2)]
    assert await collect(pairs) == [(1, 2)]


# ------------------------------------------------------------------------------------------- reduce


async def _add(total: int, n: int) -> int:
    await trio.lowlevel.checkpoint()
    return total + n


@pytest.mark.parametrize("function", [operator.add, _add])
@pytest.mark.parametrize("length", [0, 1, 2, 255, 256, 257, 1000])
async def test_reduce_passes_on_one_result(function: Any, length: int) -> None:
    """The result covers every element, for lengths around the number that is requested at a
    time. Without elements it is `initial`.
    """
    assert await _collect_through(ops.reduce(function, 7), range(length)) == [
        7 + sum(range(length))
    ]


async def test_reduce_waits_for_a_request_at_the_end() -> None:
    """The result of an empty source is passed on when it is requested, and then the completion."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.reduce(operator.add, 7))
        harness.upstreams[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 7), ("complete",)]


async def test_reduce_requests_nothing_more_for_a_second_request() -> None:
    """There is one result, so further demand changes nothing."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.reduce(lambda total, token: total, 7))
        recorder.request(1)
        recorder.request(5)
        assert harness.upstreams[0].requests == [256]
        harness.upstreams[0].emit(127)
        assert harness.upstreams[0].requests == [256]
        harness.upstreams[0].emit(1)
        assert harness.upstreams[0].requests == [256, 128]


async def test_reduce_over_a_source_that_answers_inside_request() -> None:
    """A source that signals inside `request`, to its end, leads to the same result,
    without recursion.
    """
    async with OperatorHarness() as harness:
        harness.answers_in_request = True
        recorder = harness.run(ops.reduce(lambda total, token: total + 1, 0))
        recorder.request(1)
        assert recorder.signals == [("next", MAX_ELEMENTS), ("complete",)]


async def test_reduce_needs_a_value_to_begin_with() -> None:
    """None cannot be passed on if the source has no element."""
    with pytest.raises(UsageError, match=r"reduce\(…, None\): give the value to begin with"):
        ops.reduce(operator.add, None)


async def test_reduce_refuses_none_as_a_total() -> None:
    """The error names the operator."""
    with pytest.raises(UsageError, match=r"reduce\(.*\) returned None"):
        await _collect_through(ops.reduce(lambda total, n: None, 0), [1])
