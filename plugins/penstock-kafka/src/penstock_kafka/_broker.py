"""The broker of a `KafkaLog`: partitions of a topic as partitions of a log, offsets as positions.

Rules of this file:

* It runs in trio. All requests run in the thread of `AsyncioThread`.
* A reader makes a fetch when it needs elements, and not before. The other elements of a batch stay
  in `Fetched`.
* A position without an element is refused: the positions of a log are dense, on all of the ways
  that its elements go.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from math import ceil
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import attrs
import trio
from aiokafka import errors as kafka

from penstock.api import LogDamaged, LogError, UsageError
from penstock.logs import Broker, BrokerNews, Ends, Retention, Written
from penstock.spi import Record
from penstock_kafka._access import KafkaAccess
from penstock_kafka._appends import Appends, Row, Ticket, check_size, split
from penstock_kafka._asyncio_thread import AsyncioThread
from penstock_kafka._decode import Decoded, decode
from penstock_kafka._fetched import Fetched, Run
from penstock_kafka._topic import Answer, Topic
from penstock_kafka._watch import WAIT, Telling, Watch

T = TypeVar("T")

Compression: TypeAlias = Literal["gzip", "snappy", "lz4", "zstd"]

CODES: Final[dict[Compression | None, int]] = {
    None: 0,
    "gzip": 1,
    "snappy": 2,
    "lz4": 3,
    "zstd": 4,
}
"""Kafka's numbers of compressions."""

MARK: Final = "penstock-transaction"
"""The header of the first record of a part of a transaction: ``1/3 ID`` is the first of three."""

FETCH_BYTES: Final = 1 << 20
"""Bytes of a fetch that no reader has asked for."""

FETCH_FACTOR: Final = 2
"""Bytes of a fetch for each byte that a reader asks for. A fetch ends in the middle of a batch, and
the broker sends that part again with the next fetch.
"""

MOST_TIMES: Final = 10_000
"""Pieces that one call of `times` collects."""

MOST_FETCHES_OF_TIMES: Final = 16

KEY: ContextVar[bytes | None] = ContextVar("KEY", default=None)
"""The key of the append that the task makes: a `Broker` gets elements only."""


class Fetches(NamedTuple):
    """How much a log has fetched since it was opened, and how much of it it holds."""

    requests: int = 0
    elements: int = 0
    held_bytes: int = 0


@attrs.define
class Parts:
    """What is known of the parts of one transaction."""

    total: int
    done: set[int] = attrs.Factory(set)
    """The numbers of the parts that were appended."""
    under_way: dict[int, Ticket] = attrs.Factory(dict)
    """The parts whose outcome no task has waited for, by their numbers: a broker may have them."""


