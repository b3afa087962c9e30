"""The test kit over two publishers: a source of ours, and the publisher that everybody writes first. One class with a factory for each."""

import trio
from penstock_tck import MODERN_RULES, PublisherVerification, run_checks

import penstock


class TestSource(PublisherVerification):
    """A source of ours, bound to the nursery that the kit runs each check in."""

    max_elements = 1000

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """A publisher whose stream has exactly so many elements."""
        return penstock.from_iterable(range(elements)).publisher(self.env.nursery, on_violation=lambda fault: None)


class _First(penstock.Publisher[int], penstock.Subscription):
    """It counts demand, completes, and stops when it is cancelled. What else could there be?"""

    def __init__(self, elements: int) -> None:
        self.left = elements

    def subscribe(self, subscriber: penstock.Subscriber[int], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        while n > 0 and self.left > 0:
            n, self.left = n - 1, self.left - 1
            self.subscriber.on_next(self.left)
        if self.left == 0:
            self.subscriber.on_complete()

    def cancel(self, /) -> None:
        self.left = -1


class TestFirst(TestSource):
    """The same for the other one."""

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """It counts down, which the kit does not mind."""
        return _First(elements)


async def main() -> None:
    """Without pytest, here; `pytest examples/verify_publisher.py` runs each check as a test and says much more."""
    for verification in (TestSource, TestFirst):
        results = await trio.to_thread.run_sync(run_checks, verification)
        failed = [result for result in results if result.failed]
        print(f"{verification.__name__}: {len(results)} checks, {len(failed)} failed")
        broken = {rule for result in failed for rule in result.rules}
        for rule in [rule for name, rule in MODERN_RULES.items() if name in broken]:
            print(f"  breaks rule {rule.id:5} {rule.text}")


if __name__ == "__main__":
    trio.run(main)
