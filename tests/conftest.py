"""Hypothesis runs the same examples in each run, on any machine, however busy; to look further: ``--hypothesis-profile=explore``."""

import os

from hypothesis import settings

# One of several processes that a run is shared among: it is measured, but not the programs that its tests start, for some of them
# are timed, and most are killed.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

# A deadline in real time would fail on a busy machine what is right.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")
