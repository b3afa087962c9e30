"""The test kit over topics, whatever they do with a slow subscriber.

A topic that waits for the slowest is verified live, as publishing goes on. The others lose elements by design, so they are given room
for all: what is left is what they promise to a subscriber that does not lag behind.
Checks run on the kit's MockClock: what sleeps here sleeps in virtual time.
"""

from typing import ClassVar

import trio

from penstock import SlowPolicy, Topic
from tests.tck._ours import OurPublisher


class _Topic(OurPublisher):
    """What all of them share: elements come inside a request or inside publish, and the end that is known is told at once."""

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
        (topic := self.topic()).fail(ValueError("it failed long ago"))
        return topic

    create_refusing_publisher = create_failed_publisher

    async def publish_to_somebody(self, topic, elements, pause=0):
        await trio.sleep(1)  # so that all who will come can come
        for number in range(elements):
            if not topic.statistics().subscribers:
                break  # all have gone: it shuts down (rule 3.14)
            await topic.publish(number)
            await trio.sleep(pause)


class _LiveAndWaiting(_Topic):
    """Live: `publish` waits for the slowest, and nothing is lost."""

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
        await self.publish_to_somebody(topic, elements)
        end(topic)


class WaitingTopic(_LiveAndWaiting):
    """`SlowPolicy.WAIT`."""

    def create_faulty_publisher(self, elements, error):
        return self._live(elements, lambda topic: topic.fail(error))


class WaitingTopicWithABuffer(_LiveAndWaiting):
    """The same where each subscriber may lag four elements, which an error would overtake."""

    def topic(self, **options):
        return super().topic(buffer=4, **options)


class _Roomy(_Topic):
    """Live, an element a second, with room for all of them."""

    abstract = True
    max_elements = 40
    settle_seconds = 60.0

    def create_publisher(self, elements):
        topic = self.topic(buffer=self.max_elements)
        self.env.nursery.start_soon(self._publish, topic, elements)
        return topic

    async def _publish(self, topic, elements):
        await self.publish_to_somebody(topic, elements, pause=1)
        topic.complete()


class TopicThatDropsTheOldest(_Roomy):
    """`SlowPolicy.DROP_OLDEST`."""

    slow = SlowPolicy.DROP_OLDEST


class TopicThatDropsTheNewest(_Roomy):
    """`SlowPolicy.DROP_NEWEST`."""

    slow = SlowPolicy.DROP_NEWEST


class TopicThatFailsTheSlow(_Roomy):
    """`SlowPolicy.FAIL`."""

    slow = SlowPolicy.FAIL


class TopicThatKeepsTheLatest(_Topic):
    """`SlowPolicy.LATEST` holds one element while it is live, so all is published before anybody comes, and retained."""

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
