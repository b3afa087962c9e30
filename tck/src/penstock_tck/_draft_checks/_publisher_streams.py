"""Elements and ends by the draft (DP18 to DP21, DP23)."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import trio

from penstock.api import InvalidStateError
from penstock.testing import ManualSubscriber, Signal
from penstock_tck._capabilities import COMPLETES, MULTICAST
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_MINUTE: Final = 60.0
_PATTERNS: Final = ((1, 1, 2, 1), (2, 3), (3, 1, 1))
"""How three subscribers request the same five elements."""


class DraftStreamChecks(PublisherStage):
    """Checks of the draft's streams."""

    abstract = True

    @check("D4.2", elements=3, needs=[COMPLETES])
    async def no_element_follows_the_end(self) -> None:
        """DP18: calls request_more(10) on a stream of three elements, takes it to its end, and
        requests 10 more. Expects no signal.

        If this fails, look at tasks that still run after the end:
        open demand must not bring another element.
        """
        probe = await self.open(3)
        probe.request(10)
        await probe.expect_elements(3)
        await probe.expect_complete()
        # D2.1 says whether it raises; this check only looks for signals.
        with suppress(InvalidStateError):
            probe.request(10)
        await probe.expect_nothing()

    @check("D4.3", elements=5, needs=[MULTICAST])
    async def all_subscribers_get_the_same_elements_one_by_one(self) -> None:
        """DP19: three subscribers request five elements in turns, by 1, 1, 2, 1 and 2, 3 and 3,
        1, 1. Expects the same five for each.

        If this fails, look at where elements are made: once for the stream, not once for each
        subscriber, and always in the same order.
        """
        probes = await self._draft_subscribe_three(5)
        for turn in range(max(map(len, _PATTERNS))):
            for probe, pattern in zip(probes, _PATTERNS, strict=True):
                if turn < len(pattern):
                    probe.request(pattern[turn])
            await self.settle()
        self._draft_expect_the_same(probes, 5)
        await self.finish(*probes)

    @check("D4.3", elements=3, needs=[MULTICAST, COMPLETES])
    async def all_subscribers_get_the_same_elements_at_once(self) -> None:
        """DP20: three subscribers request more than the stream has. Expects the same elements, the
        same last one, and on_complete for each.

        If this fails, look at how a subscriber that requests much is served beside the others: it
        gets the same stream as they do.
        """
        probes = await self._draft_subscribe_three(3)
        for probe in probes:
            probe.request(4)
        await self.settle()
        self._draft_expect_the_same(probes, 3)
        for probe in probes:
            await probe.expect_elements(3)
            await probe.expect_complete()

    @check("D4.4", "D4.5", elements=3, needs=[COMPLETES])
    async def completion_comes_with_the_last_element(self) -> None:
        """DP21: requests exactly the three elements that the stream has. Expects on_complete after
        them, without a further request.

        If this fails, look at when the end is detected: after the last element, not at the next
        request. Look one element ahead if the source does not tell its end.
        """
        probe = await self.open(3)
        probe.request(3)
        await probe.expect_elements(3)
        await probe.expect_complete()
        await probe.expect_nothing()

    @check("D4.7", elements=1, needs=[COMPLETES])
    async def a_stream_ends_once(self) -> None:
        """DP23: takes a stream of one element to its end, requests once more, and waits. Expects a
        single on_complete and no on_error.

        If this fails, look at the code paths that lead to on_complete and on_error: the first one
        that is taken must close the others.
        """
        probe = await self.open(1)
        probe.request(1)
        await self.settle()
        with suppress(InvalidStateError):
            probe.request(1)
        await trio.sleep(_MINUTE)
        ends = [
            signal for signal, _ in await probe.drain() if signal in (Signal.COMPLETE, Signal.ERROR)
        ]
        self.verify(
            ends == [Signal.COMPLETE],
            f"the stream ended {len(ends)} times; a single on_complete was expected",
        )

    async def _draft_subscribe_three(self, elements: int) -> list[ManualSubscriber]:
        publisher = await self.publisher(elements)
        return [await self.open_on(publisher) for _ in _PATTERNS]

    def _draft_expect_the_same(self, probes: Sequence[ManualSubscriber], count: int) -> None:
        for probe in probes:
            probe.check()
            self.verify(
                len(probe.elements) == count,
                f"{probe.name} got {len(probe.elements)} of {count} elements",
            )
            same = probe.elements == probes[0].elements
            self.verify(
                same,
                f"{probe.name} got {probe.elements}, but {probes[0].name} got {probes[0].elements}",
            )
