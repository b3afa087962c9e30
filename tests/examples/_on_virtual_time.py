"""Run a script like `python script.py`, but on trio's autojump clock: its output is the same on a busy machine, and it takes no time.

Called as a program with the path of the script.
"""

import functools
import runpy
import sys

import trio
from trio.testing import MockClock

if __name__ == "__main__":
    trio.run = functools.partial(trio.run, clock=MockClock(autojump_threshold=0))
    sys.argv = sys.argv[1:]  # the arguments of the script itself
runpy.run_path(sys.argv[0], run_name="__main__")
