"""The test kit over two publishers: one class with a factory for each, and one of the two has a mistake in it."""

import trio
from penstock_tck import MODERN_RULES, PublisherVerification, run_checks

import penstock

WORST = ("failed", "passed", "observed", "not applicable")


class TestSource(PublisherVerification):
    """A source of ours, bound to the nursery that the kit runs each check in."""

    max_elements = 1000

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """A publisher whose stream has exactly so many elements."""
        return penstock.from_iterable(range(elements)).publisher(self.env.nursery)


class _Hasty(penstock.Publisher[int], penstock.Subscription):
    """The mistake: a request gets everything, however little it asked for, and a cancel changes nothing."""

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def subscribe(self, subscriber: penstock.Subscriber[int], /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        for element in range(self.elements):
            self.subscriber.on_next(element)
        self.subscriber.on_complete()

    def cancel(self, /) -> None:
        pass


class TestHasty(TestSource):
    """The one with the mistake."""

    def create_publisher(self, elements: int) -> "penstock.Publisher[int]":
        """The same for this one."""
        return _Hasty(elements)


async def main() -> None:
    """Without pytest, here; `pytest examples/verify_publisher.py` runs each check as a test and says much more."""
    source, hasty = [await trio.to_thread.run_sync(run_checks, each) for each in (TestSource, TestHasty)]
    print(f"{'rule':6} {'level':8} {'TestSource':16} TestHasty")
    for name, rule in MODERN_RULES.items():
        mine, theirs = [{result.outcome.value for result in results if name in result.rules} for results in (source, hasty)]
        if mine:
            print(f"{name:6} {rule.level.value:8} {min(mine, key=WORST.index):16} {min(theirs, key=WORST.index)}")


if __name__ == "__main__":
    trio.run(main)
