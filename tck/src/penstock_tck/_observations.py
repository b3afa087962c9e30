"""The four permissions (3.1, 3.10, 3.11, 3.14). An observation asserts nothing; the report shows
its result. It fails only with a violation.

They are mixed into the verification of the side that shows them.
"""

from penstock_tck._check import observation
from penstock_tck._publisher_stage import PublisherStage
from penstock_tck._subscriber_stage import SubscriberStage


class PublisherObservations(PublisherStage):
    """Observations of the permissions of a publisher."""

    @observation("3.10", elements=1)
    async def request_may_signal_elements_synchronously(self) -> str:
        """Requests one element and looks, before any task runs, whether it has come."""
        probe = await self.open(self.length(1))
        probe.request(1)
        synchronous = bool(probe.elements)
        await self.finish(probe)
        return (
            "yes: on_next arrives before request returns"
            if synchronous
            else "no: on_next arrives after request has returned"
        )

    @observation("3.11")
    async def request_may_signal_the_end_synchronously(self) -> str:
        """Requests more elements than the stream has and looks, before any task runs,
        whether the end has come.
        """
        probe = await self.open(self.length(1))
        probe.request(10)
        synchronous = probe.ended
        await self.finish(probe)
        return (
            "yes: the end arrives before request returns"
            if synchronous
            else "no: the end arrives after request has returned"
        )

    @observation("3.14")
    async def cancel_may_shut_the_publisher_down(self) -> str:
        """Cancels the only subscription and subscribes another subscriber."""
        publisher = await self.publisher(self.length(1))
        first = await self.open_on(publisher)
        first.cancel()
        await self.settle()
        second = await self.open_on(publisher)
        second.request(1)
        await self.settle()
        served = bool(second.elements) or not self.length(1)
        await self.finish(second)
        return (
            "no: the next subscriber is served"
            if served
            else "yes: the next subscriber gets no element"
        )


class SubscriberObservations(SubscriberStage):
    """Observations of the permission of a subscriber."""

    @observation("3.1")
    async def calls_come_from_the_subscribers_context(self) -> str:
        """Sends on_subscribe and one element, and looks whether the first call comes inside a
        signal or later.
        """
        upstream = self.manual_publisher()
        await self.attach(upstream)
        await self.make_request(1)
        places = upstream.subscription.call_places
        if upstream.outstanding:
            upstream.emit(self.create_element(0))
            await self.settle()
        upstream.complete()
        return f"calls were made {', '.join(places)}" if places else "no call was made"
