"""The full sweep: every source with every operator and every sink, cancelled before every step, under several seeds.

`python tests/sweep` takes some minutes; `--seeds 20` more. Exits with 1 and names each leak.
"""

import argparse
import sys
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that `python tests/sweep` finds its own parts

from tests.sweep._sweep import Leak, cheap_collections, everything, sweep


def main(argv: list[str]) -> int:
    """Sweep, show how far it is, and say what was found."""
    parser = argparse.ArgumentParser(prog="tests/sweep", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="scheduler seeds for each combination (default: 2)")
    seeds = parser.parse_args(argv).seeds
    combinations = list(everything())
    began, runs, leaks = monotonic(), 0, 0
    with cheap_collections():
        for number, combination in enumerate(combinations, 1):
            try:
                runs += sweep(combination, range(seeds))
            except Leak as leak:
                leaks += 1
                print(leak)
            if number % 50 == 0 or number == len(combinations):
                rate = runs / (monotonic() - began)
                sys.stderr.write(f"\r{number:,} of {len(combinations):,} combinations, {runs:,} runs, {rate:,.0f}/s, {leaks} leaks ")
                sys.stderr.flush()
    print(f"\n{len(combinations):,} combinations x {seeds} seeds: {runs:,} cancelled runs in {monotonic() - began:.0f} s, {leaks} leaks")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
