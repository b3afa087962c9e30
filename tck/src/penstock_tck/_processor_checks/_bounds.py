"""Demand that comes before upstream does, and the bound on the elements
that a processor keeps (rule 4.1).
"""

from typing import Any, Final

from penstock.api import UNBOUNDED
from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import BUFFER_SIZE
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage
from penstock_tck._upstream import LatePublisher
from penstock_tck._verification import resolve

_SOME: Final = 3
_MOST: Final = 10_000
"""Elements after which a processor that keeps more than it declares is stopped."""


class BoundChecks(ProcessorStage):
    """Checks of early demand and of kept elements."""

    abstract = True

    @check("4.1", "3.8")
    async def demand_before_upstream_has_come_is_kept(self) -> None:
        """Subscribes downstream and requests 1 and 2 before upstream has signalled on_subscribe.
        Then upstream comes and sends what is requested. Expects the three elements. A processor
        that signals on_subscribe only when upstream has come is asked then.

        If this fails, look at request() while the processor has no subscription: it must add up the
        demand, and pass it on later.
        """
        upstream = self.manual_publisher()
        late: Any = LatePublisher(upstream)
        self.downstream: ManualSubscriber = self.probe()
        probe = self.downstream
        self.subscribe(await resolve(self.connect(late)), probe)
        await self.settle()
        early = probe.subscription is not None
        if early:
            self._request_three(probe)
            await self.settle()
        late.arrive()
        await self.settle()
        if not early:
            await probe.expect_subscription()
            self._request_three(probe)
        sent = await self.feed(upstream, _SOME)
        self.verify(
            len(sent) == _SOME,
            f"3 elements were requested downstream, and {len(sent)} of them upstream",
        )
        await probe.expect_next(*sent)
        await self.finish_upstream(upstream)

    def _request_three(self, probe: Any) -> None:
        probe.request(1)
        probe.request(_SOME - 1)

    @check("4.1", needs=[BUFFER_SIZE])
    async def no_more_is_kept_than_declared(self) -> None:
        """Sends all elements that are requested upstream while nothing was requested downstream,
        then while 3 elements were requested. Expects no more than buffer_size elements beyond those
        that came downstream.

        If this fails, look at what the processor requests upstream: as much as it has room for, and
        no more. Unbounded demand upstream keeps everything.
        """
        bound = self.buffer_size or 0
        upstream = await self.attach_fresh()
        for requested in (0, _SOME):
            if requested:
                self.downstream.request(requested)
            await self.settle()
            self.verify(
                upstream.requested < UNBOUNDED,
                "the demand upstream is unbounded, so it keeps all elements that come",
            )
            await self.feed(upstream, min(_MOST, bound + 2 * _SOME))
            kept = upstream.subscription.emitted - len(self.downstream.elements)
            self.verify(
                kept <= bound, f"it keeps {kept} elements, and declares buffer_size = {bound}"
            )
        await self.finish_upstream(upstream)
