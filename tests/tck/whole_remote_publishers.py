"""The test kit over remote publishers, for the transports that test_remote_publishers.py leaves out.

They take 35 s of processor time, so `nox -s conformance` runs them, and `nox -s tck` does not.
"""

from tests.tck._remote_publishers import (
    OverFramedMemory,
    OverPipes,
    OverUnix,
    ReactiveSocketOverMemory,
    ReactiveSocketOverPipes,
    ReactiveSocketOverTls,
    ReactiveSocketOverUnix,
)

__all__ = [
    "OverFramedMemory",
    "OverPipes",
    "OverUnix",
    "ReactiveSocketOverMemory",
    "ReactiveSocketOverPipes",
    "ReactiveSocketOverTls",
    "ReactiveSocketOverUnix",
]
