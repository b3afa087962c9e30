"""Publishers that keep the rules in unusual ways. No check may fail for them.

Each uses a freedom that the standard leaves: to complete late, to nest signals, to signal a few
elements inside a request, to refuse a second subscriber, to stop late, to be as fast as the slowest
subscriber, to give each element to one subscriber only, to shut down with the last subscriber, to
be slow, never to end.
"""

from typing import Any, ClassVar

import trio
from penstock_tck import CountingPublisher, PublisherVerification

from penstock.api import IllegalDemand
from tck.tests._honest_publishers import (
    HonestPublisher,
    HonestSubscription,
    TaskPublisher,
    TaskSubscription,
)
from tck.tests._honest_verifications import HonestSynchronousPublisher, HonestTaskPublisher

tck_verifies_nothing = "these are run by run_checks"


# ---------------------------------------------------------------------- subscriptions


class LazySubscription(HonestSubscription):
    """Detects the end only when one element more is requested than the stream has."""

    def finish(self) -> None:
        if self.demand or not self.publisher.count:
            super().finish()


class NestingSubscription(HonestSubscription):
    """Signals inside a request while on_next is less than three deep."""

    depth = 0

    def request(self, n: int, /) -> None:
        if 0 < self.depth < 3:
            self.busy = False
        super().request(n)

    def step(self) -> None:
        self.depth += 1
        super().step()
        self.depth -= 1
        self.busy = True


class BurstSubscription(TaskSubscription):
    """Signals up to four elements before a request returns, and the rest from a task."""

    def pump(self) -> None:
        burst = 0
        if not self.busy:
            self.busy = True
            while burst < 4 and self.due():
                burst += 1
                self.step()
            self.busy = False
        super().pump()


class LateSubscription(TaskSubscription):
    """Stops some time after a cancel: signals until then are permitted (rule 2.8)."""

    stopping = False

    def cancel(self) -> None:
        if self.stopping or self.subscriber is None:
            return
        self.stopping = True
        try:
            self.publisher.nursery.start_soon(self.stop)
        except RuntimeError:
            self.forget()

    def request(self, n: int, /) -> None:
        if not self.stopping:
            super().request(n)

    async def stop(self) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        self.forget()


class TerseSubscription(HonestSubscription):
    """Refuses a demand with an error that has no text."""

    def refuse(self, error: IllegalDemand) -> None:
        del error
        super().refuse(IllegalDemand())


class SilentSubscription(HonestSubscription):
    """Never has an element, and never ends."""

    def due(self) -> bool:
        return False

    def finish(self) -> None:
        """Do nothing."""


# ---------------------------------------------------------------------- publishers


class RegisteredSubscription(HonestSubscription):
    """A subscription that its publisher knows while it is open."""

    publisher: "RegisteringPublisher"

    def begin(self) -> None:
        self.publisher.subscriptions.append(self)
        super().begin()

    def forget(self) -> None:
        if self in self.publisher.subscriptions:
            self.publisher.subscriptions.remove(self)
        super().forget()


class RegisteringPublisher(HonestPublisher):
    """Knows its open subscriptions. Each has its own position in the stream."""

    subscription_class: type[HonestSubscription] = RegisteredSubscription

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.subscriptions: list[Any] = []


class LockstepSubscription(RegisteredSubscription):
    """Signals only when all subscribers have demand."""

    def pump(self) -> None:
        if isinstance(self.publisher, LockstepPublisher):
            self.publisher.pump_all()

    def forget(self) -> None:
        super().forget()
        if isinstance(self.publisher, LockstepPublisher):
            self.publisher.wanted = True


class LockstepPublisher(RegisteringPublisher):
    """One stream for all: an element is signalled when every subscriber has requested it. A late
    subscriber misses the elements before.
    """

    subscription_class: type[HonestSubscription] = LockstepSubscription
    position = 0
    busy = False
    wanted = False

    def pump_all(self) -> None:
        self.wanted = True
        if self.busy:
            return
        self.busy = True
        while self.wanted:
            self.wanted = False
            while self.subscriptions and all(
                not subscription.busy and subscription.due() for subscription in self.subscriptions
            ):
                self.signal_to_all()
            self.signal_the_end()
        self.busy = False

    def signal_to_all(self) -> None:
        self.position += 1
        for subscription in tuple(self.subscriptions):
            if subscription.subscriber is not None:
                subscription.position = self.position - 1
                subscription.step()

    def signal_the_end(self) -> None:
        for subscription in tuple(self.subscriptions):
            if not subscription.busy:
                subscription.position = self.position
                subscription.finish()


class CompetingSubscription(HonestSubscription):
    """Takes its elements from a source that all subscriptions share."""

    def due(self) -> bool:
        self.position = self.publisher.taken  # type: ignore[attr-defined]  # it is a CompetingPublisher
        return super().due()

    def step(self) -> None:
        self.publisher.taken += 1  # type: ignore[attr-defined]  # it is a CompetingPublisher
        super().step()

    def finish(self) -> None:
        self.due()
        super().finish()


