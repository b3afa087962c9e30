"""The test kit over topics with every slow policy.

A topic that waits for its slowest subscriber is verified live, while elements are published. The
others may drop elements, so they get a buffer for all elements: this verifies their promises to a
subscriber that keeps up.
Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

from typing import ClassVar

import trio

from penstock import SlowPolicy, Topic
from tests.tck._penstock_publisher import PenstockPublisher


class _Topic(PenstockPublisher):
    """The base of all topics: elements arrive inside `request` or `publish`,
    and a known end is signalled at once.
    """

    abstract = True
    verifies = "Topic"
    eager_completion = True
    synchronous_bound = None
    slow: ClassVar[SlowPolicy]

    def topic(self, **options):
        return Topic(slow=self.slow, on_violation=self.reported_violations.append, **options)

    def create_completed_publisher(self):
        (topic := self.topic()).complete()
        return topic

    def create_failed_publisher(self):
        (topic := self.topic()).fail(ValueError("it failed before"))
        return topic

    create_refusing_publisher = create_failed_publisher

    async def publish_while_subscribed(self, topic, elements, pause=0):
        await trio.sleep(1)  # gives every subscriber time to subscribe
        for number in range(elements):
            if not topic.statistics().subscribers:
                break  # all subscribers have gone, so stop (rule 3.14)
            await topic.publish(number)
            await trio.sleep(pause)


class _LiveAndWaiting(_Topic):
    """A live topic whose `publish` waits for the slowest subscriber, so that no element is lost."""

    abstract = True
    slow = SlowPolicy.WAIT
    settle_seconds = 5.0

    def create_publisher(self, elements):
        return self._live(elements, Topic.complete)

    def _live(self, elements, end):
        topic = self.topic()
        self.env.nursery.start_soon(self._publish, topic, elements, end)
        return topic

    async def _publish(self, topic, elements, end):
        await self.publish_while_subscribed(topic, elements)
        end(topic)


class WaitingTopic(_LiveAndWaiting):
    """`SlowPolicy.WAIT`."""

    def create_faulty_publisher(self, elements, error):
        return self._live(elements, lambda topic: topic.fail(error))


class WaitingTopicWithABuffer(_LiveAndWaiting):
    """The same with a buffer of four elements for each subscriber,
    which an error does not wait for.
    """

    def topic(self, **options):
        return super().topic(buffer=4, **options)


class _TopicWithRoomForAll(_Topic):
    """A live topic with one element a second, and a buffer for all of them."""

    abstract = True
    max_elements = 40
    settle_seconds = 60.0

    def create_publisher(self, elements):
        topic = self.topic(buffer=self.max_elements)
        self.env.nursery.start_soon(self._publish, topic, elements)
        return topic

    async def _publish(self, topic, elements):
        await self.publish_while_subscribed(topic, elements, pause=1)
        topic.complete()


class TopicThatDropsTheOldest(_TopicWithRoomForAll):
    """`SlowPolicy.DROP_OLDEST`."""

    slow = SlowPolicy.DROP_OLDEST


class TopicThatDropsTheNewest(_TopicWithRoomForAll):
    """`SlowPolicy.DROP_NEWEST`."""

    slow = SlowPolicy.DROP_NEWEST


class TopicThatFailsTheSlow(_TopicWithRoomForAll):
    """`SlowPolicy.FAIL`."""

    slow = SlowPolicy.FAIL


class TopicThatKeepsTheLatest(_Topic):
    """`SlowPolicy.LATEST` holds one element while live, so all elements are published, and
    retained, before the first subscriber.
    """

    slow = SlowPolicy.LATEST
    remembers = True
    max_elements = 5_000

    async def create_publisher(self, elements):
        topic = self.topic(retain=elements)
        for number in range(elements):
            await topic.publish(number)
        topic.complete()
        return topic


class RetainingTopic(TopicThatKeepsTheLatest):
    """The same with `SlowPolicy.WAIT`."""

    slow = SlowPolicy.WAIT
