"""Hypothesis runs the same examples in each run on every machine. To search for more, pass
``--hypothesis-profile=explore``.
"""

import gc
import os
import sys

from hypothesis import settings

# In a worker of pytest-xdist, coverage measures the worker but not the programs that its tests
# start: some of these are timed, and most are killed.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

# `deadline=None`: on a busy machine a deadline in real time fails correct code.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Keep the collector from the objects that were there before the first test.

    These are the tests of a worker, and the modules that they import. Many tests run the collector to
    see that nothing is left. With the 11,000 tests of a worker in it, each run takes 0.3 s.
    A test that calls `gc.unfreeze()` freezes them again. Nothing asks for that after each test,
    because `gc.get_freeze_count()` takes 10 ms: it walks over all frozen objects.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let a worker write its coverage now: pytest-xdist kills a worker that is not gone within
    10 seconds, as on a busy machine.
    """
    coverage = sys.modules.get("coverage")
    if coverage is not None and "PYTEST_XDIST_WORKER" in os.environ:
        measured = coverage.Coverage.current()
        if measured is not None:
            measured.save()
