"""Sources that raise, subscribers that raise, and a nursery that is cancelled (rules 1.4, 1.9,
2.13).

Rules of this file

* A subscriber that raises breaks rule 2.13 itself. Its subscription then counts as cancelled, and
  other subscribers are not affected.
  The caller of request() or subscribe() is not affected either:
  these return normally (3.16, 1.9), as in every other check.
* The exception is reported. The publisher chooses how; a check looks at it only if
  `violations_reported` is declared.
"""

from collections.abc import Callable
from typing import Any

import trio

from penstock.testing import ManualSubscriber, Signal
from penstock_tck._capabilities import COMPLETES, FAULTY_PUBLISHER, MULTICAST, VIOLATION_HOOK
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class FaultChecks(PublisherStage):
    """Checks of how a publisher handles exceptions of sources and subscribers."""

    abstract = True

    # ------------------------------------------------------------------ sources that raise

    @check("1.4", needs=[FAULTY_PUBLISHER])
    async def a_source_that_raises_ends_the_stream_with_on_error(self) -> None:
        """Requests 10 of sources that raise at the first, the second and the third element. Expects
        the elements before it, then on_error.

        If this fails, look at where the source is pulled: its exception must become on_error, after
        the elements that came before it.
        """
        for elements in range(self.length(2) + 1):
            probe = await self._faulty(elements, ValueError("the source failed"))
            probe.request(10)
            await self.expect_failure(probe, elements)

    @check("1.4", needs=[FAULTY_PUBLISHER])
    async def a_source_that_raises_ends_a_stream_requested_one_by_one(self) -> None:
        """Takes the elements of a failing source one by one.
        Expects on_error, after at most one further request.

        If this fails, look at where the source is pulled when the demand has just been used up: its
        exception must not be lost.
        """
        elements = self.length(2)
        probe = await self._faulty(elements, ValueError("the source failed"))
        for _ in range(elements + 1):
            await self.settle()
            if not probe.ended:
                probe.request(1)
        await self.expect_failure(probe, elements)

    @check("1.4", needs=[FAULTY_PUBLISHER], optional=True)
    async def the_error_of_the_source_arrives_unwrapped(self) -> None:
        """Lets the source raise an error.
        Expects that very object in on_error, not wrapped in a group or in another error.

        If this fails, look at the nursery around the source: it wraps a single error in an
        ExceptionGroup, which must be unwrapped.
        """
        error = ValueError("the source failed")
        probe = await self._faulty(0, error)
        probe.request(1)
        await probe.expect_error(error)

    async def _faulty(self, elements: int, error: Exception) -> ManualSubscriber:
        return await self.open_on(await self.resolve(self.create_faulty_publisher(elements, error)))

    # ------------------------------------------------------------------ subscribers that raise

    @check("2.13")
    async def a_subscriber_that_raises_in_on_subscribe_is_cancelled(self) -> None:
        """Requests 1 and raises inside on_subscribe. Expects no signal after the publisher has
        settled, also not for a further request.

        If this fails, look at what subscribe() does if on_subscribe raises:
        the subscription counts as cancelled.
        """
        await self._expect_cancelled(
            await self.publisher(self.length(3)), requests=None, when_subscribed=_raise_after_asking
        )

    @check("2.13", elements=1)
    async def a_subscriber_that_raises_in_on_next_is_cancelled(self) -> None:
        """Raises inside the first of three on_next. Expects no signal after the publisher has
        settled, also not for a further request.

        If this fails, look at where on_next is called:
        the subscription of a subscriber that raised counts as cancelled.
        """
        await self._expect_cancelled(await self.publisher(self.length(3)), when_next=_raise)

    @check("2.13", needs=[COMPLETES])
    async def a_subscriber_that_raises_in_on_complete_does_no_harm(self) -> None:
        """Raises inside on_complete.
        Expects that request() returns, that no signal follows, and that nothing else fails.

        If this fails, look at where on_complete is called: the exception of the subscriber must not
        reach the caller of request().
        """
        length = self.length(1)
        await self._expect_cancelled(
            await self.publisher(length), requests=length + 1, when_complete=_raise
        )

    @check("2.13", elements=1)
    async def a_subscriber_that_raises_in_on_error_does_no_harm(self) -> None:
        """Requests 0 and raises inside the on_error that answers it. Expects that request()
        returns, and that no signal follows.

        If this fails, look at where on_error is called: the exception of the subscriber must not
        reach the caller of request().
        """
        await self._expect_cancelled(
            await self.publisher(self.length(2)), requests=0, when_error=_raise
        )

    @check("2.13", elements=1, needs=[MULTICAST], seeds=3)
    async def a_subscriber_that_raises_does_not_affect_the_others(self) -> None:
        """One of three subscribers raises in its first on_next. Expects that the others get every
        element, and the end if the stream has one.

        If this fails, look at the loop that signals an element to all: an exception of one
        subscriber must not end it.
        """
        length = self.length(3)
        publisher = await self.publisher(length)
        first, raising, last = [
            await self.open_on(publisher, when_next=hook) for hook in (None, _raise, None)
        ]
        for probe in (first, raising, last):
            probe.request(length + 1)
        for probe in (first, last):
            await probe.expect_elements(length)
            if self.completes:
                await probe.expect_complete()
        await self.expect_silence(raising)
        await self.finish(first, last)

    @check("2.13", elements=1, needs=[VIOLATION_HOOK])
    async def a_subscriber_that_raises_is_reported(self) -> None:
        """Raises in on_subscribe, in on_next and in on_error. Expects each exception, or one caused
        by it, in reported_violations.

        If this fails, look at where the exception of a subscriber is caught: it must be reported.
        """
        for place in ("when_subscribed", "when_next", "when_error"):
            self.reported_violations.clear()
            probe = await self.open(self.length(2), **{place: _raise})
            probe.request(0 if place == "when_error" else 1)
            await self.settle()
            reported = any(
                isinstance(cause, _Refusal)
                for error in self.reported_violations
                for cause in _causes(error)
            )
            self.verify(
                reported,
                f"a subscriber raised in {place.removeprefix('when_')}, and it was not reported",
            )
            await self.finish(probe)

    async def _expect_cancelled(
        self, publisher: Any, *, requests: int | None = 3, **hooks: Callable[..., object]
    ) -> None:
        probe = await self.open_on(publisher, **hooks)
        if requests is not None:
            probe.request(requests)
        await self.expect_silence(probe)
        probe.request(1)
        await self.expect_silence(probe)

    # ------------------------------------------------------------------ a nursery that is cancelled

    @check("1.4", "1.7", optional=True)
    async def a_cancelled_nursery_signals_at_most_one_error(self) -> None:
        """Cancels the nursery that the publisher was bound to: before the first element, between
        two, and inside on_next. Expects one on_error, or no signal, or (from a publisher that needs
        no task) the whole stream. No signal may follow.

        If this fails, look at the task that signals: trio.Cancelled must pass through it. It is
        neither an end nor an error of the source.
        """
        for requests, inside in ((0, False), (1, False), (5, True)):
            await self._cancel_the_nursery(requests, inside=inside)

    async def _cancel_the_nursery(self, requests: int, *, inside: bool) -> None:
        length = self.length(5)
        async with trio.open_nursery() as nursery:
            with self.bound_to(nursery):
                publisher = await self.publisher(length)
            hook = {"when_next": lambda *_: nursery.cancel_scope.cancel()} if inside else {}
            probe = await self.open_on(publisher, **hook)
            if requests:
                probe.request(requests)
                await self.settle()
            nursery.cancel_scope.cancel()
        self.note("the nursery was cancelled and has ended")
        await self.settle()
        signals = await probe.drain()
        whole = len(probe.elements) == length
        early = [signal for signal, _ in signals if signal is Signal.COMPLETE] and not whole
        self.verify(
            not early,
            (
                f"on_complete came after {len(probe.elements)} of {length} elements, because the "
                "nursery was cancelled"
            ),
        )
        fits = probe.error is None or (
            isinstance(probe.error, Exception) and not isinstance(probe.error, BaseExceptionGroup)
        )
        self.verify(
            fits,
            f"on_error was given {probe.error!r}; a cancellation is not an error of the source",
        )
        await probe.expect_nothing()
        if probe.ledger.is_open:
            probe.request(1)
        await self.finish(probe)


class _Refusal(Exception):
    """The exception that the subscribers of this file raise."""


def _raise(probe: Any, *_: Any) -> None:
    if probe.ledger.is_open:
        # rule 2.13: from here the subscription counts as cancelled. The publisher has the exception
        # in its hands: on one thread, no signal can be under way.
        probe.ledger.move(Signal.CANCEL)
        if not probe.ledger.may_overlap:
            probe.silence()
    raise _Refusal("a subscriber raised this")


def _raise_after_asking(probe: Any) -> None:
    probe.request(1)
    _raise(probe)


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error, the errors in its group, and the errors that caused it."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    around = [cause for cause in (error.__cause__, error.__context__) if cause is not None]
    return [error, *(found for other in (*inner, *around) for found in _causes(other))]
