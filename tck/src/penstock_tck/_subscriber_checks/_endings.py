"""How a subscriber handles the end, and that it makes no call after it (rules 2.3, 2.4, 2.9, 2.10).

The manual publisher records calls inside on_error and on_complete, and after them, in every check.
The checks here bring a subscriber into the situations in which it would make such calls.
"""

from collections.abc import Callable
from typing import Any

from penstock.testing import ManualPublisher, shown
from penstock_tck._capabilities import TRIGGERS_CANCEL
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._upstream import InterceptedPublisher
from penstock_tck._verification import resolve


class SubscriberEndingChecks(SubscriberStage):
    """Checks of on_error and on_complete."""

    abstract = True

    @check("2.3")
    async def on_complete_makes_no_call(self) -> None:
        """Makes it request and completes.
        Expects no call inside on_complete, and no call later, until all is settled.

        If this fails, look at on_complete: it only tells your code about the end; there is nothing
        left to request or to cancel.
        """
        upstream = await self.attach_with_request()
        self.discard_calls(upstream)
        upstream.complete()
        await upstream.expect_no_calls()
        await self.finish_upstream(upstream)

    @check("2.3")
    async def on_error_makes_no_call(self) -> None:
        """Makes it request and fails.
        Expects no call inside on_error, and no call later, until all is settled.

        If this fails, look at on_error: it only tells your code about the error; there is nothing
        left to request or to cancel.
        """
        failed = await self.attach_with_request()
        line = failed.subscription
        self.discard_calls(failed)
        failed.fail(ValueError("the source failed"))
        await self.settle()
        self.verify(
            not line.has_call(), f"after on_error the subscription was called: {line.next_call()}"
        )
        await self.finish_upstream(failed)

    @check("2.4")
    async def after_on_complete_the_subscription_is_not_used(self) -> None:
        """Sends the elements that it requested (2 at most), completes at once, and tells it to
        request, to cancel and to shut down. Expects no call.

        If this fails, look at on_complete: it must drop the subscription, so that elements that are
        handled later cannot request more.
        """
        upstream = await self._upstream_with_unhandled_elements()
        upstream.complete()
        await self._trigger_all_hooks()
        await upstream.expect_no_calls()

    @check("2.4")
    async def after_on_error_the_subscription_is_not_used(self) -> None:
        """Sends the elements that it requested (2 at most), fails at once, and tells it to request,
        to cancel and to shut down. Expects no call.

        If this fails, look at on_error: it must drop the subscription, which counts as cancelled.
        """
        upstream = await self._upstream_with_unhandled_elements()
        line = upstream.subscription
        upstream.fail(ValueError("the source failed"))
        await self._trigger_all_hooks()
        self.verify(
            not line.has_call(), f"after on_error the subscription was called: {line.next_call()}"
        )

    @check("2.9")
    async def completion_after_a_request_is_handled(self) -> None:
        """Makes it request and completes without an element. Expects that on_complete returns, and
        that a handler gets the completion, once.

        If this fails, look at on_complete: it must not rely on the elements that were requested.
        """
        upstream = await self.attach_with_request()
        upstream.complete()
        await self._expect_end(upstream, "on_complete", None)

    @check("2.9")
    async def completion_before_a_request_is_handled(self) -> None:
        """Completes directly after on_subscribe. Expects that on_complete returns, and that a
        handler gets the completion, once.

        If this fails, look at on_complete:
        an empty stream may end before you have requested anything.
        """
        upstream = await self._attached_to_end(ManualPublisher.complete)
        await self._expect_end(upstream, "on_complete", None)

    @check("2.10")
    async def failure_after_a_request_is_handled(self) -> None:
        """Makes it request and fails without an element. Expects that on_error returns, and that a
        handler gets that very error, once.

        If this fails, look at on_error: it must not rely on the elements that were requested, and
        must pass the error on unchanged.
        """
        error = ValueError("the source failed")
        upstream = await self.attach_with_request()
        upstream.fail(error)
        await self._expect_end(upstream, "on_error", error)

    @check("2.10")
    async def failure_before_a_request_is_handled(self) -> None:
        """Fails directly after on_subscribe.
        Expects that on_error returns, and that a handler gets that very error, once.

        If this fails, look at on_error: a source may fail before you have requested anything.
        """
        error = ValueError("the source failed")
        upstream = await self._attached_to_end(lambda upstream: upstream.fail(error))
        await self._expect_end(upstream, "on_error", error)

    @check("2.9", "2.10", needs=[TRIGGERS_CANCEL])
    async def an_end_after_a_cancel_is_accepted(self) -> None:
        """Tells it to request and to cancel, and then completes, or fails (as if the cancel had not
        arrived yet). Expects that neither raises.

        If this fails, look at on_complete and on_error: the end may cross your cancel.
        """
        for end in (ManualPublisher.complete, _fail):
            upstream = await self.attach_with_request()
            await resolve(self.trigger_cancel())
            await upstream.expect_cancel()
            end(upstream)
            await self.settle()

    async def _upstream_with_unhandled_elements(self) -> ManualPublisher:
        """Return a publisher whose subscriber has elements that its tasks could not handle yet."""
        upstream = await self.attach_with_request(2)
        for index in range(min(upstream.outstanding, 2)):
            upstream.emit(self.create_element(index))
        self.discard_calls(upstream)
        return upstream

    async def _trigger_all_hooks(self) -> None:
        await self.settle()
        await self.make_request(1)
        await resolve(self.trigger_cancel())
        await resolve(self.trigger_shutdown())
        await self.settle()

    async def _attached_to_end(self, end: Callable[[ManualPublisher], object]) -> ManualPublisher:
        upstream = self.manual_publisher()
        tapped: Any = InterceptedPublisher(upstream, after=lambda _: end(upstream))
        await self.attach(tapped)
        return upstream

    async def _expect_end(self, upstream: ManualPublisher, signal: str, value: object) -> None:
        """If the subscriber reports:
        expect that a handler got this end, with the very object, once, and nothing else.
        """
        await self.settle()
        if self.reports and not (self.recovers and signal == "on_error"):
            ok = len(self.seen) == 1 and self.seen[0][0] == signal and self.seen[0][1] is value
            seen = ", ".join(
                f"{name}({'' if name == 'on_complete' else shown(what)})"
                for name, what in self.seen
            )
            self.verify(
                ok,
                (
                    f"the handlers saw {seen or 'nothing'}; they must see {signal} once, with the "
                    "object that was signalled"
                ),
            )
        await self.finish_upstream(upstream)


def _fail(upstream: ManualPublisher) -> None:
    upstream.fail(ValueError("the source failed"))
