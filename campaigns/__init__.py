"""Checks that take longer than a plain `nox` allows: `python -m campaigns` lists them, `python -m campaigns NAME` runs one.

A campaign is a row of `table.toml`. Most are a folder of this package with a `__main__.py`; some are tests that pytest runs.
The last line that a campaign prints says its result, and its exit status is 0 if nothing was found.
"""
