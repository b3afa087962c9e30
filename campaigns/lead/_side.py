"""One side of a run, in a process of its own: the producer, the reader, or both.

    python -m campaigns.lead._side MODULE.FUNCTION FOLDER SIZE MOST OPTIONS [ADDRESS]

The function gets a `Side`. The two sides and the campaign talk by lines of standard output and
input, and by a file in FOLDER that all of them have in memory: the producer counts in it what it
has made, so that nobody must ask a busy loop.
"""

import asyncio
import importlib
import inspect
import json
import mmap
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

TAKEN: Final = 10
"""Elements that the reader takes before it stops."""

MADE, CLOSED, TOOK = 0, 8, 16
"""Places in the file: elements that were made, producers that were closed, elements taken."""


class Counters:
    """Three numbers in a file that several processes have in memory."""

    def __init__(self, folder: Path) -> None:
        path = folder / "counters"
        if not path.exists():
            path.write_bytes(bytes(24))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 24)

    def __getitem__(self, place: int) -> int:
        return int.from_bytes(self._memory[place : place + 8], sys.byteorder)

    def __setitem__(self, place: int, number: int) -> None:
        self._memory[place : place + 8] = number.to_bytes(8, sys.byteorder)


class Side:
    """What a side is told, and what it says."""

    def __init__(self, folder: str, size: str, most: str, options: str, address: str = "") -> None:
        self.folder = Path(folder)
        self.size = int(size)
        self.most = int(most)
        self.options: dict[str, Any] = json.loads(options)
        self.address = address
        self.counters = Counters(self.folder)
        self._parent = os.getppid()

    # --- the producer

    def all_elements(self) -> Iterator[bytes]:
        """Make elements, each with its number in front, and count them."""
        try:
            for number in range(1, self.most + 1):
                self.counters[MADE] = number
                if not number % 1_000 and os.getppid() != self._parent:
                    os._exit(1)  # the campaign was killed
                # Random bytes, other ones each time, so that no compression makes them shorter.
                yield number.to_bytes(8, "big") + os.urandom(self.size - 8)
        finally:
            self.counters[CLOSED] += 1

    async def elements(self) -> AsyncGenerator[bytes, None]:
        """Make them in a loop. A source that waits lets the other tasks run: so does this one."""
        made = self.all_elements()
        try:
            for element in made:
                await _pause()
                yield element
        finally:
            made.close()  # type: ignore[attr-defined]  # it is a generator

    # --- both

    def say(self, *words: object) -> None:
        """Tell the campaign where this side is."""
        sys.__stdout__.write(" ".join(map(str, words)) + "\n")  # type: ignore[union-attr]  # it is open
        sys.__stdout__.flush()  # type: ignore[union-attr]  # the same

    def wait(self) -> None:
        """Wait for a line of the campaign. The process ends with the campaign."""
        if not sys.stdin.readline():
            os._exit(0)

    async def wait_in_loop(self) -> None:
        """Do so in a thread, so that the loop goes on."""
        if _is_trio():
            import trio

            await trio.to_thread.run_sync(self.wait)
        else:
            await asyncio.to_thread(self.wait)

    async def serve_forever(self, address: object) -> None:
        """Say where the producer can be reached, and stay."""
        self.say("ready", address)
        while True:
            await self.wait_in_loop()

    async def begin(self, address: object = "") -> None:
        """Say that this side is prepared, and wait until it may begin."""
        self.say("ready", address)
        await self.wait_in_loop()

    # --- the reader

    def take(self, element: object = None) -> None:
        """Count an element that the reader has taken. The number of the first one is kept."""
        if self.counters[TOOK] == 0 and self.options.get("again"):
            assert isinstance(element, bytes | bytearray)
            self.say("first", int.from_bytes(element[:8], "big"))
        self.counters[TOOK] += 1

    async def stop(self) -> None:
        """The reader has taken its elements. It waits, with its stream open, until it may leave."""
        self.say("stopped")
        await self.wait_in_loop()

    async def left(self) -> None:
        """The reader has left, as its library says; its program goes on."""
        self.say("left")
        while True:
            await self.wait_in_loop()


async def _pause() -> None:
    if _is_trio():
        import trio

        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def _is_trio() -> bool:
    import sniffio

    return sniffio.current_async_library() == "trio"


def run(function: Callable[[Side], Any], side: Side) -> None:
    """Run the side, in the loop that the options name."""
    if not inspect.iscoroutinefunction(function):
        function(side)
    elif side.options.get("loop") == "trio":
        import trio

        trio.run(function, side)
    else:
        asyncio.run(function(side))


def main(name: str, *arguments: str) -> None:
    """Be a side, until the campaign ends it."""
    module, _, function = name.rpartition(".")
    run(getattr(importlib.import_module(f"campaigns.lead.{module}"), function), Side(*arguments))
    while True:  # a program whose functions have returned is looked at, too
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
