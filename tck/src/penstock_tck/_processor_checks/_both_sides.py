"""How demand, completion and cancel pass through a processor (rule 4.1)."""

from typing import Final

from penstock_tck._capabilities import READS_AHEAD, TWO_SUBSCRIBERS
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage

_LONG: Final = 20
_MANY: Final = 100


class BothSidesChecks(ProcessorStage):
    """Checks that need both sides of a processor."""

    abstract = True

    @check("4.1")
    async def one_large_request_is_served_to_the_end(self) -> None:
        """Requests 20 downstream, once. Sends one element whenever one is requested upstream.
        Expects all 20, in order.

        If this fails, look at what makes the processor request upstream: all demand that is not
        served yet, not only the latest request.
        """
        upstream = await self.attach_fresh()
        self.downstream.request(_LONG)
        for count in range(_LONG):
            sent = await self.feed(upstream, 1)
            self.verify(
                sent, f"nothing more was requested upstream after {count} of {_LONG} elements"
            )
            await self.downstream.expect_next(*sent)
        await self.finish_upstream(upstream)

    @check("4.1")
    async def completion_passes_without_demand(self) -> None:
        """Completes upstream while nothing was requested downstream and no element waits.
        Expects on_complete downstream.

        If this fails, look at on_complete:
        if no element waits for demand, the end does not wait either.
        """
        upstream = await self.attach_fresh()
        upstream.complete()
        await self.downstream.expect_complete()

    @check("4.1", needs=[READS_AHEAD])
    async def elements_read_ahead_come_before_the_end(self) -> None:
        """Sends the elements that it reads ahead while nothing was requested downstream, completes,
        and expects no signal. Then requests all of them, and expects the elements and then
        completion.

        If this fails, look at where elements wait: completion comes after them, and no element is
        lost.
        """
        upstream = await self.attach_fresh()
        ahead = await self.feed(upstream, _MANY)
        self.verify(
            ahead,
            (
                "it declares reads_ahead, but requested nothing upstream before elements were "
                "requested downstream"
            ),
        )
        upstream.complete()
        await self.downstream.expect_nothing()
        self.downstream.request(len(ahead))
        await self.downstream.expect_next(*ahead)
        await self.downstream.expect_complete()

    @check("4.1", optional=True)
    async def cancel_of_the_last_subscriber_cancels_upstream(self) -> None:
        """Requests and cancels downstream. Expects a cancel upstream, and no call after it.

        If this fails, look at cancel downstream:
        without a subscriber the elements from upstream are not needed.
        """
        upstream = await self.attach_with_request()
        self.downstream.cancel()
        await upstream.expect_cancel()
        await upstream.expect_no_calls()

    @check("4.1", needs=[READS_AHEAD])
    async def a_cancel_while_elements_wait_cancels_upstream(self) -> None:
        """Sends the elements that it reads ahead while nothing was requested downstream, and
        cancels downstream. Expects a cancel upstream.

        If this fails, look at cancel downstream: the elements that wait are not needed, and the
        cancel must not wait until they are gone.
        """
        upstream = await self.attach_fresh()
        ahead = await self.feed(upstream, _MANY)
        self.require_evidence(ahead, "it read nothing ahead, so no element waited")
        self.downstream.cancel()
        await upstream.expect_cancel()
        await upstream.expect_no_calls()

    @check("4.1")
    async def an_illegal_demand_downstream_cancels_upstream(self) -> None:
        """Requests 0 downstream as the only subscriber.
        Expects on_error(ValueError) there, and a cancel upstream.

        If this fails, look at how a refused demand ends the stream:
        the subscription upstream is no longer needed (rule 2.6).
        """
        upstream = await self.attach_with_request()
        self.downstream.request(0)
        await self.downstream.expect_error(ValueError)
        await upstream.expect_cancel()

    @check("4.1", needs=[TWO_SUBSCRIBERS])
    async def a_cancel_downstream_does_not_stop_the_other_subscriber(self) -> None:
        """One of two subscribers cancels. Expects no cancel upstream, and an element for the other.

        If this fails, look at what counts the subscribers:
        only the last cancel may cancel upstream.
        """
        upstream = await self.attach_fresh()
        other = await self.open_on(self.processor_output)
        self.downstream.request(1)
        self.downstream.cancel()
        await self.settle()
        self.verify(
            not upstream.cancelled,
            "the upstream subscription was cancelled while a subscriber was still subscribed",
        )
        other.request(1)
        sent = await self.feed(upstream, 1)
        await other.expect_next(*sent[:1])
        await self.finish(other)

    @check("4.1", needs=[TWO_SUBSCRIBERS])
    async def cancel_of_the_slowest_subscriber_unblocks_the_others(self) -> None:
        """One of two subscribers requests 100, the other nothing. Sends elements until nothing is
        requested upstream. Then the other cancels, and the 100 must come.

        If this fails, look at cancel downstream: subscribers that waited for the slowest must be
        served when it has cancelled.
        """
        upstream = await self.attach_fresh()
        slowest = await self.open_on(self.processor_output)
        self.downstream.request(_MANY)
        sent = await self.feed(upstream, _MANY)
        slowest.cancel()
        sent += await self.feed(upstream, _MANY - len(sent))
        self.verify(
            len(sent) == _MANY,
            (
                f"nothing more was requested upstream after {len(sent)} elements, although the "
                "slowest subscriber has cancelled"
            ),
        )
        await self.downstream.expect_next(*sent)
        await self.finish_upstream(upstream)

    @check("4.1", needs=[TWO_SUBSCRIBERS])
    async def a_late_subscriber_waits_for_its_own_demand(self) -> None:
        """Passes two elements to one subscriber that requested 20. A second one subscribes and
        requests nothing: only the first gets a third element. Then the second requests and gets the
        next element that neither has had. Completion must reach both.

        If this fails, look at where demand is kept:
        each subscriber has its own, and is signalled by it alone (rule 1.1).
        """
        upstream = await self.attach_fresh()
        self.downstream.request(_LONG)
        early = await self.feed(upstream, 2)
        late = await self.open_on(self.processor_output)
        early += await self.feed(upstream, 1)
        await self.downstream.expect_next(*early[:2])
        self.verify(
            not late.elements, f"the late subscriber requested nothing, but got {late.elements}"
        )
        late.request(_LONG)
        early += await self.feed(upstream, 1)
        await self.downstream.expect_next(*early[2:])
        self.verify(
            late.elements and late.elements == early[-len(late.elements) :],
            f"sent {early}, but the late one got {late.elements}",
        )
        upstream.complete()
        await self.downstream.expect_complete()
        await self.settle()
        self.verify(late.ended, "the late subscriber did not get on_complete")
