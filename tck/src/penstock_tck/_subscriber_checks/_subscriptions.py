"""One subscription at a time, and the end of its use (rules 2.5, 2.6, 2.12)."""

from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage


class SubscriberSubscriptionChecks(SubscriberStage):
    """Checks of what a subscriber does with its subscriptions."""

    abstract = True

    @check("2.5")
    async def a_second_subscription_is_cancelled(self) -> None:
        """Gives it a second subscription, and expects that one to be cancelled, never asked, and the first one untouched.

        If this fails, look at on_subscribe: when a subscription is there already, cancel the new one and return.
        """
        upstream, second = await self.attached(), self.manual_publisher()
        second.subscribe(self.signal_target(upstream))
        await second.expect_cancel()
        asked = second.subscription.requests
        self.verify(not asked, f"the second subscription was asked for {asked[:1]} elements; it must only be cancelled")
        self.verify(not upstream.cancelled, "the first subscription was cancelled; only the second one must be")
        upstream.complete()
        await self.settle()
