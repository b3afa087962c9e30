"""Callbacks: the plain Reactive Streams interfaces, for code
that is called with each element instead of iterating.
"""

import trio

import penstock


class Printer(penstock.Subscriber[int]):
    """A subscriber written by hand: it requests two elements at a time, and has a bug at 6."""

    def on_subscribe(self, subscription: penstock.Subscription, /) -> None:
        """Request the first two. This is always the first signal,
        and no element comes before a request.
        """
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: int, /) -> None:
        """Print the element; request two more after each odd one."""
        print("element", element)
        if element == 6:
            raise RuntimeError("a bug in on_next")
        if element % 2:
            self.subscription.request(2)

    def on_error(self, error: BaseException, /) -> None:
        """The publisher failed; nothing follows."""
        print("failed:", error)

    def on_complete(self, /) -> None:
        """The publisher is done; nothing follows."""
        print("complete")


async def main() -> None:
    """Bind a source to a nursery, which then owns its tasks, and subscribe."""
    async with trio.open_nursery() as nursery:
        short = penstock.from_iterable(range(4)).publisher(nursery)
        short.subscribe(Printer())
        print("subscribe() has returned; a task in the nursery sends the signals")

    async with trio.open_nursery() as nursery:
        # A fault of the subscriber ends its own subscription and goes to on_violation;
        # the publisher never sees it.
        long = penstock.from_iterable(range(4, 1000)).publisher(
            nursery, on_violation=lambda fault: print("on_violation:", fault)
        )
        long.subscribe(Printer())

    async with trio.open_nursery() as nursery:
        # CallbackSubscriber makes a subscriber of plain functions.
        words = penstock.from_iterable(["plain", "functions"]).publisher(nursery)
        words.subscribe(penstock.CallbackSubscriber(print, complete=lambda: print("done")))


if __name__ == "__main__":
    trio.run(main)
