"""The draft's rules for processors that go beyond those of both sides (DX1 to DX7)."""

from typing import Final

from penstock.testing import ManualPublisher, ManualSubscriber
from penstock_tck._capabilities import PASSES_ERRORS_ON, READS_AHEAD, TWO_SUBSCRIBERS
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage

_LONG: Final = 20
_MANY: Final = 100


class DraftProcessorChecks(ProcessorStage):
    """Checks of the draft's processors."""

    abstract = True

    @check("D8.3")
    async def the_last_cancel_downstream_cancels_upstream(self) -> None:
        """DX1: requests and cancels downstream. Expects a cancel upstream, and no call after it.

        If this fails, look at cancel downstream:
        without a subscriber the elements from upstream are not needed.
        """
        upstream = await self.attach_fresh()
        await self.make_request(1)
        self.downstream.cancel()
        await upstream.expect_cancel()
        await upstream.expect_no_calls()

    @check("D8.3", needs=[TWO_SUBSCRIBERS])
    async def a_cancel_downstream_does_not_affect_the_others(self) -> None:
        """DX2: one of two subscribers cancels. Expects no cancel upstream, and an element for the
        other. When that one cancels, expects a cancel.

        If this fails, look at what counts the subscribers:
        only the last cancel may cancel upstream.
        """
        upstream = await self.attach_fresh()
        other = await self.open_on(self.processor_output)
        await self.make_request(1)
        self.downstream.cancel()
        await self.settle()
        self.verify(
            not upstream.cancelled,
            "the upstream subscription was cancelled while a subscriber was still subscribed",
        )
        other.request(1)
        await self._draft_feed(upstream, 1)
        await other.expect_elements(1)
        other.cancel()
        await upstream.expect_cancel()

    @check("D8.4", needs=[PASSES_ERRORS_ON])
    async def errors_overtake_elements(self) -> None:
        """DX3: sends the elements that were requested upstream while nothing was requested
        downstream, and fails. Expects that very error, at once, for each subscriber.

        If this fails, look at where elements wait for demand: on_error does not wait there, and
        waiting elements are dropped.
        """
        upstream = await self.attach_fresh()
        subscribers = [
            self.downstream,
            *[
                await self.open_on(self.processor_output)
                for _ in range(min(1, self.max_subscribers - 1))
            ],
        ]
        error = ValueError("the source upstream failed")
        await self._draft_feed(upstream, min(upstream.outstanding, _MANY))
        upstream.fail(error)
        for probe in subscribers:
            await probe.expect_error(error)
            await probe.expect_nothing()

    @check("D8.5")
    async def elements_after_the_last_cancel_are_accepted(self) -> None:
        """DX4: requests and cancels downstream, then sends an element from upstream. Expects that
        on_next returns, and no signal downstream.

        If this fails, look at on_next:
        elements may have been in transit when the last subscriber cancelled.
        """
        upstream = await self.attach_fresh()
        await self.make_request(2)
        await upstream.expect_request()
        self.downstream.cancel()
        upstream.emit(self.create_element(0))
        await self.settle()
        if upstream.outstanding:
            upstream.emit(self.create_element(1))
        await self.downstream.expect_nothing()

    @check("D8.6", needs=[READS_AHEAD])
    async def elements_before_demand_downstream_are_kept(self) -> None:
        """DX5: sends the elements that were requested upstream while nothing was requested
        downstream. Expects none downstream, then all as requested.

        If this fails, look at on_next:
        elements that were not requested downstream yet must be kept.
        """
        upstream = await self.attach_fresh()
        ahead = min(upstream.outstanding, _MANY)
        self.verify(
            ahead,
            (
                "it declares reads_ahead, but requested nothing upstream before elements were "
                "requested downstream"
            ),
        )
        await self._draft_feed(upstream, ahead)
        await self.downstream.expect_nothing()
        self.downstream.request(ahead)
        await self.downstream.expect_next(*(self.create_element(index) for index in range(ahead)))
        await self.finish(self.downstream)

    @check("D8.1", "D8.2")
    async def one_large_request_keeps_requesting_upstream(self) -> None:
        """DX6: requests 20 downstream, once. Sends one element whenever one is requested upstream.
        Expects all 20.

        If this fails, look at what makes the processor request upstream: all demand that is not
        served yet, not only the latest request.
        """
        upstream = await self.attach_fresh()
        self.downstream.request(_LONG)
        for index in range(_LONG):
            await self.settle()
            self.verify(
                upstream.outstanding,
                f"nothing more was requested upstream after {index} of {_LONG} elements",
            )
            upstream.emit(self.create_element(index))
            await self.downstream.expect_elements(1)
        await self.finish(self.downstream)

    @check("D8.1", "D8.2", needs=[TWO_SUBSCRIBERS])
    async def a_cancel_unblocks_the_other_subscribers(self) -> None:
        """DX7: one of two subscribers requests 100, the other nothing. Sends elements until nothing
        is requested upstream. Then the other cancels, and the 100 must come.

        If this fails, look at cancel downstream: subscribers that waited for the slowest must be
        served when it has cancelled.
        """
        upstream = await self.attach_fresh()
        blocking = await self.open_on(self.processor_output)
        self.downstream.request(_MANY)
        sent = await self._draft_feed(upstream, _MANY)
        blocking.cancel()
        sent += await self._draft_feed(upstream, _MANY - sent)
        self.verify(
            sent == _MANY,
            (
                f"nothing more was requested upstream after {sent} elements, although the "
                "blocking subscriber has cancelled"
            ),
        )
        await self._draft_expect_all(self.downstream, _MANY)
        await self.finish(self.downstream)

    async def _draft_feed(self, upstream: ManualPublisher, most: int) -> int:
        """Send elements from upstream while they are requested; return how many were sent."""
        sent = upstream.subscription.emitted
        for count in range(most):
            await self.settle()
            if not upstream.outstanding:
                return count
            upstream.emit(self.create_element(sent + count))
        await self.settle()
        return most

    async def _draft_expect_all(self, probe: ManualSubscriber, count: int) -> None:
        await self.settle()
        probe.check()
        self.verify(
            len(probe.elements) == count,
            f"{len(probe.elements)} of {count} elements arrived downstream",
        )
