"""How long the run loop is held up:
the processor time of its thread in each pass, from one wait for input to the next.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

import trio

HOLD_UP = 0.1
"""Seconds that a pass may take. Processor time, so other programs on the machine do not count."""


class LoopPasses(trio.abc.Instrument):
    """How many passes there were, and how long the longest took. It keeps no other figure: a
    soak has millions of passes.
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._began = thread_time()

    def after_io_wait(self, timeout: float) -> None:
        self._began = thread_time()

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1
        self.longest = max(self.longest, thread_time() - self._began)


@contextmanager
def watch_passes() -> Iterator[LoopPasses]:
    """Measure the passes of the loop in this block, without the collector: the heap of a test
    run is many times that of a server.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    # After the collection, which would count as a part of the first pass.
    passes = LoopPasses()
    trio.lowlevel.add_instrument(passes)
    try:
        yield passes
    finally:
        trio.lowlevel.remove_instrument(passes)
        if was_enabled:
            gc.enable()
