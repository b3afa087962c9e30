"""`cancel_at_step`: it reaches every step, and counts only those of the function."""

import pytest
import trio

from penstock.testing import cancel_at_step, run_virtual


async def three_sleepers() -> str:
    async with trio.open_nursery() as nursery:
        for seconds in range(3):
            nursery.start_soon(trio.sleep, seconds)
    return "slept"


def test_counting_alone_cancels_nothing() -> None:
    """Without a step to cancel at, the function runs to its end."""
    outcome = run_virtual(cancel_at_step, None, three_sleepers)
    assert (outcome.value, outcome.was_cancelled) == ("slept", False)
    assert outcome.steps > 6


def test_every_step_can_be_cancelled_at_and_repeated() -> None:
    """Early steps cancel the function, the last ones come too late,
    and with a seed the sweep is repeatable.
    """
    steps = run_virtual(cancel_at_step, None, three_sleepers).steps
    outcomes = [run_virtual(cancel_at_step, k, three_sleepers) for k in range(1, steps + 2)]
    assert outcomes[0].was_cancelled
    assert not outcomes[-1].was_cancelled
    assert outcomes == [run_virtual(cancel_at_step, k, three_sleepers) for k in range(1, steps + 2)]


def test_steps_of_other_tasks_are_not_counted() -> None:
    """Only this task and the tasks that the function starts count."""

    async def scenario(other_tasks: int) -> int:
        async with trio.open_nursery() as nursery:
            for _ in range(other_tasks):
                nursery.start_soon(trio.sleep, 0.5)
            return (await cancel_at_step(None, three_sleepers)).steps

    assert run_virtual(scenario, 0) == run_virtual(scenario, 5)


def test_a_cancel_reaches_the_tasks_of_the_function_only() -> None:
    """The cleanup of the function's child has run, and the caller goes on."""
    cleaned: list[str] = []

    async def scenario() -> None:
        async def child() -> None:
            try:
                await trio.sleep_forever()
            finally:
                cleaned.append("child")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    assert run_virtual(cancel_at_step, 1, scenario).was_cancelled
    assert cleaned == ["child"]


def test_an_exception_of_the_function_is_raised() -> None:
    """The instrument is removed in that case too."""

    async def scenario() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_virtual(cancel_at_step, None, scenario)
