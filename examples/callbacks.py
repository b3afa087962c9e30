"""Callbacks: the plain Reactive Streams interfaces, for code that wants to be called rather than to iterate."""

import trio

import penstock


class Printer(penstock.Subscriber[int]):
    """A subscriber of one's own: it asks for two elements at a time, and has a bug at 6."""

    def on_subscribe(self, subscription: penstock.Subscription, /) -> None:
        """Always the first signal; no element comes before a request."""
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: int, /) -> None:
        """One element."""
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
    """Bind a source to a nursery, which runs it in plain sight, and subscribe."""
    async with trio.open_nursery() as nursery:
        short = penstock.from_iterable(range(4)).publisher(nursery)
        short.subscribe(Printer())
        print("subscribe() has returned; what follows comes from a task in the nursery")

    async with trio.open_nursery() as nursery:
        # A fault of the subscriber ends its own subscription and is told here; the publisher never sees it.
        long = penstock.from_iterable(range(4, 1000)).publisher(nursery, on_violation=lambda fault: print("told:", fault))
        long.subscribe(Printer())

    async with trio.open_nursery() as nursery:
        # Where a function is enough, no class is needed.
        words = penstock.from_iterable(["plain", "functions"]).publisher(nursery)
        words.subscribe(penstock.CallbackSubscriber(print, complete=lambda: print("done")))


if __name__ == "__main__":
    trio.run(main)
