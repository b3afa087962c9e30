"""That no reference to a subscriber is kept once its subscription is over (rule 3.13, and 1.6 for the ends).

Rules of this file

* The probe is made in an inner function that returns only a weak reference to it, and the subscription.
* The publisher and the subscription stay alive in the check: that they are gone too would prove nothing.
* Quiescence comes before the look: a parked task's frame may hold the subscriber until the task has run.
"""

import weakref
from typing import Any

from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class LettingGoChecks(PublisherStage):
    """Checks of dropped references."""

    abstract = True

    @check("3.13", elements=3)
    async def cancel_drops_the_subscriber(self) -> None:
        """Takes one of three elements, cancels, lets it settle, and expects that nothing refers to the subscriber.

        If this fails, look at what cancel() leaves set: the subscription's own field, a registry, a closure, a kept exception.
        """
        publisher = await self.publisher(3)
        reference, subscription = await self._cancelled_in_mid_stream(publisher)
        await self.settle()
        self.verify_dropped(reference, "after cancel(), the subscriber")
        # Both must have stayed alive up to here, or the check would prove nothing.
        self.verify(publisher is not None and subscription is not None, "the publisher is gone")

    async def _cancelled_in_mid_stream(self, publisher: Any) -> tuple["weakref.ref[Any]", Any]:
        probe = await self.open_on(publisher)
        probe.request(1)
        await probe.expect_elements(1)
        probe.cancel()
        return weakref.ref(probe), probe.subscription
