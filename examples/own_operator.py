"""An operator written by hand: a blueprint, and a stage between two neighbours for the length of
one stream.
"""

from typing import Any

import trio

import penstock
from penstock.streams import Scope, Source


class Pairwise(penstock.ops.OperatorBase[Any, tuple[Any, Any]]):
    """Pass on each element together with the one before it.

    Upstream demand: 1 per downstream demand, and 1 more with the first. Buffer: 1 element.
    """

    def attach(
        self, source: Source[Any], subscriber: penstock.Subscriber[tuple[Any, Any]], scope: Scope
    ) -> None:
        """Make a fresh stage for this stream, and attach the source to it."""
        source.attach(_PairwiseStage(subscriber), scope)


class _PairwiseStage(penstock.Subscriber[Any], penstock.Subscription):
    """The subscriber of its upstream and the subscription of its downstream. It passes on each
    signal that it does not change.
    """

    def __init__(self, below: penstock.Subscriber[tuple[Any, Any]]) -> None:
        self.below = below
        self.before: Any = None

    def on_subscribe(self, subscription: penstock.Subscription, /) -> None:
        self.above = subscription
        self.below.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        before, self.before = self.before, element
        if before is None:
            # The first element was requested and is not passed on, so request another.
            self.above.request(1)
        else:
            self.below.on_next((before, element))

    def on_error(self, error: BaseException, /) -> None:
        self.below.on_error(error)

    def on_complete(self, /) -> None:
        self.below.on_complete()

    def request(self, n: int, /) -> None:
        self.above.request(n)

    def cancel(self, /) -> None:
        self.above.cancel()


async def main() -> None:
    """Use it like any other operator."""
    steps = penstock.pipe(
        [3, 5, 4, 9], Pairwise(), penstock.ops.map(lambda pair: pair[1] - pair[0])
    )
    print(await penstock.collect(steps))


if __name__ == "__main__":
    trio.run(main)
