"""What a processor makes of an on_error from above: it passes it on at once, or recovers (rule 4.2)."""

from typing import Final

from penstock_tck._capabilities import PASSES_ERRORS_ON, READS_AHEAD, RECOVERS, TWO_SUBSCRIBERS
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage

_MANY: Final = 100


class ErrorChecks(ProcessorStage):
    """Checks of errors on their way through."""

    abstract = True

    @check("4.2", needs=[PASSES_ERRORS_ON])
    async def errors_pass_at_once_without_demand(self) -> None:
        """Fails above while nothing was requested below, and expects the same error object below.

        If this fails, look at on_error: it must go to the subscribers below at once, unwrapped, whatever they have requested.
        """
        upstream = await self.attach_fresh()
        error = ValueError("the source above failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.downstream.expect_nothing()

    @check("4.2", needs=[PASSES_ERRORS_ON, READS_AHEAD])
    async def errors_overtake_waiting_elements(self) -> None:
        """Sends what was read ahead, while nothing was requested below, fails above, and expects the error below at once, and no more.

        If this fails, look at where elements wait: an error does not wait behind them, and what waited is dropped.
        """
        upstream = await self.attach_fresh()
        waiting = await self.feed(upstream, _MANY)
        self.verify(waiting, "it declares reads_ahead, but requested nothing above before something was requested below")
        error = ValueError("the source above failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.downstream.expect_nothing()

    @check("4.2", needs=[PASSES_ERRORS_ON, TWO_SUBSCRIBERS])
    async def an_error_reaches_every_subscriber(self) -> None:
        """Passes an element to the first of two subscribers, of which the second requested nothing (or one, if none is passed
        otherwise), fails above, and expects the same error object at both.

        If this fails, look at on_error: it goes to each subscriber below, also to those that wait for nothing.
        """
        upstream = await self.attach_fresh()
        second = await self.open_on(self.processor_output)
        self.downstream.request(2)
        if not await self.feed(upstream, 1):
            second.request(2)
            await self.feed(upstream, 1)
        await self.downstream.expect_elements(1)
        error = ValueError("the source above failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.settle()
        self.verify(second.error is error, f"the second subscriber got {second.error!r} instead of the error")

    @check("4.2", needs=[RECOVERS])
    async def a_recovery_does_not_use_the_failed_subscription(self) -> None:
        """Fails above with demand outstanding, requests more below, and cancels; expects no error below, and no call above on what failed.

        If this fails, look at what on_error forgets: before anything else begins, the failed subscription counts as cancelled.
        """
        upstream = await self.attach_with_request(2)
        failed = upstream.subscription
        self.discard_calls(upstream)
        upstream.fail(ValueError("the source above failed"))
        await self.settle()
        self.verify(self.downstream.error is None, f"it declares recovers, but passed {self.downstream.error!r} on")
        await self.make_request(1)
        await self.finish(self.downstream)
        self.verify(not failed.has_call(), f"the subscription that failed was called: {failed.next_call()}")
