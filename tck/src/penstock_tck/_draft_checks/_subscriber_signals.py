"""How signals are handled by the draft: in a task, and without calls (DS1 to DS7).

The manual publisher records every call that is made inside a signal, so each check judges
that as well.
"""

from contextlib import suppress
from functools import partial

from penstock.api import InvalidStateError
from penstock.draft import DraftSubscription
from penstock.testing import ManualPublisher
from penstock_tck._capabilities import REPORTS
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._verification import resolve


class DraftSubscriberSignalChecks(SubscriberStage):
    """Checks of how the draft's subscribers handle signals."""

    abstract = True

    @check("D5.1", "D5.2")
    async def on_subscribe_only_schedules(self) -> None:
        """DS1: subscribes it and makes it request.
        Expects the request after on_subscribe has returned.

        If this fails, look at on_subscribe: it keeps the subscription and wakes the task that
        requests; it does not request.
        """
        upstream = await self.attach_fresh()
        await self.make_request(1)
        await upstream.expect_request()
        places = upstream.subscription.call_places
        self.verify(
            places == ["outside any signal"], f"the subscription was called {', '.join(places)}"
        )
        upstream.complete()
        await self.settle()

    @check("D5.1", "D5.2", needs=[REPORTS])
    async def on_next_only_schedules(self) -> None:
        """DS2: sends an element. Expects that no handler has got it when on_next returns, and that
        one has when all is settled.

        If this fails, look at on_next:
        it hands the element to a task of the subscriber and returns.
        """
        upstream = await self.attach_fresh()
        await self.make_request(1)
        await upstream.expect_request()
        upstream.emit(self.create_element(0))
        await self._draft_expect_later("on_next")
        upstream.complete()
        await self.settle()

    @check("D6.1", "D6.2", needs=[REPORTS])
    async def on_complete_only_schedules(self) -> None:
        """DS3: completes. Expects that no handler has got it when on_complete returns, and
        that one has when all is settled.

        If this fails, look at on_complete:
        it is an event for a task of the subscriber, like any other.
        """
        upstream = await self.attach_fresh()
        upstream.complete()
        await self._draft_expect_later("on_complete")

    @check("D6.1", "D6.2", needs=[REPORTS])
    async def on_error_only_schedules(self) -> None:
        """DS4: fails. Expects that no handler has got it when on_error returns, and
        that one has when all is settled.

        If this fails, look at on_error:
        it is an event for a task of the subscriber, like any other.
        """
        upstream = await self.attach_fresh()
        upstream.fail(ValueError("the source failed"))
        await self._draft_expect_later("on_error")

    @check("D6.3")
    async def nothing_is_called_after_on_complete(self) -> None:
        """DS5: makes it request, sends the elements that it requested (2 at most), completes at
        once, and tells it to request and to shut down. Expects no call after the completion.

        If this fails, look at on_complete: it must drop the subscription, so that elements that are
        handled later cannot request more.
        """
        upstream = await self._draft_with_unhandled_elements()
        upstream.complete()
        await self._draft_expect_no_calls(upstream)

    @check("D6.3")
    async def nothing_is_called_after_on_error(self) -> None:
        """DS6: makes it request, sends the elements that it requested (2 at most), fails at once,
        and tells it to request and to shut down. Expects no call after the error.

        If this fails, look at on_error: it must drop the subscription, which counts as cancelled
        and must not be cancelled again.
        """
        upstream = await self._draft_with_unhandled_elements()
        upstream.fail(ValueError("the source failed"))
        await self._draft_expect_no_calls(upstream)

    @check("D7.1")
    async def a_second_subscription_is_reported_and_not_used(self) -> None:
        """DS7: gives it a second subscription. Expects an error (raised by on_subscribe, or seen by
        a handler), and no call on the new one.

        If this fails, look at on_subscribe: if it already has a subscription, it must raise or
        report, and call neither of the two.
        """
        upstream = await self.attach_fresh()
        second = _RecordingSubscription()
        try:
            self.signal_target(upstream).on_subscribe(second)
        except Exception as error:
            # boundary: the subscriber's code runs here, and raising is one way to report.
            self.note(f"the second on_subscribe raised {error!r}")
            reported = True
        else:
            await self.settle()
            reported = any(signal == "on_error" for signal, _ in self.seen)
        await self.settle()
        self.verify(
            not second.calls, f"the second subscription was called: {', '.join(second.calls)}"
        )
        self.verify(
            reported,
            (
                "a second subscription was accepted without an error: on_subscribe did not raise, "
                "and no handler saw an error"
            ),
        )
        if not upstream.cancelled:
            upstream.complete()
        await self.settle()

    async def _draft_expect_later(self, signal: str) -> None:
        early = [seen for seen, _ in self.seen]
        self.verify(
            signal not in early,
            f"a handler saw {signal} before {signal} returned; it must be scheduled",
        )
        await self.settle()
        self.verify(signal in [seen for seen, _ in self.seen], f"no handler saw {signal}")

    async def _draft_with_unhandled_elements(self) -> ManualPublisher:
        """Return a publisher whose subscriber has elements that its tasks could not handle yet."""
        upstream = await self.attach_fresh()
        await self.make_request(2)
        for index in range(min(upstream.outstanding, 2)):
            upstream.emit(self.create_element(index))
        while upstream.subscription.has_call():
            upstream.subscription.next_call()
        return upstream

    async def _draft_expect_no_calls(self, upstream: ManualPublisher) -> None:
        """Tell it to request and to shut down, and expect no call on the ended subscription."""
        await self.settle()
        for act in (partial(self.make_request, 1), self.trigger_shutdown):
            # The downstream subscription of a processor has ended, too, and raises.
            with suppress(InvalidStateError):
                await resolve(act())
        await upstream.expect_no_calls()


class _RecordingSubscription(DraftSubscription):
    """A subscription that records the calls on it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def request_more(self, n: int, /) -> None:
        self.calls.append(f"request_more({n})")

    def cancel(self) -> None:
        self.calls.append("cancel()")
