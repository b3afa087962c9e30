"""cancel(), and that the signals stop after it (rules 1.8, 3.5, 3.6, 3.7, 3.12, 3.15).

Rules of this file

* "Eventually" means: when all tasks are blocked, and at latest after the declared settling time.
  Until then signals may come (rule 2.8), also on_complete and on_error. After it no signal may
  come.
* The effect of a cancel can be seen only if more signals would come without it: in an endless or a
  long stream, or while a slow element is awaited. A short stream with demand left may have ended
  before the cancel takes effect.
"""

from functools import partial
from typing import Any

import trio

from penstock.api import UNBOUNDED
from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import COMPLETES, FAILED_PUBLISHER, SLOW_PUBLISHER
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_RUNAWAY = 5_000
"""After this many signals an endless publisher that ignores cancel() is stopped."""


def _count(probe: ManualSubscriber) -> int:
    return len(probe.elements)


class CancellingChecks(PublisherStage):
    """Checks of cancel()."""

    abstract = True

    # ----------------------------------------------------------- the signals stop (rules 1.8, 3.12)

    @check("1.8")
    async def nothing_comes_after_a_cancel_inside_on_subscribe(self) -> None:
        """Requests 2 and cancels inside on_subscribe, and only cancels there. Expects no signal
        after the publisher has settled.

        If this fails, look at what subscribe() does after on_subscribe has returned: the
        subscription may be cancelled by then.
        """
        for number in (0, 2):
            probe = await self.open(
                self.length(3),
                when_subscribed=lambda asking, n=number: (
                    asking.request(n) if n else None,
                    asking.cancel(),
                ),
            )
            await self.expect_silence(probe)

    @check("1.8", elements=1, seeds=3)
    async def nothing_comes_after_a_cancel_inside_on_next(self) -> None:
        """Requests 15 and cancels inside the first, the second and the third on_next. Expects no
        signal after the publisher has settled.

        If this fails, look at the loop that signals: it must check the subscription before each
        signal, also before the end.
        """
        for position in range(1, self.length(3) + 1):
            probe = await self.open(
                self.length(20),
                when_next=lambda asking, _, last=position: (
                    asking.cancel() if len(asking.elements) == last else None
                ),
            )
            probe.request(15)
            await self.settle_all(partial(_count, probe))
            await self.expect_silence(probe)

    @check("1.8", elements=1)
    async def nothing_comes_after_a_cancel_between_signals(self) -> None:
        """Takes one of two elements, cancels when all is settled, and expects neither an element
        nor an end, however much time passes.

        If this fails, look at what continues without demand: a timer, a task that waits for the
        source, an end that is signalled later.
        """
        probe = await self.open(self.length(2))
        probe.request(1)
        await probe.expect_elements(1)
        await self.settle()
        probe.cancel()
        await self.expect_silence(probe)

    @check("1.8", "3.12", elements=1000)
    async def cancel_stops_a_stream_with_unbounded_demand(self) -> None:
        """Requests 2^63-1 of an endless (or the longest) stream, cancels inside the tenth on_next,
        and expects that the stream stops.

        If this fails, look at what cancel() sets and what reads it: the loop that signals must end
        soon, and not only when the demand is used up.
        """
        length = self.length(UNBOUNDED)
        probe = await self.open(
            length,
            signal_cap=_RUNAWAY,
            when_next=lambda asking, _: asking.cancel() if len(asking.elements) == 10 else None,
        )
        probe.request(UNBOUNDED)
        await self.settle_all(lambda: min(len(probe.elements), 10))
        arrived = len(probe.elements)
        self.verify(
            arrived >= 10,
            (
                f"{probe.name} requested 2^63-1 of a stream of {length}, and got only {arrived} "
                "elements"
            ),
        )
        self.verify(
            arrived < length,
            f"the stream went on to its end: {length - 10} elements arrived after the cancel",
        )
        await self.expect_silence(probe)

    @check("1.8", "3.12", elements=2, needs=[SLOW_PUBLISHER])
    async def cancel_stops_elements_of_a_slow_source(self) -> None:
        """Takes one element that needs a second, requests another, cancels while the source
        prepares it, and expects that it does not come.

        If this fails, look at the code that waits for the source: cancel() must end that wait, or
        the element must be dropped.
        """
        probe = await self.open_on(await self.resolve(self.create_slow_publisher(2, 1.0)))
        probe.request(1)
        await trio.sleep(1.5)
        await probe.expect_elements(1)
        probe.request(1)
        await trio.sleep(0.5)
        probe.cancel()
        await self.expect_silence(probe)

    # ------------------------------------------------------------ cancel() itself (rules 3.5, 3.15)

    @check("3.5")
    async def cancel_makes_no_signal(self) -> None:
        """Cancels inside on_subscribe, inside on_next and between signals. Expects that no signal
        comes before cancel() returns.

        If this fails, look at cancel(): it marks the subscription as cancelled and returns.
        Cleaning up can be done later, and no signal is due.
        """
        length = self.length(3)
        probe = await self.open(length, when_subscribed=self._cancel_without_signals)
        await self.expect_silence(probe)
        probe = await self.open(length)
        self._cancel_without_signals(probe)
        await self.expect_silence(probe)
        if length:
            probe = await self.open(length, when_next=self._cancel_without_signals)
            probe.request(1)
            await self.expect_silence(probe)

    def _cancel_without_signals(self, probe: Any, _: Any = None) -> None:
        before = probe.ledger.signals
        probe.cancel()
        came = probe.ledger.signals - before
        if came:
            probe.ledger.violate("3.5", f"{came} signals arrived from inside cancel()")

    @check("3.15")
    async def cancel_returns_normally_in_every_state(self) -> None:
        """Cancels inside on_subscribe, inside on_next, before and after a request, twice, and after
        the end. Expects no exception.

        If this fails, look at what cancel() needs that does not exist in every state: a task, a
        source, a subscriber that was dropped.
        """
        for hooks in ({"when_subscribed": _cancel}, {"when_next": _cancel}, {}):
            for requests in (0, 1):
                probe = await self.open(self.length(2), **hooks)
                if requests:
                    probe.request(requests)
                probe.cancel()
                probe.cancel()
                await self.expect_silence(probe)
                probe.cancel()

    @check("3.15", needs=[COMPLETES])
    async def cancel_returns_normally_after_on_complete(self) -> None:
        """Takes a stream to its end and cancels. Expects no exception and no signal.

        If this fails, look at what cancel() does with a source that has ended and is closed.
        """
        probe = await self.open(self.length(1))
        probe.request(10)
        await self.settle()
        probe.cancel()
        await self.expect_silence(probe)

    @check("3.15", needs=[FAILED_PUBLISHER])
    async def cancel_returns_normally_after_a_failure(self) -> None:
        """Subscribes to a failed publisher and cancels after its on_error.
        Expects no exception and no signal.

        If this fails, look at the subscription of a failed publisher:
        it needs a cancel() that does nothing.
        """
        probe = await self.open_on(await self.resolve(self.create_failed_publisher()))
        await probe.expect_error()
        probe.cancel()
        await self.expect_silence(probe)

    # -------------------------------------------------------------- after a cancel (rules 3.6, 3.7)

    @check("3.6")
    async def requests_after_a_cancel_do_nothing(self) -> None:
        """Cancels, then requests 1 three times, 2^63-1, 0 and -1.
        Expects no signal, neither an element nor an on_error.

        If this fails, look at the first line of request(): on a cancelled subscription it must
        return before it does anything.
        """
        probe = await self.open(self.length(3))
        probe.cancel()
        await self.settle()
        before = probe.ledger.signals
        for number in (1, 1, 1, UNBOUNDED, 0, -1):
            probe.request(number)
        await self.settle()
        self.verify(
            probe.ledger.signals == before,
            f"{probe.ledger.signals - before} signals answered requests after the cancel",
        )
        await self.expect_silence(probe)

    @check("3.7", "3.5", elements=1)
    async def further_cancels_do_nothing(self) -> None:
        """Takes an element, cancels three times at once and once more later. Expects no signal, and
        that another subscriber is still served.

        If this fails, look at what cancel() removes: a second call finds nothing, and must not
        remove another subscriber instead.
        """
        publisher = await self.publisher(self.length(2))
        probe, neighbour = await self.open_on(publisher), await self.open_on(publisher)
        probe.request(1)
        if self.multicast:
            neighbour.request(1)
        await probe.expect_elements(1)
        for _ in range(3):
            probe.cancel()
        await self.expect_silence(probe)
        probe.cancel()
        if self.multicast:
            neighbour.request(1)
            await self.expect_arrived(neighbour, self.length(2))
        await self.finish(neighbour)


def _cancel(probe: Any, _: Any = None) -> None:
    probe.cancel()
