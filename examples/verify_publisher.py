"""Verify two publishers with the test kit:
a source of penstock, and a simple publisher as a first attempt often looks.
"""

import trio
from penstock_tck import MODERN_RULES, PublisherVerification, run_checks

import penstock


class TestSource(PublisherVerification):
    """A source of penstock, bound to the nursery in which the kit runs each check."""

    max_elements = 1000

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """Return a publisher whose stream has exactly this many elements."""
        return penstock.from_iterable(range(elements)).publisher(
            self.env.nursery, on_violation=lambda fault: None
        )


class _First(penstock.Publisher[int], penstock.Subscription):
    """It counts demand, completes, and stops after a cancel.
    This looks complete, but breaks 15 rules.
    """

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
    """The first attempt, with the same declarations."""

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """Return a publisher that counts down; the kit accepts any elements."""
        return _First(elements)


async def main() -> None:
    """Run the checks without pytest.
    `pytest examples/verify_publisher.py` runs each check as a test and shows more.
    """
    for verification in (TestSource, TestFirst):
        results = await trio.to_thread.run_sync(run_checks, verification)
        failed = [result for result in results if result.failed]
        print(f"{verification.__name__}: {len(results)} checks, {len(failed)} failed")
        broken = {rule for result in failed for rule in result.rules}
        for rule in [rule for name, rule in MODERN_RULES.items() if name in broken]:
            print(f"  breaks rule {rule.id:5} {rule.text}")


if __name__ == "__main__":
    trio.run(main)
