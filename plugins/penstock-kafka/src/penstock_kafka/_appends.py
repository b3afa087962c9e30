"""Appending to one partition: batches that a broker takes once, in order. On asyncio.

Rules of this file:

* One append lies in one record batch, which a broker takes whole or not at all. Appends that wait
  at the same time share a batch, as far as they fit.
* One batch is under way at a time. It has a number, so it can be sent again: a broker that has it
  answers with its position.
* A batch whose answer did not come is sent again until it comes, also if nobody waits for it any
  more: otherwise it could arrive after a later one. Appends that nobody waits for and that were
  not sent are dropped.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import trio
from aiokafka import errors as kafka
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from penstock.api import LimitExceeded, PenstockError
from penstock_kafka._errors import explained, is_temporary
from penstock_kafka._topic import LATEST, Topic

Headers: TypeAlias = list[tuple[str, bytes | None]]
Row: TypeAlias = tuple[bytes | None, bytes | None, Headers]
"""The key, the value and the headers of a record."""

RECORD_BYTES: Final = 24
"""Bytes that a record of a batch has at most beside its key, its value and its headers."""

BATCH_BYTES: Final = 100
"""Bytes that a batch has beside its records, and some more."""

MARK_BYTES: Final = 512
"""Bytes for the batch and the header with the id of a transaction."""

_MOST_NUMBER: Final = 2**31


@attrs.define(eq=False)
class Ticket:
    """Elements on their way to a partition. `done` is set when `position` or `error` is."""

    elements: Sequence[bytes]
    rows: Sequence[Row] | None = None
    """The records, if they are more than their elements."""
    key: bytes | None = None
    mark: Headers = attrs.Factory(list)
    """Headers of the first record."""
    done: trio.Event = attrs.Factory(trio.Event)
    position: int = 0
    error: PenstockError | None = None
    is_dropped: bool = False
    """Nobody waits for it."""
    is_sent: bool = False
    """A broker may have it. Written in the loop."""

    def size(self) -> int:
        """Return how many bytes of a batch the records take at most."""
        count = len(self.elements) if self.rows is None else len(self.rows)
        fixed = count * (RECORD_BYTES + len(self.key or b"")) + _size_of(self.mark)
        if self.rows is None:
            return fixed + sum(map(len, self.elements))
        return fixed + sum(
            len(key or b"") + len(value or b"") + _size_of(headers)
            for key, value, headers in self.rows
        )


def check_size(ticket: Ticket, topic: Topic) -> None:
    """Raise LimitExceeded if an append fits into no record batch."""
    size = ticket.size() + BATCH_BYTES
    if size > topic.batch_bytes:
        raise LimitExceeded(
            f"{topic.where}: {len(ticket.elements):,} elements take up to {size:,} bytes of a "
            f"record batch, and max.message.bytes of the topic is {topic.batch_bytes:,}. Kafka "
            "takes a batch whole or not at all, so an append is one batch: append fewer at once, "
            "or raise max.message.bytes",
            limit="max.message.bytes",
            value=topic.batch_bytes,
        )


class Appends:
    """What waits to be appended to one partition."""

    def __init__(
        self,
        topic: Topic,
        partition: int,
        compression: int,
        deliver: Callable[[int, int, Sequence[Ticket]], None],
        latest: int,
    ) -> None:
        """`latest` is the end of the partition. `deliver` is called with the partition, the
        position after the last element, or 0 if they were not appended, and the tickets that are
        done.
        """
        self._topic = topic
        self._partition = partition
        self._compression = compression
        self._deliver = deliver
        self._latest = latest
        # Bounded by the log, which admits few enough appends; dropped ones are removed.
        self._waiting: deque[Ticket] = deque()
        self._task: asyncio.Task[None] | None = None
        # The number of the next record, and the producer that it belongs to.
        self._number = 0
        self._producers = 0
        self._newest = 0  # milliseconds
        self.trouble: str = ""
        """Why the batch that is under way was not taken yet."""

    def put(self, ticket: Ticket) -> None:
        """Append the elements of a ticket, after those of all tickets before it."""
        self._waiting.append(ticket)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while tickets := self._next_tickets():
            position = 0
            try:
                position = await self._append(tickets)
            except PenstockError as error:
                for ticket in tickets:
                    ticket.error = error
            else:
                for ticket in tickets:
                    ticket.position = position
                    position += len(ticket.elements)
            self.trouble = ""
            self._deliver(self._partition, position, tickets)

    def _next_tickets(self) -> list[Ticket]:
        """Return the tickets of the next batch."""
        tickets: list[Ticket] = []
        size = BATCH_BYTES
        while self._waiting:
            ticket = self._waiting[0]
            if not ticket.is_dropped:
                size += ticket.size()
                # A second one with a mark begins a batch: a mark is on its first record.
                if tickets and (size > self._topic.batch_bytes or ticket.mark):
                    break
                ticket.is_sent = True
                tickets.append(ticket)
            self._waiting.popleft()
        return tickets

    async def is_under_way(self, ticket: Ticket) -> bool:
        """Return whether a broker may have the elements of a ticket. Drop the ticket if it was not
        sent: the loop decides that, because it sends.
        """
        ticket.is_dropped = True
        return ticket.is_sent and ticket.error is None

    async def _append(self, tickets: Sequence[Ticket]) -> int:
        if not any(ticket.elements for ticket in tickets):
            return (await self._topic.offsets({self._partition: LATEST}))[self._partition]
        producer = await self._topic.producer()
        if self._producers != self._topic.producers:
            self._number, self._producers = 0, self._topic.producers
        count = sum(len(ticket.elements) for ticket in tickets)
        batch = self._batch(tickets, producer)
        position = await self._sent(batch)
        if position < self._latest:
            raise self._topic.note_damage(
                f"partition {self._partition} has ended at {self._latest:,}, and took these "
                f"elements at {position:,}: the topic was made anew, or its brokers have lost "
                "elements"
            )
        self._latest = position + count
        self._number = (self._number + count) % _MOST_NUMBER
        return position

    async def _sent(self, batch: bytes) -> int:
        """Send a batch until the broker has taken or refused it."""
        while True:
            try:
                return await self._topic.append(self._partition, batch)
            except (kafka.KafkaError, OSError) as error:
                if not is_temporary(error):
                    self._topic.forget_producer()
                    most = self._topic.batch_bytes
                    raise explained(error, self._topic.where, most=most) from error
                self.trouble = str(explained(error, self._topic.where))
            await self._topic.pause()

    def _batch(self, tickets: Sequence[Ticket], producer: tuple[int, int]) -> bytes:
        """Return a record batch with the elements of tickets."""
        # A clock that was set back does not count: the times of a log never go back.
        self._newest = max(self._newest, int(time.time() * 1_000))
        now, number = self._newest, 0
        builder: Any = DefaultRecordBatchBuilder(
            2, self._compression, 0, *producer, self._number, _MOST_NUMBER
        )
        append = builder.append
        none: Headers = []
        for ticket in tickets:
            if ticket.rows is not None or ticket.mark:
                for key, value, headers in ticket.rows or _rows_of(ticket):
                    first = number == 0
                    append(number, now, key, value, [*ticket.mark, *headers] if first else headers)
                    number += 1
            else:
                key = ticket.key
                for at, element in enumerate(ticket.elements, number):
                    append(at, now, key, element, none)
                number += len(ticket.elements)
        built: bytes = builder.build()
        return built


def _rows_of(ticket: Ticket) -> list[Row]:
    return [(ticket.key, element, []) for element in ticket.elements]


def _size_of(headers: Headers) -> int:
    # Two varints for each header.
    return sum(len(name.encode()) + len(value or b"") + 10 for name, value in headers)


def split(
    elements: Sequence[bytes], rows: Sequence[Row] | None, most: int
) -> Iterator[Sequence[bytes]]:
    """Yield elements in parts that fit into a batch of `most` bytes each, if one alone does."""
    start, size = 0, 0
    for at, element in enumerate(elements):
        ticket = Ticket((element,), None if rows is None else rows[at : at + 1])
        each = ticket.size()
        if at > start and size + each + MARK_BYTES > most:
            yield elements[start:at]
            start, size = at, 0
        size += each
    if start < len(elements):
        yield elements[start:]
