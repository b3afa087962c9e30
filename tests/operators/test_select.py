"""`filter`, `take`, `skip`, `take_while`, `first`, `distinct_until_changed`: which elements go on, and when that is enough."""

from typing import Any

import pytest

from penstock import operators as ops
from penstock.api import UsageError
from penstock.core import subscribe
from penstock.operators import Operator
from tests.operators.harness import OperatorHarness


async def _through(operator: Operator[Any, Any], elements: Any) -> list[Any]:
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
async def test_the_right_elements_go_on(operator: Operator[int, int], expected: list[int]) -> None:
    """Each operator against what it says, over the numbers from 0 to 5."""
    assert await _through(operator, range(6)) == expected


async def test_distinct_until_changed_forgets_all_but_the_last() -> None:
    """An element comes again once another has been between."""
    assert await _through(ops.distinct_until_changed(), [1, 1, 2, 2, 1]) == [1, 2, 1]


async def test_filter_and_distinct_take_any_truth_value() -> None:
    """A predicate may return what it likes; a key may be None."""
    assert await _through(ops.filter(lambda text: text), ["", "a"]) == ["a"]
    assert await _through(ops.filter(lambda text: None), ["", "a"]) == []
    assert await _through(ops.distinct_until_changed(lambda n: None), [1, 2]) == [1]


@pytest.mark.parametrize("operator", [ops.take(1), ops.first(), ops.first(lambda token: True)], ids=str)
async def test_what_is_enough_completes_with_its_last_element(operator: Operator[Any, Any]) -> None:
    """No further demand is needed to learn of an end that is known, and upstream is cancelled at once."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator)
        recorder.request(1)
        harness.upstreams[0].emit()
        assert recorder.kinds == ["next", "complete"]
        assert harness.upstreams[0].cancelled


async def test_take_while_ends_with_the_first_element_that_it_leaves_out() -> None:
    """That one is not passed on, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_while(lambda token: token.number < 2))
        recorder.request(5)
        harness.upstreams[0].answer()
        assert recorder.signals == [("next", 1), ("complete",)]
        assert harness.upstreams[0].cancelled


async def test_take_never_asks_for_more_than_it_will_pass_on() -> None:
    """Whatever is requested below, in however many steps, the source is asked for `count` in all."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take(5))
        for n in (1, 3, 100):
            recorder.request(n)
        recorder.request(100)
        assert harness.upstreams[0].requests == [1, 3, 1]
        harness.upstreams[0].answer()
        assert recorder.kinds == ["next"] * 5 + ["complete"]


async def test_take_of_nothing_completes_without_demand() -> None:
    """`take(0)` is over as soon as it has begun, and asks for nothing."""
    async with OperatorHarness() as harness:
        assert harness.run(ops.take(0)).kinds == ["complete"]
        assert harness.upstreams[0].requests == []
        assert harness.upstreams[0].cancelled


async def test_take_completes_once_when_its_last_element_asks_for_more() -> None:
    """Demand from inside the last on_next reaches nobody."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take(2))
        recorder.on_element = lambda: recorder.request(1)
        harness.answers_in_request = True
        recorder.request(1)
        assert recorder.kinds == ["next", "next", "complete"]


async def test_skip_asks_for_what_it_leaves_out_only_once() -> None:
    """The first demand pays for the skipped elements, later ones pass straight through."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.skip(2))
        recorder.request(1)
        recorder.request(1)
        assert harness.upstreams[0].requests == [3, 1]


async def test_filter_asks_anew_for_what_it_leaves_out() -> None:
    """Demand below is met, however many elements are left out on the way."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.filter(lambda token: token.number % 3 == 0))
        recorder.request(2)
        harness.upstreams[0].answer()
        assert recorder.elements == [3, 6]
        assert harness.upstreams[0].requested == 6


async def test_filter_refuses_a_coroutine_that_nobody_awaits() -> None:
    """A coroutine is always true: an async predicate in disguise would let everything through."""
    with pytest.raises(UsageError, match="so the function is async"):
        await _through(ops.filter(lambda n: _is_even(n)), [1])  # noqa: PLW0108 (the lambda is the mistake that is tested)


@pytest.mark.parametrize("operator", [ops.take, ops.skip])
@pytest.mark.parametrize("count", [-1, 1.5, "3", None, True])
def test_a_count_is_an_integer_that_is_not_negative(operator: Any, count: Any) -> None:
    """The message names the operator, what it was given, and what it takes."""
    with pytest.raises(UsageError, match=r"(take|skip)\(.*\): give how many elements, an integer of at least 0"):
        operator(count)


@pytest.mark.parametrize("operator", [ops.filter, ops.take_while, ops.first, ops.distinct_until_changed])
def test_what_is_no_function_is_refused(operator: Any) -> None:
    """The message names the operator and what it was given."""
    with pytest.raises(UsageError, match=r"\w+\(\) was given 5; it takes a function, plain or async"):
        operator(5)
