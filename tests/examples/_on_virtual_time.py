"""Run one script as `python script.py` would, but on trio's autojump clock: it prints the same on a busy machine, and at once.

Called as a program, with the path of the script.
"""

import functools
import runpy
import sys

import trio
from trio.testing import MockClock

if __name__ == "__main__":
    trio.run = functools.partial(trio.run, clock=MockClock(autojump_threshold=0))
    sys.argv = sys.argv[1:]  # as the example would see it
runpy.run_path(sys.argv[0], run_name="__main__")
