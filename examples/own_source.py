"""A source written by hand, without a task:
it signals its elements inside the `request` that permits them.
"""

import trio

import penstock
from penstock.api import add_demand
from penstock.streams import Scope


class Countdown(penstock.Source[int]):
    """A blueprint: counts down from `start`, anew for each subscriber."""

    def __init__(self, start: int) -> None:
        self.start = start

    def attach(self, subscriber: penstock.Subscriber[int], scope: Scope) -> None:
        """Begin a stream, with `on_subscribe` first. A task would be spawned in `scope`;
        this source needs none.
        """
        descent = Descent(self.start, subscriber)
        subscriber.on_subscribe(descent)
        descent.go_on()


class Descent(penstock.Subscription):
    """The stream of one subscriber. The guards of penstock stop an invalid demand, and a
    subscriber that raises, before this class.
    """

    def __init__(self, left: int, subscriber: penstock.Subscriber[int]) -> None:
        self.subscriber: penstock.Subscriber[int] | None = subscriber
        self.left, self.demand, self.busy = left, 0, False

    def request(self, n: int, /) -> None:
        """Permit `n` more elements."""
        self.demand = add_demand(self.demand, n)
        self.go_on()

    def go_on(self) -> None:
        """Signal what is permitted, and complete with the last element."""
        if self.busy:
            # rule 3.3: a request from inside on_next is served by the loop further up this stack.
            return
        self.busy = True
        while self.subscriber is not None and self.left and self.demand:
            self.demand, self.left = self.demand - 1, self.left - 1
            self.subscriber.on_next(self.left + 1)
        self.busy = False
        if self.subscriber is not None and not self.left:
            subscriber, self.subscriber = self.subscriber, None  # rule 1.6
            subscriber.on_complete()

    def cancel(self, /) -> None:
        """Stop, and forget the subscriber (rule 3.13)."""
        self.subscriber = None


async def main() -> None:
    """Collect it, and pipe it, like any other source."""
    print(await penstock.collect(Countdown(5)))
    print(
        await penstock.collect(
            penstock.pipe(Countdown(5), penstock.ops.filter(lambda number: number % 2))
        )
    )


if __name__ == "__main__":
    trio.run(main)
