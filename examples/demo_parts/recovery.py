"""Scene: a pipe over a feed that breaks, with an async function, retry, and batches by count
and by time.
"""

from collections.abc import AsyncIterator, Iterator

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A pipe over a feed that breaks"
STORY = """\
pipe(feed, retry(...), map(decode), batch(40, seconds=0.15)): the feed breaks after every 150 records, and retry starts it again
where it stopped. `decode` is an async function. When the feed is quiet for 0.15 s, batch sends a shorter batch."""
RECORDS = 1_000
BREAKS_AFTER = 150


class _Feed:
    """Yields records from where the last attempt stopped."""

    def __init__(self) -> None:
        self.attempts = 0
        self.position = 0

    async def records(self) -> AsyncIterator[bytes]:
        """Yield records; fail after `BREAKS_AFTER`, and pause 0.25 s once in 250 records."""
        self.attempts += 1
        for _ in range(BREAKS_AFTER):
            if self.position == RECORDS:
                return
            if self.position % 250 == 100:
                await trio.sleep(0.25)
            self.position += 1
            yield b"%d" % self.position
            await trio.sleep(0.0005)
        raise ConnectionError(f"the feed broke after record {self.position}")


async def _decode(record: bytes) -> int:
    await trio.sleep(0.0005)
    return int(record)


async def play(screen: Screen) -> list[Finding]:
    """Read all records through the pipe, although the feed breaks."""
    feed = _Feed()
    batches: list[list[int]] = []
    records = penstock.generate(feed.records).retry(
        None, backoff=0.1, jitter=None, when=ConnectionError, consecutive=True
    )
    source = records.map(_decode).batch(40, seconds=0.15)

    def look() -> Iterator[Gauge]:
        sizes = [len(batch) for batch in batches]
        yield Gauge("records", f"{sum(sizes):,} of {RECORDS:,}", sum(sizes) / RECORDS)
        yield Gauge("attempts", f"{feed.attempts}")
        yield Gauge(
            "batches",
            f"{len(sizes)}: {' '.join(map(str, sizes[-12:]))}",
            sizes[-1] / 40 if sizes else 0,
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(screen.watch, look)
        async with penstock.subscribe(source, demand=4) as stream:
            async for batch in stream:
                batches += [batch]
        nursery.cancel_scope.cancel()
    return _judge(feed, batches)


def _judge(feed: _Feed, batches: list[list[int]]) -> list[Finding]:
    records = [record for batch in batches for record in batch]
    full = sum(len(batch) == 40 for batch in batches)
    expected = (RECORDS - 1) // BREAKS_AFTER + 1
    return [
        Finding(
            "a broken feed is started again, and no record is lost or doubled",
            f"{feed.attempts} attempts, {len(records):,} of {RECORDS:,} records, in order",
            shown=records == list(range(1, RECORDS + 1)) and feed.attempts == expected,
        ),
        Finding(
            "batch sends full batches, and shorter ones after 0.15 s",
            f"{full} full ones of 40, {len(batches) - full} shorter ones",
            shown=full > 0 and len(batches) > full,
        ),
    ]
