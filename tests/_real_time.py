"""Time for tests that cannot use a virtual clock, because they wait for sockets, threads
or other programs.
"""

from typing import Final

HANGS_AFTER: Final = 300.0
"""Seconds of the real clock after which a test gives up: without it the test would not end. No
bound on speed is meant, so that the tests pass on a busy machine. Starting a Python program took 20
s on two cores with a load of 10.
"""
