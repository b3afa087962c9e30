"""Scene: one topic and three subscribers, each with its own pace and policy."""

from collections.abc import Iterator

import trio
import trio.testing

import penstock
from demo_parts.screen import Finding, Gauge, Screen
from penstock import Topic, ops

TITLE = "One topic, three subscribers"
STORY = """\
A thermometer publishes 400 readings a second; its topic waits for the slowest subscriber.
One subscriber takes every reading. Two are too slow for that: latest() and drop() skip readings for them."""
SECONDS, PER_SECOND = 3.0, 400


class _Subscriber:
    """A reader with a pace, and the readings that it saw."""

    def __init__(self, name: str, source: "penstock.Source[int]", pause: float) -> None:
        self.name = name
        self.source = source
        self.pause = pause
        self.seen: list[int] = []
        self.skipped = 0

    async def run(self) -> None:
        """Read to the end, with a pause after each element."""
        async with penstock.subscribe(self.source, demand=1) as stream:
            async for reading in stream:
                self.seen.append(reading)
                await trio.sleep(self.pause)

    def note_skipped(self, _: int) -> None:
        """Count an element that arrived without demand."""
        self.skipped += 1

    def look(self, published: int) -> Gauge:
        """Return the gauge of this subscriber, with its lag behind the topic."""
        newest = self.seen[-1] if self.seen else 0
        text = (
            f"saw {len(self.seen):,}, skipped {self.skipped:,}; now at {newest:,}, "
            f"{published - newest} behind"
        )
        return Gauge(self.name, text, len(self.seen) / max(1, published))

    @property
    def in_order(self) -> bool:
        """Whether each reading it saw is newer than the one before."""
        return all(one < other for one, other in zip(self.seen, self.seen[1:], strict=False))


async def play(screen: Screen) -> list[Finding]:
    """Publish for `SECONDS`, and judge the readings that each subscriber saw."""
    topic = Topic[int]()
    every = _Subscriber("every one", topic, 0.0005)
    newest = _Subscriber("latest()", topic, 0.05)
    newest.source = penstock.pipe(topic, ops.latest(on_drop=newest.note_skipped))
    gaps = _Subscriber("drop()", topic, 0.02)
    gaps.source = penstock.pipe(topic, ops.drop(on_drop=gaps.note_skipped))
    all_three = (every, newest, gaps)

    def look() -> Iterator[Gauge]:
        published = topic.statistics().published
        yield Gauge("published", f"{published:,}", published / (SECONDS * PER_SECOND))
        yield from (subscriber.look(published) for subscriber in all_three)

    async with trio.open_nursery() as watchers:
        watchers.start_soon(screen.watch, look)
        async with trio.open_nursery() as nursery:
            for subscriber in all_three:
                nursery.start_soon(subscriber.run)
            await trio.testing.wait_all_tasks_blocked()
            took = await _publish(topic)
        watchers.cancel_scope.cancel()
    return _judge(topic, took, *all_three)


async def _publish(topic: "Topic[int]") -> float:
    """Publish `PER_SECOND` readings a second; return how long it took."""
    began = trio.current_time()
    for reading in range(1, int(SECONDS * PER_SECOND) + 1):
        await trio.sleep_until(began + reading / PER_SECOND)
        await topic.publish(reading)
    topic.complete()
    return trio.current_time() - began


def _judge(
    topic: "Topic[int]", took: float, every: _Subscriber, newest: _Subscriber, gaps: _Subscriber
) -> list[Finding]:
    published = topic.statistics().published
    accounted = all(len(each.seen) + each.skipped == published for each in (every, newest, gaps))
    return [
        Finding(
            "the quick subscriber misses nothing",
            f"{len(every.seen):,} of {published:,}, in order",
            shown=every.seen == list(range(1, published + 1)),
        ),
        Finding(
            "the slow subscribers do not delay the topic",
            (
                f"publishing took {took:.2f} s of {SECONDS:g} s planned; at the slowest pace it "
                f"would take {published * newest.pause:.0f} s"
            ),
            shown=took < published * newest.pause / 2,
        ),
        Finding(
            "each skipped reading is counted",
            (
                f"latest() saw {len(newest.seen)} and skipped {newest.skipped:,}; drop() saw "
                f"{len(gaps.seen)} and skipped {gaps.skipped:,}"
            ),
            shown=accounted and newest.in_order and gaps.in_order,
        ),
        Finding(
            "latest() ends with the newest reading",
            f"{newest.seen[-1]:,} of {published:,}",
            shown=newest.seen[-1] == published,
        ),
    ]
