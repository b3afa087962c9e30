"""How a processor handles an on_error from upstream:
it passes it on at once, or recovers (rule 4.2).
"""

from typing import Final

from penstock_tck._capabilities import PASSES_ERRORS_ON, READS_AHEAD, RECOVERS, TWO_SUBSCRIBERS
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage

_MANY: Final = 100


class ErrorChecks(ProcessorStage):
    """Checks of errors that pass through a processor."""

    abstract = True

    @check("4.2", needs=[PASSES_ERRORS_ON])
    async def errors_pass_at_once_without_demand(self) -> None:
        """Fails upstream while nothing was requested downstream.
        Expects the same error object downstream.

        If this fails, look at on_error: it must signal to the subscribers at once, with the same
        object, with or without demand.
        """
        upstream = await self.attach_fresh()
        error = ValueError("the source upstream failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.downstream.expect_nothing()

    @check("4.2", needs=[PASSES_ERRORS_ON, READS_AHEAD])
    async def errors_overtake_waiting_elements(self) -> None:
        """Sends the elements that it reads ahead while nothing was requested downstream, and fails
        upstream. Expects the error at once, and no more.

        If this fails, look at where elements wait:
        an error does not wait for them, and waiting elements are dropped.
        """
        upstream = await self.attach_fresh()
        waiting = await self.feed(upstream, _MANY)
        self.verify(
            waiting,
            (
                "it declares reads_ahead, but requested nothing upstream before elements were "
                "requested downstream"
            ),
        )
        error = ValueError("the source upstream failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.downstream.expect_nothing()

    @check("4.2", needs=[PASSES_ERRORS_ON, TWO_SUBSCRIBERS])
    async def an_error_reaches_every_subscriber(self) -> None:
        """Passes an element to the first of two subscribers. The second requests only if no element
        passes otherwise. Fails upstream. Expects the same error object at both.

        If this fails, look at on_error:
        it signals to each subscriber, also to those without demand.
        """
        upstream = await self.attach_fresh()
        second = await self.open_on(self.processor_output)
        self.downstream.request(2)
        if not await self.feed(upstream, 1):
            second.request(2)
            await self.feed(upstream, 1)
        await self.downstream.expect_elements(1)
        error = ValueError("the source upstream failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.settle()
        self.verify(
            second.error is error,
            f"the second subscriber got {second.error!r} instead of the error",
        )

    @check("4.2", needs=[RECOVERS])
    async def a_recovery_does_not_use_the_failed_subscription(self) -> None:
        """Fails upstream with demand outstanding, requests more downstream, and cancels. Expects no
        error downstream, and no call on the failed subscription.

        If this fails, look at on_error:
        it must drop the failed subscription first, because this counts as cancelled.
        """
        upstream = await self.attach_with_request(2)
        failed = upstream.subscription
        self.discard_calls(upstream)
        upstream.fail(ValueError("the source upstream failed"))
        await self.settle()
        self.verify(
            self.downstream.error is None,
            f"it declares recovers, but passed {self.downstream.error!r} on",
        )
        await self.make_request(1)
        await self.finish(self.downstream)
        self.verify(
            not failed.has_call(), f"the failed subscription was called: {failed.next_call()}"
        )
