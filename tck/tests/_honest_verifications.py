"""The verifications of the honest implementations.
Each must pass every check, and the saboteurs are made from them.

They declare all that they can do, so that as few checks as possible do not apply.
"""

from typing import Any

from penstock_tck import DRAFT, ProcessorVerification, PublisherVerification, SubscriberVerification

from tck.tests._honest_draft import (
    DraftPublisher,
    HonestDraftSubscription,
    RefusingDraftPublisher,
    SlowDraftPublisher,
)
from tck.tests._honest_draft_subscribers import HonestDraftProcessor, HonestDraftSubscriber
from tck.tests._honest_fan_out import HonestFanOut
from tck.tests._honest_publishers import (
    HonestPublisher,
    HonestSubscription,
    RefusingPublisher,
    TaskPublisher,
    TaskSubscription,
)
from tck.tests._honest_subscribers import (
    DispatchingSubscriber,
    HonestProcessor,
    HonestRecovery,
    HonestSubscriber,
    ManualHonestSubscriber,
    OneAtATimeSubscriber,
)

tck_verifies_nothing = "these are run by run_checks"


class HonestSynchronousPublisher(PublisherVerification):
    """A publisher without a task."""

    multicast = True
    eager_completion = True
    violations_reported = True
    subscription_class: type[HonestSubscription] = HonestSubscription
    publisher_class: type[HonestPublisher] = HonestPublisher

    refuser_class: type[HonestPublisher] = RefusingPublisher

    def make(self, count: int, error: Exception | None = None) -> HonestPublisher:
        return self.with_line(self.publisher_class(count, error, reports=self.reported_violations))

    def with_line(self, publisher: HonestPublisher) -> HonestPublisher:
        if self.subscription_class is not HonestSubscription:
            publisher.subscription_class = self.subscription_class
        return publisher

    def create_publisher(self, elements: int) -> Any:
        return self.make(elements)

    def create_failed_publisher(self) -> Any:
        return self.make(0, ValueError("the publisher had failed"))

    def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
        return self.make(elements, error)

    def create_broken_publisher(self, error: Exception) -> Any:
        publisher = self.make(3)
        publisher.broken = error
        return publisher

    def create_completed_publisher(self) -> Any:
        return self.make(0)

    def create_refusing_publisher(self) -> Any:
        return self.refuser_class(3, reports=self.reported_violations)


class HonestTaskPublisher(HonestSynchronousPublisher):
    """A publisher with a task for each subscription. It signals nothing inside a request."""

    synchronous_bound = 0
    subscription_class: type[HonestSubscription] = TaskSubscription
    publisher_class: type[Any] = TaskPublisher

    def make(self, count: int, error: Exception | None = None) -> HonestPublisher:
        return self.with_line(
            self.publisher_class(self.env.nursery, count, error, reports=self.reported_violations)
        )

    def create_slow_publisher(self, elements: int, seconds: float) -> Any:
        publisher = self.make(elements)
        publisher.seconds = seconds  # type: ignore[attr-defined]  # it is a TaskPublisher
        return publisher


class HonestDraftPublisher(HonestTaskPublisher):
    """A publisher that keeps the rules of the draft."""

    profile = DRAFT
    remembers = True
    subscription_class: type[HonestSubscription] = HonestDraftSubscription
    publisher_class: type[Any] = DraftPublisher
    refusing_class: type[Any] = RefusingDraftPublisher
    slow_class: type[Any] = SlowDraftPublisher

    def create_refusing_publisher(self) -> Any:
        return self.refusing_class(self.env.nursery, 1)

    def create_slow_publisher(self, elements: int, seconds: float) -> Any:
        return self.slow_class(self.env.nursery, elements, seconds=seconds)


