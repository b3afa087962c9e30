"""A member of a group that keeps what it has handled in a file, with the time.

``python -m campaigns.brokers._member ENGINE URL FILE``
"""

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import trio

from penstock.brokers import BrokerGroup, GroupRecord, handle

NAME = "orders"
GROUP = "billing"
HOLD = 2.0
"""Seconds after which a killed member has lost its partitions, where it can be chosen."""


class Row(NamedTuple):
    """An element that a member has handled."""

    time: float
    partition: str
    position: int
    value: bytes


def rows_of(path: Path) -> list[Row]:
    """Return what is whole in the file."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    found = []
    for line in lines:
        moment, partition, position, value = line.split(b" ", 3)
        found.append(Row(float(moment), partition.decode(), int(position), value))
    return found


def open_group(engine: str, url: str, **options: Any) -> BrokerGroup[Any]:
    """Return a member on one of the brokers. Each needs its own plugin only."""
    options = {"group": GROUP, "acknowledge": "by hand", "timeout": 50.0, **options}
    if engine == "kafka":
        from penstock_kafka import KafkaGroup

        return KafkaGroup(url, NAME, **options)
    options = {"hold": HOLD, **options}
    if engine == "redis":
        from penstock_redis import RedisGroup

        return RedisGroup(url, NAME, **options)
    from penstock_nats import JetStreamGroup

    return JetStreamGroup(url, NAME, **options)


async def main(engine: str, url: str, file: str) -> None:
    """Handle elements until it is killed."""
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def keep(record: GroupRecord) -> None:
        row = f"{time.monotonic()} {record.partition} {record.position} ".encode()
        os.write(out, row + record.value + b"\n")
        await trio.lowlevel.checkpoint()

    async with open_group(engine, url) as group:
        print("ready", flush=True)
        await handle(group, keep)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
