"""The full sweep: every source with every operator and every sink, cancelled before every step, under several seeds, in as many
processes as given.

`python tests/sweep` takes some minutes; `--seeds 20` more. Exits with 1 and names each leak.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that `python tests/sweep` finds its own parts

from tests.sweep._sweep import everything, sweep_part

SIZE = 50
"""Combinations that a process takes at a time."""


def main(argv: list[str]) -> int:
    """Sweep, show how far it is, and say what was found."""
    parser = argparse.ArgumentParser(prog="tests/sweep", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="scheduler seeds for each combination (default: 2)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    options = parser.parse_args(argv)
    total = sum(1 for _ in everything())
    parts = [range(first, min(first + SIZE, total)) for first in range(0, total, SIZE)]
    began, runs, leaks = monotonic(), 0, 0
    # Spawned, not forked: a process that begins anew has no past to freeze.
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for part, (more, found) in zip(parts, pool.map(sweep_part, parts, repeat(options.seeds)), strict=True):
            runs, leaks = runs + more, leaks + len(found)
            for each in found:
                print(each)
            rate = runs / (monotonic() - began)
            sys.stderr.write(f"\r{part.stop:,} of {total:,} combinations, {runs:,} runs, {rate:,.0f}/s, {leaks} leaks ")
            sys.stderr.flush()
    print(f"\n{total:,} combinations x {options.seeds} seeds: {runs:,} cancelled runs in {monotonic() - began:.0f} s, {leaks} leaks")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
