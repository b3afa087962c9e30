"""The executor's half: a task reads its ranges, and hands them to Spark in Arrow batches.

Rules of this file:

* Nothing here is shared with the driver or with another task. A task connects to the publisher
  itself, and its demand bounds what waits.
* A batch has at least `LEAST_ROWS` elements, or what has come within `LONGEST_WAIT`:
  each batch costs Spark some 100 µs.
* A task that Spark stops is a generator that is closed: leaving the block of the stream cancels it.
  Nothing else tells the publisher.
* A lost connection is made again, and the range goes on behind the last element. A range that ends
  early raises, so Spark repeats the task.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, cycle
from time import monotonic
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    ProtocolError,
    PublisherFailed,
    Rejected,
    StreamTimeout,
)
from penstock.blocking import Peer
from penstock_spark._connection import ServerConnection
from penstock_spark.source._columns import required_of
from penstock_spark.source._decode import Decoded, decoder_of
from penstock_spark.source._names import range_name, times_name
from penstock_spark.source._offsets import Range
from penstock_spark.source._publisher import digest_of
from penstock_spark.source._record_rows import RecordDecoder
from penstock_spark.source._runs import Runs
from penstock_spark.source._servers import QueryServers
from penstock_spark.source._settings import SourceSettings
from penstock_spark.source._times import Times

_log: Final = logging.getLogger("penstock.spark")

LEAST_ROWS: Final = 16_384
"""Elements of a batch, at least. One batch an element made two million rows take more than five
minutes; 4,096 took 10 % more.
"""

LONGEST_WAIT: Final = 0.05
"""Seconds after which a smaller batch is handed over."""

MOST_BYTES: Final = 8 << 20
"""Bytes of the elements of a batch, after which it is handed over also if it has fewer elements."""


ADVICE: Final = (
    "If these elements were dropped, or the publisher has begun anew: set failOnDataLoss=false to "
    "go on without them, or begin again, a streaming query with a new checkpointLocation"
)
"""For a range that the publisher no longer has. Spark plans a batch of a streaming query once,
so each new start fails in the same way.
"""

MOST_FAILURES: Final = 3
"""Lost connections in a row without an element, after which the task fails. Each was made with
`penstock.client.retries` attempts.
"""


class Batches:
    """Elements of a range, as they become Arrow batches."""

    def __init__(self, settings: SourceSettings, schema: pa.Schema, part: Range) -> None:
        before = 3 * settings.has_metadata + settings.has_timestamp
        fields = list(schema)[before + 2 * settings.has_records :]
        self._time_type = schema.field(before - 1).type if settings.has_timestamp else None
        self._settings = settings
        self._schema = schema
        self._part = part
        if settings.keeps_corrupt:
            required = required_of(settings.schema or "")[0]
            fields = [field.with_nullable(field.name not in required) for field in fields[:-1]]
        decoder = decoder_of(settings.value_format, fields, settings.message_type)
        self._decoder = RecordDecoder(decoder) if settings.has_records else decoder
        self._waiting = Runs()
        # The columns of the longest batch so far: all batches have the same values, and share them.
        self._names: list[pa.Array] = []
        self._since = 0.0
        self.times: Times | None = Times(part.start) if settings.has_timestamp else None
        self.position = part.start
        """The position behind the last element that was added."""

    def add(self, elements: Sequence[bytes], now: float) -> bool:
        """Add elements, and return whether a batch is due."""
        if not self._waiting:
            self._since = now
        self._waiting.add(elements)
        self.position += len(elements)
        return (
            len(self._waiting) >= LEAST_ROWS
            or self._waiting.size >= MOST_BYTES
            or now - self._since >= LONGEST_WAIT
        )

    def take(self) -> pa.RecordBatch | None:
        """Return the elements that were added since the last call as a batch; None without such
        elements.
        """
        elements, self._waiting = self._waiting, Runs()
        if not elements:
            return None
        if (
            self._part.digest
            and self.position == self._part.stop
            and digest_of(elements[-1]) != self._part.digest
        ):
            text = (
                f"the element at position {self.position - 1:,} of {self._name()} is not the one "
                "that the driver has seen: the publisher has come back with other elements at the "
                "same positions"
            )
            if self._settings.fail_on_loss:
                raise ProtocolError(f"{text}. {ADVICE}")
            _log.warning("%s; going on, because failOnDataLoss=false", text)
        return self._batch(elements, self._decoder.decode(elements))

    def move(self, position: int) -> None:
        """Go on at a later position. The elements before it were handed over."""
        self.position = position
        if self.times is not None:
            self.times = Times(position)

    # --- inside

    def _name(self) -> str:
        return f"partition {self._part.partition!r} of {self._part.stream!r}"

    def _batch(self, elements: Sequence[bytes], decoded: Decoded) -> pa.RecordBatch:
        first = self.position - len(elements)
        if decoded.bad and not self._settings.keeps_corrupt:
            place, why = decoded.bad[0]
            raise ProtocolError(
                f"the element at position {first + place:,} of {self._name()} is no "
                f"{self._settings.value_format} of the schema: {why}. "
                "Correct valueFormat and schema; or set undecodable=_corrupt, and such elements "
                "arrive in the column _corrupt"
            )
        columns = [*self._metadata(first, len(elements), decoded.rows), *decoded.columns]
        if self._settings.keeps_corrupt:
            columns.append(_corrupt(elements, decoded))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _metadata(self, first: int, count: int, rows: Sequence[int] | None) -> list[pa.Array]:
        return [*self._places(first, count, rows), *self._timestamps(first, count, rows)]

    def _timestamps(self, first: int, count: int, rows: Sequence[int] | None) -> list[pa.Array]:
        if self.times is None:
            return []
        moments = self.times.take(first, first + count)
        if rows is not None:
            moments = np.repeat(moments, rows)
        return [pa.array(moments).view(self._time_type)]

    def _places(self, first: int, count: int, rows: Sequence[int] | None) -> list[pa.Array]:
        if not self._settings.has_metadata:
            return []
        offsets = np.arange(first, first + count, dtype=np.int64)
        if rows is not None:
            offsets = np.repeat(offsets, rows)
        if not self._names or len(self._names[0]) < len(offsets):
            names = (self._part.stream, self._part.partition)
            self._names = [
                pa.repeat(pa.scalar(each, pa.string()), max(len(offsets), LEAST_ROWS))
                for each in names
            ]
        return [*(column.slice(0, len(offsets)) for column in self._names), pa.array(offsets)]


class Task(NamedTuple):
    """The ranges of a task, and the addresses where they can be read."""

    settings: SourceSettings
    schema: pa.Schema
    parts: tuple[Range, ...]
    addresses: tuple[str, ...]

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all ranges, one range after the other, over one connection."""
        connection = ServerConnection(self.settings.client)
        try:
            for part in self.parts:
                yield from RangeReader(
                    self.settings, self.schema, part, self.addresses, connection
                ).read()
        finally:
            connection.close()


