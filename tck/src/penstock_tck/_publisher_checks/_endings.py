"""How a stream ends, and that nothing follows (rules 1.4, 1.5, 1.6, 1.7)."""

from penstock_tck._capabilities import COMPLETES, FAILED_PUBLISHER
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class EndingChecks(PublisherStage):
    """Checks of on_error, on_complete, and the silence after them."""

    abstract = True

    @check("1.7", elements=1, needs=[COMPLETES])
    async def nothing_follows_on_complete(self) -> None:
        """Takes a stream of one element to its end, requests 10 more, and expects silence.

        If this fails, look at what request() does after on_complete: the subscription must know that it is over.
        """
        probe = await self.open(1)
        probe.request(10)
        await probe.expect_elements(1)
        await probe.expect_complete()
        probe.request(10)
        await probe.expect_nothing()

    @check("1.7", needs=[FAILED_PUBLISHER])
    async def nothing_follows_the_failure_of_the_publisher(self) -> None:
        """Subscribes to a failed publisher, requests 10 after its on_error, and expects silence.

        If this fails, look at the branch that signals on_error: it must mark the subscription as over before it returns.
        """
        probe = await self.open_on(await self.made(self.create_failed_publisher()))
        await probe.expect_error()
        probe.request(10)
        await probe.expect_nothing()

    @check("1.7", elements=2)
    async def nothing_follows_the_refusal_of_a_demand(self) -> None:
        """Requests 0, and after the on_error that answers it requests 10 and expects silence.

        If this fails, look at the branch of request() that refuses a demand: on_error is an end like any other.
        """
        probe = await self.open(2)
        probe.request(0)
        await probe.expect_error()
        probe.request(10)
        await probe.expect_nothing()
