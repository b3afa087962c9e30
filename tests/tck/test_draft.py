"""The test kit over the adapters to the early draft: `as_draft` over sources and topics, mailboxes,
and `as_modern(as_draft(x))`.

Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

from functools import partial

import trio
from penstock_tck import DRAFT, CountingPublisher, PublisherVerification, SubscriberVerification

import penstock
from penstock import UNBOUNDED, MailboxSubscriber, Topic, ops
from penstock.api import InvalidStateError
from penstock.draft import MailboxPolicy, as_draft, as_modern


async def _numbers(length):
    for number in range(length):
        yield number


async def _slowly(length, seconds):
    for number in range(length):
        await trio.sleep(seconds)
        yield number


async def _failing(length, error):
    for number in range(length):
        yield number
    raise error


class _AsDraft(PublisherVerification):
    """The publishers that have ended before they are subscribed to."""

    abstract = True
    profile = DRAFT
    multicast = True

    def bound(self, source):
        return as_draft(source.publisher(self.env.nursery))

    def create_completed_publisher(self):
        return self.bound(penstock.empty())

    def create_failed_publisher(self):
        return self.bound(penstock.failed(ValueError("it failed before")))

    def create_refusing_publisher(self):
        return self.bound(penstock.failed(InvalidStateError("no subscribers are accepted")))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.generate(_slowly, elements, seconds))


class GeneratorAsDraft(_AsDraft):
    """A generator: its end is known only after one more step."""

    remembers = True

    def create_publisher(self, elements):
        return self.bound(penstock.generate(_numbers, elements))


class IterableAsDraft(_AsDraft):
    """A sequence, which has a length."""

    remembers = True

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(range(elements)))


class SingleAsDraft(_AsDraft):
    """One element, signalled inside the request."""

    max_elements = 1

    def create_publisher(self, elements):
        return self.bound(penstock.single("only"))


class PipeAsDraft(_AsDraft):
    """A pipe whose elements arrive at intervals of one second."""

    settle_seconds = 10.0
    remembers = True

    def create_publisher(self, elements):
        return self.bound(
            penstock.pipe(
                penstock.generate(_slowly, elements, 1), ops.filter(lambda _: True), ops.map(str)
            )
        )


class ChannelAsDraft(_AsDraft):
    """A memory channel, whose elements are shared among the subscribers."""

    multicast = False
    max_elements = 100

    def create_publisher(self, elements):
        send, receive = trio.open_memory_channel(elements)
        with send:
            for number in range(elements):
                send.send_nowait(number)
        return self.bound(penstock.from_channel(receive))


class SynchronousAsDraft(_AsDraft):
    """A foreign publisher without a task."""

    max_elements = 1000
    remembers = True

    def create_publisher(self, elements):
        return as_draft(CountingPublisher(elements))


class RetainingTopicAsDraft(_AsDraft):
    """A topic that retains every element and has completed."""

    max_elements = 100
    remembers = True

    async def create_publisher(self, elements):
        topic = Topic(retain=elements)
        for number in range(elements):
            await topic.publish(number)
        topic.complete()
        return as_draft(topic)

    def create_completed_publisher(self):
        (topic := Topic()).complete()
        return as_draft(topic)

    def create_failed_publisher(self):
        (topic := Topic()).fail(ValueError("it failed before"))
        return as_draft(topic)

    create_refusing_publisher = create_failed_publisher


class LiveTopicAsDraft(RetainingTopicAsDraft):
    """A topic that waits for its slowest subscriber,
    and is published to while subscribers come and go.
    """

    max_elements = UNBOUNDED
    remembers = False

    def create_publisher(self, elements):
        topic = Topic()
        self.env.nursery.start_soon(self._publish, topic, elements)
        return as_draft(topic)

    async def _publish(self, topic, elements):
        for number in range(elements):
            while not topic.statistics().subscribers:  # noqa: ASYNC110  # a topic has no event for its first subscriber, and time is virtual
                await trio.sleep(1)
            await topic.publish(number)
        topic.complete()


class DraftOfModernOfDraft(_AsDraft):
    """`as_draft(as_modern(x))`, where x is a draft publisher:
    the two adapters in the other order.
    """

    remembers = True

    def create_publisher(self, elements):
        return as_draft(as_modern(self.bound(penstock.generate(_numbers, elements))))


class ModernOfDraft(PublisherVerification):
    """`as_modern(as_draft(x))` keeps all of today's rules."""

    multicast = True
    violations_reported = True

    def bound(self, source):
        return as_modern(
            as_draft(source.publisher(self.env.nursery)),
            on_violation=self.reported_violations.append,
        )

    def create_publisher(self, elements):
        return self.bound(penstock.generate(_numbers, elements))

    def create_completed_publisher(self):
        return self.bound(penstock.empty())

    def create_failed_publisher(self):
        return self.bound(penstock.failed(ValueError("it failed before")))

    create_refusing_publisher = create_failed_publisher

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.generate(_failing, elements, error))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.generate(_slowly, elements, seconds))


class IterableModernOfDraft(ModernOfDraft):
    """The same over a sequence, which completes with its last element."""

    eager_completion = True

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(range(elements)))


class ForeignModernOfDraft(ModernOfDraft):
    """The same over a publisher without a task: `as_modern` bounds the recursion."""

    max_elements = 100_000

    def create_publisher(self, elements):
        return as_modern(
            as_draft(CountingPublisher(elements)), on_violation=self.reported_violations.append
        )


class _Mailbox(SubscriberVerification):
    """A mailbox in which the checks can trigger and observe everything."""

    abstract = True
    reports = True
    dispatches = True
    demand = 4
    policy = MailboxPolicy.MODERN

    def mailbox(self, handler):
        make = partial(
            MailboxSubscriber,
            demand=self.demand,
            policy=self.policy,
            on_violation=lambda error: None,
        )
        return make(self.env.nursery, handler, error=self.saw_error, complete=self.saw_complete)

    def create_subscriber(self):
        return self.mailbox(self.saw_next)

    def create_raising_subscriber(self, error):
        def handler(element):
            raise error

        return self.mailbox(handler)

    def trigger_cancel(self):
        self.subscriber.shutdown()

    def trigger_shutdown(self):
        self.subscriber.shutdown()


class DraftMailbox(_Mailbox):
    """A mailbox with the draft's rules that requests automatically."""

    profile = DRAFT
    policy = MailboxPolicy.DRAFT


class DraftMailboxWithManualDemand(DraftMailbox):
    """The same with requests from outside."""

    demand = 0

    def trigger_request(self, n):
        self.subscriber.request(n)


class DraftMailboxWithAsyncHandler(DraftMailbox):
    """The same with async functions."""

    def create_subscriber(self):
        async def handler(element):
            await trio.lowlevel.checkpoint()
            self.saw_next(element)

        return self.mailbox(handler)


class ModernMailbox(_Mailbox):
    """A mailbox with today's rules that requests automatically."""


class ModernMailboxWithManualDemand(_Mailbox):
    """The same with requests from outside."""

    demand = 0

    def trigger_request(self, n):
        self.subscriber.request(n)
