"""The test kit over a topic of several processes: what one process appends to a log, the topic of
another one gives to its subscribers.

Checks run on the kit's MockClock. A `RingLog` takes the place of a broker's log: it has no threads
and no sockets.
"""

import trio

from penstock import Retention, RingLog, SharedTopic
from tests.tck._penstock_publisher import PenstockPublisher


class _SharedTopic(PenstockPublisher):
    """A shared topic never completes: another process may go on to publish."""

    abstract = True
    verifies = "SharedTopic"
    completes = False
    synchronous_bound = None
    """The topic that a process has of its own signals inside `request`."""

    async def open_topic(self, **options):
        log = RingLog(retention=Retention(max_count=1_000_000))
        topic = SharedTopic(log, on_violation=self.reported_violations.append, **options)
        return await self.env.nursery.start(self._hold, topic)

    async def _hold(self, topic, task_status):
        async with topic:
            task_status.started(topic)
            await trio.sleep_forever()

    async def create_failed_publisher(self):
        """Its block has been left."""
        async with SharedTopic(RingLog(retention=Retention(max_count=1)), type=int) as topic:
            pass
        return topic

    create_refusing_publisher = create_failed_publisher


class LiveSharedTopic(_SharedTopic):
    """Its elements are published while it has subscribers, and the reading waits for the slowest
    of them.
    """

    settle_seconds = 5.0

    async def create_publisher(self, elements):
        topic = await self.open_topic(type=int)
        self.env.nursery.start_soon(self._publish, topic, elements)
        return topic

    async def _publish(self, topic, elements):
        await trio.sleep(1)  # gives every subscriber time to subscribe
        for number in range(elements):
            if not topic.statistics().subscribers:
                break  # all subscribers have gone, so stop (rule 3.14)
            await topic.publish(number)
            await trio.lowlevel.checkpoint()


class RetainingSharedTopic(_SharedTopic):
    """All elements are in the log before the first subscriber comes, who begins with them. They are
    bytes: the checks make many topics, and one with a type looks for the plugins.
    """

    remembers = True
    max_elements = 5_000

    async def create_publisher(self, elements):
        topic = await self.open_topic(retain=max(1, elements))
        await topic.publish_many([b"%d" % number for number in range(elements)])
        return topic