class KafkaBroker(Broker):
    """Keeps the elements of one log in one topic."""

    def __init__(
        self,
        brokers: Sequence[str],
        topic: str,
        *,
        access: KafkaAccess,
        timeout: float,
        compression: Compression | None,
        records: bool,
        transactions: int,
        retention: Retention | None,
    ) -> None:
        self._place = (brokers, topic, access, timeout)
        self._timeout = timeout
        self._compression = CODES[compression]
        self._take = _records if records else _values
        self._records = records
        self._transactions = transactions
        self._retention = retention
        self._thread: AsyncioThread | None = None
        self._fetched = Fetched()
        self._reset()

    def _reset(self) -> None:
        self._topic: Topic | None = None
        self._names: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}
        self._appends: list[Appends] = []
        self._fetching: dict[tuple[int, int], trio.Event] = {}
        # By the ids of transactions. Those that are whole are forgotten with the log's own ids.
        self._parts: dict[str, Parts] = {}
        self._publishing = trio.Lock()
        self._fetched.clear()
        self._requests = self._elements = 0

    @property
    def fetches(self) -> Fetches:
        """The number of fetches and of their elements, and the bytes that are held."""
        return Fetches(self._requests, self._elements, self._fetched.held)

    # --- opening

    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        self._reset()
        self._news = news
        self._thread = AsyncioThread()
        self._thread.start()
        count, ends = await self._thread.call(self._connect)
        self._check_settings(self.topic.settings)
        self._names = self._names_for(partitions, count)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        if self._transactions:
            await self._find_transactions(ends)
        self._thread.post(self._watch.start)
        return {name: ends[number] for name, number in self._numbers.items()}

    async def _connect(self) -> tuple[int, dict[int, Ends]]:
        """Connect, in the loop. Return the number of partitions and their ends."""
        topic = self._topic = Topic(*self._place)
        if self._thread is not None:
            self._thread.at_end = topic.aclose
        count = await topic.open()
        ends = await topic.ends(range(count))
        tell = Telling(
            moved=lambda moved: self._tell(self._moved, moved),
            lost=lambda reason: self._tell(self._lost, reason),
            fetched=self._take_tail,
        )
        self._watch = Watch(topic, ends, tell)
        self._appends = [
            Appends(topic, number, self._compression, self._deliver, ends[number].latest)
            for number in range(count)
        ]
        return count, ends

    def _names_for(self, wanted: Sequence[str], count: int) -> tuple[str, ...]:
        """Return the names of all partitions."""
        numbers = tuple(map(str, range(count)))
        if set(wanted) <= {*numbers}:
            return numbers
        if len(wanted) == count:
            return tuple(wanted)
        raise UsageError(
            f"{self.topic.where} has {count} partitions, and the log was given {len(wanted)} "
            f"names for them: give {count} names, or none: then they are '0' to '{count - 1}'"
        )

    def _check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise UsageError if the topic keeps less than the program needs."""
        if "compact" in settings.get("cleanup.policy", ""):
            raise UsageError(
                f"{self.topic.where} has cleanup.policy={settings['cleanup.policy']}: compaction "
                "takes elements out, and a log has an element at each position. Read it with "
                "KafkaGroup, or take a topic with cleanup.policy=delete"
            )
        keeps = self._retention
        for name, wanted in (
            ("retention.bytes", None if keeps is None else keeps.max_bytes),
            (
                "retention.ms",
                None if keeps is None or keeps.max_age is None else keeps.max_age * 1e3,
            ),
        ):
            has = int(settings.get(name, -1))
            if wanted is not None and 0 <= has < wanted:
                raise UsageError(
                    f"{self.topic.where} has {name}={has:,}, and the log was given a Retention of "
                    f"{wanted:,.0f}: set {name} of the topic, as with kafka-configs.sh --alter"
                )

    async def aclose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            await trio.lowlevel.checkpoint()
            return
        await thread.aclose()
        self._fetched.clear()

    @property
    def topic(self) -> Topic:
        """The topic of a broker that was opened."""
        assert self._topic is not None  # noqa: S101 (for the type checker)
        return self._topic

    def check_keys(self) -> None:
        """Raise LogError if the topic has other partitions than the log: keys belong to others."""
        now = self.topic.partitions
        if now not in (0, len(self._names)):
            raise LogError(
                f"{self.topic.where} has {now} partitions now, and {len(self._names)} when the log "
                "was opened: keys belong to other partitions than before. Open the log again; "
                "until then append to partition=..."
            )

    # --- from the loop

    def _tell(self, function: Callable[..., object], *args: Any) -> None:
        thread = self._thread
        if thread is not None:
            thread.tell(function, *args)

    def _deliver(self, partition: int, latest: int, tickets: Sequence[Ticket]) -> None:
        if latest:
            self._watch.note_append(partition, latest)
        self._tell(_set_done, tickets)

    def _take_tail(self, partition: int, position: int, answer: Answer) -> None:
        # The reader that comes to it gets the error.
        with suppress(kafka.KafkaError):
            found = decode(answer.data, position, answer.aborted, self._take)
            self._tell(self._fetched.keep_tail, partition, Run.of(found.start, found.elements))

    # --- in trio

    def _moved(self, ends: Mapping[int, Ends]) -> None:
        self._news.moved({self._names[number]: each for number, each in ends.items()})

    def _lost(self, reason: str | LogDamaged) -> None:
        if isinstance(reason, LogDamaged):
            self._fetched.clear()
        self._news.lost(reason)

    def _keep(self, partition: int, found: Decoded[bytes]) -> Run | None:
        """Keep elements that were fetched."""
        self._requests += 1
        self._elements += len(found.elements)
        if not found.elements or self._thread is None:
            return None
        run = Run.of(found.start, found.elements)
        self._fetched.add(partition, run)
        return run

    async def _call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        thread = self._thread
        if thread is None:
            raise UsageError("the log was closed while a task used it")
        return await thread.call(function, *args)

    # --- appending

    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        rows = [_row_of(element) for element in elements] if self._records else None
        return await self._put(self._numbers[partition], Ticket(elements, rows, KEY.get()))

    async def _put(self, number: int, ticket: Ticket) -> int:
        check_size(ticket, self.topic)
        if self._thread is None:
            raise UsageError("the log was closed while a task appended to it")
        self._thread.post(self._appends[number].put, ticket)
        return await self._outcome(number, ticket)

    async def _outcome(self, number: int, ticket: Ticket) -> int:
        """Return the position of a ticket that was put into the appends of a partition."""
        appends = self._appends[number]
        try:
            with trio.move_on_after(self._timeout):
                await ticket.done.wait()
        finally:
            ticket.is_dropped = not ticket.done.is_set()
        if ticket.is_dropped:
            is_sent = await self._call(appends.is_under_way, ticket)
            if not ticket.done.is_set():  # the answer may have come meanwhile
                raise self._no_answer(appends, ticket, is_sent=is_sent)
        if ticket.error is not None:
            # A new one for each task: one that is raised twice would collect the frames of both.
            raise type(ticket.error)(*ticket.error.args)
        return ticket.position

    def _no_answer(self, appends: Appends, ticket: Ticket, *, is_sent: bool) -> LogError:
        outcome = (
            "They may have been appended, and are sent until the broker answers"
            if is_sent
            else "They were not appended"
        )
        why = appends.trouble or "it has not answered"
        return LogError(
            f"{self.topic.where}: {len(ticket.elements):,} elements were not taken within "
            f"{self._timeout:g} s. {outcome}. {why}"
        )

    async def publish(
        self, transaction_id: str, elements: Mapping[str, Sequence[bytes]]
    ) -> Mapping[str, int] | None:
        async with self._publishing:
            parts = [
                (name, Ticket(part, self._rows(part)))
                for name, each in elements.items()
                for part in split(each, self._rows(each), self.topic.batch_bytes)
            ]
            known = self._parts.get(transaction_id)
            if known is None:
                known = self._parts[transaction_id] = Parts(len(parts))
            elif known.total == len(known.done):
                return None
            if known.total != len(parts):
                raise LogError(
                    f"{self.topic.where}: {len(known.done)} of {known.total} parts of transaction "
                    f"{transaction_id!r} were appended before, and it has {len(parts)} parts now: "
                    "the elements are others. Publish the same elements, or another id"
                )
            stops: dict[str, int] = {}
            for number, (name, ticket) in enumerate(parts):
                if number in known.done:
                    continue
                mark = f"{number + 1}/{known.total} {transaction_id}"
                ticket.mark = [(MARK, mark.encode())]
                position = await self._put_part(known, number, self._numbers[name], ticket)
                stops[name] = position + len(ticket.elements)
            while len(self._parts) > MOST_TRANSACTIONS:
                del self._parts[next(iter(self._parts))]
            return {name: stop - len(elements[name]) for name, stop in stops.items()}

    async def _put_part(self, known: Parts, part: int, number: int, ticket: Ticket) -> int:
        """Append a part of a transaction, and return its position. A part that an earlier call has
        sent is not sent by a second ticket: the broker would have it twice.
        """
        before = known.under_way.get(part)
        is_sent = before is not None and await self._call(
            self._appends[number].is_under_way, before
        )
        if before is None or not is_sent:
            known.under_way[part] = ticket
            outcome = self._put(number, ticket)
        else:
            ticket = before
            outcome = self._outcome(number, ticket)
        try:
            position = await outcome
        finally:
            if ticket.done.is_set():
                del known.under_way[part]
        known.done.add(part)
        return position

    def _rows(self, elements: Sequence[bytes]) -> list[Row] | None:
        return [_row_of(element) for element in elements] if self._records else None

    async def _find_transactions(self, ends: Mapping[int, Ends]) -> None:
        """Find the ids of the transactions of the last elements."""
        for number, (earliest, latest) in ends.items():
            position = max(earliest, latest - self._transactions)
            while position < latest:
                found = await self._call(self._fetch_marks, number, position)
                position = max(found.after, position + 1)
                for mark in filter(None, found.elements):
                    self._note_mark(mark)
        self._news.published(
            name for name, parts in self._parts.items() if len(parts.done) == parts.total
        )

    def _note_mark(self, mark: bytes) -> None:
        """Note a part of a transaction. Another program may have written any bytes there."""
        place, _, transaction_id = mark.decode(errors="replace").partition(" ")
        found = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", place, re.ASCII)
        if found and int(found[1]) <= int(found[2]):
            parts = self._parts.setdefault(transaction_id, Parts(int(found[2])))
            parts.done.add(int(found[1]) - 1)

    async def _fetch_marks(self, number: int, position: int) -> Decoded[bytes | None]:
        answer = await self.topic.fetch(number, position, FETCH_BYTES, wait=WAIT)
        return self._decoded(number, position, answer, _marks)

    # --- reading

    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        number = self._numbers[partition]
        await trio.lowlevel.checkpoint()
        self.topic.check_damage()
        run = self._fetched.find(number, position)
        if run is None:
            run = await self._fetch_in_turn(number, position, max_bytes)
        return () if run is None else run.elements[position - run.start : stop - run.start]

    async def _fetch_in_turn(self, number: int, position: int, max_bytes: int) -> Run | None:
        """Fetch, or wait for another reader that fetches the same."""
        place = (number, position)
        while place in self._fetching:
            await self._fetching[place].wait()
            run = self._fetched.find(number, position)
            if run is not None:
                return run
        self._fetching[place] = trio.Event()
        try:
            return await self._fetch(number, position, max_bytes)
        finally:
            self._fetching.pop(place).set()

    async def _fetch(self, number: int, position: int, max_bytes: int) -> Run | None:
        try:
            found = await self._call(self._fetch_elements, number, position, max_bytes)
        except kafka.OffsetOutOfRangeError:
            ends = await self._call(self.topic.ends, [number])
            if position >= ends[number].earliest:
                raise self.topic.note_damage(
                    f"partition {self._names[number]!r} has ended after {position:,}, and ends at "
                    f"{ends[number].latest:,}: the topic was made anew, or its brokers have lost "
                    "elements"
                ) from None
            self._moved(ends)
            return None
        if not found.elements or found.start != position:
            raise self._gap(number, position, found)
        return self._keep(number, found)

    def _gap(self, number: int, position: int, found: Decoded[bytes]) -> LogDamaged:
        after = found.start if found.elements else found.after
        return LogDamaged(
            f"{self.topic.where}: partition {self._names[number]!r} has no elements from "
            f"{position:,} up to, and not with, {after:,}. Kafka has the marker of a transaction "
            "there, or compaction has removed them; the readers of a log count, so each position "
            f"needs an element. Start at {after:,} to go on, or read the topic with KafkaGroup"
        )

    async def _fetch_elements(self, number: int, position: int, max_bytes: int) -> Decoded[bytes]:
        """Fetch, in the loop, until something comes."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        while True:
            answer = await self.topic.fetch(number, position, FETCH_FACTOR * max_bytes, wait=WAIT)
            if answer.data:
                break
            if asyncio.get_running_loop().time() >= deadline:
                raise LogError(
                    f"{self.topic.where}: partition {self._names[number]!r} ends at "
                    f"{answer.ends.latest:,}, and position {position:,} was read before: a "
                    "transaction of another program is open, or elements were lost"
                )
        return self._decoded(number, position, answer, self._take)

    def _decoded(
        self, number: int, position: int, answer: Answer, take: Callable[[Any], list[T]]
    ) -> Decoded[T]:
        try:
            return decode(answer.data, position, answer.aborted, take)
        except (kafka.CorruptRecordException, kafka.UnsupportedCodecError) as error:
            raise LogDamaged(
                f"{self.topic.where}: partition {self._names[number]!r} cannot be read from "
                f"{position:,} on: {error}. For lz4, snappy and zstd install aiokafka[all]; else "
                "read from another replica, or start after it"
            ) from error
        except _TooManyHeaders as error:
            raise LogError(
                f"{self.topic.where}: partition {self._names[number]!r} has an element with "
                f"{error} headers after {position:,}, and a Record has at most {MOST_HEADERS}: "
                "open the log without records=True, or read the topic with KafkaGroup"
            ) from None

    # --- times

    async def position_at(self, partition: str, time: float) -> int | None:
        number = self._numbers[partition]
        # The small part keeps the milliseconds of a float that was made of whole ones. Below 0
        # Kafka has other meanings.
        wanted = max(0, ceil(time * 1_000 - 0.001))
        found = (await self._call(self.topic.offsets, {number: wanted}))[number]
        return None if found < 0 else found

    async def times(self, partition: str, start: int, stop: int) -> list[Written]:
        number = self._numbers[partition]
        pieces: list[Written] = []
        for _ in range(MOST_FETCHES_OF_TIMES):
            try:
                found = await self._call(self._fetch_times, number, start)
            except kafka.OffsetOutOfRangeError:
                self._moved(await self._call(self.topic.ends, [number]))
                return pieces
            if not found.elements or found.start != start:
                break
            _add_times(pieces, start, found.elements[: stop - start])
            start = found.after
            if start >= stop or len(pieces) >= MOST_TIMES:
                break
        return pieces[:MOST_TIMES]

    async def _fetch_times(self, number: int, position: int) -> Decoded[int]:
        answer = await self.topic.fetch(number, position, FETCH_BYTES, wait=WAIT)
        return self._decoded(number, position, answer, _times)


