"""The length of a pump's bursts: elements between two checkpoints. It follows the time that bursts take."""

from time import monotonic
from typing import Final

import trio

FIRST_BURST: Final = 32
LONGEST_BURST: Final = 1024
"""Elements between two checkpoints. Spread over 1,024 elements, the cost of a checkpoint cannot be measured any more."""

BURST_SECONDS: Final = 0.005
"""Seconds that a burst may take. A longer one is followed by a shorter one, so that other tasks wait about this long for their turn."""


def next_burst(burst: int, seconds: float) -> int:
    """Return the length of the next burst after one of `burst` elements took `seconds`."""
    if seconds > BURST_SECONDS:
        return max(1, burst // 4)  # shrink faster than it grows: a slow burst delays every other task
    if seconds < BURST_SECONDS / 4:
        return min(LONGEST_BURST, burst * 2)  # twice as long still takes less than half of BURST_SECONDS
    return burst


class BurstPacer:
    """The length of the present burst of one task, and how much of it is used up."""

    __slots__ = ("_burst", "_spent", "_turn_began")

    def __init__(self) -> None:
        self._burst = FIRST_BURST
        self._spent = 0  # elements since the last checkpoint
        self._turn_began = 0.0  # when the last checkpoint returned

    @property
    def remaining(self) -> int:
        """Elements that may still be signalled in this burst."""
        return self._burst - self._spent

    def start_turn(self) -> None:
        """Begin a whole burst: other tasks have just run."""
        self._spent, self._turn_began = 0, monotonic()

    def spend(self, count: int) -> None:
        """Use up `count` elements of the burst."""
        self._spent += count

    async def checkpoint_if_due(self) -> None:
        """Checkpoint if the burst is used up or has taken too long; else only raise Cancelled if this task is cancelled."""
        # The burst is counted over any number of requests. With a checkpoint for each request, a consumer that requests one element at
        # a time would pay for a checkpoint with each element.
        seconds = monotonic() - self._turn_began
        if self._spent >= self._burst or seconds > BURST_SECONDS:
            self._burst = next_burst(self._burst, seconds)
            await trio.lowlevel.checkpoint()
            self.start_turn()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
