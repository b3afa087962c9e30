"""A publisher of one's own: a class that keeps the rules, and then everything else works with it."""

import trio

import penstock
from penstock.api import add_demand, check_demand


class Countdown(penstock.Publisher[int]):
    """Counts down from `start`, anew for each subscriber, without a task: inside the `request` that permits it."""

    def __init__(self, start: int) -> None:
        self.start = start

    def subscribe(self, subscriber: penstock.Subscriber[int], /) -> None:
        """Begin a stream. `on_subscribe` comes first (rule 1.9)."""
        subscriber.on_subscribe(Descent(self.start, subscriber))


class Descent(penstock.Subscription):
    """One subscriber's way down."""

    def __init__(self, left: int, subscriber: penstock.Subscriber[int]) -> None:
        self.left, self.demand, self.emitting = left, 0, False
        self.subscriber: penstock.Subscriber[int] | None = subscriber

    def request(self, n: int, /) -> None:
        """Permit `n` more, and emit them at once."""
        try:
            self.demand = add_demand(self.demand, check_demand(n))
        except penstock.IllegalDemand as illegal:  # rule 3.9: the subscriber hears of it
            if (subscriber := self.forget()) is not None:
                subscriber.on_error(illegal)
        if self.emitting:  # rule 3.3: a request from inside on_next; the loop further up this stack goes on
            return
        self.emitting = True
        while self.subscriber is not None and self.demand and self.left:
            self.demand, self.left = self.demand - 1, self.left - 1
            self.subscriber.on_next(self.left + 1)
        self.emitting = False
        if not self.left and (subscriber := self.forget()) is not None:
            subscriber.on_complete()

    def cancel(self, /) -> None:
        """Stop: whoever has been forgotten hears nothing more."""
        self.forget()

    def forget(self) -> "penstock.Subscriber[int] | None":
        """Let go of the subscriber (rule 3.13); return who it was."""
        subscriber, self.subscriber = self.subscriber, None
        return subscriber


async def main() -> None:
    """Read it like anything else."""
    print(await penstock.collect(Countdown(5)))


if __name__ == "__main__":
    trio.run(main)
