"""How a stream ends, and that no signal follows (rules 1.4, 1.5, 1.6, 1.7)."""

from typing import Any

from penstock_tck._capabilities import (
    COMPLETED_PUBLISHER,
    COMPLETES,
    EAGER_COMPLETION,
    EMPTY_STREAM,
    FAILED_PUBLISHER,
    FAULTY_PUBLISHER,
)
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class EndingChecks(PublisherStage):
    """Checks of on_error and on_complete, and that no signal follows."""

    abstract = True

    # ------------------------------------------------------------- rules 1.4 and 1.5: the end comes

    @check("1.4", needs=[FAILED_PUBLISHER])
    async def a_failed_publisher_signals_on_error(self) -> None:
        """Subscribes to a failed publisher.
        Expects on_subscribe, then on_error with an exception, without a request.

        If this fails, look at subscribe() of a publisher that has failed: it signals to each
        subscriber, and does not wait for demand.
        """
        probe = await self.open_on(await self.resolve(self.create_failed_publisher()))
        await probe.expect_error()
        await probe.expect_nothing()

    @check("1.5", needs=[COMPLETES])
    async def a_finite_stream_ends_with_on_complete(self) -> None:
        """Takes three elements one by one.
        Expects on_complete, after at most one further request, and nothing after it.

        If this fails, look at how the end of the source is detected: after the last element
        on_complete must be signalled once.
        """
        length = self.length(3)
        probe = await self.open(length)
        for _ in range(length):
            probe.request(1)
            await probe.expect_elements(1)
        await self.expect_end(probe)
        await probe.expect_nothing()

    @check("1.5", needs=[COMPLETES, EMPTY_STREAM])
    async def an_empty_stream_ends_with_on_complete(self) -> None:
        """Requests one element of an empty stream. Expects on_complete and nothing else.

        If this fails, look at a source that ends before its first element:
        the loop that signals must also detect that end.
        """
        probe = await self.open(0)
        await self.expect_end(probe)
        await probe.expect_nothing()

    @check("1.5", needs=[COMPLETES, EAGER_COMPLETION])
    async def an_eager_publisher_completes_with_its_last_element(self) -> None:
        """Requests exactly as many elements as the stream has.
        Expects on_complete without a further request.

        If this fails, look at where completion is signalled: it waits for one more request,
        although eager_completion is declared.
        """
        for length in sorted({self.length(0), self.length(2)}):
            probe = await self.open(length)
            if length:
                probe.request(length)
            await probe.expect_elements(length)
            await probe.expect_complete()

    @check("1.5", needs=[COMPLETED_PUBLISHER])
    async def a_completed_publisher_signals_on_complete(self) -> None:
        """Subscribes to a completed publisher.
        Expects on_subscribe, then on_complete, without a request.

        If this fails, look at subscribe() of a publisher that has completed: it signals to each
        subscriber, and does not wait for demand.
        """
        probe = await self.open_on(await self.resolve(self.create_completed_publisher()))
        await probe.expect_complete()
        await probe.expect_nothing()

    # --------------------------------------------------------- rule 1.6: the end counts as a cancel

    @check("1.6", needs=[COMPLETES])
    async def after_on_complete_the_subscription_counts_as_cancelled(self) -> None:
        """Takes a stream to its end, then requests 5, 0 and -1 and cancels.
        Expects that each does nothing.

        If this fails, look at the subscription after on_complete:
        request() and cancel() must find that it has ended.
        """
        length = self.length(1)
        probe = await self.open(length)
        probe.request(length + 1)
        await probe.expect_elements(length)
        await probe.expect_complete()
        await self._expect_no_effect(probe)

    @check("1.6", elements=1)
    async def after_on_error_the_subscription_counts_as_cancelled(self) -> None:
        """Requests 0. After the on_error that answers it, requests 5, 0 and -1 and cancels.
        Expects that each does nothing.

        If this fails, look at the subscription after on_error:
        request() and cancel() must find that it has ended.
        """
        probe = await self.open(self.length(2))
        probe.request(0)
        await probe.expect_error()
        await self._expect_no_effect(probe)

    async def _expect_no_effect(self, probe: Any) -> None:
        for number in (5, 0, -1):
            probe.request(number)
        await probe.expect_nothing()
        probe.cancel()
        probe.request(0)
        await probe.expect_nothing()

    # ------------------------------------------------------------------ rule 1.7: nothing follows

    @check("1.7", needs=[COMPLETES])
    async def nothing_follows_on_complete(self) -> None:
        """Takes a stream to its end and requests 10 more. Expects no signal.

        If this fails, look at what request() does after on_complete:
        the subscription must know that it has ended.
        """
        length = self.length(1)
        probe = await self.open(length)
        probe.request(10)
        await probe.expect_elements(length)
        await probe.expect_complete()
        await self._expect_nothing_more(probe)

    @check("1.7", needs=[FAILED_PUBLISHER])
    async def nothing_follows_the_failure_of_the_publisher(self) -> None:
        """Subscribes to a failed publisher and requests 10 after its on_error. Expects no signal.

        If this fails, look at the branch that signals on_error:
        it must mark the subscription as ended before it returns.
        """
        probe = await self.open_on(await self.resolve(self.create_failed_publisher()))
        await probe.expect_error()
        await self._expect_nothing_more(probe)

    @check("1.7", needs=[FAULTY_PUBLISHER])
    async def nothing_follows_the_failure_of_the_source(self) -> None:
        """Lets the source raise after one element while nine more are requested, then requests 10
        more. Expects no signal after on_error.

        If this fails, look at the loop that signals:
        after on_error it must neither continue, nor complete, nor start again.
        """
        length = self.length(1)
        probe = await self.open_on(
            await self.resolve(
                self.create_faulty_publisher(length, ValueError("the source failed"))
            )
        )
        probe.request(10)
        await self.expect_failure(probe, length)
        await self._expect_nothing_more(probe)

    @check("1.7", elements=1)
    async def nothing_follows_the_refusal_of_a_demand(self) -> None:
        """Requests 0. After the on_error that answers it, requests 10 and expects no signal.

        If this fails, look at the branch of request() that refuses a demand:
        this on_error ends the stream like any other.
        """
        probe = await self.open(self.length(2))
        probe.request(0)
        await probe.expect_error()
        await self._expect_nothing_more(probe)

    async def _expect_nothing_more(self, probe: Any) -> None:
        await probe.expect_nothing()
        probe.request(10)
        await probe.expect_nothing()
