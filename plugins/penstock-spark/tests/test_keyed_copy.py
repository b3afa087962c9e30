"""A keyed stream is copied over three hops by three queries, with uneven batches: per key, each
element arrives once and in order, with its headers.
"""

import threading
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any, Self

import pytest
import trio

import penstock
from penstock.api import partition_of
from penstock.spi import Record

HOPS = (4, 3, 5, 2)
"""The partitions of the logs."""

KEYS = 40
COUNT = 3_000


class Hops:
    """A server in a thread that publishes each log, and receives into it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/socket"
        self._folder = folder
        self._ready = threading.Event()
        self._logs: list[penstock.DiskLog] = []

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=trio.run, args=(self._serve,))
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *error: object) -> None:
        trio.from_thread.run_sync(self._scope.cancel, trio_token=self._token)
        self._thread.join(60)

    def append(self, records: list[Record]) -> None:
        """Append to the first log."""
        trio.from_thread.run(self._append, records, trio_token=self._token)

    def contents(self, hop: int) -> dict[str, list[Record]]:
        """Return the records of each partition of a log."""
        return trio.from_thread.run(self._contents, hop, trio_token=self._token)

    async def _append(self, records: list[Record]) -> None:
        for record in records:
            await self._logs[0].append([record.pack()], key=record.key)

    async def _contents(self, hop: int) -> dict[str, list[Record]]:
        log = self._logs[hop]
        return {
            name: [
                Record.unpack(each)
                for each in await penstock.collect(log.source(name, stop="latest"), limit=10**6)
            ]
            for name in log.partitions
        }

    async def _serve(self) -> None:
        service = penstock.Service()
        with trio.CancelScope() as self._scope:
            async with trio.open_nursery() as nursery:
                for hop, count in enumerate(HOPS):
                    log = penstock.DiskLog(
                        self._folder / f"{hop}.log",
                        retention=penstock.Retention(max_count=10**9),
                        partitions=[str(each) for each in range(count)],
                    )
                    self._logs.append(await log.__aenter__())
                    service.publish(f"hop{hop}", log)
                    penstock.receive(service, f"hop{hop}", log, records=True)
                async with penstock.serve(service, self.url):
                    self._token = trio.lowlevel.current_trio_token()
                    self._ready.set()
                    await trio.sleep_forever()
                nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            for each in self._logs:
                await each.aclose()


def copy(spark: Any, hops: Hops, folder: Path, hop: int, random: Random) -> None:
    """Copy what is new from one log to the next, in batches of any size."""
    rows = (
        spark.readStream.format("penstock")
        .options(
            stream=f"hop{hop}",
            records="true",
            startingOffsets="earliest",
            maxElementsPerTrigger=random.randrange(50, 900),
            minPartitions=random.randrange(1, 4),
        )
        .load(hops.url)
        .select("value", "key", "headers")
    )
    query = (
        rows.writeStream.format("penstock")
        .option("stream", f"hop{hop + 1}")
        .option("checkpointLocation", str(folder / f"checkpoint{hop}"))
        .trigger(availableNow=True)
        .start(hops.url)
    )
    query.awaitTermination()


@pytest.mark.heavy
def test_a_keyed_stream_stays_in_order_over_three_hops(spark: Any, tmp_path: Path) -> None:
    """Elements come while the queries are away, and each key gets another number of them."""
    random = Random(11)
    counts: defaultdict[bytes, int] = defaultdict(int)
    expected: defaultdict[bytes, list[Record]] = defaultdict(list)
    with Hops(tmp_path) as hops:
        for _ in range(2):
            sent = []
            for _ in range(COUNT // 2):
                key = b"key-%d" % min(random.randrange(KEYS), random.randrange(KEYS))
                headers = (("n", b"%d" % counts[key]),) * random.randrange(3)
                value = b"%b:%d " % (key, counts[key]) + bytes(random.randrange(100))
                sent.append(Record(value, key, headers))
                expected[key].append(sent[-1])
                counts[key] += 1
            hops.append(sent)
            for hop in range(len(HOPS) - 1):
                copy(spark, hops, tmp_path, hop, random)
        for hop, count in enumerate(HOPS):
            names = [str(each) for each in range(count)]
            found: defaultdict[bytes, list[Record]] = defaultdict(list)
            for name, records in hops.contents(hop).items():
                for record in records:
                    assert record.key is not None
                    assert partition_of(record.key, names) == name
                    found[record.key].append(record)
            assert found == expected
