"""Hypothesis runs the same examples in each run and on any machine. ``--hypothesis-profile=explore`` runs other and more examples."""

import os

from hypothesis import settings

# In a process of pytest-xdist: coverage measures this process, but not the programs that its tests start. Most of them are killed, which
# leaves no data.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

# A deadline in real time would fail correct code on a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")
