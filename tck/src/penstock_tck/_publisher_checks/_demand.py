"""How many elements come, and when: never more than requested, and as many as requested (rules 1.1, 1.2, 3.8, 3.17)."""

from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class DemandChecks(PublisherStage):
    """Checks of demand."""

    abstract = True

    @check("1.1", "3.8", elements=5)
    async def elements_come_as_requested_and_no_others(self) -> None:
        """Expects nothing before the first request, one element for request(1), three for request(1) and request(2), then silence.

        If this fails, look at where demand is counted: each on_next must take one from it, and nothing may be signalled at zero.
        """
        probe = await self.open(5)
        await probe.expect_nothing()
        probe.request(1)
        await probe.expect_elements(1)
        await probe.expect_nothing()
        probe.request(1)
        probe.request(2)
        await probe.expect_elements(3)
        await probe.expect_nothing()
        await self.finish(probe)

    @check("3.8", elements=10, seeds=3)
    async def requests_add_up(self) -> None:
        """Requests 1 and 2 inside on_subscribe, then with quiescence between, then without a checkpoint: three elements each time.

        If this fails, look at how request() stores its number: it must be added to what is due, not put in its place.
        """
        probe = await self.open(10, when_subscribed=lambda asking: (asking.request(1), asking.request(2)))
        await probe.expect_elements(3)
        await probe.expect_nothing()
        probe.request(1)
        await self.settle()
        probe.request(2)
        await probe.expect_elements(3)
        await probe.expect_nothing()
        probe.request(2)
        probe.request(1)
        await probe.expect_elements(3)
        await probe.expect_nothing()
        await self.finish(probe)
