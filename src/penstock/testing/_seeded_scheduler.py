"""Makes trio's scheduler repeatable. This is the only file that uses private names of trio.

Trio shuffles its runnable tasks on purpose, with its own random generator (`trio._core._run._r`).
It also has a flag that makes the order depend on that generator only
(`_ALLOW_DETERMINISTIC_SCHEDULING`; Hypothesis and pytest-trio set it too).
If a version of trio does not have these names, `SEEDING_WORKS` is False and seeding does nothing.
Tests still run; only the order of their tasks is not repeatable.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

try:
    from trio._core import _run as _trio_run
except ImportError:  # a version of trio without this module
    _run: Any = None
else:
    _run = _trio_run

SEEDING_WORKS: Final = isinstance(getattr(_run, "_r", None), random.Random) and hasattr(
    _run, "_ALLOW_DETERMINISTIC_SCHEDULING"
)
"""Whether `seeded` can make the order of tasks repeatable with the installed trio."""


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Make the order of tasks depend on `seed` inside the block. None keeps the random order.
    The block's end restores trio's state.
    """
    if seed is None or not SEEDING_WORKS:
        yield
        return
    internals: dict[str, Any] = vars(_run)
    generator, was_deterministic = internals["_r"], internals["_ALLOW_DETERMINISTIC_SCHEDULING"]
    state = generator.getstate()
    generator.seed(seed)
    internals["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    try:
        yield
    finally:
        generator.setstate(state)
        internals["_ALLOW_DETERMINISTIC_SCHEDULING"] = was_deterministic


def reseed(seed: int) -> None:
    """Begin the order of tasks anew from `seed`, inside `seeded` or `run_virtual`. So a part of
    a run can be repeated in the same order.
    """
    if SEEDING_WORKS and vars(_run)["_ALLOW_DETERMINISTIC_SCHEDULING"]:
        vars(_run)["_r"].seed(seed)
