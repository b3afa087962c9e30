"""The full sweep: every source with every operator and every sink, cancelled before every step,
under several seeds, in several processes.

`python -m campaigns sweep` takes some minutes, and `--seeds 20` longer.
It names each leak and then exits with 1.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from time import monotonic

from campaigns.sweep._sweep import all_combinations, sweep_part

PART_SIZE = 50
"""Combinations in one task of the process pool."""


def main(argv: list[str]) -> int:
    """Sweep, print progress and leaks, and return the exit code."""
    parser = argparse.ArgumentParser(prog="campaigns sweep", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=2, help="scheduler seeds for each combination (default: 2)"
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="sweep one of so many combinations (default: 1, all of them)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: one for each core)",
    )
    options = parser.parse_args(argv)
    total = sum(1 for _ in all_combinations())
    size = PART_SIZE * options.every
    parts = [
        range(first, min(first + size, total), options.every) for first in range(0, total, size)
    ]
    start, runs, leaks = monotonic(), 0, 0
    # Spawned, not forked: a new process has no older objects for gc.freeze() to keep.
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for part, (more, found) in zip(
            parts, pool.map(sweep_part, parts, repeat(options.seeds)), strict=True
        ):
            runs, leaks = runs + more, leaks + len(found)
            for each in found:
                print(each)
            rate = runs / (monotonic() - start)
            sys.stderr.write(
                f"\r{part.stop:,} of {total:,} combinations, {runs:,} runs, {rate:,.0f}/s, {leaks} "
                "leaks "
            )
            sys.stderr.flush()
    print(
        f"\n{sum(map(len, parts)):,} combinations x {options.seeds} seeds: {runs:,} cancelled runs in "
        f"{monotonic() - start:.0f} s, {leaks} leaks"
    )
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
