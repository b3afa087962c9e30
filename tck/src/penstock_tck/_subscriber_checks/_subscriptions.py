"""A subscriber has one subscription at a time, and cancels it
when it is no longer needed (rules 2.5, 2.6, 2.12).
"""

from penstock_tck._capabilities import TRIGGERS_SHUTDOWN
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._verification import resolve


class SubscriberSubscriptionChecks(SubscriberStage):
    """Checks of how a subscriber handles its subscriptions."""

    abstract = True

    @check("2.5")
    async def a_second_subscription_is_cancelled(self) -> None:
        """Gives it a second subscription.
        Expects a cancel on that one, no request, and no call on the first one.

        If this fails, look at on_subscribe:
        if it already has a subscription, it must cancel the new one and return.
        """
        upstream, second = await self.attach_fresh(), self.manual_publisher()
        second.subscribe(self.signal_target(upstream))
        await second.expect_cancel()
        asked = second.subscription.requests
        self.verify(
            not asked,
            (
                f"the second subscription got a request for {asked[:1]} elements; it must only be "
                "cancelled"
            ),
        )
        self.verify(
            not upstream.cancelled,
            "the first subscription was cancelled; only the second one must be cancelled",
        )
        await self.finish_upstream(upstream)

    @check("2.5", "2.12")
    async def a_repeated_on_subscribe_makes_no_request(self) -> None:
        """Signals on_subscribe again with the subscription that it has.
        Expects that on_subscribe returns, and no request.

        If this fails, look at on_subscribe: it must first check whether it has a subscription; if
        so, it cancels or does nothing.
        """
        upstream = await self.attach_fresh()
        self.discard_calls(upstream)
        upstream.misbehave("on_subscribe", upstream.subscription)
        await self.settle()
        calls = [upstream.subscription.next_call() for _ in range(2)]
        asked = [call for call in calls if isinstance(call, int)]
        self.verify(not asked, f"the second on_subscribe made it request {asked[:1]} again")
        await self.finish_upstream(upstream)

    @check("2.6", needs=[TRIGGERS_SHUTDOWN])
    async def a_shutdown_cancels_the_subscription(self) -> None:
        """Tells it to shut down, once before it requested anything and once after. Expects one
        cancel, and no call after it.

        If this fails, look at the code that ends your subscriber from outside: it must cancel a
        subscription that it has, not only drop it.
        """
        for asks in (False, True):
            upstream = await self.attach_fresh()
            if asks:
                await self.make_request(1)
            await resolve(self.trigger_shutdown())
            await upstream.expect_cancel()
            await upstream.expect_no_calls()