class _TooManyHeaders(Exception):
    """An element has more headers than a `Record`."""


MOST_HEADERS: Final = 64
"""Headers of a `Record`."""

MOST_TRANSACTIONS: Final = 65_536
"""Ids whose parts are known, as many as a log remembers."""


def _set_done(tickets: Iterable[Ticket]) -> None:
    for ticket in tickets:
        ticket.done.set()
        if ticket.is_dropped:
            # A transaction that is never published again must not hold them.
            ticket.elements, ticket.rows = (), None


def _add_times(pieces: list[Written], start: int, times: Sequence[int]) -> None:
    """Add the times of elements, in milliseconds, from position `start` on."""
    for position, milliseconds in enumerate(times, start):
        time = milliseconds / 1_000
        # Another program may have written an earlier time.
        if pieces and pieces[-1].time >= time:
            pieces[-1] = pieces[-1]._replace(stop=position + 1)
        else:
            pieces.append(Written(position, position + 1, time))


# --- what is taken out of a batch


def _values(batch: Any) -> list[bytes]:
    found = [record.value for record in batch]
    if set(map(type, found)) - {bytes}:
        # A record without a value says to compaction that its key is gone.
        return [value or b"" for value in found]
    return found


def _records(batch: Any) -> list[bytes]:
    return [
        Record(record.value or b"", record.key, _headers_of(record.headers)).pack()
        for record in batch
    ]


def _headers_of(given: Sequence[tuple[str, bytes | None]]) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of an element, without the mark of a transaction of its topic. Appended to
    another topic, it would say there that the transaction was published.
    """
    found = tuple(each for each in given if each[0] != MARK)
    if len(found) > MOST_HEADERS:
        raise _TooManyHeaders(len(found))
    return found


def _times(batch: Any) -> list[int]:
    return [record.timestamp for record in batch]


def _marks(batch: Any) -> list[bytes | None]:
    return [dict(record.headers).get(MARK) for record in batch]


def _row_of(element: bytes) -> Row:
    record = Record.unpack(element)
    return record.key, record.value, list(_headers_of(record.headers))
