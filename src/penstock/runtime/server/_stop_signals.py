"""SIGINT and SIGTERM: the first one asks for an end in good order, and a second one, or a shutdown
that takes too long, ends the process.

Rules of this file:

* The handler runs between any two instructions of the main thread, also while that thread holds a
  lock. So it only puts the signal into a `SimpleQueue`, whose `put` is reentrant, and asks trio to
  call a function.
* A thread waits for these signals, and not a task: a publisher that blocks the run loop, or shields
  its cleanup, keeps trio from ending anything. The thread exists before the first signal, because
  no thread can be started safely in a handler.
* The thread ends the process with `os._exit`. `sys.exit` would raise in the thread only.
"""

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, Self

import trio

GRACE: Final = 1.0
"""Seconds between the end of `Limits.drain`, when everything that is left is cancelled,
and the forced end of the process.
"""

REPEAT_SECONDS: Final = 0.05
"""A signal that follows the first one within this time is the same one: `timeout` sends each
signal to the program and to its group.
"""

FLUSH_SECONDS: Final = 0.2
"""How long the forced end waits for standard output:
the program that reads it may have stopped reading.
"""


class StopSignals(AbstractContextManager["StopSignals"]):
    """Handles SIGINT and SIGTERM inside a trio program, for the length of a ``with`` block.
    Outside the main thread it handles none.
    """

    def __init__(
        self,
        on_first: Callable[[signal.Signals], object],
        *,
        drain: float,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        """`on_first` is called in trio with the first signal.
        `drain` is how long the block may last after it.

        `end` ends the process with the status 128 + the number of the signal.
        """
        self._on_first = on_first
        self._drain = drain
        self._end = end
        self._received: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()
        self._is_first = True
        self._handlers: dict[signal.Signals, Any] = {}
        # A daemon: a main thread that dies without leaving the block must not leave the process
        # behind.
        self._thread = threading.Thread(
            target=self._watch, name="penstock stop signals", daemon=True
        )

    def __enter__(self) -> Self:
        self._token = trio.lowlevel.current_trio_token()
        # Python handles signals in no other thread.
        if threading.current_thread() is threading.main_thread():
            self._thread.start()
            for number in (signal.SIGINT, signal.SIGTERM):
                # A shell ignores SIGINT for a program in its background; that stays so.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The handlers come back first: a signal from here on is for the program.
        for number, handler in self._handlers.items():
            # None is a handler that was not set from Python, which cannot set it again.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._thread.is_alive():
            self._received.put(None)
            self._thread.join()

    def _handle(self, number: int, _: FrameType | None) -> None:
        received = signal.Signals(number)
        self._received.put(received)
        if self._is_first:
            self._is_first = False
            # trio.run() may have returned between the signal and this call.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._on_first, received)

    # --- in the thread

    def _watch(self) -> None:
        """Wait for the first signal; end the process at the second one, or when the time is
        over. Return when the block has ended.
        """
        first = self._received.get()
        began = monotonic()
        ends = began + self._drain + GRACE
        while first is not None:
            try:
                again = self._received.get(timeout=max(0.0, ends - monotonic()))
            except queue.Empty:
                still = "something still runs: a publisher that shields its cleanup, or blocks"
                self._end_process(
                    first, f"{self._drain:g} s (Limits.drain) after {first.name} {still}"
                )
                return
            if again is None:
                return
            if monotonic() - began >= REPEAT_SECONDS:
                self._end_process(again, f"{again.name} came again")
                return

    def _end_process(self, received: signal.Signals, why: str) -> None:
        # The descriptor, and not sys.stderr: the main thread may hold the lock of its buffer.
        with suppress(OSError):
            os.write(2, f"penstock: {why}; the process was ended at once\n".encode())
        flush = threading.Thread(target=_flush, daemon=True)
        flush.start()
        flush.join(FLUSH_SECONDS)
        self._end(128 + received)


def _flush() -> None:
    for file in (sys.stdout, sys.stderr):
        with suppress(Exception):  # boundary: a program may put any object there, or None
            file.flush()
