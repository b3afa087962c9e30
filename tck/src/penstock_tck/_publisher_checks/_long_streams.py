"""Faults that come late: numbers that are large, and streams that are long (rules 1.1, 3.8,
3.17).
"""

from typing import Final

from penstock.api import UNBOUNDED
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_NUMBERS: Final = (7, 64, 99, 100, 101, 128, 137, 255, 257, 1_000, 1_025)
"""Around the numbers at which a counter, a batch or a page may end."""

_LONG: Final = 5_000
"""Longer than the usual powers of two that stand for "very many"."""

_TURNS: Final = 350
_AT_ONCE: Final = 3


class LongStreamChecks(PublisherStage):
    """Checks with large numbers and long streams."""

    abstract = True

    @check("1.1", "3.8", elements=8)
    async def large_numbers_are_served_exactly(self) -> None:
        """Requests 7, 64, 99, 100, 101 and so on up to 1,025 elements of one stream. Expects
        exactly as many each time, before the next request is made.

        If this fails, look at what becomes of a large number:
        it must not be rounded, cut off, or served in whole batches.
        """
        length = self.length(sum(_NUMBERS) + 1)
        probe = await self.open(length)
        due = 0
        for number in _NUMBERS:
            if due + number >= length:
                break  # the end may come with the last element: other checks look at that
            due += number
            probe.request(number)
            await self.expect_arrived(probe, due)
        await self.finish(probe)

    @check("3.17", elements=8)
    async def unbounded_demand_is_never_used_up(self) -> None:
        """Requests 2^63-1 once, and expects 5,000 elements of a stream that has them.

        If this fails, look at the value for unbounded demand:
        it must not be a number that a long stream uses up.
        """
        length = self.length(_LONG)
        probe = await self.open(length)
        probe.request(UNBOUNDED)
        await self.expect_arrived(probe, length)
        await self.finish(probe)

    @check("3.8", elements=8)
    async def demand_does_not_dry_up(self) -> None:
        """Requests 1 element 350 times from outside, then 3 elements, and settles after each
        request. Expects the elements each time.

        If this fails, look at what the publisher does each time it has used up all demand: it must
        wake up again, however often that was.
        """
        length = self.length(_TURNS + _AT_ONCE)
        probe = await self.open(length)
        due = 0
        for number in (*(1 for _ in range(_TURNS)), _AT_ONCE):
            if due + number > length:
                break
            due += number
            probe.request(number)
            await self.settle_all(lambda: len(probe.elements))
            self.verify(
                len(probe.elements) == due,
                (
                    f"{probe.name} got {len(probe.elements)} of {due} elements, the last {number} "
                    "at once"
                ),
            )
        await self.expect_arrived(probe, due)
        await self.finish(probe)
