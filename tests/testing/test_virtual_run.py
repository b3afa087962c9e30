"""`run_virtual`: runs in virtual time."""

import pytest
import trio

from penstock.testing import run_virtual


def test_hours_pass_at_once_and_the_result_is_returned() -> None:
    """The MockClock jumps when every task sleeps."""

    async def scenario(hours: int) -> float:
        await trio.sleep(hours * 3600)
        return trio.current_time()

    assert run_virtual(scenario, 5) == 18_000


def test_an_exception_is_not_wrapped() -> None:
    """The exception of the function is raised itself."""

    async def scenario() -> None:
        raise KeyError("bare")

    with pytest.raises(KeyError, match="bare"):
        run_virtual(scenario, seed=None)


def test_instruments_are_passed_to_trio() -> None:
    """An instrument sees the steps of the run."""
    steps: list[str] = []

    class Watcher(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            steps.append(task.name)

    run_virtual(trio.lowlevel.checkpoint, instruments=[Watcher()])
    assert any("checkpoint" in name for name in steps)
