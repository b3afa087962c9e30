"""Waiting for a condition in virtual time:
first until every other task is blocked, then for the clock.

Rules of this file

* Under an autojump clock `wait_all_tasks_blocked` returns before the clock jumps. So "now, with
  every task blocked" and "later, by the clock" are two assertions. To prove silence, make both.
* A waiter is woken by a change of state, and waits at most `within` seconds of the run's clock.
  Nothing polls, and nothing really sleeps.
"""

from collections.abc import Callable

import trio
import trio.testing

from penstock.testing._transcript import Transcript
from penstock.testing._worker_threads import wait_for_threads


class ExpectationFailed(AssertionError):
    """An expectation was not met. The text says what was seen and ends with the transcript."""

    def __init__(self, seen: str, transcript: Transcript) -> None:
        super().__init__(f"{seen}\n\n{transcript.text()}")
        self.seen = seen


async def settle() -> None:
    """Return when every other task of the run is blocked, and the threads are back that
    `run_virtual` waits for. Checkpoints.
    """
    await trio.testing.wait_all_tasks_blocked()
    await wait_for_threads()


class Waiters:
    """Tasks that wait for a condition. The owner of the state calls `wake()` after each change."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot()

    def wake(self) -> None:
        """Wake the waiting tasks, so that they check their conditions again."""
        if len(self._lot) and trio.lowlevel.in_trio_run():
            self._lot.unpark_all()

    async def wait_until(self, condition: Callable[[], bool], *, within: float) -> bool:
        """Return whether `condition` holds when all tasks are blocked, or within `within`
        virtual seconds after that.
        """
        await settle()
        if condition() or not within:
            return condition()
        with trio.move_on_after(within):
            while not condition():
                await self._lot.park()
        return condition()
