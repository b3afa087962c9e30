"""The long form: each scenario cut after every byte, and each of its sides cancelled before every step, in as many processes as given.

`python tests/cuts` takes a minute; `--seeds 5` longer. Exits with 1 and names what was left.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that `python tests/cuts` finds its own parts

from tests.cuts._run import attempt
from tests.cuts._scenarios import SCENARIOS
from tests.cuts._sweep import sweep_all
from tests.sweep._sweep import cheap_collections

SHOWN = 20
"""Remains that are shown of one scenario; they are alike."""


def _by_length(seeds: int) -> Iterator[tuple[str, int]]:
    """The longest first: the last to begin shall not be the last to end."""
    with cheap_collections():
        length = {name: sum(attempt(name, None).carried.values()) for name in SCENARIOS}
    return ((name, seed) for name in sorted(length, key=length.__getitem__, reverse=True) for seed in range(seeds))


def main(argv: list[str]) -> int:
    """Sweep, show how far it is, and say what was found."""
    parser = argparse.ArgumentParser(prog="tests/cuts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="scheduler seeds for each scenario (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    options = parser.parse_args(argv)
    began, runs, remains = monotonic(), 0, 0
    # Spawned, not forked: a process that begins anew has no past to freeze.
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for name, more, found in pool.map(sweep_all, *zip(*_by_length(options.seeds), strict=True)):
            runs, remains = runs + more, remains + len(found)
            for each in found[:SHOWN]:
                print(each)
            print(f"{name}: {more:,} runs, {len(found)} that left something", flush=True)
    print(f"{len(SCENARIOS)} scenarios x {options.seeds} seeds: {runs:,} disturbed runs in {monotonic() - began:.0f} s, {remains} remains")
    return 1 if remains else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
