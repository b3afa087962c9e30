"""Making trio's scheduler repeatable: the only file that touches trio's private names.

Trio shuffles its runnable tasks on purpose, with a random generator of its own (`trio._core._run._r`), and has a switch under which
the shuffle depends on that generator alone (`_ALLOW_DETERMINISTIC_SCHEDULING`; Hypothesis and pytest-trio set it too).
Both are private: where a trio hides them, seeding does nothing, `SEEDING_WORKS` is False, and every test still runs, merely without
the promise that a seed gives the same order twice.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

try:
    from trio._core import _run as _trio_run
except ImportError:  # a trio that hides its inside
    _run: Any = None
else:
    _run = _trio_run

SEEDING_WORKS: Final = isinstance(getattr(_run, "_r", None), random.Random) and hasattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING")
"""Whether `seeded` can make the order of tasks repeatable with this trio."""


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Make the order of tasks a function of `seed` while the block runs; None leaves it to chance. Both are put back after it."""
    if seed is None or not SEEDING_WORKS:
        yield
        return
    inside: dict[str, Any] = vars(_run)
    chance, switch = inside["_r"], inside["_ALLOW_DETERMINISTIC_SCHEDULING"]
    state = chance.getstate()
    chance.seed(seed)
    inside["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    try:
        yield
    finally:
        chance.setstate(state)
        inside["_ALLOW_DETERMINISTIC_SCHEDULING"] = switch
