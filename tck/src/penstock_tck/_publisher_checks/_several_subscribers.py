"""One subscriber acts inside a signal of another:
it requests, subscribes or cancels (rules 1.11, 3.2, 1.8).
"""

from typing import Final

from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import MULTICAST
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_LENGTH: Final = 40
_ELEMENTS: Final = 4
_NEEDS: Final = 2 * _ELEMENTS


class SeveralSubscriberChecks(PublisherStage):
    """Checks of acts inside a signal of another subscriber."""

    abstract = True

    @check("1.11", "3.2", elements=_NEEDS, needs=[MULTICAST], seeds=3)
    async def a_request_inside_a_signal_of_another_is_served(self) -> None:
        """Two subscribers. One requests 4 elements; inside the first of them the other requests 4,
        inside the third 2 more. Expects all for both.

        If this fails, look at what request() does while the publisher signals to another
        subscriber: the demand must be served later.
        """
        publisher = await self.publisher(self.length(_LENGTH))
        other = self.probe()
        numbers = {1: _ELEMENTS, 3: 2}

        def ask_for_the_other(probe: ManualSubscriber, _: object) -> None:
            if number := numbers.get(len(probe.elements)):
                other.request(number)

        first = await self.open_on(publisher, when_next=ask_for_the_other)
        self.subscribe(publisher, other)
        await other.expect_subscription()
        first.request(_ELEMENTS)
        await self._settle_all(first, other)
        if len(first.elements) < _ELEMENTS:
            # A publisher as fast as its slowest subscriber signals nothing before the other has
            # requested.
            first.request(_ELEMENTS)
            other.request(_ELEMENTS)
            await self._settle_all(first, other)
        await self._expect_served(first, _ELEMENTS)
        await self._expect_served(other, _ELEMENTS)
        await self.finish(first, other)

    @check("1.11", "1.9", elements=5 * _ELEMENTS, needs=[MULTICAST], seeds=3)
    async def a_subscribe_inside_a_signal_of_another_is_served(self) -> None:
        """A second subscriber subscribes inside the first on_next of another one, and requests
        inside its own on_subscribe. Expects that both get what they requested. Then the same inside
        the on_next that uses up the demand of the other.

        If this fails, look at what subscribe() does while the publisher signals: neither the new
        subscriber nor old demand may get lost.
        """
        for place in (1, _ELEMENTS + 1):
            await self._subscribe_inside_the_on_next(place)

    async def _subscribe_inside_the_on_next(self, place: int) -> None:
        publisher = await self.publisher(self.length(_LENGTH))
        late = self.probe(when_subscribed=lambda asking: asking.request(_ELEMENTS))

        def subscribe_another(probe: ManualSubscriber, _: object) -> None:
            if len(probe.elements) == place:
                self.subscribe(publisher, late)

        first = await self.open_on(publisher, when_next=subscribe_another)
        first.request(_ELEMENTS + 1)
        await self._settle_all(first, late)
        await self._expect_served(first, _ELEMENTS + 1)
        await late.expect_subscription()
        if len(late.elements) < _ELEMENTS:
            # A publisher as fast as its slowest subscriber may have given all elements to the first
            # already.
            first.request(3 * _ELEMENTS)
            await self._settle_all(first, late)
        await self._expect_served(late, _ELEMENTS)
        await self.finish(first, late)

    @check("1.8", "3.5", elements=_NEEDS, needs=[MULTICAST], seeds=3)
    async def a_cancel_inside_a_signal_of_another_is_obeyed(self) -> None:
        """Two subscribers request 4 elements each. Inside the second on_next of one, the other is
        cancelled. Expects no signal for that one from then on, and all elements for the first.

        If this fails, look at the loop that signals to all subscribers:
        it must see a cancel that happens while it runs.
        """
        publisher = await self.publisher(self.length(_LENGTH))
        other = self.probe()

        def cancel_the_other(probe: ManualSubscriber, _: object) -> None:
            if len(probe.elements) == 2:
                other.cancel()

        first = await self.open_on(publisher, when_next=cancel_the_other)
        self.subscribe(publisher, other)
        await other.expect_subscription()
        other.request(_ELEMENTS)
        first.request(_ELEMENTS)
        await self._settle_all(first, other)
        await self._expect_served(first, _ELEMENTS)
        await self.expect_silence(other)
        await self.finish(first)

    async def _settle_all(self, *probes: ManualSubscriber) -> None:
        await self.settle_all(lambda: sum(len(probe.elements) for probe in probes))

    async def _expect_served(self, probe: ManualSubscriber, count: int) -> None:
        """Expect at least this many elements. Checkpoints."""
        await probe.drain()
        probe.check()
        self.verify(
            len(probe.elements) >= count,
            f"{probe.name} requested {count} elements, and got {len(probe.elements)}",
        )
