"""Scene: a generator that never pauses, behind a reader that pauses."""

import tracemalloc
from collections.abc import AsyncIterator, Iterator

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A fast generator, a slow reader"
STORY = """\
The generator never pauses. The reader is slow, then fast, then stops for 0.7 s, then is slow again.
Each element has 64 KiB."""
ELEMENT_BYTES = 64 * 1024
DEMAND = 64
PACES = {"slow": 0.002, "fast": 0.0, "slow again": 0.002}
PAUSE_SECONDS = 0.7


class _Meter:
    def __init__(self) -> None:
        self.made = 0
        self.taken = 0
        self.pace = ""
        self.most_ahead = 0
        self.most_memory = 0
        self.rate = 0.0
        self._before = (trio.current_time(), 0)

    async def blocks(self) -> AsyncIterator[bytes]:
        """Blocks of 64 KiB, as fast as demand allows."""
        while True:
            self.made += 1
            yield bytes(ELEMENT_BYTES)

    def look(self, stream: "penstock.Stream[bytes]") -> Iterator[Gauge]:
        """Yield the gauges for the state now."""
        now, memory = stream.statistics(), tracemalloc.get_traced_memory()[0]
        at, taken = self._before
        if trio.current_time() - at > 0.2:
            self.rate = (self.taken - taken) / (trio.current_time() - at)
            self._before = (trio.current_time(), self.taken)
        yield Gauge("the reader", self.pace)
        yield Gauge(
            "taken", f"{self.taken:,} of {self.made:,} made", self.taken / max(1, self.made)
        )
        yield Gauge("rate", f"{self.rate:,.0f} per second", min(1.0, self.rate / 20_000))
        yield Gauge("buffered", f"{now.buffered} of {DEMAND}", now.buffered / DEMAND)
        yield Gauge("demand", f"{now.outstanding} outstanding", now.outstanding / DEMAND)
        yield Gauge("memory", f"{memory / 1e6:.1f} MB", memory / 20e6)

    def note(self) -> None:
        """Count an element, and keep the highest values."""
        self.taken += 1
        self.most_ahead = max(self.most_ahead, self.made - self.taken + 1)
        self.most_memory = max(self.most_memory, tracemalloc.get_traced_memory()[0])


async def play(screen: Screen) -> list[Finding]:
    """Read at three paces, with a pause, and watch how far the generator gets."""
    meter = _Meter()
    try:
        async with (
            penstock.subscribe(meter.blocks, demand=DEMAND) as stream,
            trio.open_nursery() as nursery,
        ):
            tracemalloc.start()  # the modules that the first stream imports are no elements
            nursery.start_soon(screen.watch, lambda: meter.look(stream))
            paused = await _read(meter, stream)
            nursery.cancel_scope.cancel()
        without = await _without_bound()
    finally:
        tracemalloc.stop()
    megabytes = (
        f"{meter.most_memory / 1e6:.1f} MB; a channel without a bound held {without / 1e6:,.0f} "
        "MB after 0.1 s"
    )
    return [
        Finding(
            "the generator is never further ahead than the demand",
            f"at most {meter.most_ahead} of {DEMAND}, in {meter.taken:,} elements",
            shown=meter.most_ahead <= DEMAND,
        ),
        Finding(
            f"a reader that pauses stops the generator after at most {DEMAND} elements",
            f"{paused} made in {PAUSE_SECONDS} s of pause",
            shown=paused <= DEMAND,
        ),
        Finding(
            "memory stays flat",
            f"at most {megabytes}",
            shown=meter.most_memory < 3 * DEMAND * ELEMENT_BYTES,
        ),
    ]


async def _read(meter: _Meter, stream: "penstock.Stream[bytes]") -> int:
    """Read 0.9 s at each pace; return how many elements were made during the pause."""
    made_in_pause = 0
    for pace, seconds in PACES.items():
        meter.pace = pace
        with trio.move_on_after(0.9):
            async for _ in stream:
                meter.note()
                await trio.sleep(seconds)
        if pace == "fast":
            meter.pace, before = "stopped", meter.made
            await trio.sleep(PAUSE_SECONDS)
            made_in_pause = meter.made - before
    return made_in_pause


async def _without_bound() -> int:
    """Fill a memory channel for 0.1 s, or with 2,000 elements; return the bytes it held."""
    send, receive = trio.open_memory_channel[bytes](2_000)
    async with send, receive:
        with trio.move_on_after(0.1):
            while True:
                await send.send(bytes(ELEMENT_BYTES))
        return send.statistics().current_buffer_used * ELEMENT_BYTES
