"""One member of a consumer group, on asyncio.

Rules of this file:

* A position is committed when the program says that the elements before it were taken. It is also
  committed before partitions go to another member.
* A group makes a new division by taking all partitions from all members first. A partition that
  comes back to this member goes on where it was, if nobody has committed meanwhile: its elements
  are not handed over twice.
* A member that nobody asks for elements stays in the group: its heartbeats say that it lives.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka

from penstock_kafka._access import KafkaAccess
from penstock_kafka._errors import explained
from penstock_kafka._topic import Topic

Start: TypeAlias = Literal["earliest", "latest"]
Place: TypeAlias = tuple[str, int]
"""A topic, and the number of a partition."""

SESSION: Final = 10_000
"""Milliseconds without a heartbeat after which the group goes on without a member."""

WAIT: Final = 250
"""Milliseconds that one call waits for elements."""

_FOR_EVER: Final = 2**31 - 1
_FAILED: Final = (kafka.KafkaError, kafka.ConsumerStoppedError, OSError)


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
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
        self._where = f"group {group!r} at {','.join(brokers)}"
        self._timeout = timeout
        self._gone = gone
        self._names = list(topics)
        self._options = {
            "bootstrap_servers": list(brokers),
            "group_id": group,
            "auto_offset_reset": start,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "session_timeout_ms": SESSION,
            "heartbeat_interval_ms": SESSION // 5,
            "max_poll_interval_ms": _FOR_EVER,
            "max_partition_fetch_bytes": 1 << 20,
            "fetch_max_bytes": 16 << 20,
            "fetch_max_wait_ms": WAIT,
            **access.options(),
        }
        self._consumer: AIOKafkaConsumer | None = None
        self._had: frozenset[Place] = frozenset()
        # The position after the last element that was handed over, and the last committed one.
        self._handed_over: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self.taken: dict[Place, int] = {}
        """The position after the last element that was taken. The program writes it."""
        self.divisions: int = 0
        """How often the group has divided its partitions."""

    async def open(self) -> None:
        """Join the group. Raises LogError and UsageError."""
        for topic in self._topics:
            await topic.open()
        self._consumer = consumer = AIOKafkaConsumer(**self._options)
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
                with suppress(*_FAILED):
                    await self._commit(consumer)
                # Without brokers it ends with the cancel of a task of its own.
                with suppress(asyncio.CancelledError):
                    await consumer.stop()
        finally:
            for topic in self._topics:
                await topic.aclose()

    async def get(self, most: int) -> list[Any]:
        """Return up to `most` records, or none after a quarter of a second."""
        consumer = self._consumer
        if consumer is None:
            return []
        try:
            found = await consumer.getmany(timeout_ms=WAIT, max_records=most)
        except _FAILED as error:
            raise explained(error, self._where) from error
        for place, records in found.items():
            self._handed_over[place.topic, place.partition] = records[-1].offset + 1
        return [record for records in found.values() for record in records]

    async def commit(self) -> None:
        """Commit what was taken, if it has changed."""
        consumer = self._consumer
        if consumer is not None:
            # The next commit, or the next member, has them again.
            with suppress(kafka.CommitFailedError, kafka.IllegalStateError):
                try:
                    await self._commit(consumer)
                except (kafka.CommitFailedError, kafka.IllegalStateError):
                    raise
                except _FAILED as error:
                    raise explained(error, self._where) from error

    async def check(self) -> None:
        """Raise LogError if the brokers have not answered within `timeout`."""
        for topic in self._topics:
            await topic.ends(range(topic.partitions))

    async def _commit(self, consumer: AIOKafkaConsumer) -> None:
        mine = consumer.assignment()
        wanted = {
            TopicPartition(*place): position
            for place, position in list(self.taken.items())
            if TopicPartition(*place) in mine and self._committed.get(place, -1) < position
        }
        if wanted:
            await consumer.commit(wanted)
            self._committed.update((tuple(place), each) for place, each in wanted.items())

    # --- a new division of the partitions

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Commit what was taken, as long as the partitions are those of this member."""
        consumer = self._consumer
        if consumer is not None and revoked:
            with suppress(*_FAILED):
                await self._commit(consumer)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Go on where this member was, in the partitions that it had before."""
        self.divisions += 1
        now = frozenset((place.topic, place.partition) for place in assigned)
        lost = self._had - now
        for place in lost:
            for known in (self._handed_over, self._committed, self.taken):
                known.pop(place, None)
        if lost:
            self._gone(lost)
        for place in now:
            await self._go_on(place)
        self._had = now

    async def _go_on(self, place: Place) -> None:
        consumer = self._consumer
        if consumer is None:
            return
        with suppress(*_FAILED):
            committed = await consumer.committed(TopicPartition(*place)) or 0
            position = self._handed_over.get(place)
            # Another member may have had it in between, and has gone further.
            if position is not None and committed <= self._committed.get(place, 0):
                consumer.seek(TopicPartition(*place), position)
            else:
                self._committed[place] = committed


def merged(taken: Mapping[Place, int], place: Place, position: int) -> int:
    """Return the further one of two positions of a partition."""
    return max(taken.get(place, 0), position)
