"""Walk all scenarios, the larger ones, too, and find each planted fault.

`python -m campaigns model` prints a row for each scenario and protocol: the states, the steps, the depth,
the states in which no step was left, the states behind the bound of the depth, and the seconds. It
exits with 1 if a rule is broken, or if a planted fault is not found.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from time import perf_counter

from campaigns.model._faults import FAULTS
from campaigns.model._parties import Broken
from campaigns.model._scenarios import DEEP, NO_BOUND, SCENARIOS, protocols_of
from campaigns.model._walk import FaultFound, Walked, walk

ALL = {**SCENARIOS, **DEEP}
HEAD = (
    f"{'scenario':<40} {'protocol':<15} {'states':>8} {'steps':>8} {'depth':>6} {'ends':>6} "
    f"{'cut':>6} {'seconds':>8}"
)


def walk_one(name: str, protocol: str, depth: int) -> Walked | str:
    """Walk one scenario. Return the text of the fault if a rule is broken."""
    try:
        return walk(ALL[name], protocol, depth=depth)
    except FaultFound as found:
        return str(found)


def find_fault(name: str) -> str:
    """Plant a fault and walk. Return the steps that show it, or "" if no rule was broken."""
    fault = FAULTS[name]
    with fault.planted():
        try:
            walk(SCENARIOS[fault.scenario], "rsio")
        except FaultFound as found:
            # Another exception says that the planted code does not fit the sessions of today.
            return f"{fault.scenario}: {found}" if isinstance(found.__cause__, Broken) else ""
    return ""


def main(argv: list[str]) -> int:
    """Walk, print the rows, and return the exit code."""
    parser = argparse.ArgumentParser(prog="campaigns model", description=__doc__)
    parser.add_argument("--short", action="store_true", help="without the larger scenarios")
    parser.add_argument(
        "--depth",
        type=int,
        default=NO_BOUND,
        help="the most steps to a state (default: all, but for some scenarios)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: one for each core)",
    )
    options = parser.parse_args(argv)
    names = SCENARIOS if options.short else ALL
    rows = [(name, protocol) for name in names for protocol in protocols_of(ALL[name])]
    began, states, steps, broken = perf_counter(), 0, 0, 0
    print(HEAD)
    with ProcessPoolExecutor(options.jobs) as pool:
        for (name, protocol), walked in zip(
            rows, pool.map(walk_one, *zip(*rows, strict=True), repeat(options.depth)), strict=False
        ):
            if isinstance(walked, str):
                broken += 1
                print(f"{name:<40} {protocol:<15} {walked}", flush=True)
                continue
            states, steps = states + walked.states, steps + walked.steps
            figures = (
                f"{walked.states:>8,} {walked.steps:>8,} {walked.depth:>6} {walked.ends:>6,} "
                f"{walked.cut:>6,} {walked.seconds:>8.1f}"
            )
            print(f"{name:<40} {protocol:<15} {figures}", flush=True)
        found = dict(zip(FAULTS, pool.map(find_fault, FAULTS), strict=True))
    for name, text in found.items():
        print(f"planted: {name}\n  {text or 'NOT FOUND'}")
    missed = sum(not text for text in found.values())
    seconds = perf_counter() - began
    print(
        f"{len(names)} scenarios, {len(rows)} walks: {states:,} states, {steps:,} steps, "
        f"{seconds:.0f} s; {broken} broken"
    )
    print(f"{len(FAULTS) - missed} of {len(FAULTS)} planted faults found")
    return 1 if broken or missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
