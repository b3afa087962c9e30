"""The settings of Python's garbage collector for a process that serves: `tune_collector`.

Why: a full collection looks at every object of the process, in one go, while the run loop stands
still. Python starts one each time that the heap has grown by a quarter. 5,000 connections that
arrived one after another were held up for 418 ms by the last of these, and no longer than 18 ms
with the settings of this file. `python -m campaigns.costs.crowd` measures it.

So the young generations are small, and the oldest one is collected seldom. The price is memory that
cycles of old objects hold for longer. A connection that has ended leaves none: its objects are
freed at once. A full collection comes when 3 million objects more were made than freed.
"""

import gc
from typing import Final

THRESHOLDS: Final = (2_000, 4, 400)
"""New objects until the youngest generation is collected,
and collections of each generation until the next older one is.

Measured with 5,000 connections that arrive, and then leave, in processor time of one collection:
(5,000, 10, 60) 77 to 87 ms, because the middle generation grows to 50,000 objects; (5,000, 3, 150)
29 to 47 ms; (2,000, 4, 300) 6 to 23 ms. The last number decides only when the oldest generation is
collected.
"""


def tune_collector() -> None:
    """Set Python's garbage collector so that many connections do not hold up the run loop. Call it
    once, when the program has started.

    It collects once, takes all objects that exist now out of later collections (`gc.freeze`), and
    sets `THRESHOLDS`. `run`, ``penstock serve`` and ``penstock pub`` call it when their server
    listens. It changes the whole process, so `serve`, which is a part of a program, leaves it to
    that program.
    Does not checkpoint.
    """
    # Before the freeze: garbage that is frozen is never freed.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
