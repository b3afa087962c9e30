"""Appending the records of a stream to a topic, each to the partition of its key."""

from collections.abc import AsyncIterable, Sequence

from penstock.api import UsageError, shown
from penstock.brokers import send as send_to_log
from penstock.spi import Record
from penstock_kafka._log import KafkaLog


async def send(batches: AsyncIterable[Sequence[Record]], log: KafkaLog) -> int:
    """Append the records of each batch to `log`, which has ``records=True``, and return how many.
    Keys and headers are those of Kafka. The rest is as `penstock.brokers.send` has it. Checkpoints.
    """
    # Without it the value of a record of Kafka would be a packed record.
    if not getattr(log, "has_records", False):
        raise UsageError(f"send(..., {shown(log)}): give a KafkaLog(records=True)")
    return await send_to_log(batches, log)
