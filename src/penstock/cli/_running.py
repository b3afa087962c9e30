"""A command while it runs: on trio, with the signals that end it."""

import argparse
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from penstock.api import Limits
from penstock.runtime import Service, StopSignals

LAST_SECONDS: Final = 0.4
"""Seconds that a command has after a signal. A goodbye waits up to `Limits.goodbye_timeout`, 2 s,
for the peer's answer, and the user does not want to wait for a peer that has stopped. The goodbye
itself has been sent by then.
"""


def run_command(options: argparse.Namespace) -> int:
    """Prepare the command if it has something to prepare, run it, and return its status."""
    # Before the run loop: with the signal receiver of the loop,
    # SIGINT could not interrupt the import of a module.
    if options.prepare is not None:
        options.prepare(options)
    last_resort = _LastResort()
    program = partial(_run_until_signal, options.run, options, last_resort)
    try:
        # A service may have functions that need another loop beside trio.
        service: Service = getattr(options, "loaded", None) or Service()
        return service.run(program)
    finally:
        last_resort.cancel()


async def _run_until_signal(
    run: Callable[[argparse.Namespace], Any],
    options: argparse.Namespace,
    last_resort: "_LastResort",
) -> int:
    """Run a command. SIGTERM and SIGINT cancel it, so that peers receive a goodbye, and child
    processes and socket files are removed.

    A second signal ends the process at once.
    """
    # Not KeyboardInterrupt: it is raised at any place, for example between the call of an async
    # function and its first step. Python then writes a RuntimeWarning about a coroutine that was
    # never awaited.
    scope = trio.CancelScope()
    statuses: list[int] = []

    def cancel(number: signal.Signals) -> None:
        # A shell reports this status for a program that a signal has ended.
        statuses.append(128 + number)
        last_resort.start(statuses[0])
        scope.cancel()

    with StopSignals(cancel, drain=Limits().drain), scope:
        statuses.append(int(await run(options) or 0))
    return statuses[0]


class _LastResort:
    """Ends the process `LAST_SECONDS` after a signal, from a thread, whether
    or not the run loop has ended.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def start(self, status: int) -> None:
        """Count the time from now."""
        self._timer = threading.Timer(LAST_SECONDS, _end_process, [status])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Let the process live: the command has ended by itself."""
        if self._timer is not None:
            self._timer.cancel()


def _end_process(status: int) -> None:
    # exec: has started these. A child that does not end
    # when its standard input ends would stay without a parent.
    for child in _children():
        with suppress(OSError):
            os.kill(child, signal.SIGTERM)
    os._exit(status)


def _children() -> list[int]:
    """Return the processes that this one has started. Only Linux tells them."""
    # A process belongs to the thread that has started it.
    files = Path("/proc/self/task").glob("*/children")
    with suppress(OSError):
        return [int(child) for file in files for child in file.read_text(encoding="ascii").split()]
    return []
