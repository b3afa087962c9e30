"""The consumer of one member of a group, on asyncio.

Rules of this file:

* A position is committed when the program says that the elements before it were taken. It is also
  committed before partitions go to another member.
* A group makes a new division by taking all partitions from all members first. A partition that
  comes back to this member goes on where it was, if nobody has committed meanwhile: its elements
  are not handed over twice.
* The client of Kafka never chooses a position by itself. A group that has none begins at `start`.
  The end of a partition moves: where a group begins there is committed at once. Without that the
  next member would begin at a later end, and what this one had not handled would be lost.
  If the broker has dropped elements before the group came to them, it goes on at the oldest one,
  and `missing` counts. A position after the end, and a topic that was made anew, are errors.
* A member that nobody asks for elements stays in the group: its heartbeats say that it lives.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka

from penstock.api import LogDamaged, PenstockError
from penstock.brokers import Place
from penstock.logs import Ends
from penstock_kafka._access import KafkaAccess
from penstock_kafka._errors import explained
from penstock_kafka._topic import LONGEST_LOOK, METADATA_AGE, Topic

Start: TypeAlias = Literal["earliest", "latest"]

SESSION: Final = 10_000
"""Milliseconds without a heartbeat after which the group goes on without a member."""

WAIT: Final = 250
"""Milliseconds that one call waits for elements."""

LONGEST_STOP: Final = 1.5
"""Seconds for the goodbye to the brokers. They may be silent."""

_FOR_EVER: Final = 2**31 - 1
_FAILED: Final = (kafka.KafkaError, kafka.ConsumerStoppedError, OSError)
_NOT_NOW: Final = (*_FAILED, PenstockError)


class Consumer(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Takes part in a group. Used in the loop of asyncio only."""

    def __init__(
        self,
        brokers: Sequence[str],
        topics: Sequence[str],
        group: str,
        *,
        start: Start,
        access: KafkaAccess,
        timeout: float,
        gone: Callable[[frozenset[Place]], None],
    ) -> None:
        """`gone` is called with the partitions that went to other members."""
        self._topics = [Topic(brokers, name, access, timeout) for name in topics]
        self._start = start
        self._where = f"group {group!r} at {','.join(brokers)}"
        self._timeout = timeout
        self._gone = gone
        self._names = list(topics)
        self._options = {
            "bootstrap_servers": list(brokers),
            "group_id": group,
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "session_timeout_ms": SESSION,
            "heartbeat_interval_ms": SESSION // 5,
            "max_poll_interval_ms": _FOR_EVER,
            "max_partition_fetch_bytes": 1 << 20,
            "fetch_max_bytes": 16 << 20,
            "fetch_max_wait_ms": WAIT,
            "metadata_max_age_ms": METADATA_AGE,
            **access.options(),
        }
        self._consumer: AIOKafkaConsumer | None = None
        self._client: Any = None
        self._had: frozenset[Place] = frozenset()
        # The position of the next element to hand over, and the last committed one.
        self._handed_over: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self.taken: dict[Place, int] = {}
        """The position after the last element that was taken. The program writes it."""
        self.divisions: int = 0
        """How often the group has divided its partitions."""
        self.missing: int = 0
        """Elements that the broker had dropped before this member came to them."""

    async def open(self) -> None:
        """Join the group. Raises LogError and UsageError."""
        for topic in self._topics:
            await topic.open()
        self._consumer = consumer = AIOKafkaConsumer(**self._options)
        self._client = consumer._client  # noqa: SLF001  # a stop that was cut off leaves it open
        consumer.subscribe(self._names, listener=self)
        try:
            async with asyncio.timeout(self._timeout):
                await consumer.start()
        except _FAILED as error:
            raise explained(error, self._where, self._timeout) from error

    async def aclose(self) -> None:
        """Commit what was taken, and leave the group."""
        consumer, self._consumer = self._consumer, None
        try:
            if consumer is not None:
                with suppress(*_NOT_NOW):
                    await self._commit(consumer, min(self._timeout, LONGEST_LOOK))
                # Without brokers it ends with the cancel of a task of its own.
                with suppress(asyncio.CancelledError, TimeoutError):
                    async with asyncio.timeout(LONGEST_STOP):
                        await consumer.stop()
        finally:
            for topic in self._topics:
                await topic.aclose()

    async def close_connections(self) -> None:
        """Close those that a goodbye which was not answered has left open."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def get(self, most: int) -> list[Any]:
        """Return up to `most` records, or none after a quarter of a second."""
        consumer = self._consumer
        if consumer is None:
            return []
        self._check_damage()
        try:
            found = await consumer.getmany(timeout_ms=WAIT, max_records=most)
        except kafka.NoOffsetForPartitionError as error:
            await self._begin(consumer, error.args[0])
            return []
        except kafka.OffsetOutOfRangeError as error:
            for partition, position in error.args[0].items():
                await self._skip_missing(consumer, partition, position)
            return []
        except _FAILED as error:
            raise explained(error, self._where) from error
        for place, records in found.items():
            self._handed_over[_place_of(place)] = records[-1].offset + 1
        return [record for records in found.values() for record in records]

    async def commit(self) -> None:
        """Commit what was taken, if it has changed."""
        consumer = self._consumer
        if consumer is not None:
            # The next commit, or the next member, has them again.
            with suppress(kafka.CommitFailedError, kafka.IllegalStateError):
                try:
                    await self._commit(consumer, self._timeout)
                except (kafka.CommitFailedError, kafka.IllegalStateError):
                    raise
                except _FAILED as error:
                    raise explained(error, self._where, self._timeout) from error

    async def go_back(self, firsts: Mapping[Place, int]) -> None:
        """Get the elements from these positions on again, if their partitions are still here."""
        consumer = self._consumer
        if consumer is None:
            return
        mine = consumer.assignment()
        for place, position in firsts.items():
            if _topic_partition(place) in mine:
                consumer.seek(_topic_partition(place), position)
                self._handed_over[place] = position

    async def check(self) -> None:
        """Raise LogError if the brokers have not answered within `timeout`."""
        for topic in self._topics:
            await topic.ends(range(topic.partitions))

    async def look(self) -> None:
        """Raise LogDamaged if a topic was made anew. What was taken is not committed then."""
        for topic in self._topics:
            with suppress(kafka.KafkaError, OSError):
                async with asyncio.timeout(LONGEST_LOOK):
                    await topic.check_id()

    def _check_damage(self) -> None:
        for topic in self._topics:
            topic.check_damage()

    async def _begin(self, consumer: AIOKafkaConsumer, partition: TopicPartition) -> None:
        """Let a group that has no position in a partition begin at `start`."""
        place = _place_of(partition)
        is_new = place not in self._handed_over
        if is_new:
            ends = await self._ends(partition)
            at = ends.earliest if self._start == "earliest" else ends.latest
            # The other caller of this method may have done it meanwhile.
            self._handed_over.setdefault(place, at)
        position = self._handed_over[place]
        with suppress(kafka.IllegalStateError):  # it went to another member
            consumer.seek(partition, position)
        if is_new and self._start == "latest":
            # If the commit fails, the next one has it. It comes last: while it waits, the partition
            # may go to another member.
            self.taken.setdefault(place, position)
            with suppress(*_NOT_NOW):
                await self._commit(consumer, self._timeout)

    async def _skip_missing(
        self, consumer: AIOKafkaConsumer, partition: TopicPartition, position: int
    ) -> None:
        """Go on at the oldest element, if the broker has dropped the one at `position`."""
        ends = await self._ends(partition)
        if position > ends.latest:
            raise LogDamaged(
                f"{self._where}: its position in partition {partition.partition} of topic "
                f"{partition.topic!r} is {position:,}, and the partition ends at {ends.latest:,}: "
                "the topic was made anew, or its brokers have lost elements. Set the position of "
                "the group, as with kafka-consumer-groups.sh --reset-offsets --to-earliest"
            )
        with suppress(kafka.IllegalStateError):  # it went to another member
            if await consumer.position(partition) < ends.earliest:
                consumer.seek(partition, ends.earliest)
                self._handed_over[_place_of(partition)] = ends.earliest
                self.missing += ends.earliest - position

    async def _ends(self, partition: TopicPartition) -> Ends:
        topic = self._topics[self._names.index(partition.topic)]
        return (await topic.ends([partition.partition]))[partition.partition]

    async def _commit(self, consumer: AIOKafkaConsumer, longest: float) -> None:
        self._check_damage()
        mine = consumer.assignment()
        wanted = {
            _topic_partition(place): position
            for place, position in list(self.taken.items())
            if _topic_partition(place) in mine and self._committed.get(place, -1) < position
        }
        if wanted:
            # The client tries it again without an end.
            async with asyncio.timeout(longest):
                await consumer.commit(wanted)
            self._committed.update((_place_of(place), each) for place, each in wanted.items())

    # --- a new division of the partitions

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Commit what was taken, as long as the partitions are those of this member."""
        consumer = self._consumer
        if consumer is not None and revoked:
            with suppress(*_NOT_NOW):
                await self._commit(consumer, self._timeout)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Go on where this member was, in the partitions that it had before."""
        now = frozenset(map(_place_of, assigned))
        lost = self._had - now
        for place in lost:
            for known in (self._handed_over, self._committed, self.taken):
                known.pop(place, None)
        if lost:
            self._gone(lost)
        for place in now:
            await self._go_on(place)
        self._had = now
        self.divisions += 1

    async def _go_on(self, place: Place) -> None:
        consumer = self._consumer
        if consumer is None:
            return
        with suppress(*_NOT_NOW):
            committed = await consumer.committed(_topic_partition(place))
            position = self._handed_over.get(place)
            if committed is None and position is None:
                await self._begin(consumer, _topic_partition(place))
                return
            committed = committed or 0
            # Another member may have had it in between, and has gone further.
            if position is not None and committed <= self._committed.get(place, 0):
                consumer.seek(_topic_partition(place), position)
            else:
                self._committed[place] = committed


def _place_of(partition: TopicPartition) -> Place:
    return partition.topic, str(partition.partition)


def _topic_partition(place: Place) -> TopicPartition:
    return TopicPartition(place[0], int(place[1]))
