"""`filter`, `take`, `skip`, `take_while`, `first`, `distinct_until_changed`: which elements go
on, and when the stream ends.
"""

from typing import Any

import pytest

from penstock.api import UsageError
from penstock.streams import ops, subscribe
from penstock.streams.ops import Operator
from tests.streams.ops.harness import OperatorHarness


async def _collect_through(operator: Operator[Any, Any], elements: Any) -> list[Any]:
    async with subscribe(ops.pipe(elements, operator)) as stream:
        return [element async for element in stream]


async def _is_even(n: int) -> bool:
    return n % 2 == 0


async def _is_small(n: int) -> bool:
    return n < 3


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (ops.filter(lambda n: n % 2 == 0), [0, 2, 4]),
        (ops.filter(_is_even), [0, 2, 4]),
        (ops.take(0), []),
        (ops.take(2), [0, 1]),
        (ops.take(99), [0, 1, 2, 3, 4, 5]),
        (ops.skip(0), [0, 1, 2, 3, 4, 5]),
        (ops.skip(4), [4, 5]),
        (ops.skip(99), []),
        (ops.take_while(lambda n: n < 3), [0, 1, 2]),
        (ops.take_while(_is_small), [0, 1, 2]),
        (ops.take_while(lambda n: True), [0, 1, 2, 3, 4, 5]),
        (ops.first(), [0]),
        (ops.first(lambda n: n > 3), [4]),
        (ops.first(_is_even), [0]),
        (ops.first(lambda n: n > 99), []),
        (ops.distinct_until_changed(), [0, 1, 2, 3, 4, 5]),
        (ops.distinct_until_changed(lambda n: n // 2), [0, 2, 4]),
        (ops.distinct_until_changed(_is_small), [0, 3]),
    ],
    ids=str,
)
async def test_the_selected_elements_go_on(
    operator: Operator[int, int], expected: list[int]
) -> None:
    """Each operator over the numbers from 0 to 5."""
    assert await _collect_through(operator, range(6)) == expected


async def test_distinct_until_changed_compares_with_the_last_element_only() -> None:
    """An element goes on again after a different one."""
    assert await _collect_through(ops.distinct_until_changed(), [1, 1, 2, 2, 1]) == [1, 2, 1]


async def test_filter_and_distinct_accept_any_result() -> None:
    """A predicate may return any object, and a key may be None."""
    assert await _collect_through(ops.filter(lambda text: text), ["", "a"]) == ["a"]
    assert await _collect_through(ops.filter(lambda text: None), ["", "a"]) == []
    assert await _collect_through(ops.distinct_until_changed(lambda n: None), [1, 2]) == [1]


@pytest.mark.parametrize(
    "operator", [ops.take(1), ops.first(), ops.first(lambda token: True)], ids=str
)
async def test_take_and_first_complete_with_their_last_element(
    operator: Operator[Any, Any],
) -> None:
    """The completion needs no demand, and upstream is cancelled at once."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator)
        recorder.request(1)
        harness.upstreams[0].emit()
        assert recorder.kinds == ["next", "complete"]
        assert harness.upstreams[0].cancelled


async def test_take_while_completes_at_the_first_element_that_it_leaves_out() -> None:
    """That element is not passed on, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_while(lambda token: token.number < 2))
        recorder.request(5)
        harness.upstreams[0].answer()
        assert recorder.signals == [("next", 1), ("complete",)]
        assert harness.upstreams[0].cancelled


async def test_take_requests_only_what_it_passes_on() -> None:
    """For all downstream requests together, the source is asked for `count` elements in total."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take(5))
        for n in (1, 3, 100):
            recorder.request(n)
        recorder.request(100)
        assert harness.upstreams[0].requests == [1, 3, 1]
        harness.upstreams[0].answer()
        assert recorder.kinds == ["next"] * 5 + ["complete"]


async def test_take_0_completes_without_demand() -> None:
    """`take(0)` completes at once and requests nothing."""
    async with OperatorHarness() as harness:
        assert harness.run(ops.take(0)).kinds == ["complete"]
        assert harness.upstreams[0].requests == []
        assert harness.upstreams[0].cancelled


async def test_a_request_inside_the_last_on_next_of_take_has_no_effect() -> None:
    """The stream completes once, and no demand goes upstream."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take(2))
        recorder.on_element = lambda: recorder.request(1)
        harness.answers_in_request = True
        recorder.request(1)
        assert recorder.kinds == ["next", "next", "complete"]


async def test_skip_requests_the_skipped_elements_once() -> None:
    """The first request includes the skipped elements; later requests pass straight through."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.skip(2))
        recorder.request(1)
        recorder.request(1)
        assert harness.upstreams[0].requests == [3, 1]


async def test_filter_requests_again_what_it_leaves_out() -> None:
    """Downstream demand is met although elements are left out."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.filter(lambda token: token.number % 3 == 0))
        recorder.request(2)
        harness.upstreams[0].answer()
        assert recorder.elements == [3, 6]
        assert harness.upstreams[0].requested == 6


async def test_filter_refuses_a_coroutine() -> None:
    """A coroutine is always true, so an async predicate inside a lambda would let every element
    pass.
    """
    with pytest.raises(UsageError, match="so the function is async"):
        await _collect_through(ops.filter(lambda n: _is_even(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


@pytest.mark.parametrize("operator", [ops.take, ops.skip])
@pytest.mark.parametrize("count", [-1, 1.5, "3", None, True])
def test_a_count_is_a_non_negative_integer(operator: Any, count: Any) -> None:
    """The error names the operator, the argument, and its allowed values."""
    with pytest.raises(
        UsageError,
        match=r"^(take|skip): count=.*; give how many elements, an integer of at least 0",
    ):
        operator(count)


@pytest.mark.parametrize(
    "operator", [ops.filter, ops.take_while, ops.first, ops.distinct_until_changed]
)
def test_an_argument_that_is_not_a_function_is_refused(operator: Any) -> None:
    """The error names the operator and the argument."""
    with pytest.raises(
        UsageError, match=r"\w+\(\) was given 5; it takes a function, plain or async"
    ):
        operator(5)
