"""The answers of subscribe(), and what several subscribers get (rules 1.9, 1.10, 1.11, 2.12).

Rules of this file

* A publisher that serves one subscriber conforms:
  it refuses the second one, with on_error after on_subscribe.
* A publisher that declares multicast must give all subscribers the same elements,
  in the same order, and the same end.
* Subscribing one object twice breaks rule 1.10. The publisher may serve, refuse or ignore it, but
  the first stream must continue.
"""

from typing import Any

from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import (
    BROKEN_PUBLISHER,
    COMPLETES,
    FAILED_PUBLISHER,
    MULTICAST,
    REFUSING_PUBLISHER,
)
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class SubscribingChecks(PublisherStage):
    """Checks of subscribe()."""

    abstract = True

    # ------------------------------------------------------------------ one subscriber

    @check("1.9", "2.12")
    async def subscribe_calls_on_subscribe_first_and_once(self) -> None:
        """Subscribes to an empty stream and to one of one element. Expects on_subscribe first and
        once, and no element after it.

        If this fails, look at subscribe():
        it always calls on_subscribe first, also if the stream is empty.
        """
        for length in sorted({self.length(0), self.length(1)}):
            probe = await self.open(length)
            await self.expect_pause(probe, last=length == 0)
            await self.finish(probe)

    @check("1.9")
    async def subscribe_refuses_none(self) -> None:
        """Calls subscribe(None). Expects a TypeError, and
        that the publisher still serves a subscriber.

        If this fails, look at the first line of subscribe():
        it must raise a TypeError for None, and for nothing else.
        """
        publisher = await self.publisher(self.length(1))
        self.expect_raise(TypeError, publisher.subscribe, None)
        probe = await self.open_on(publisher)
        await self.finish(probe)

    @check("1.9", needs=[FAILED_PUBLISHER])
    async def a_failed_publisher_calls_on_subscribe_before_on_error(self) -> None:
        """Subscribes two subscribers to a failed publisher. Expects that subscribe() returns, and
        that each gets on_subscribe, then on_error.

        If this fails, look at how subscribe() reports a failure: only with on_error, only after
        on_subscribe, and to each subscriber.
        """
        publisher = await self.resolve(self.create_failed_publisher())
        for _ in range(2):
            await self._expect_refusal(publisher)

    @check("1.9", needs=[REFUSING_PUBLISHER])
    async def a_refusal_is_on_error_after_on_subscribe(self) -> None:
        """Subscribes to a publisher that refuses every subscriber. Expects that subscribe()
        returns, then on_subscribe, then on_error.

        If this fails, look at the branch of subscribe() that refuses:
        it must not raise, and must signal.
        """
        await self._expect_refusal(await self.resolve(self.create_refusing_publisher()))

    @check("1.9", needs=[BROKEN_PUBLISHER])
    async def a_source_that_cannot_be_opened_signals_on_error(self) -> None:
        """Subscribes to a publisher whose source raises when it is opened, and requests. Expects
        on_error after on_subscribe.

        If this fails, look at where the source is opened:
        its exception must not leave subscribe() or request().
        """
        probe = await self.open_on(
            await self.resolve(
                self.create_broken_publisher(ValueError("the source cannot be opened"))
            )
        )
        await self.settle()
        probe.request(1)
        await probe.expect_error()
        await probe.expect_nothing()

    async def _expect_refusal(self, publisher: Any) -> None:
        probe = self.probe()
        self.subscribe(publisher, probe)
        await probe.expect_subscription()
        await probe.expect_error()
        await probe.expect_nothing()

    # ------------------------------------------------------------------ several subscribers

    @check("1.10", needs=[COMPLETES])
    async def every_subscriber_is_served_or_refused(self) -> None:
        """Two subscribers at a time and a third one later each request 1. Expects that each gets an
        element, the end or a refusal.

        If this fails, look at what subscribe() shares between subscribers:
        each needs its own demand, position and end.
        """
        publisher = await self.publisher(self.length(2))
        await self._expect_answers(await self.open_on(publisher), await self.open_on(publisher))
        await self._expect_answers(await self.open_on(publisher))

    async def _expect_answers(self, *probes: ManualSubscriber) -> None:
        for probe in probes:
            probe.request(1)
        await self.settle()
        for probe in probes:
            self.verify(
                await probe.drain(),
                (
                    f"{probe.name} was subscribed and requested 1, but got neither an element nor "
                    "an end"
                ),
            )
        await self.finish(*probes)

    @check("1.10", "2.12", elements=1)
    async def subscribing_twice_does_not_harm_the_first_stream(self) -> None:
        """Subscribes one object twice.
        It cancels the second subscription, and expects its first stream whole.

        If this fails, look at what subscribe() stores for each subscriber: a second subscription
        must not replace or end the first one.
        """
        length = self.length(3)
        publisher = await self.publisher(length)
        probe = self.probe()
        twice = _Twice(probe)
        for _ in range(2):
            self.subscribe(publisher, twice, probe=probe)
            await self.settle()
        self.verify(
            1 <= twice.subscriptions <= 2,
            f"two calls of subscribe() made {twice.subscriptions} calls of on_subscribe",
        )
        # The refusal has also ended the first stream; its subscription may still live.
        if probe.ended:
            await self.expect_silence(probe, requests_again=False)
            return
        probe.request(length)
        await probe.expect_elements(length)
        await self.expect_pause(probe, last=True)
        await self.finish(probe)

    @check("1.11")
    async def several_subscribers_without_demand_get_no_elements(self) -> None:
        """Two subscribers request nothing, then cancel.
        Expects on_subscribe for each, and no element.

        If this fails, look at subscribe() for a second subscriber:
        nothing may be signalled without demand.
        """
        length = self.length(1)
        publisher = await self.publisher(length)
        first, second = await self.open_on(publisher), await self.open_on(publisher)
        for probe in (first, second):
            await self.settle()
            self.verify(
                not probe.elements,
                f"{probe.name} requested nothing, and got {len(probe.elements)} elements",
            )
        await self.finish(first, second)

    @check("1.11", elements=1, needs=[MULTICAST], seeds=3)
    async def subscribers_share_elements_that_they_take_one_by_one(self) -> None:
        """Three subscribers of one stream take five elements in steps of 1 1 2 1, of 2 3 and of 3
        1 1. Expects the same five for each.

        If this fails, look at how elements are handed out: each subscriber gets the same ones in
        the same order, as fast as it requests them.
        """
        length = self.length(5)
        publisher = await self.publisher(length)
        probes = [await self.open_on(publisher) for _ in range(3)]
        for step in ((1, 2, 3), (1, 3, 1), (2, 0, 1), (1, 0, 0)):
            for probe, number in zip(probes, step, strict=True):
                if number and len(probe.elements) < length:
                    probe.request(number)
            await self.settle()
        await self._expect_the_same(probes, length)

    @check("1.11", needs=[MULTICAST], seeds=3)
    async def subscribers_share_elements_that_they_request_at_once(self) -> None:
        """Three subscribers of one stream request all of three elements at once.
        Expects the same three for each.

        If this fails, look at how elements are handed out: they may not be made anew for each
        subscriber, or given only to the first.
        """
        length = self.length(3)
        publisher = await self.publisher(length)
        probes = [await self.open_on(publisher) for _ in range(3)]
        for probe in probes:
            probe.request(length or 1)
        await self._expect_the_same(probes, length)

    @check("1.11", "1.5", needs=[MULTICAST, COMPLETES])
    async def subscribers_share_the_end(self) -> None:
        """Three subscribers of one stream request more than it has.
        Expects the same elements and on_complete for each.

        If this fails, look at where the end is signalled:
        to every subscriber, when it has taken the last element.
        """
        length = self.length(3)
        publisher = await self.publisher(length)
        probes = [await self.open_on(publisher) for _ in range(3)]
        for probe in probes:
            probe.request(length + 1)
        for probe in probes:
            await probe.expect_elements(length)
            await probe.expect_complete()
        await self._expect_the_same(probes, length)

    @check("1.11", "3.12", elements=2, needs=[MULTICAST])
    async def a_cancel_does_not_affect_other_subscribers(self) -> None:
        """One of three subscribers cancels after its first element, in on_next.
        Expects that the others get every element.

        If this fails, look at what cancel() removes:
        only its own subscriber, also while an element is being signalled to all.
        """
        length = self.length(3)
        publisher = await self.publisher(length)
        first = await self.open_on(publisher)
        cancelling = await self.open_on(publisher, when_next=lambda asking, _: asking.cancel())
        last = await self.open_on(publisher)
        for probe in (first, cancelling, last):
            probe.request(length)
        await self._expect_the_same([first, last], length)
        await self.expect_silence(cancelling)

    async def _expect_the_same(self, probes: list[ManualSubscriber], length: int) -> None:
        for probe in probes:
            await self.expect_arrived(probe, length)
        seen = [probe.elements for probe in probes]
        self.verify(
            all(elements == seen[0] for elements in seen),
            f"the subscribers saw different elements: {seen}",
        )
        await self.finish(*probes)


class _Twice:
    """Passes its signals to a probe, but only the first subscription;
    it cancels any other (rule 2.5).
    """

    def __init__(self, probe: ManualSubscriber) -> None:
        self.subscriptions = 0
        self._probe = probe

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscriptions += 1
        if self.subscriptions == 1:
            self._probe.on_subscribe(subscription)
        else:
            self._probe.ledger.note("<- on_subscribe once more; it is cancelled")
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self._probe.on_next(element)

    def on_error(self, error: Any, /) -> None:
        self._probe.on_error(error)

    def on_complete(self) -> None:
        self._probe.on_complete()
