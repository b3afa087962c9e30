"""The two figures of an attack: the bytes that the attacked side held for a hostile connection, and
how long the run loop was held up.

Rules of this file:

* The bytes are those that the memory budget counts (`ConnectionTask.held`), after each pass of the
  loop. `python -m campaigns costs` compares that count with what the process allocates.
* The hold-up is the processor time of the longest pass.
  Attacker and canary run in the same loop, and their work counts too.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio

from penstock.api import Limits
from penstock.runtime import Server
from penstock.session._session import RELEASED
from tests.hostile._loop_passes import HOLD_UP, LoopPasses

KIB: Final = 1024

HELD: Final = Limits().receive_chunk + 16 * KIB
"""Bytes that a hostile connection may hold, beside those that its row names: a chunk of received
bytes, two tasks, and its messages.
"""

__all__ = ["HELD", "HOLD_UP", "Figures", "hostile_to", "watch_figures"]


class Figures(LoopPasses):
    """The figures since `watch_figures` was entered."""

    def __init__(self, connections: Callable[[], Iterable[Any]]) -> None:
        super().__init__()
        self._connections = connections
        self.held = 0
        """The most that one connection held."""

    def before_io_wait(self, timeout: float) -> None:
        super().before_io_wait(timeout)  # first: the count is not a part of the pass
        # A connection that was released holds nothing, and cannot be asked any more.
        left = [each for each in self._connections() if each.session.channel.owner is not RELEASED]
        self.held = max(self.held, max((connection.held() for connection in left), default=0))


def hostile_to(server: Server) -> Callable[[], list[Any]]:
    """Return a function that returns the connections of a server that are not open at this
    moment: those of the attackers.
    """
    holders: Any = server._settings.budget._holders  # type: ignore[attr-defined]  # tests look inside
    honest = frozenset(holders)
    return lambda: [holder for holder in holders if holder not in honest]


@contextmanager
def watch_figures(connections: Callable[[], Iterable[Any]]) -> Iterator[Figures]:
    """Measure in this block: the passes of the loop,
    and what each of `connections()` holds after each of them.

    Without the collector: the heap of a test run grows with each attack,
    and one collection of it takes up to 100 ms.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    figures = Figures(connections)
    trio.lowlevel.add_instrument(figures)
    try:
        yield figures
    finally:
        trio.lowlevel.remove_instrument(figures)
        if was_enabled:
            gc.enable()