class CompetingPublisher(HonestPublisher):
    """Each element goes to one subscriber: the first one that requests it."""

    subscription_class: type[HonestSubscription] = CompetingSubscription
    taken = 0


class UnicastPublisher(RegisteringPublisher):
    """Serves one subscriber at a time and refuses a second one, as rule 1.9 says."""

    def serve(self, subscriber: Any) -> None:
        if self.subscriptions:
            self.refuse(subscriber)
        else:
            super().serve(subscriber)


class DeduplicatingPublisher(RegisteringPublisher):
    """Ignores a subscriber that is already subscribed (rule 2.12)."""

    def serve(self, subscriber: Any) -> None:
        if all(subscription.subscriber != subscriber for subscription in self.subscriptions):
            super().serve(subscriber)


class ShuttingDownPublisher(RegisteringPublisher):
    """Ends when its last subscriber has cancelled (rule 3.14), and completes later subscribers."""

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        def cancel(self) -> None:
            super().cancel()
            if not self.publisher.subscriptions:
                self.publisher.count = 0


# ---------------------------------------------------------------------- verifications


class Lazy(HonestSynchronousPublisher):
    """Completes at one more request."""

    eager_completion = False
    subscription_class = LazySubscription


class Nesting(HonestSynchronousPublisher):
    """Nests calls of on_next, and declares how deep."""

    recursion_bound = 3
    subscription_class = NestingSubscription


class Bursting(HonestTaskPublisher):
    """Signals a few elements inside a request, and declares how many."""

    synchronous_bound = 4
    subscription_class = BurstSubscription


class Late(HonestTaskPublisher):
    """Stops late."""

    subscription_class = LateSubscription


class Terse(HonestSynchronousPublisher):
    """Refuses a demand with an error that has no text, and waives the check of it."""

    subscription_class = TerseSubscription
    waivers: ClassVar = {"the_refusal_of_a_demand_explains_itself": "its errors have no text"}


class Lockstep(HonestSynchronousPublisher):
    """As fast as its slowest subscriber."""

    publisher_class = LockstepPublisher


class Competing(HonestSynchronousPublisher):
    """Gives each element to one subscriber."""

    multicast = False
    publisher_class = CompetingPublisher


class Unicast(HonestSynchronousPublisher):
    """Accepts one subscriber."""

    multicast = False
    publisher_class = UnicastPublisher


class Deduplicating(HonestSynchronousPublisher):
    """Ignores a subscriber that is already subscribed."""

    publisher_class = DeduplicatingPublisher


class ShuttingDown(HonestSynchronousPublisher):
    """Ends with its last subscriber."""

    publisher_class = ShuttingDownPublisher


class SlowPublisher(HonestTaskPublisher):
    """Needs a second for each element, and declares how long the longest stream of the kit
    takes.
    """

    settle_seconds = 6_000.0

    def make(self, count: int, error: Exception | None = None) -> HonestPublisher:
        publisher = super().make(count, error)
        assert isinstance(publisher, TaskPublisher)
        publisher.seconds = 1.0
        return publisher


class Counting(PublisherVerification):
    """The kit's own publisher, which is upstream of processors."""

    multicast = True
    eager_completion = True
    violations_reported = True

    def make(self, elements: int, error: Exception | None = None) -> Any:
        return CountingPublisher(elements, error, on_violation=self.reported_violations.append)

    def create_publisher(self, elements: int) -> Any:
        return self.make(elements)

    def create_failed_publisher(self) -> Any:
        return self.make(0, ValueError("the publisher had failed"))

    def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
        return self.make(elements, error)

    def create_completed_publisher(self) -> Any:
        return self.make(0)


class Empty(HonestSynchronousPublisher):
    """Has no elements."""

    max_elements = 0


class Single(HonestSynchronousPublisher):
    """Has exactly one element."""

    min_elements = max_elements = 1

    def create_completed_publisher(self) -> Any:
        return self.make(0)


class Never(PublisherVerification):
    """Accepts every subscriber, and signals nothing more."""

    max_elements = 0
    completes = False

    def create_publisher(self, elements: int) -> Any:
        publisher = HonestPublisher(elements)
        publisher.subscription_class = SilentSubscription
        return publisher


class Failed(PublisherVerification):
    """Has failed."""

    max_elements = 0
    completes = False

    def create_publisher(self, elements: int) -> Any:
        return HonestPublisher(0, ValueError("the publisher had failed"))

    create_failed_publisher = lambda self: self.create_publisher(0)  # noqa: E731  # one implementation under both names


VARIANTS = (
    Lazy,
    Nesting,
    Bursting,
    Late,
    Terse,
    Lockstep,
    Competing,
    Unicast,
    Deduplicating,
    ShuttingDown,
    SlowPublisher,
    Counting,
    Empty,
    Single,
    Never,
    Failed,
)
