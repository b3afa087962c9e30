"""request_more and cancel by the draft: both raise on a cancelled subscription (DP7 to DP16)."""

from collections.abc import Callable
from typing import Final

import trio

from penstock.api import UNBOUNDED, InvalidStateError
from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import SLOW_PUBLISHER
from penstock_tck._check import check
from penstock_tck._publisher_checks._demand import DemandChecks
from penstock_tck._publisher_checks._dropped_references import DroppedReferenceChecks

_PAUSE: Final = 60.0
_TURNS: Final = 200
_RUNAWAY: Final = 20_000
"""More signals than any publisher makes in one burst. A publisher that exceeds it does not stop."""


class DraftCallChecks(DemandChecks, DroppedReferenceChecks):
    """Checks of the draft's subscription."""

    abstract = True

    @check("D2.1", elements=3)
    async def request_more_on_a_cancelled_subscription_raises(self) -> None:
        """DP7: cancels and calls request_more(1). Expects an InvalidStateError and no signal.

        If this fails, look at request_more:
        the draft wants a call on a cancelled subscription to raise, not to be ignored.
        """
        probe = await self.open(3)
        probe.cancel()
        self.expect_raise(self.profile.request_when_over_raises, probe.request, 1)
        await probe.expect_nothing()

    @check("D2.2", "D4.1", elements=5)
    async def elements_come_as_requested_by_the_draft(self) -> None:
        """DP8: expects no element before the first request, one for request_more(1), three for 1
        and 2 at once, fifty for 50.

        If this fails, look at where demand is counted: request_more adds to it, each on_next takes
        one from it, and at zero no element may come.
        """
        await self.elements_come_as_requested_and_no_others()

    @check("D2.3", elements=3)
    async def a_demand_above_the_bound_ends_the_stream(self) -> None:
        """DP9: calls request_more(2^63), and on another stream request_more(2^63-1) and
        request_more(1). Expects an on_error(InvalidStateError) each time; the second time only if
        no element came between the two calls.

        If this fails, look at where request_more adds:
        a total above 2^63-1 is an on_error, and is not reduced to 2^63-1.
        """
        probe = await self.open(3)
        probe.request(UNBOUNDED + 1)
        await probe.expect_error(InvalidStateError)
        await probe.expect_nothing()
        probe = await self.open(3)
        probe.request(UNBOUNDED)
        if not (probe.ledger.received or probe.ended):
            probe.request(1)
            await probe.expect_error(InvalidStateError)
            await probe.expect_nothing()
        await self.finish(probe)

    @check("D2.3", elements=3)
    async def a_demand_at_the_bound_is_served(self) -> None:
        """DP10: calls request_more(2^63-1), and on another stream request_more(2^62) and, unless
        elements came already, request_more(2^62-1). Expects three elements each time, and no
        on_error.

        If this fails, look at the comparison in request_more: 2^63-1 itself is allowed.
        """
        for number in (UNBOUNDED, 2**62):
            probe = await self.open(3)
            probe.request(number)
            if number < UNBOUNDED and not probe.ledger.received:
                probe.request(UNBOUNDED - number)
            await probe.expect_elements(3)
            if self.completes:
                await probe.expect_complete()
            await probe.expect_nothing()
            await self.finish(probe)

    @check("D2.4", elements=1)
    async def request_more_zero_raises(self) -> None:
        """DP11: calls request_more(0). Expects a ValueError and no signal. Then calls
        request_more(1), and expects the element.

        If this fails, look at how request_more treats its argument:
        it raises to the caller, and the stream continues.
        """
        await self._draft_expect_refused(0)

    @check("D2.4", elements=1)
    async def a_negative_request_more_raises(self) -> None:
        """DP12: calls request_more(-1) and request_more(-2^63). Expects a ValueError and no signal.
        Then takes an element.

        If this fails, look at how request_more treats its argument: it raises to the caller, and
        the demand does not change.
        """
        await self._draft_expect_refused(-1, -(2**63))

    @check("D2.5", elements=1, needs=[SLOW_PUBLISHER])
    async def request_more_does_not_wait_for_an_element(self) -> None:
        """DP13: calls request_more(1) on a source whose element comes a minute later. Expects no
        element at first, then the element.

        If this fails, look at what request_more does if no element is available:
        it records the demand and returns.
        """
        probe = await self.open_on(await self.resolve(self.create_slow_publisher(1, _PAUSE)))
        probe.request(1)
        self.verify(
            not probe.elements,
            "an element arrived before request_more returned, a minute before the source has one",
        )
        await probe.expect_nothing(_PAUSE / 2)
        await trio.sleep(_PAUSE)
        await probe.expect_elements(1)
        await self.finish(probe)

    @check("D3.1", elements=3)
    async def a_second_cancel_raises(self) -> None:
        """DP14: cancels twice. Expects an InvalidStateError the second time, and no signal.

        If this fails, look at cancel:
        the draft wants a call on a cancelled subscription to raise, not to be ignored.
        """
        probe = await self.open(3)
        probe.cancel()
        self.expect_raise(self.profile.second_cancel_raises, probe.cancel)
        await probe.expect_nothing()

    @check("D3.2", elements=UNBOUNDED)
    async def cancel_stops_an_endless_stream(self) -> None:
        """DP15: calls request_more(2^63-1) on an endless stream, takes an element, and cancels.
        Expects no signal from then on.

        If this fails, look at what cancel sets and what reads it:
        the code that signals must check it before each element.
        """
        probe = await self.open(UNBOUNDED, signal_cap=_RUNAWAY)
        probe.request(UNBOUNDED)
        await self._draft_wait_for_an_element(probe)
        probe.cancel()
        await self._draft_expect_silence(probe)
        await probe.drain()
        probe.silence()
        await probe.expect_nothing()

    @check("D3.3", elements=3)
    async def cancel_drops_the_subscriber_of_the_draft(self) -> None:
        """DP16: takes one of three elements, cancels, and settles.
        Expects that nothing refers to the subscriber.

        If this fails, look at what cancel leaves set: a field of the subscription, the registry, a
        closure, a stored exception.
        """
        await self.cancel_drops_the_subscriber()

    async def _draft_expect_refused(self, *illegal: int) -> None:
        """Expect that each of these demands raises and signals nothing, and
        that a legal one is served afterwards.
        """
        probe = await self.open(1)
        for n in illegal:
            self.expect_raise(self.profile.illegal_demand_raises, probe.request, n)
        await probe.expect_nothing()
        probe.request(1)
        await probe.expect_elements(1)
        await self.finish(probe)

    async def _draft_wait_for_an_element(self, probe: ManualSubscriber) -> None:
        """Return when an element has come. The check cannot settle here:
        the publisher may never be idle.
        """
        await self._draft_take_turns(until=lambda: bool(probe.elements))
        if not probe.elements:
            await trio.sleep(_PAUSE)
        self.verify(probe.elements, "no element came of a demand of 2^63-1")

    async def _draft_expect_silence(self, probe: ManualSubscriber) -> None:
        """Let elements in transit arrive. Then expect none for `_TURNS` turns of the run loop: an
        endless publisher never lets the run settle.
        """
        await self._draft_take_turns()
        arrived = len(probe.elements)
        await self._draft_take_turns()
        more = len(probe.elements) - arrived
        self.verify(
            not more,
            (
                f"{_TURNS} turns of the run loop after cancel() elements still arrive, {more} in "
                f"the next {_TURNS}"
            ),
        )
        await self.settle()

    async def _draft_take_turns(self, until: Callable[[], bool] = lambda: False) -> None:
        for _ in range(_TURNS):
            if until():
                return
            await trio.lowlevel.checkpoint()
