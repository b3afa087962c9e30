"""That no reference to a subscriber is kept once its subscription is over (rule 3.13, and 1.6 for the ends).

Rules of this file

* The probe is made in an inner function that returns only a weak reference to it, and the subscription.
* The publisher and the subscription stay alive in the check: that they are gone too would prove nothing.
* Quiescence comes before the look: a parked task's frame may hold the subscriber until the task has run.
* An exception holds, in its traceback, the frames that it went through and those of their callers: the probe's, too. What the kit
  itself keeps or was told loses its traceback before the look.
"""

import weakref
from collections.abc import Callable
from typing import Any

from penstock.testing import Signal
from penstock_tck._capabilities import COMPLETES, FAULTY_PUBLISHER, SLOW_PUBLISHER
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class DroppedReferenceChecks(PublisherStage):
    """Checks of dropped references."""

    abstract = True

    # ------------------------------------------------------------------ after a cancel

    @check("3.13")
    async def a_cancel_before_any_request_drops_the_subscriber(self) -> None:
        """Subscribes, cancels without a request, lets it settle, and expects that nothing refers to the subscriber.

        If this fails, look at what subscribe() puts the subscriber into: cancel() must take it out again, also before the first element.
        """
        await self._expect_dropped(await self.publisher(self.length(3)), "after cancel()", end="cancel")

    @check("3.13", elements=1)
    async def cancel_drops_the_subscriber(self) -> None:
        """Takes one of three elements, cancels, lets it settle, and expects that nothing refers to the subscriber.

        If this fails, look at what cancel() leaves set: the subscription's own field, a registry, a closure, a kept exception.
        """
        await self._expect_dropped(await self.publisher(self.length(3)), "after cancel()", requests=1, end="cancel")

    @check("3.13", elements=1)
    async def a_cancel_inside_on_next_drops_the_subscriber(self) -> None:
        """Requests three elements, cancels inside the first on_next, and expects that nothing refers to the subscriber at quiescence.

        If this fails, look at the frame that signals: a loop or a parked task that keeps the subscriber in a variable.
        """
        publisher = await self.publisher(self.length(3))
        await self._expect_dropped(publisher, "after cancel() inside on_next", requests=3, when_next=lambda asking, _: asking.cancel())

    @check("3.13", elements=1, needs=[SLOW_PUBLISHER])
    async def a_cancel_before_a_slow_element_drops_the_subscriber(self) -> None:
        """Requests an element that takes ten seconds, cancels before it is there, and expects that nothing refers to the subscriber.

        If this fails, look at what waits for the source: it must wait no longer, or wait without the subscriber.
        """
        publisher = await self.resolve(self.create_slow_publisher(2, 10.0))
        await self._expect_dropped(publisher, "after cancel(), with demand left,", requests=1, end="cancel")

    # ------------------------------------------------------------------ after the end

    @check("1.6", "3.13", needs=[COMPLETES])
    async def on_complete_drops_the_subscriber(self) -> None:
        """Takes a stream to its end and expects that nothing refers to the subscriber.

        If this fails, look at what is left of a subscription after on_complete: it counts as cancelled, so the subscriber is let go.
        """
        length = self.length(1)
        await self._expect_dropped(await self.publisher(length), "after on_complete", requests=length + 1)

    @check("1.6", "3.13", elements=1)
    async def the_refusal_of_a_demand_drops_the_subscriber(self) -> None:
        """Requests 0, which is answered with on_error, and expects that nothing refers to the subscriber.

        If this fails, look at the branch of request() that refuses a demand: on_error ends the subscription, so the subscriber is let go.
        And at the error itself: who keeps it keeps the frames in its traceback, and those of their callers.
        """
        await self._expect_dropped(await self.publisher(self.length(2)), "after on_error", requests=0)

    @check("1.6", "3.13", needs=[FAULTY_PUBLISHER])
    async def the_failure_of_the_source_drops_the_subscriber(self) -> None:
        """Lets the source raise, and expects that nothing refers to the subscriber.

        If this fails, look at what is left of a subscription after on_error: it counts as cancelled, so the subscriber is let go.
        """
        error = ValueError("the source failed")
        publisher = await self.resolve(self.create_faulty_publisher(0, error))
        reference, subscription = await self._run_to_its_end(publisher, 2, "")
        error.__traceback__ = None
        self._verify_dropped(reference, "after on_error", publisher, subscription)

    @check("2.13", "3.13", elements=1)
    async def a_subscriber_that_raises_is_dropped(self) -> None:
        """Raises in on_next, and expects that nothing refers to the subscriber.

        If this fails, look at what happens to the subscription of a subscriber that raised: it counts as cancelled.
        """
        error = ValueError("a subscriber raised this")

        def refuse(probe: Any, _: Any) -> None:
            # rule 2.13: from here the subscription counts as cancelled.
            probe.ledger.move(Signal.CANCEL)
            raise error

        publisher = await self.publisher(self.length(3))
        reference, subscription = await self._run_to_its_end(publisher, 1, "", when_next=refuse)
        self.reported_violations.clear()
        error.__traceback__ = None
        self._verify_dropped(reference, "after it raised in on_next", publisher, subscription)

    # ------------------------------------------------------------------ how it is done

    async def _expect_dropped(self, publisher: Any, when: str, *, requests: int | None = None, end: str = "", **hooks: Any) -> None:
        reference, subscription = await self._run_to_its_end(publisher, requests, end, **hooks)
        self._verify_dropped(reference, when, publisher, subscription)

    def _verify_dropped(self, reference: Any, when: str, publisher: Any, subscription: Any) -> None:
        self.verify_dropped(reference, f"{when} the subscriber")
        # Both must have stayed alive up to here, or the check would prove nothing.
        self.verify(publisher is not None and subscription is not None, "the publisher is gone")

    async def _run_to_its_end(
        self, publisher: Any, requests: int | None, end: str, **hooks: Callable[..., object]
    ) -> tuple["weakref.ref[Any]", Any]:
        probe = await self.open_on(publisher, **hooks)
        if requests is not None:
            probe.request(requests)
            await self.settle()
        if end:
            probe.cancel()
        await self.settle()
        probe.check()
        return weakref.ref(probe), probe.subscription
