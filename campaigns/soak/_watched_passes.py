"""The passes of the run loop, with the stacks of the longest one."""

import sys
import threading
import traceback
from collections.abc import Iterator
from itertools import islice
from time import perf_counter, thread_time
from types import FrameType
from typing import Final

from tests.hostile._loop_passes import LoopPasses

LONG: Final = 0.05
"""Seconds, by the clock on the wall, from which the stack of a pass is kept."""

BETWEEN: Final = 0.02
"""Seconds between two looks."""

FRAMES: Final = 8
"""The innermost frames of a stack that are kept."""


class WatchedPasses(LoopPasses):
    """Keeps the longest pass with the stacks of the loop in it:
    a thread looks at the stack while a pass is long.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[str] = []
        """The stacks of the longest pass, one each time the thread looked;
        none if it was shorter than `LONG`.
        """
        self._loop = threading.get_ident()
        self._started: float | None = None
        self._seen: list[str] = []
        threading.Thread(target=self._watch, daemon=True, name="stacks of long passes").start()

    def after_io_wait(self, timeout: float) -> None:
        super().after_io_wait(timeout)
        self._started = perf_counter()

    def before_io_wait(self, timeout: float) -> None:
        if thread_time() - self._began > self.longest:
            self.stacks = self._seen
        if self._seen:
            self._seen = []
        self._started = None
        super().before_io_wait(timeout)

    def restart(self) -> None:
        """Measure the present pass from now on."""
        self._began, self._started, self._seen = thread_time(), perf_counter(), []

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(BETWEEN):
            started, seen = self._started, self._seen
            if started is not None and perf_counter() - started > LONG:
                # Into the list of the pass that was looked at: the next pass has another one.
                seen.append(" < ".join(_names(sys._current_frames().get(self._loop))))


def _names(frame: FrameType | None) -> Iterator[str]:
    """Yield function, file and line of the innermost frames. `traceback` would read and keep the
    sources, as memory of the server.
    """
    for inner, line in islice(traceback.walk_stack(frame), FRAMES if frame is not None else 0):
        yield f"{inner.f_code.co_name} ({inner.f_code.co_filename.rpartition('/')[2]}:{line})"
