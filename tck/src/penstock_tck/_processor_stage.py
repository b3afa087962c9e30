"""The base of the checks of processors: one factory makes both sides of a processor.

A processor is verified as a publisher (downstream of the kit's counting publisher) and as a
subscriber (with a probe downstream of it). Some checks are made for processors only. An operator
that is not a `Processor` object, but makes one publisher of another, overrides `connect`.
"""

from typing import Any, ClassVar

from penstock.api import UsageError
from penstock.testing import ManualPublisher, ManualSubscriber, shown
from penstock_tck._capabilities import factory
from penstock_tck._publisher_stage import PublisherStage
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._upstream import CountingPublisher, DraftCountingPublisher
from penstock_tck._verification import resolve


class ProcessorStage(PublisherStage, SubscriberStage):
    """The factory of a processor, and both sides made with it. The checks are in
    `_processor_checks/` and `_draft_checks/`.
    """

    abstract: ClassVar[bool] = True

    factories: ClassVar[tuple[str, ...]] = ("create_processor", "connect")
    reports: ClassVar[bool] = True
    max_subscribers: ClassVar[int] = 1
    """How many subscribers it serves at a time."""
    reads_ahead: ClassVar[bool] = False
    """Whether it requests elements upstream before elements were requested downstream, and keeps
    them. Errors overtake these elements.
    """
    buffer_size: ClassVar[int | None] = None
    """How many elements it keeps at most for its subscribers, beyond those that were requested
    downstream; None declares no bound.
    """

    processor_output: Any = None
    """The publisher that the processor is or makes, when it is verified as a subscriber."""
    downstream: ManualSubscriber
    """The probe that is subscribed to it, when it is verified as a subscriber."""

    @factory
    def create_processor(self) -> Any:
        """Return a fresh processor that passes on each element that it gets, in order."""
        raise UsageError(
            f"{type(self).__name__} must define create_processor(), or override connect(upstream)"
        )

    @factory
    def connect(self, upstream: Any) -> Any:
        """Return the publisher that a fresh processor makes of `upstream`. Override it for
        operators; it may be async.
        """
        return self._subscribed(upstream)

    async def _subscribed(self, upstream: Any) -> Any:
        processor = await resolve(self.create_processor())
        upstream.subscribe(processor)
        return processor

    # ------------------------------------------------------------------ as a publisher

    async def create_publisher(self, elements: int) -> Any:
        """Connect a processor to a publisher of this many elements."""
        return await resolve(self.connect(self.create_upstream(elements)))

    async def create_failed_publisher(self) -> Any:
        """Connect a processor to a publisher that has failed."""
        publisher = await resolve(
            self.connect(self.create_upstream(0, ValueError("the source upstream failed")))
        )
        if self.profile.failed_calls_on_subscribe:
            return publisher
        # D6.1: a processor of the draft handles on_error in a task;
        # it has failed when that task has run.
        await self.settle()
        return publisher

    async def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
        """Connect a processor to a publisher that fails after this many elements."""
        return await resolve(self.connect(self.create_upstream(elements, error)))

    def create_upstream(self, elements: int, error: BaseException | None = None) -> Any:
        """Return the kit's publisher of this many elements, in the generation of the profile."""
        kind = DraftCountingPublisher if self.profile.dialect.end_ends_calls else CountingPublisher
        return kind(elements, error, on_violation=self._record_raised)

    def _record_raised(self, error: Exception) -> None:
        """Record a violation: the processor raised in a signal."""
        rule = self.profile.dialect.rule("2.13")
        self.env.transcript.violate(
            rule,
            f"the processor raised {shown(error)} in a signal; it must return normally",
            actor="tck",
        )

    # ------------------------------------------------------------------ as a subscriber

    async def attach(self, upstream: ManualPublisher) -> None:
        """Connect a fresh processor to `upstream` and subscribe a probe to it, which reports the
        processor's signals. Checkpoints.
        """
        self.processor_output = await resolve(self.connect(upstream))
        self.downstream = self.probe(
            when_next=lambda _, element: self.saw_next(element),
            when_error=lambda _, error: self.saw_error(error),
            when_complete=lambda _: self.saw_complete(),
        )
        self.subscribe(self.processor_output, self.downstream)
        await self.settle()
        self.subscriber: Any = self.signal_target(upstream)

    async def finish_upstream(self, upstream: ManualPublisher) -> None:
        """End what is still open on both sides. Checkpoints."""
        await super().finish_upstream(upstream)
        await self.finish(self.downstream)

    def trigger_request(self, n: int) -> None:
        """Make the subscriber downstream request."""
        self.downstream.request(n)

    def trigger_cancel(self) -> None:
        """Make the subscriber downstream cancel."""
        self.downstream.cancel()

    def trigger_shutdown(self) -> None:
        """Make the subscriber downstream cancel: then the processor is no longer needed."""
        self.downstream.cancel()
