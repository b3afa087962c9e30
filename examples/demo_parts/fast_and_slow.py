"""Scene: a generator that never pauses, behind a reader that does."""

import tracemalloc
from collections.abc import AsyncIterator, Iterator

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A fast generator, a slow reader"
STORY = """\
The generator never pauses. The reader takes its time, then hurries, then stops for a while.
Each element weighs 64 KiB."""
ELEMENT_BYTES = 64 * 1024
DEMAND = 64
PACES = {"takes its time": 0.002, "hurries": 0.0, "takes its time again": 0.002}
PAUSE_SECONDS = 0.7


class _Play:
    def __init__(self) -> None:
        self.made = 0
        self.taken = 0
        self.pace = ""
        self.most_ahead = 0
        self.most_memory = 0
        self.rate = 0.0
        self._before = (trio.current_time(), 0)

    async def blocks(self) -> AsyncIterator[bytes]:
        """Made as fast as demand allows."""
        while True:
            self.made += 1
            yield bytes(ELEMENT_BYTES)

    def look(self, stream: "penstock.Stream[bytes]") -> Iterator[Gauge]:
        """The gauges of this moment."""
        now, memory = stream.statistics(), tracemalloc.get_traced_memory()[0]
        at, taken = self._before
        if trio.current_time() - at > 0.2:
            self.rate = (self.taken - taken) / (trio.current_time() - at)
            self._before = (trio.current_time(), self.taken)
        yield Gauge("the reader", self.pace)
        yield Gauge("taken", f"{self.taken:,} of {self.made:,} made", self.taken / max(1, self.made))
        yield Gauge("rate", f"{self.rate:,.0f} per second", min(1.0, self.rate / 20_000))
        yield Gauge("buffered", f"{now.buffered} of {DEMAND}", now.buffered / DEMAND)
        yield Gauge("demand", f"{now.outstanding} outstanding", now.outstanding / DEMAND)
        yield Gauge("memory", f"{memory / 1e6:.1f} MB", memory / 20e6)

    def note(self) -> None:
        """Keep the extremes, at every element."""
        self.taken += 1
        self.most_ahead = max(self.most_ahead, self.made - self.taken + 1)
        self.most_memory = max(self.most_memory, tracemalloc.get_traced_memory()[0])


async def play(screen: Screen) -> list[Finding]:
    """Read at three paces, with a pause, and watch what the generator does meanwhile."""
    me = _Play()
    tracemalloc.start()
    try:
        async with penstock.subscribe(me.blocks, demand=DEMAND) as stream, trio.open_nursery() as nursery:
            nursery.start_soon(screen.watch, lambda: me.look(stream))
            paused = await _read(me, stream)
            nursery.cancel_scope.cancel()
        without = await _without_bound()
    finally:
        tracemalloc.stop()
    megabytes = f"{me.most_memory / 1e6:.1f} MB; a channel without a bound held {without / 1e6:,.0f} MB after a tenth of a second"
    return [
        Finding(
            "never more under way than was asked for",
            f"at most {me.most_ahead} of {DEMAND}, in {me.taken:,} elements",
            shown=me.most_ahead <= DEMAND,
        ),
        Finding(
            f"a reader that pauses stops the generator, at most {DEMAND} elements later",
            f"{paused} made in {PAUSE_SECONDS} s of pause",
            shown=paused <= DEMAND,
        ),
        Finding("memory stays flat", f"at most {megabytes}", shown=me.most_memory < 3 * DEMAND * ELEMENT_BYTES),
    ]


async def _read(me: _Play, stream: "penstock.Stream[bytes]") -> int:
    """Read at each pace for a while; return how many elements were made in the pause between them."""
    made_in_pause = 0
    for pace, seconds in PACES.items():
        me.pace = pace
        with trio.move_on_after(0.9):
            async for _ in stream:
                me.note()
                await trio.sleep(seconds)
        if pace == "hurries":
            me.pace, before = "stops for a while", me.made
            await trio.sleep(PAUSE_SECONDS)
            made_in_pause = me.made - before
    return made_in_pause


async def _without_bound() -> int:
    """Fill a memory channel that has no bound, for a tenth of a second, or up to 2,000 elements; return the bytes it held."""
    send, receive = trio.open_memory_channel[bytes](2_000)
    async with send, receive:
        with trio.move_on_after(0.1):
            while True:
                await send.send(bytes(ELEMENT_BYTES))
        return send.statistics().current_buffer_used * ELEMENT_BYTES
