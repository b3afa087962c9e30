"""`send` appends each record to the partition of its key, and loses none."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
import trio

from penstock.api import LimitExceeded, LogError, UsageError
from penstock.brokers import send
from penstock.logs import Retention, RingLog
from penstock.spi import Record
from penstock.streams import collect

PLENTY = Retention(max_count=1_000)
PARTITIONS = ("a", "b", "c")


class SmallLog(RingLog):
    """Takes three elements at once, and none that is long."""

    def __init__(self) -> None:
        super().__init__(retention=PLENTY, partitions=PARTITIONS)
        self.appends = 0
        self.failure: LogError | None = None

    async def append(self, elements: Any, **place: Any) -> range:
        self.appends += 1
        if len(elements) > 3 or any(len(each) > 100 for each in elements):
            raise LimitExceeded("too many", limit="most", value=3)
        if self.failure is not None:
            raise self.failure
        return await super().append(elements, **place)


async def batches(*batches: Sequence[Record]) -> AsyncGenerator[Sequence[Record], None]:
    """The batches of a stream."""
    for batch in batches:
        await trio.lowlevel.checkpoint()
        yield batch


async def kept(log: RingLog) -> dict[str, list[Record]]:
    """Return the records of each partition."""
    return {
        name: [
            Record.unpack(each) for each in await collect(log.source(partition=name, stop="latest"))
        ]
        for name in PARTITIONS
    }


async def test_records_go_to_the_partition_of_their_key() -> None:
    """Or to their own, or to the first one, and in their order. An append that is too large is
    divided.
    """
    log = SmallLog()
    keyed = [Record(b"%d" % number, b"key %d" % (number % 7)) for number in range(40)]
    placed = [Record(b"placed", b"key", partition="c"), Record(b"plain")]
    assert await send(batches(keyed, [], placed), log) == 42
    found = await kept(log)
    assert sorted(each.value for rows in found.values() for each in rows) == sorted(
        each.value for each in (*keyed, *placed)
    )
    for name, rows in found.items():
        of_keys = [each for each in rows if each in keyed]
        assert of_keys == [each for each in keyed if log.partition_of(each.key or b"") == name]
    assert found["c"][-1] == placed[0]
    assert found["a"][-1] == placed[1]


async def test_a_record_that_is_too_long_is_told_and_the_others_before_it_stay() -> None:
    """The error of the log is raised, without a group."""
    log = SmallLog()
    rows = [Record(b"%d" % number, partition="b") for number in range(8)]
    async with aclosing(batches([*rows, Record(b"x" * 200, partition="b"), *rows])) as given:
        with pytest.raises(LimitExceeded):
            await send(given, log)
    assert [each.value for each in (await kept(log))["b"]] == [each.value for each in rows]


async def test_an_error_of_the_log_ends_it_at_that_batch() -> None:
    """No batch after it is taken."""
    log = SmallLog()
    log.failure = LogError("the broker is away")
    row = [Record(b"1"), Record(b"2", partition="b")]
    async with aclosing(batches(row, row, row)) as given:
        with pytest.raises(LogError, match="is away"):
            await send(given, log)
    assert log.appends == 2


async def test_what_is_no_log_and_no_record_is_refused() -> None:
    """The text says what to give."""
    async with aclosing(batches([b"bytes"])) as wrong:  # type: ignore[list-item]  # on purpose
        with pytest.raises(UsageError, match="give a Log"):
            await send(wrong, None)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(UsageError, match="give records"):
            await send(wrong, SmallLog())
