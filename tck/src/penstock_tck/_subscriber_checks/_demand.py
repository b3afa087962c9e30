"""Requesting elements, and accepting the elements that were requested (rules 2.1, 2.8, 3.8)."""

from typing import Any, Final

from penstock.api import add_demand
from penstock.testing import ManualPublisher
from penstock_tck._capabilities import (
    RENEWS_DEMAND,
    REPORTS,
    TRIGGERS_CANCEL,
    TRIGGERS_REQUEST,
)
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._upstream import CountingPublisher, InterceptedPublisher
from penstock_tck._verification import resolve

_SENT_AT_MOST: Final = 512
_SYNCHRONOUS: Final = 5
_LONG: Final = 400
_LARGE: Final = 300
_BURST: Final = 7
_MOST: Final = 5_000


class SubscriberDemandChecks(SubscriberStage):
    """Checks of a subscriber's demand."""

    abstract = True

    @check("2.1")
    async def elements_are_requested_and_accepted(self) -> None:
        """Expects a request, sends as many elements as it requests (512 at most), then completes.
        Expects that no signal raises.

        If this fails, look at on_subscribe: it must keep the subscription, and request there or
        when your code wants elements.
        """
        upstream = await self.attach_fresh()
        await self.make_request(1)
        demand = await upstream.expect_request()
        sent = [self.create_element(index) for index in range(min(demand, _SENT_AT_MOST))]
        for element in sent:
            if not upstream.cancelled:
                upstream.emit(element)
                await self.settle()
        await self.finish_upstream(upstream)

    @check("2.1", needs=[REPORTS, TRIGGERS_REQUEST, TRIGGERS_CANCEL])
    async def requested_elements_reach_the_handlers_until_a_cancel(self) -> None:
        """Tells it twice to request one element, sends it, and expects that a handler gets it.
        Tells it to cancel, and expects a cancel.

        If this fails, look at your hooks first: trigger_request and trigger_cancel must act on
        self.subscriber, and handlers must report.
        """
        upstream = await self.attach_fresh()
        sent: list[Any] = []
        for index in range(2):
            await self.make_request(1)
            await upstream.expect_demand(index + 1)
            sent += await self.feed(upstream, 1)
            self.verify(
                self.seen_elements == sent,
                f"{len(sent)} elements were sent, but the handlers saw {self.seen_elements}",
            )
        await resolve(self.trigger_cancel())
        await upstream.expect_cancel()
        await self.finish_upstream(upstream)

    @check("2.1", needs=[REPORTS])
    async def elements_signalled_inside_request_are_handled(self) -> None:
        """Subscribes it to a publisher that signals before request() returns, tells it five times
        to request, and expects that the handlers get each element that was signalled, in order.

        If this fails, look at what you do after calling request():
        the elements may have come before it returns.
        """
        signalled: list[Any] = []

        def element(index: int) -> Any:
            signalled.append(self.create_element(index))
            return signalled[-1]

        raised: list[Exception] = []
        upstream: Any = InterceptedPublisher(
            CountingPublisher(_SYNCHRONOUS, element=element, on_violation=raised.append)
        )
        await self.attach(upstream)
        for _ in range(_SYNCHRONOUS):
            await self.make_request(1)
        self.verify(not raised, f"a signal raised {raised}; it must return normally")
        self.verify(signalled, "nothing was requested")
        self.verify(
            self.seen_elements == signalled,
            f"{signalled} were signalled inside request(), but handlers saw {self.seen_elements}",
        )
        await resolve(self.trigger_shutdown())
        await self.settle()

    @check("2.1", "3.8")
    async def a_long_stream_is_handled(self) -> None:
        """Sends up to 400 elements, one after each request that it is told to make. Expects that no
        signal raises, that its requests do not dry up, and that its handlers get every element.

        If this fails, look at what the subscriber keeps or counts for each element:
        it must not run out.
        """
        upstream = await self.attach_fresh()
        told, sent = 0, []
        for _ in range(_LONG):
            if upstream.cancelled:
                break
            if not upstream.outstanding:
                await self.make_request(1)
                told += 1
            if not (fed := await self.feed(upstream, 1)):
                break
            sent += fed
        self.require_evidence(sent, "nothing was requested, so no element was sent")
        # A processor may need more than one request downstream for an element:
        # its checks as a publisher look at that.
        is_judged = not (
            upstream.cancelled or TRIGGERS_REQUEST.lack(type(self)) or hasattr(self, "downstream")
        )
        dried_up = told > 0 and len(sent) < _LONG and is_judged
        self.verify(
            not dried_up, f"after {len(sent)} elements it requests no more, although it is told to"
        )
        # elements that a processor has read ahead wait for demand downstream.
        await self.make_request(len(sent))
        await self.settle_all(lambda: len(self.seen))
        complete = not self.reports or self.seen_elements == sent or upstream.cancelled
        self.verify(
            complete,
            f"{len(sent)} elements were signalled, but the handlers saw {len(self.seen_elements)}",
        )
        await self.finish_upstream(upstream)

    @check("2.1", "3.8", needs=[RENEWS_DEMAND])
    async def demand_is_renewed_to_the_end(self) -> None:
        """Sends 400 elements, or twice its first demand: one by one, as many at once as it has
        requested, and before its calls of request() return. Expects further requests until all
        are sent, or it cancels.

        If this fails, look at what counts the elements: it must request again before its demand is
        used up, also if elements come inside request(): count first, then request.
        """
        for burst, inside in ((1, 0), (_BURST, 0), (_LARGE, 0), (1, 1), (1, _BURST)):
            await self._expect_renewed(burst, inside)

    async def _expect_renewed(self, burst: int, inside: int) -> None:
        """Send `burst` elements at once, and `inside` of those that a request() asks for before it
        returns. Checkpoints; raises CheckFailed.
        """
        sent = 0
        is_signalling = False

        def signal(most: int) -> None:
            nonlocal sent, is_signalling
            is_signalling = True
            for _ in range(most):
                if upstream.outstanding and not upstream.cancelled and sent < _MOST:
                    upstream.emit(self.create_element(sent))
                    sent += 1
            is_signalling = False

        def signal_inside(_: ManualPublisher, __: int) -> None:
            if not is_signalling:  # rule 3.3: inside a signal a request only raises the demand
                signal(inside)

        upstream = self.manual_publisher(when_requested=signal_inside)
        await self.attach(upstream)
        await upstream.expect_request()
        due = min(_MOST, max(_LONG, 2 * upstream.requested + 1))
        while sent < due and upstream.outstanding and not upstream.cancelled:
            signal(min(burst, due - sent))
            await self.settle_all(lambda: upstream.requested)
        where = " of which some came inside request()" if inside else ""
        self.verify(
            sent >= due or upstream.cancelled,
            f"after {sent} elements{where} it requests no more, and it has not cancelled; if "
            "it requests later, declare settle_seconds; if it needs no more, renews_demand = False",
        )
        await self.finish_upstream(upstream)

    @check("3.8", needs=[TRIGGERS_REQUEST])
    async def requested_numbers_add_up(self) -> None:
        """Tells it to request 2 and then 3, once without a pause and once with settling between
        them; then tells a fresh one to request
        300. Sends the elements that it requests, and expects it to request the sum in all,
             in any number of requests.

        If this fails, look at the code between yours and request():
        no number may get lost or replace another.
        """
        await self._expect_requested(2, 3, pause=False)
        await self._expect_requested(2, 3, pause=True)
        await self._expect_requested(_LARGE, pause=True)

    @check("2.8", needs=[TRIGGERS_CANCEL])
    async def late_elements_after_a_cancel_are_accepted(self) -> None:
        """Tells it to request 2 and to cancel, sends the elements (as if the cancel had not arrived
        yet), and tells it to request once more. Expects that no signal raises.

        If this fails, look at on_next:
        after your cancel an element may still come, and must do no harm.
        """
        upstream = await self.attach_with_request(2)
        await resolve(self.trigger_cancel())
        await upstream.expect_cancel()
        for index in range(min(upstream.outstanding, 2)):
            upstream.emit(self.create_element(index))
        await self.make_request(1)
        await self.settle()

    async def _expect_requested(self, *numbers: int, pause: bool) -> None:
        upstream = await self.attach_fresh()
        before = upstream.requested
        wanted = add_demand(before, sum(numbers)) if before else sum(numbers)
        for n in numbers:
            await resolve(self.trigger_request(n))
            if pause:
                await self.settle()
        for _ in range(_SENT_AT_MOST):
            await self.settle()
            if upstream.requested >= wanted or not upstream.outstanding:
                break
            await self.feed(upstream, 1)
        asked = upstream.requested - before
        told = " and ".join(map(str, numbers))
        self.verify(
            upstream.requested >= wanted,
            f"it was told to request {told}, but requested {asked} in all",
        )
        await self.finish_upstream(upstream)
