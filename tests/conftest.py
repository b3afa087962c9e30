"""Hypothesis runs the same examples in each run, on any machine, however busy; to look further: ``--hypothesis-profile=explore``."""

from hypothesis import settings

# A deadline in real time would fail on a busy machine what is right.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")
