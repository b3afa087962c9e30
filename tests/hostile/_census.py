"""A census of this process: every object of penstock, every socket, task and generator,
and the open files.
"""

import gc
from collections import Counter
from pathlib import Path

import trio

from tests.hostile._attack_clock import AttackClock

OPEN_FILES = Path("/proc/self/fd")
COUNTED = (
    "penstock.",
    "socket",
    "ssl.SSL",
    "_ssl",
    "builtins.async_generator",
    "trio.S",
    "trio.Nursery",
    "trio.lowlevel.Task",
)
"""How the full names of the counted types begin."""

NOT_COUNTED = ("ParkedTask", "_limited_log._Kind", "PublisherCounts")
"""A pump or a reader makes a ParkedTask when it first has to wait: the canary may do so during the
attack. Pumps and readers are counted.

The log with a bounded rate remembers each kind of line. Their number is bounded, and tested there.

With a plugin of metrics installed a server keeps the numbers of each of its publishers.
"""


def census() -> "Counter[str]":
    """Return how many there are, by the name of the type."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    found = Counter(
        name for name in names if name.startswith(COUNTED) and not name.endswith(NOT_COUNTED)
    )
    found["open files"] = len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0
    found["tasks"] = trio.lowlevel.current_statistics().tasks_living
    return found


async def wait_forgotten(before: "Counter[str]", clock: AttackClock) -> dict[str, int]:
    """Wait until nothing is left that was not there before, but no longer than a stretched
    second. Return what is left then.
    """
    with trio.move_on_after(1 * clock.stretch):
        while (census() - before).total():  # noqa: ASYNC110 (no event tells that a socket was closed)
            await trio.sleep(0.01)
    return dict(census() - before)
