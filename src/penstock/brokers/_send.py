"""Appending the records of a stream to a log, each to the partition of its key."""

from collections.abc import AsyncIterable, Sequence

import trio

from penstock.api import LimitExceeded, UsageError, shown
from penstock.logs import Log
from penstock.spi import Record


async def send(batches: AsyncIterable[Sequence[Record]], log: Log) -> int:
    """Append the records of each batch to `log`, and return how many.

    ::

        async with penstock.subscribe(source, demand=1_024) as stream:
            await send(stream.batches(), log)

    An element of the log is a packed record, so a `KafkaLog` needs ``records=True``. A record goes
    to its partition, or to that of its key, or to the first one. Records of one partition stay in
    order. The next batch is taken when this one is appended, so the log sets the pace of the
    stream. Raises what the log raises: then the records of the batch may be appended in part.
    Checkpoints.
    """
    if not isinstance(log, Log):
        raise UsageError(f"send(..., {shown(log)}): give a Log")
    sent = 0
    async for batch in batches:
        parts: dict[str, list[bytes]] = {}
        for record in batch:
            if not isinstance(record, Record):
                raise UsageError(f"send() was given {shown(record)}; give records: Record(value)")
            keyed = record.partition is None and record.key is not None
            place = (
                log.partition_of(record.key or b"")
                if keyed
                else record.partition_in(log.partitions, log.partitions[0])
            )
            parts.setdefault(place, []).append(record.pack())
        errors: list[Exception] = []
        async with trio.open_nursery() as nursery:
            for place, elements in parts.items():
                nursery.start_soon(_append, log, place, elements, errors)
        if errors:
            raise errors[0]
        sent += len(batch)
    return sent


async def _append(log: Log, place: str, elements: list[bytes], errors: list[Exception]) -> None:
    """Append elements, in parts if one batch cannot hold them. What it raises goes to `errors`."""
    try:
        await log.append(elements, partition=place)
    except LimitExceeded as error:
        # None of them was appended.
        half = len(elements) // 2
        if not half:
            errors.append(error)
            return
        for part in (elements[:half], elements[half:]):
            if not errors:
                await _append(log, place, part, errors)
    except Exception as error:  # boundary: it is raised without a group
        errors.append(error)
