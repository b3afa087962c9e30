"""Waiting for something to be true, in virtual time: quiescence first, then the clock.

Rules of this file

* Under an autojump clock `wait_all_tasks_blocked` wakes before the clock jumps. So "now, with every task blocked" and "later, by
  the clock" are two assertions, and silence is proved by making both.
* A waiter is woken by the event that it waits for, and is bounded by `within` seconds of the run's clock: no polling, no real sleep.
"""

from collections.abc import Callable

import trio
import trio.testing

from penstock.testing._transcript import Transcript


class ExpectationFailed(AssertionError):
    """What was expected did not happen. The text says what was seen, and ends with the transcript."""

    def __init__(self, seen: str, transcript: Transcript) -> None:
        super().__init__(f"{seen}\n\n{transcript.text()}")
        self.seen = seen


async def settle() -> None:
    """Return when every other task of the run is blocked. Checkpoints."""
    await trio.testing.wait_all_tasks_blocked()


class Awaited:
    """Something that tasks wait for; whoever changes it calls `changed()`."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot()

    def changed(self) -> None:
        """Wake whoever waits, to look again."""
        if len(self._lot) and trio.lowlevel.in_trio_run():
            self._lot.unpark_all()

    async def until(self, condition: Callable[[], bool], *, within: float) -> bool:
        """Return whether `condition` holds at the next quiescence, or at latest `within` virtual seconds after it."""
        await settle()
        if condition() or not within:
            return condition()
        with trio.move_on_after(within):
            while not condition():
                await self._lot.park()
        return condition()
