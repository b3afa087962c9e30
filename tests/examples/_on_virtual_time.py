"""Run a script like `python script.py`, but with trio's autojump clock: sleeps take no time, and a
busy machine changes no output.

This is a program; its argument is the path of the script.
"""

import functools
import runpy
import sys

import trio
from trio.testing import MockClock

if __name__ == "__main__":
    trio.run = functools.partial(trio.run, clock=MockClock(autojump_threshold=0))
    sys.argv = sys.argv[1:]  # the script sees the arguments it would get without this program
runpy.run_path(sys.argv[0], run_name="__main__")
