"""Scene: one topic, three subscribers, each with a pace and a policy of its own."""

from collections.abc import Iterator

import trio
import trio.testing

import penstock
from demo_parts.screen import Finding, Gauge, Screen
from penstock import Topic, ops

TITLE = "One topic, three subscribers"
STORY = """\
A thermometer publishes 400 readings a second; its topic waits for the slowest subscriber.
One subscriber takes every reading; two are far too slow for that, and say how they let go."""
SECONDS, PER_SECOND = 3.0, 400


class _Subscriber:
    """A reader with a pace, and what it saw."""

    def __init__(self, name: str, source: "penstock.Source[int]", pause: float) -> None:
        self.name = name
        self.source = source
        self.pause = pause
        self.seen: list[int] = []
        self.let_go = 0

    async def run(self) -> None:
        """Read to the end, with a pause after each."""
        async with penstock.subscribe(self.source, demand=1) as stream:
            async for reading in stream:
                self.seen.append(reading)
                await trio.sleep(self.pause)

    def note_let_go(self, _: int) -> None:
        """Count an element that was not asked for in time."""
        self.let_go += 1

    def look(self, published: int) -> Gauge:
        """Its gauge: how old what it sees is."""
        newest = self.seen[-1] if self.seen else 0
        text = f"saw {len(self.seen):,}, let go of {self.let_go:,}; now at {newest:,}, {published - newest} behind"
        return Gauge(self.name, text, len(self.seen) / max(1, published))

    @property
    def in_order(self) -> bool:
        """Whether what it saw only ever went up."""
        return all(one < other for one, other in zip(self.seen, self.seen[1:], strict=False))


async def play(screen: Screen) -> list[Finding]:
    """Publish for some seconds, and look at what each saw."""
    topic = Topic[int]()
    every = _Subscriber("every one", topic, 0.0005)
    newest = _Subscriber("latest()", topic, 0.05)
    newest.source = penstock.pipe(topic, ops.latest(on_drop=newest.note_let_go))
    gaps = _Subscriber("drop()", topic, 0.02)
    gaps.source = penstock.pipe(topic, ops.drop(on_drop=gaps.note_let_go))
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
    """Publish at a steady pace, as a thermometer does; return how long it took."""
    began = trio.current_time()
    for reading in range(1, int(SECONDS * PER_SECOND) + 1):
        await trio.sleep_until(began + reading / PER_SECOND)
        await topic.publish(reading)
    topic.complete()
    return trio.current_time() - began


def _judge(topic: "Topic[int]", took: float, every: _Subscriber, newest: _Subscriber, gaps: _Subscriber) -> list[Finding]:
    published = topic.statistics().published
    accounted = all(len(each.seen) + each.let_go == published for each in (every, newest, gaps))
    return [
        Finding(
            "the one that keeps up misses nothing",
            f"{len(every.seen):,} of {published:,}, in order",
            shown=every.seen == list(range(1, published + 1)),
        ),
        Finding(
            "the slow ones hold up nobody",
            f"publishing took {took:.2f} s, as planned; at the pace of the slowest it would have taken {published * newest.pause:.0f} s",
            shown=took < SECONDS * 2,
        ),
        Finding(
            "what they let go of is known to the last element",
            f"latest() saw {len(newest.seen)} and let go of {newest.let_go:,}; drop() saw {len(gaps.seen)} and let go of {gaps.let_go:,}",
            shown=accounted and newest.in_order and gaps.in_order,
        ),
        Finding("latest() ends with the newest there is", f"{newest.seen[-1]:,} of {published:,}", shown=newest.seen[-1] == published),
    ]
