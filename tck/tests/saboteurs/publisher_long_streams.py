"""Publishers with a fault that comes late (rules 1.1, 3.8, 3.17), and calls
that block (rules 3.4, 3.5).
"""

import threading

from penstock.api import UNBOUNDED
from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_saboteur


class RoundsLargeNumbers(HonestSubscription):
    """A number above 100 is rounded down to tens."""

    def add(self, n: int) -> None:
        super().add(n if n <= 100 or n >= UNBOUNDED else n // 10 * 10)


class ServesWholePages(TaskSubscription):
    """A demand above 250 is served in whole pages of 50."""

    def add(self, n: int) -> None:
        super().add(n if n <= 250 or n >= UNBOUNDED else -(-n // 50) * 50)


class TakesUnboundedFor4096(HonestSubscription):
    """A demand of 2^63-1 is 4,096 elements."""

    def add(self, n: int) -> None:
        super().add(min(n, 4_096))


class WakesUpThreeHundredTimes(TaskSubscription):
    """It serves no demand any more when it has begun to signal 300 times."""

    begun = 0
    most = 300

    def start(self) -> None:
        self.begun += 1
        if self.begun <= self.most:
            super().start()


class WakesUpTwentyFiveTimes(WakesUpThreeHundredTimes):
    """It serves no demand any more when it has begun to signal 25 times."""

    most = 25


class WakesUpThreeTimes(WakesUpThreeHundredTimes):
    """It serves no demand any more when it has begun to signal three times."""

    most = 3


class BlocksInRequest(HonestSubscription):
    """The first request of a stream blocks the run loop for 20 ms, if it is request(1)."""

    def request(self, n: int, /) -> None:
        if n == 1 and not self.busy and self.position == 0:
            _block()
        super().request(n)


class BlocksInCancel(HonestSubscription):
    """A cancel after the first element blocks the run loop for 20 ms."""

    def cancel(self) -> None:
        if self.position == 1:
            _block()
        super().cancel()


def _block() -> None:
    threading.Event().wait(0.02)


SABOTEURS = [
    publisher_saboteur(
        RoundsLargeNumbers,
        {"large_numbers_are_served_exactly": "elements were expected by now, but"},
    ),
    publisher_saboteur(ServesWholePages, {"large_numbers_are_served_exactly": "1.1"}),
    publisher_saboteur(
        TakesUnboundedFor4096, {"unbounded_demand_is_never_used_up": "by now, but 4096 arrived"}
    ),
    publisher_saboteur(WakesUpThreeHundredTimes, {"demand_does_not_dry_up": "300 of 301 elements"}),
    publisher_saboteur(WakesUpTwentyFiveTimes, {"demand_does_not_dry_up": "25 of 26 elements"}),
    publisher_saboteur(
        WakesUpThreeTimes,
        {"demand_does_not_dry_up": "3 of 4 elements"},
        also=["subscribers_share_elements_that_they_take_one_by_one"],
    ),
    publisher_saboteur(
        BlocksInRequest,
        {"request_blocks_no_longer_than_declared": "request(1) took 0.02"},
        call_seconds=0.01,
        model_seeds=5,
    ),
    publisher_saboteur(
        BlocksInCancel,
        {"cancel_blocks_no_longer_than_declared": "cancel() took 0.02"},
        call_seconds=0.01,
        model_seeds=5,
    ),
]
