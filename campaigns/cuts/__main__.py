"""Sweep all scenarios with all disturbances, in several processes.

`python -m campaigns cuts` takes some minutes of processor time for each seed. It prints each failed run,
and exits with 1 if a run failed.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from time import monotonic

from campaigns.cuts._run import run_scenario
from campaigns.cuts._scenarios import SCENARIOS
from campaigns.cuts._sweep import sweep_evenly
from campaigns.sweep._sweep import cheap_collections

MAX_SHOWN = 20
"""How many failures of one scenario are printed.
The failures of a scenario usually have one cause.
"""


def _longest_first(seeds: int) -> Iterator[tuple[str, int]]:
    """Return each scenario with each seed.
    A long scenario that started last would leave the other processes idle.
    """
    with cheap_collections():
        length = {name: sum(run_scenario(name, None).delivered.values()) for name in SCENARIOS}
    return (
        (name, seed)
        for name in sorted(length, key=length.__getitem__, reverse=True)
        for seed in range(seeds)
    )


def main(argv: list[str]) -> int:
    """Sweep, and print the progress and the failures. Return the exit code."""
    parser = argparse.ArgumentParser(prog="campaigns cuts", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=1, help="scheduler seeds for each scenario (default: 1)"
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="disturb a run at one of so many places (default: 1, at each place)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: one for each core)",
    )
    options = parser.parse_args(argv)
    started, all_runs, all_failures = monotonic(), 0, 0
    # Spawned, not forked: `cheap_collections` freezes all existing objects, and a forked process
    # would have those of its parent.
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for name, runs, failures in pool.map(
            sweep_evenly, *zip(*_longest_first(options.seeds), strict=True), repeat(options.every)
        ):
            all_runs, all_failures = all_runs + runs, all_failures + len(failures)
            for failure in failures[:MAX_SHOWN]:
                print(failure)
            print(f"{name}: {runs:,} runs, {len(failures)} failed", flush=True)
    print(
        f"{len(SCENARIOS)} scenarios x {options.seeds} seeds: {all_runs:,} runs in "
        f"{monotonic() - started:.0f} s, {all_failures} failed"
    )
    return 1 if all_failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
