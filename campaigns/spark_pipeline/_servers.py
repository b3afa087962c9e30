"""The two servers of the pipeline, as programs: one has the log and goes on appending to it, the
other one receives. Each prints its port when it serves.

    python -m campaigns.spark_pipeline._servers source FOLDER PORT
"""

import sys
from collections import defaultdict
from pathlib import Path

import trio

from campaigns.spark_pipeline._judge import key_of
from penstock import DiskLog, Retention, Service, receive, serve
from penstock.api import partition_of
from penstock.spi import Record

PARTITIONS = {"orders": 4, "archive": 3, "counts": 2}
"""The partitions of each log."""

CHUNK = 200
"""Elements of an append."""

PAUSE = 1.0
"""Seconds between two appends."""

PLENTY = Retention(max_count=10**9)


def path_of(folder: Path, name: str) -> Path:
    """Return the file of a log."""
    return folder / f"{name}.log"


def opened(folder: Path, name: str) -> DiskLog:
    """Return a log of the pipeline."""
    names = [str(number) for number in range(PARTITIONS[name])]
    return DiskLog(path_of(folder, name), retention=PLENTY, partitions=names)


async def feed(log: DiskLog, stop: Path) -> None:
    """Append keyed elements until there is a file `stop`. A program that is started again goes on
    with the element after the last one.
    """
    chunk = 0
    while log.is_published(f"chunk {chunk}"):
        chunk += 1
    while not stop.exists():
        values: defaultdict[str, list[bytes]] = defaultdict(list)
        for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
            record = Record(b"%d" % number, key_of(number))
            values[partition_of(key_of(number), list(log.partitions))].append(record.pack())
        transaction = log.transaction(f"chunk {chunk}")
        for partition, elements in values.items():
            await transaction.stage(elements, partition=partition)
        await transaction.publish()
        chunk += 1
        await trio.sleep(PAUSE)


async def source(folder: Path, port: int) -> None:
    """Publish the log, and append to it."""
    service = Service()
    async with opened(folder, "orders") as log:
        service.publish("orders", log)
        async with serve(service, f"tcp://127.0.0.1:{port}") as server:
            print(server.addresses[0].port, flush=True)
            await feed(log, folder / "stop")
            await trio.sleep_forever()


async def receiver(folder: Path, port: int) -> None:
    """Receive the copy, and the counts of its windows."""
    service = Service()
    async with opened(folder, "archive") as archive, opened(folder, "counts") as counts:
        receive(service, "archive", archive, records=True)
        receive(service, "counts", counts, records=True)
        async with serve(service, f"tcp://127.0.0.1:{port}") as server:
            print(server.addresses[0].port, flush=True)
            await trio.sleep_forever()


if __name__ == "__main__":
    program = {"source": source, "receiver": receiver}[sys.argv[1]]
    trio.run(program, Path(sys.argv[2]), int(sys.argv[3]))
