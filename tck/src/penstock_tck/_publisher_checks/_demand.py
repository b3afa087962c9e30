"""How many elements come, and when:
never more than requested, and as many as requested (rules 1.1, 1.2, 3.8, 3.17).

Rules of this file

* A check uses as many elements as it needs to show the fault, and fewer if the publisher has fewer.
* Demand can add up only while it is not served:
  inside on_subscribe, and between two requests without a checkpoint.
  At other times a publisher that signals inside request() has no demand left.
"""

from typing import Any

from penstock.api import UNBOUNDED
from penstock_tck._capabilities import COMPLETES
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class DemandChecks(PublisherStage):
    """Checks of demand."""

    abstract = True

    @check("1.1", "3.8", elements=1)
    async def elements_come_as_requested_and_no_others(self) -> None:
        """Expects no element before a request, one for request(1), three for 1 and 2 at once, fifty
        for request(50), and no more.

        If this fails, look at where demand is counted: each on_next must take one from it, and no
        element may be signalled at zero.
        """
        length = self.length(57)
        probe = await self.open(length)
        await probe.expect_nothing()
        due = 0
        # Also a large demand: a publisher that signals in bursts may count whole bursts.
        for numbers in ((1,), (1, 2), (50,)):
            due += sum(numbers)
            if due > length or (due == length > 1):
                break  # the end may come with the last element: other checks look at that
            for number in numbers:
                probe.request(number)
            await probe.expect_elements(sum(numbers))
            await self.expect_pause(probe, last=due == length)
        await self.finish(probe)

    @check("3.8", elements=2, seeds=3)
    async def requests_add_up(self) -> None:
        """Requests 1 and 2, and 2 and 1: inside on_subscribe, without a checkpoint between, and
        with settling between. Expects three each time.

        If this fails, look at how request() stores its number:
        it must be added to the demand, not replace it.
        """
        length = self.length(5)
        total = min(length, 3)
        for first, second in {(1, total - 1), (total - 1, 1)}:
            probe = await self.open(
                length,
                when_subscribed=lambda asking, a=first, b=second: (
                    asking.request(a),
                    asking.request(b),
                ),
            )
            await self._expect_total(probe, total, length)
            for settles_between in (False, True):
                probe = await self.open(length)
                probe.request(first)
                if settles_between:
                    await self.settle()
                probe.request(second)
                await self._expect_total(probe, total, length)

    async def _expect_total(self, probe: Any, total: int, length: int) -> None:
        await probe.expect_elements(total)
        await self.expect_pause(probe, last=total == length)
        await self.finish(probe)

    @check("1.2", needs=[COMPLETES])
    async def fewer_elements_than_requested_end_with_on_complete(self) -> None:
        """Requests 10 of streams of zero, one, two and three elements.
        Expects exactly these elements and on_complete.

        If this fails, look at how the end of the source is detected: it must be signalled even if
        demand is left. And at create_publisher: the stream must have exactly as many elements as
        its argument says.
        """
        for length in sorted({self.length(wish) for wish in (0, 1, 2, 3)}):
            probe = await self.open(length)
            probe.request(10)
            await probe.expect_elements(length)
            await probe.expect_complete()
            await probe.expect_nothing()

    @check("3.17")
    async def unbounded_demand_is_supported(self) -> None:
        """Requests 2^63-1 and expects every element, and the end if the stream has one.

        If this fails, look at how large a number request() accepts:
        anything up to 2^63-1, and 2^63-1 means unbounded.
        """
        length = self.length(3)
        probe = await self.open(length)
        probe.request(UNBOUNDED)
        await probe.expect_elements(length)
        await self._expect_its_end(probe)

    @check("3.17", seeds=3)
    async def demand_above_the_limit_counts_as_unbounded(self) -> None:
        """Lets demand add up to more than 2^63-1 before the first element, in five ways. Expects
        every element and no on_error.

        If this fails, look at what request() does if the sum exceeds 2^63-1: it must stay there,
        and neither fail, stall nor wrap around.
        """
        length = self.length(20)
        for numbers in (
            [2**62, 2**62],
            [2**62 - 1, 2**62 - 1, 1],
            [UNBOUNDED, 1],
            [UNBOUNDED, UNBOUNDED],
            [2**70],
        ):
            probe = await self.open(
                length,
                when_subscribed=lambda asking, parts=tuple(numbers): [
                    asking.request(part) for part in parts
                ],
            )
            await self.expect_arrived(probe, length)
            await self.finish(probe)
            probe = await self.open(length)
            for number in numbers:
                probe.request(number)
            await self.expect_arrived(probe, length)
            await self.finish(probe)

    @check("3.17", elements=2)
    async def demand_above_the_limit_does_not_stall_the_stream(self) -> None:
        """Requests 1, then 2^63-2 inside each on_next. Expects every element up to the last, and
        the end if the stream has one.

        If this fails, look at the demand that is left when it has exceeded 2^63-1
        and elements are taken from it.
        """
        length = self.length(20)
        probe = await self.open(length, when_next=lambda asking, _: asking.request(UNBOUNDED - 1))
        probe.request(1)
        await probe.expect_elements(length)
        await self._expect_its_end(probe)

    @check("3.17")
    async def any_number_of_requests_is_supported(self) -> None:
        """Requests 1 a thousand times, inside on_subscribe and without a checkpoint between (fewer
        times if that takes longer than a second). Expects as many elements, if the stream has them.

        If this fails, look at what request() stores for each call: it must add to a number, not put
        an entry into a bounded queue.
        """
        length, made = self.length(1000), 0

        def ask(asking: Any) -> None:
            nonlocal made
            made = 0
            while made < 1000 and self.may_go_on(made):
                asking.request(1)
                made += 1

        probe = await self.open(length, when_subscribed=ask)
        await self.expect_arrived(probe, min(length, made))
        await self.finish(probe)
        probe = await self.open(length)
        ask(probe)
        await self.expect_arrived(probe, min(length, made))
        await self.finish(probe)

    async def _expect_its_end(self, probe: Any) -> None:
        if self.completes:
            await probe.expect_complete()
        await self.finish(probe)
