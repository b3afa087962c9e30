"""The calls of a subscriber by the draft, and the signals that it accepts (DS8 to DS15)."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock.api import InvalidStateError
from penstock.testing import ManualPublisher
from penstock_tck._capabilities import TRIGGERS_CANCEL, TRIGGERS_REQUEST, TRIGGERS_SHUTDOWN
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._verification import resolve


class DraftSubscriberCallChecks(SubscriberStage):
    """Checks of the calls of the draft's subscribers."""

    abstract = True

    @check("D7.2", needs=[TRIGGERS_SHUTDOWN])
    async def a_shutdown_cancels_once(self) -> None:
        """DS8: makes it request and tells it to shut down.
        Expects one cancel, and no call after it.

        If this fails, look at the code that ends your subscriber from outside: it must cancel a
        subscription that it still has.
        """
        upstream = await self._draft_attach_with_request()
        await resolve(self.trigger_shutdown())
        await upstream.expect_cancel()
        await upstream.expect_no_calls()

    @check("D7.3", needs=[TRIGGERS_CANCEL, TRIGGERS_REQUEST])
    async def nothing_is_requested_after_a_cancel(self) -> None:
        """DS9: makes it request, cancel, and request again.
        Expects no request_more after the cancel.

        If this fails, look at cancel: it must drop the subscription, so that nothing can be
        requested from it any more.
        """
        upstream = await self._draft_attach_and_cancel()
        # The downstream subscription of a processor has ended, too, and raises.
        with suppress(InvalidStateError):
            await self.make_request(1)
        await upstream.expect_no_calls()

    @check("D7.4", needs=[TRIGGERS_CANCEL])
    async def nothing_is_cancelled_twice(self) -> None:
        """DS10: makes it cancel twice and shut down. Expects a single cancel.

        If this fails, look at cancel:
        it must drop the subscription, so that a second call finds none.
        """
        upstream = await self._draft_attach_and_cancel()
        for act in (self.trigger_cancel, self.trigger_shutdown):
            with suppress(InvalidStateError):  # as above
                await resolve(act())
        await upstream.expect_no_calls()

    @check("D7.5", needs=[TRIGGERS_CANCEL])
    async def elements_after_a_cancel_are_accepted(self) -> None:
        """DS11: makes it request and cancel, then sends an element that it had requested. Expects
        that on_next returns, and no call.

        If this fails, look at on_next:
        an element may have been in transit when the subscription was cancelled.
        """
        upstream = await self._draft_attach_and_cancel()
        upstream.emit(self.create_element(0))
        await upstream.expect_no_calls()

    @check("D7.6")
    async def completion_is_accepted_after_a_request(self) -> None:
        """DS12: makes it request and completes without an element. Expects that on_complete
        returns, and that a handler gets the completion, once.

        If this fails, look at on_complete: it must not rely on elements that were requested.
        """
        upstream = await self._draft_attach_with_request()
        upstream.complete()
        await self._draft_expect_seen(("on_complete", None))

    @check("D7.6")
    async def completion_is_accepted_without_a_request(self) -> None:
        """DS13: completes directly after on_subscribe. Expects that on_complete returns, and that a
        handler gets the completion, once.

        If this fails, look at on_complete: it must rely neither on a request nor on work that
        on_subscribe has only scheduled.
        """
        await self._draft_attach_to_end(ManualPublisher.complete)
        await self._draft_expect_seen(("on_complete", None))

    @check("D7.7")
    async def a_failure_is_accepted_after_a_request(self) -> None:
        """DS14: makes it request and fails without an element. Expects that on_error returns, and
        that a handler gets the error, once.

        If this fails, look at on_error: it must not rely on elements that were requested.
        """
        error = ValueError("the source failed")
        upstream = await self._draft_attach_with_request()
        upstream.fail(error)
        await self._draft_expect_seen(("on_error", error))

    @check("D7.7")
    async def a_failure_is_accepted_without_a_request(self) -> None:
        """DS15: fails directly after on_subscribe. Expects that on_error returns, and that a
        handler gets the error, once.

        If this fails, look at on_error: it must rely neither on a request nor on work that
        on_subscribe has only scheduled.
        """
        error = ValueError("the source failed")
        await self._draft_attach_to_end(lambda upstream: upstream.fail(error))
        await self._draft_expect_seen(("on_error", error))

    async def _draft_attach_to_end(self, end: Callable[[ManualPublisher], object]) -> None:
        """Attach a subscriber that gets `end` before it can have requested anything."""
        upstream: Any = _EndsAtOnce(self.manual_publisher(), end)
        await self.attach(upstream)

    async def _draft_attach_with_request(self) -> ManualPublisher:
        """Return a publisher whose subscriber has requested elements."""
        upstream = await self.attach_fresh()
        await self.make_request(1)
        await upstream.expect_request()
        return upstream

    async def _draft_attach_and_cancel(self) -> ManualPublisher:
        """Return a publisher whose subscriber has requested elements and then cancelled."""
        upstream = await self._draft_attach_with_request()
        await resolve(self.trigger_cancel())
        await upstream.expect_cancel()
        return upstream

    async def _draft_expect_seen(self, end: tuple[str, Any]) -> None:
        """If the subscriber reports:
        expect that a handler got this end, with the very object, once, and nothing else.
        """
        await self.settle()
        if self.reports:
            same = len(self.seen) == 1 and self.seen[0][0] == end[0] and self.seen[0][1] is end[1]
            self.verify(
                same, f"the handlers saw {self.seen or 'nothing'}; they must see {end[0]} once"
            )


class _EndsAtOnce:
    """A manual publisher that ends before the tasks of its subscriber can run."""

    def __init__(self, upstream: ManualPublisher, end: Callable[[ManualPublisher], object]) -> None:
        self._upstream = upstream
        self._end = end

    def subscribe(self, subscriber: Any, /) -> None:
        self._upstream.subscribe(subscriber)
        self._end(self._upstream)

    @property
    def subscription(self) -> Any:
        return self._upstream.subscription
