"""References to a subscriber are dropped when its subscription has ended (rule 3.13,
and 1.6 for the ends).

Rules of this file

* The probe is made in an inner function.
  It returns only a weak reference to the probe, and the subscription.
* The check keeps the publisher and the subscription alive:
  if they were garbage, too, the check would prove nothing.
* The check settles before it looks:
  the frame of a parked task may refer to the subscriber until the task has run.
* An exception refers, by its traceback, to the frames that it passed and to those of their callers,
  and so to the probe. The kit removes the traceback of the exceptions that it keeps itself.
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
        """Subscribes, cancels without a request, and settles.
        Expects that nothing refers to the subscriber.

        If this fails, look at where subscribe() stores the subscriber: cancel() must remove it
        there, also before the first element.
        """
        await self._expect_dropped(
            await self.publisher(self.length(3)), "after cancel()", end="cancel"
        )

    @check("3.13", elements=1)
    async def cancel_drops_the_subscriber(self) -> None:
        """Takes one of three elements, cancels, and settles.
        Expects that nothing refers to the subscriber.

        If this fails, look at what cancel() leaves set: a field of the subscription, a registry, a
        closure, a stored exception.
        """
        await self._expect_dropped(
            await self.publisher(self.length(3)), "after cancel()", requests=1, end="cancel"
        )

    @check("3.13", elements=1)
    async def a_cancel_inside_on_next_drops_the_subscriber(self) -> None:
        """Requests three elements, cancels inside the first on_next, and settles. Expects that
        nothing refers to the subscriber.

        If this fails, look at the frame that signals:
        a loop or a parked task that keeps the subscriber in a variable.
        """
        publisher = await self.publisher(self.length(3))
        await self._expect_dropped(
            publisher,
            "after cancel() inside on_next",
            requests=3,
            when_next=lambda asking, _: asking.cancel(),
        )

    @check("3.13", elements=1, needs=[SLOW_PUBLISHER])
    async def a_cancel_before_a_slow_element_drops_the_subscriber(self) -> None:
        """Requests an element that takes ten seconds, and cancels before it comes. Expects that
        nothing refers to the subscriber.

        If this fails, look at the code that waits for the source:
        it must stop waiting, or wait without the subscriber.
        """
        publisher = await self.resolve(self.create_slow_publisher(2, 10.0))
        await self._expect_dropped(
            publisher, "after cancel(), with demand left,", requests=1, end="cancel"
        )

    # ------------------------------------------------------------------ after the end

    @check("1.6", "3.13", needs=[COMPLETES])
    async def on_complete_drops_the_subscriber(self) -> None:
        """Takes a stream to its end. Expects that nothing refers to the subscriber.

        If this fails, look at the subscription after on_complete:
        it counts as cancelled, so it must drop the subscriber.
        """
        length = self.length(1)
        await self._expect_dropped(
            await self.publisher(length), "after on_complete", requests=length + 1
        )

    @check("1.6", "3.13", elements=1)
    async def the_refusal_of_a_demand_drops_the_subscriber(self) -> None:
        """Requests 0, which is answered with on_error.
        Expects that nothing refers to the subscriber.

        If this fails, look at the branch of request() that refuses a demand: on_error ends the
        subscription, which must drop the subscriber. And at the error itself: a stored exception
        refers to the frames in its traceback, and to those of their callers.
        """
        await self._expect_dropped(
            await self.publisher(self.length(2)), "after on_error", requests=0
        )

    @check("1.6", "3.13", needs=[FAULTY_PUBLISHER])
    async def the_failure_of_the_source_drops_the_subscriber(self) -> None:
        """Lets the source raise. Expects that nothing refers to the subscriber.

        If this fails, look at the subscription after on_error:
        it counts as cancelled, so it must drop the subscriber.
        """
        error = ValueError("the source failed")
        publisher = await self.resolve(self.create_faulty_publisher(0, error))
        reference, subscription = await self._run_to_its_end(publisher, 2, "")
        error.__traceback__ = None
        self._verify_dropped(reference, "after on_error", publisher, subscription)

    @check("2.13", "3.13", elements=1)
    async def a_subscriber_that_raises_is_dropped(self) -> None:
        """Raises in on_next. Expects that nothing refers to the subscriber.

        If this fails, look at the subscription of a subscriber that raised: it counts as cancelled.
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

    # ------------------------------------------------------------------ helpers

    async def _expect_dropped(
        self, publisher: Any, when: str, *, requests: int | None = None, end: str = "", **hooks: Any
    ) -> None:
        reference, subscription = await self._run_to_its_end(publisher, requests, end, **hooks)
        self._verify_dropped(reference, when, publisher, subscription)

    def _verify_dropped(self, reference: Any, when: str, publisher: Any, subscription: Any) -> None:
        self.verify_dropped(reference, f"{when} the subscriber")
        # These two lines keep both alive up to here.
        # If they were garbage, too, the check would prove nothing.
        self.verify(publisher is not None and subscription is not None, "the publisher is garbage")

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
