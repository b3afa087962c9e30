"""One subscription at a time, and the end of its use (rules 2.5, 2.6, 2.12)."""

from penstock_tck._capabilities import TRIGGERS_SHUTDOWN
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._verification import resolve


class SubscriberSubscriptionChecks(SubscriberStage):
    """Checks of what a subscriber does with its subscriptions."""

    abstract = True

    @check("2.5")
    async def a_second_subscription_is_cancelled(self) -> None:
        """Gives it a second subscription, and expects that one to be cancelled, never asked, and the first one untouched.

        If this fails, look at on_subscribe: when a subscription is there already, cancel the new one and return.
        """
        upstream, second = await self.attach_fresh(), self.manual_publisher()
        second.subscribe(self.signal_target(upstream))
        await second.expect_cancel()
        asked = second.subscription.requests
        self.verify(not asked, f"the second subscription was asked for {asked[:1]} elements; it must only be cancelled")
        self.verify(not upstream.cancelled, "the first subscription was cancelled; only the second one must be")
        await self.finish_upstream(upstream)

    @check("2.5", "2.12")
    async def a_repeated_on_subscribe_makes_no_request(self) -> None:
        """Signals on_subscribe a second time with the subscription that it has, and expects on_subscribe to return, and no request.

        If this fails, look at on_subscribe: whether a subscription is there comes before anything else; cancel then, or do nothing.
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
        """Tells it to shut down, once before it requested anything and once after, and expects one cancel, and no call after it.

        If this fails, look at what ends your subscriber from outside: a subscription that is still there must be cancelled, not dropped.
        """
        for asks in (False, True):
            upstream = await self.attach_fresh()
            if asks:
                await self.make_request(1)
            await resolve(self.trigger_shutdown())
            await upstream.expect_cancel()
            await upstream.expect_no_calls()
