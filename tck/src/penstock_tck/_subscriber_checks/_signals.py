"""How signals are handled: they return, refuse None, and leave slow work to a task (rules 2.2,
2.7, 2.11, 2.13).
"""

from typing import Any, Final

from penstock.testing import ManualPublisher
from penstock_tck._capabilities import DISPATCHES, ONE_THREAD, RAISING_HANDLER, REPORTS
from penstock_tck._check import check
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._upstream import InterceptedPublisher
from penstock_tck._verification import resolve

_SOME: Final = 20


class SubscriberSignalChecks(SubscriberStage):
    """Checks of how signals are handled."""

    abstract = True

    @check("2.2", needs=[REPORTS, DISPATCHES])
    async def on_next_returns_before_its_handler_runs(self) -> None:
        """Sends an element. Expects that no handler has got it when on_next returns, and
        that one has when all is settled.

        If this fails, look at on_next:
        it hands the element to a task of the subscriber and returns.
        """
        upstream = await self.attach_with_request()
        upstream.emit(self.create_element(0))
        self.verify(
            not self.seen,
            (
                "a handler saw the element before on_next returned; dispatches = True says that "
                "it runs later"
            ),
        )
        await self.settle()
        self.verify(self.seen_elements, "no handler saw the element")
        await self.finish_upstream(upstream)

    @check("2.7", needs=[ONE_THREAD])
    async def calls_come_from_the_thread_of_the_run(self) -> None:
        """Sends up to twenty elements, one after each request, and completes.
        Expects each call in the thread of the run.

        If this fails, look at where request and cancel are called:
        enter the thread of the run with trio.from_thread.run_sync.
        """
        upstream = await self.attach_fresh()
        for _ in range(_SOME):
            await self.make_request(1)
            if not await self.feed(upstream, 1):
                break
        await self.finish_upstream(upstream)
        self.require_evidence(upstream.subscription.call_places, "the subscriber made no call")

    @check("2.11", needs=[REPORTS])
    async def handlers_see_all_signals_in_order(self) -> None:
        """Sends up to twenty elements as they are requested and completes directly after the last.
        Expects that the handlers get every element once, in order, then the completion, all in the
        thread of the run.

        If this fails, look at what lies between the signals and your handlers: use one queue for
        elements and ends, emptied by one task.
        """
        upstream = await self.attach_fresh()
        for _ in range(_SOME):
            await self.make_request(1)
        sent = await self.feed(upstream, _SOME - 1)
        if upstream.outstanding and not upstream.cancelled:
            sent.append(self.create_element(len(sent)))
            upstream.emit(sent[-1])
        if not upstream.cancelled:
            upstream.complete()
        await self.settle()
        self.verify(
            self.seen_elements == sent,
            f"the elements {sent} were signalled, but the handlers saw {self.seen_elements}",
        )
        end = [signal for signal, _ in self.seen][-1:]
        self.verify(
            upstream.cancelled or end == ["on_complete"],
            f"the last signal that the handlers saw was {end or 'none'}, not on_complete",
        )
        await self.finish_upstream(upstream)
        self.require_evidence(sent, "nothing was requested, so no element was sent")

    @check("2.13")
    async def on_subscribe_refuses_none(self) -> None:
        """Calls on_subscribe(None) on a subscriber without a subscription, and on one that has a
        subscription. Expects a TypeError.

        If this fails, look at on_subscribe:
        before it does anything else it must raise a TypeError for None.
        """
        answers: list[str] = []
        upstream = self.manual_publisher()
        tapped: Any = InterceptedPublisher(
            upstream, before=lambda subscriber: answers.append(_answer_to_none(subscriber))
        )
        await self.attach(tapped)
        self.verify(
            answers == ["TypeError"],
            (
                f"a fresh subscriber answered on_subscribe(None) with {answers}; it must raise a "
                "TypeError"
            ),
        )
        self.expect_raise(TypeError, self.signal_target(upstream).on_subscribe, None)
        await self.finish_upstream(upstream)

    @check("2.13")
    async def on_next_refuses_none(self) -> None:
        """Calls on_next(None). Expects a TypeError.

        If this fails, look at on_next: before it does anything else it must raise a TypeError for
        None, which is never an element.
        """
        upstream = await self.attach_fresh()
        self.expect_raise(TypeError, self.signal_target(upstream).on_next, None)
        await self.finish_upstream(upstream)

    @check("2.13")
    async def on_error_refuses_none(self) -> None:
        """Calls on_error(None). Expects a TypeError.

        If this fails, look at on_error:
        before it does anything else it must raise a TypeError for None.
        """
        upstream = await self.attach_fresh()
        self.expect_raise(TypeError, self.signal_target(upstream).on_error, None)
        await self.finish_upstream(upstream)

    @check("2.13", optional=True)
    async def on_error_refuses_a_value_that_is_not_an_exception(self) -> None:
        """Calls on_error("a text"). Expects a TypeError: Python has no compiler that refuses it.

        If this fails, look at on_error:
        a value that is not an exception cannot be raised later in the code of your user.
        """
        upstream = await self.attach_fresh()
        self.expect_raise(TypeError, self.signal_target(upstream).on_error, "a text")
        await self.finish_upstream(upstream)

    @check("2.13", needs=[RAISING_HANDLER])
    async def a_handler_that_raises_cancels_the_subscription(self) -> None:
        """Sends an element to a subscriber whose handler raises. Expects that on_next returns and
        that the subscription is cancelled. Then sends another element that was requested before.

        If this fails, look at where on_next calls the user's handler:
        catch its exception there, cancel, and report it.
        """
        error = ValueError("the handler failed")
        upstream = self.manual_publisher()
        self.subscriber: Any = await resolve(self.create_raising_subscriber(error))
        upstream.subscribe(self.subscriber)
        await self.settle()
        await self._raise_in_handler(upstream)

    async def _raise_in_handler(self, upstream: ManualPublisher) -> None:
        await self.make_request(2)
        await upstream.expect_request()
        upstream.emit(self.create_element(0))
        await upstream.expect_cancel()
        if upstream.outstanding:
            upstream.emit(self.create_element(1))
        await self.settle()


def _answer_to_none(subscriber: Any) -> str:
    """Call on_subscribe(None) and return the name of the exception:
    it must not reach the publisher's subscribe().
    """
    try:
        subscriber.on_subscribe(None)
    except Exception as error:
        # boundary: the subscriber's code runs here, and its exception is judged.
        return type(error).__name__
    return "a normal return"