class RangeReader(NamedTuple):
    """Reads one range."""

    settings: SourceSettings
    schema: pa.Schema
    part: Range
    addresses: tuple[str, ...]
    connection: ServerConnection

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the range.
        Raises ProtocolError if the publisher does not send all of it.
        """
        batches = Batches(self.settings, self.schema, self.part)
        if self.settings.at_most_once:
            yield from self._read_what_comes(batches)
            return
        failures = 0
        for address in cycle(self.addresses):
            before = batches.position
            try:
                yield from self._read_from(address, batches)
            except ConnectionLost:
                failures = failures + 1 if batches.position == before else 1
                if failures < MOST_FAILURES:
                    continue
                if self.settings.fail_on_loss or len(self.settings.uris) == 1:
                    raise
                _log.warning(
                    (
                        "none of %s answers: leaving the elements %s up to, and not with, %s of %s "
                        "out, because failOnDataLoss=false"
                    ),
                    ", ".join(self.addresses),
                    f"{batches.position:,}",
                    f"{self.part.stop:,}",
                    self.part.key,
                )
                if (rest := batches.take()) is not None:
                    yield rest
                batches.move(self.part.stop)
            except (Rejected, PublisherFailed, StreamTimeout) as refused:
                # A log that has begun anew may have the start of the range,
                # and then waits for elements up to its stop.
                position = (
                    batches.position
                    if self.settings.fail_on_loss
                    else self._next_there(batches.position)
                )
                if position == batches.position:
                    raise self._refused(refused) from refused
                if (rest := batches.take()) is not None:
                    yield rest
                _log.warning(
                    (
                        "%r has no more the elements %s up to, and not with, %s of partition %r; "
                        "going on, because failOnDataLoss=false"
                    ),
                    self.part.stream,
                    f"{batches.position:,}",
                    f"{position:,}",
                    self.part.partition,
                )
                batches.move(position)
                continue
            break
        if (rest := batches.take()) is not None:
            yield rest
        if batches.position != self.part.stop:
            raise ProtocolError(
                f"the publisher has completed {self.part.stream!r} before position "
                f"{batches.position:,}, and the batch goes up to "
                f"{self.part.stop:,}"
            )

    # --- inside

    @contextmanager
    def _connected(self, address: str) -> Iterator[Peer]:
        try:
            yield self.connection.peer(address)
        except AuthRefused as refused:
            raise self.settings.client.refused(address, refused) from refused
        except ConnectionLost:
            self.connection.close()
            raise

    def _read_from(self, address: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        if batches.position == self.part.stop:
            return
        name = range_name(
            self.part.stream,
            self.part.partition,
            batches.position,
            self.part.stop,
            self.settings.subscription,
        )
        with (
            self._connected(address) as peer,
            closing(
                peer.runs(
                    name, demand=self.settings.window, timeout=self.settings.client.read_timeout
                )
            ) as arrived,
        ):
            for run in chain.from_iterable(arrived):
                is_due = batches.add(run, monotonic())
                # The times are known before the elements are handed over, and before a loss.
                self._learn_times(peer, batches)
                if is_due and (batch := batches.take()) is not None:
                    yield batch

    def _learn_times(self, peer: Peer, batches: Batches) -> None:
        """Ask when the elements were appended that were added."""
        times = batches.times
        while times is not None and times.end < batches.position:
            name = times_name(
                self.part.stream,
                self.part.partition,
                times.end,
                self.part.stop,
                self.settings.subscription,
            )
            times.add(peer.request(name, timeout=self.settings.client.read_timeout), name)

    def _read_what_comes(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the elements of a publisher without positions, until there are enough,
        or the time is over.
        """
        count, seconds = self.part.stop - self.part.start, self.settings.long_poll
        deadline = monotonic() + seconds
        demand = min(count, self.settings.window)
        with (
            self._connected(self.addresses[0]) as peer,
            peer.subscribe(self.part.stream, demand=demand, timeout=max(seconds, 0.001)) as stream,
            suppress(StreamTimeout),
        ):
            for elements in stream.batches():
                is_due = batches.add(elements[: self.part.stop - batches.position], monotonic())
                is_over = batches.position == self.part.stop or monotonic() >= deadline
                if (is_due or is_over) and (batch := batches.take()) is not None:
                    yield batch
                if is_over:
                    break
        if (rest := batches.take()) is not None:
            yield rest

    def _next_there(self, position: int) -> int:
        """Return where the range goes on. Since the batch was planned the publisher may have
        dropped elements, or have begun anew.
        """
        publisher = QueryServers(self.settings)
        try:
            facts = publisher.facts([self.part.stream]).get((self.part.stream, self.part.partition))
        finally:
            publisher.close()
        # A log that does not reach the end of the range is another one.
        # The driver reads it from its beginning.
        if facts is None or facts.latest < self.part.stop:
            return self.part.stop
        return min(max(position, facts.earliest), self.part.stop)

    def _refused(self, refused: Exception) -> Exception:
        if isinstance(refused, StreamTimeout):
            refused = StreamTimeout(
                "no element came within "
                f"penstock.client.readTimeoutMs={self.settings.client.read_timeout * 1000:.0f}"
            )
        return ProtocolError(
            f"{self.part.stream!r} does not give positions {self.part.start:,} to "
            f"{self.part.stop:,} of partition {self.part.partition!r}: "
            f"{refused}. {ADVICE}"
        )


def _corrupt(elements: Sequence[bytes], decoded: Decoded) -> pa.Array:
    wrong = {each.place for each in decoded.bad}
    column: list[Any] = (
        [element if index in wrong else None for index, element in enumerate(elements)]
        if wrong
        else [None] * len(elements)
    )
    if decoded.rows is not None:
        column = [
            each for each, count in zip(column, decoded.rows, strict=True) for _ in range(count)
        ]
    return pa.array(column, pa.binary())