class HonestSubscriberStage(SubscriberVerification):
    """A subscriber with every hook, whose handlers report."""

    reports = True
    subscriber_class: type[HonestSubscriber] = HonestSubscriber

    def create_subscriber(self) -> Any:
        return self.subscriber_class(self.saw_next, self.saw_error, self.saw_complete)

    def create_raising_subscriber(self, error: Exception) -> Any:
        def handler(_: Any) -> None:
            raise error

        return self.subscriber_class(handler, self.saw_error, self.saw_complete)

    def trigger_request(self, n: int) -> None:
        self.subscriber.request(n)

    def trigger_cancel(self) -> None:
        self.subscriber.shut_down()

    def trigger_shutdown(self) -> None:
        self.subscriber.shut_down()


class HonestManualSubscriberStage(HonestSubscriberStage):
    """A subscriber that requests only when it is told to."""

    subscriber_class = ManualHonestSubscriber


class HonestOneAtATimeStage(HonestSubscriberStage):
    """A subscriber that requests one element at a time."""

    subscriber_class = OneAtATimeSubscriber


class HonestDispatchingStage(HonestSubscriberStage):
    """A subscriber whose handlers run in a task."""

    dispatches = True
    subscriber_class: type[Any] = DispatchingSubscriber

    def create_subscriber(self) -> Any:
        return self.subscriber_class(
            self.env.nursery, self.saw_next, self.saw_error, self.saw_complete
        )

    def create_raising_subscriber(self, error: Exception) -> Any:
        def handler(_: Any) -> None:
            raise error

        return self.subscriber_class(self.env.nursery, handler, self.saw_error, self.saw_complete)


class HonestBlackBox(SubscriberVerification):
    """A subscriber without hooks or reports."""

    subscriber_class: type[Any] = HonestSubscriber

    def create_subscriber(self) -> Any:
        return self.subscriber_class()


class HonestProcessorStage(ProcessorVerification):
    """A processor with one subscriber."""

    eager_completion = True
    processor_class: type[HonestProcessor] = HonestProcessor

    def create_processor(self) -> Any:
        return self.processor_class()


class HonestFanOutStage(HonestProcessorStage):
    """A processor that serves any number of subscribers and reads ahead."""

    multicast = True
    reads_ahead = True
    max_subscribers = 3
    buffer_size = HonestFanOut.window
    processor_class: type[Any] = HonestFanOut


class HonestRecoveringStage(HonestProcessorStage):
    """A processor that completes if the publisher upstream fails."""

    recovers = True
    processor_class = HonestRecovery


class HonestDraftSubscriberStage(SubscriberVerification):
    """A subscriber of the draft with every hook, whose handlers report."""

    profile = DRAFT
    reports = True
    dispatches = True
    subscriber_class: type[HonestDraftSubscriber] = HonestDraftSubscriber

    def create_subscriber(self) -> Any:
        return self.subscriber_class(
            self.env.nursery, self.saw_next, self.saw_error, self.saw_complete
        )

    def trigger_request(self, n: int) -> None:
        self.subscriber.request(n)

    def trigger_cancel(self) -> None:
        self.subscriber.cancel()

    def trigger_shutdown(self) -> None:
        self.subscriber.shut_down()


class HonestDraftProcessorStage(ProcessorVerification):
    """A processor of the draft that serves any number of subscribers and reads ahead."""

    profile = DRAFT
    multicast = True
    reads_ahead = True
    max_subscribers = 3
    processor_class: type[HonestDraftProcessor] = HonestDraftProcessor

    def create_processor(self) -> Any:
        return self.processor_class(self.env.nursery)

    async def create_completed_publisher(self) -> Any:
        publisher = await self.connect(self.create_upstream(0))
        await self.settle()
        return publisher


HONEST = (
    HonestSynchronousPublisher,
    HonestTaskPublisher,
    HonestSubscriberStage,
    HonestManualSubscriberStage,
    HonestOneAtATimeStage,
    HonestDispatchingStage,
    HonestBlackBox,
    HonestProcessorStage,
    HonestFanOutStage,
    HonestRecoveringStage,
    HonestDraftPublisher,
    HonestDraftSubscriberStage,
    HonestDraftProcessorStage,
)
