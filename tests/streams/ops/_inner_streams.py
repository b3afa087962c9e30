"""A subscriber to a stream of streams: it subscribes to each inner stream and records both."""

from typing import Any

from penstock.streams import Source
from tests.streams.ops.harness import OperatorHarness, Recorder


class NestedRecorder(Recorder):
    """Records the outer stream, and has a `Recorder` for each inner stream."""

    def __init__(
        self, harness: OperatorHarness, *, inner_demand: int, subscribes: bool = True
    ) -> None:
        super().__init__(harness)
        self.inner_demand = inner_demand
        self.subscribes = subscribes
        self.streams: list[Source[Any]] = []
        self.inner: list[Recorder] = []

    def on_next(self, element: Any, /) -> None:
        self.streams.append(element)
        if self.subscribes:
            self.subscribe(element)
        super().on_next(element)

    def close(self) -> None:
        """Cancel the outer stream and every inner one, and forget the streams,
        which keep elements.
        """
        super().close()
        for each in self.inner:
            each.close()
        self.streams.clear()

    def subscribe(self, stream: Source[Any]) -> Recorder:
        """Subscribe to one inner stream."""
        recorder = Recorder(self.harness)
        self.inner.append(recorder)
        stream.attach(recorder, self.harness.scope)
        if self.inner_demand:
            recorder.request(self.inner_demand)
        return recorder


def run_nested(
    harness: OperatorHarness,
    operator: Any,
    *,
    demand: int,
    inner_demand: int = 100,
    subscribes: bool = True,
) -> NestedRecorder:
    """Attach a nested recorder to a scripted source through `operator`,
    and request `demand` inner streams.
    """
    recorder = harness.recorder = NestedRecorder(
        harness, inner_demand=inner_demand, subscribes=subscribes
    )
    harness.run(operator)
    if demand:
        recorder.request(demand)
    return recorder
