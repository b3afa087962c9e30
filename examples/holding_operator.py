"""An operator that holds elements: `HoldingStage` counts demand and passes on, and a `Timer`
tells when the total is due.
"""

import trio

import penstock
from penstock.streams import Scope, Source
from penstock.streams.ops import HoldingStage, OperatorBase, Timer


class Totals(OperatorBase[int, int]):
    """Add up the elements that arrive within 1 s of the first, and pass on the total.

    Upstream demand: 1 at a time. Buffer: 1 total. It goes on at completion;
    an error or a cancel drops it.
    """

    def attach(
        self, source: Source[int], subscriber: penstock.Subscriber[int], scope: Scope
    ) -> None:
        """Put a fresh stage between source and subscriber."""
        source.attach(_TotalsStage(subscriber, scope), scope)


class _TotalsStage(HoldingStage[int, int]):
    def __init__(self, downstream: penstock.Subscriber[int], scope: Scope) -> None:
        super().__init__(downstream)
        self._total: int | None = None
        self._due_at, self._is_requested = 0.0, False
        self._timer = Timer(scope, "totals", on_deadline=self._pass_on, fail=self._fail)

    def on_next(self, element: int, /) -> None:
        if self._total is None:
            self._due_at = self._timer.set(1.0)
        self._total, self._is_requested = (self._total or 0) + element, False
        self._pass_on()

    def _has_held(self) -> bool:
        return self._total is not None

    def _next_due(self) -> int | None:
        if trio.current_time() < self._due_at and not self._upstream_completed:
            return None
        total, self._total = self._total, None
        return total

    def _request_upstream(self) -> None:
        if self._demand and not self._is_requested:
            self._is_requested = True
            self._upstream.request(1)

    def _release(self) -> None:
        self._total = None
        self._timer.stop()


async def main() -> None:
    ticks = penstock.interval(0.3).take(10)
    print(await penstock.collect(penstock.pipe(ticks, Totals())))


if __name__ == "__main__":
    trio.run(main)
