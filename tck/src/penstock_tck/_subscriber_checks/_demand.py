"""Asking for elements, and taking what was asked for (rules 2.1, 2.8, 3.8)."""

from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage

_SENT_AT_MOST = 512


class SubscriberDemandChecks(SubscriberStage):
    """Checks of a subscriber's demand."""

    abstract = True

    @check("2.1")
    async def elements_are_requested_and_taken(self) -> None:
        """Expects a request, sends as many elements as it asks for (512 at most), then completes; none may make it raise.

        If this fails, look at on_subscribe: it must keep the subscription, and request there or when your code wants elements.
        """
        upstream = await self.attached()
        await self.ask(1)
        demand = await upstream.expect_request()
        sent = [self.create_element(index) for index in range(min(demand, _SENT_AT_MOST))]
        for element in sent:
            if not upstream.cancelled:
                upstream.emit(element)
                await self.settle()
        if not upstream.cancelled:
            upstream.complete()
        await self.settle()
