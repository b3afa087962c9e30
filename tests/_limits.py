"""Limits that tests of several packages have in common, by their purpose."""

from typing import Final

from penstock.api import Limits

HASTY: Final = Limits(goodbye_timeout=0.1, linger=0.1)
"""A side that leaves at once: no peer of the test answers its goodbye, or reads to the end."""
