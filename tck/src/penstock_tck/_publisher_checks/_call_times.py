"""How long request() and cancel() keep the run loop from running (rules 3.4, 3.5).

The shortest of several calls is judged, without the time in which other programs had the processor:
on a busy machine a call may take long without a fault of the publisher, but hardly each of them. So
a call that only sometimes blocks is not seen.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from penstock_tck._call_clock import DEFAULT_SECONDS
from penstock_tck._capabilities import CALL_SECONDS
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage
from penstock_tck._watchdog import seconds_waited

_CALLS: Final = 5


class CallTimeChecks(PublisherStage):
    """Checks of the duration of calls."""

    abstract = True

    @check("3.4", needs=[CALL_SECONDS])
    async def request_blocks_no_longer_than_declared(self) -> None:
        """Measures request(1) five times, each on a fresh stream, in real time. Expects that the
        shortest took no longer than call_seconds.

        If this fails, look at what request() does before it returns:
        work that blocks belongs into a task or a thread.
        """
        await self._expect_short("request(1)", lambda probe: probe.request(1))

    @check("3.5", needs=[CALL_SECONDS])
    async def cancel_blocks_no_longer_than_declared(self) -> None:
        """Measures cancel() five times, each on a fresh stream with open demand, in real time.
        Expects that the shortest took no longer than call_seconds.

        If this fails, look at what cancel() does before it returns: closing a source that blocks
        belongs into a task or a thread.
        """
        await self._expect_short("cancel()", lambda probe: probe.cancel(), requests=1)

    async def _expect_short(
        self, words: str, call: Callable[[Any], object], requests: int = 0
    ) -> None:
        allowed = DEFAULT_SECONDS if self.call_seconds is None else self.call_seconds
        took = []
        for _ in range(_CALLS):
            probe = await self.open(self.length(3))
            if requests:
                probe.request(requests)
                await self.settle()
            began, waited_before = perf_counter(), seconds_waited()
            call(probe)
            took.append(perf_counter() - began - (seconds_waited() - waited_before))
            await self.finish(probe)
        self.verify(
            min(took) <= allowed,
            f"{words} took {min(took):.3f} s at least; call_seconds = {allowed:g}",
        )
