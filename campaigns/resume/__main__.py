"""Kill and stall connections over real sockets 1,000 times, and cut a conversation at every byte in
virtual time. Print the figures.

`python -m campaigns resume` takes some ten minutes. It exits with 1 if an element was lost or repeated, or
if a connection was not resumed.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import trio

from campaigns.resume._conversation import every_cut, every_second_cut, try_cuts
from campaigns.resume._kills import TLS, run_kills, tls_options

MAX_SHOWN = 20


def cut_everywhere(every: int, jobs: int) -> int:
    """Cut at one of `every` places; return how many runs failed."""
    began, failed = monotonic(), 0
    runs = [*((cut,) for cut in every_cut(every=every)), *every_second_cut(every=every)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for faults in pool.map(try_cuts, runs, chunksize=16):
            failed += bool(faults)
            if faults and failed <= MAX_SHOWN:
                print(faults[0])
    print(f"cuts: {len(runs):,} runs in {monotonic() - began:.0f} s, {failed} failed", flush=True)
    return failed


def kill(scheme: str, kills: int, encoding: str | None) -> int:
    """Kill and stall one connection; return how many elements were lost or repeated."""
    with TemporaryDirectory() as folder:
        options = tls_options(Path(folder)) if scheme in TLS else None
        figures = trio.run(
            partial(
                run_kills,
                kills,
                scheme=scheme,
                folder=Path(folder),
                options=options,
                encoding=encoding,
            )
        )
    print(f"{scheme}{f' in {encoding}' if encoding else ''}: {figures}", flush=True)
    return figures.lost + figures.repeated + (figures.most_retained > figures.bound)


def main(argv: list[str]) -> int:
    """Run, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(prog="campaigns resume", description=__doc__)
    parser.add_argument(
        "--kills",
        type=int,
        default=1000,
        help="kills and stalls for each transport; one of 50 is a stall (default: 1000)",
    )
    parser.add_argument(
        "--schemes",
        nargs="*",
        default=["tcp", "tls", "unix"],
        help="the transports (default: tcp tls unix; with the plugin also ws wss)",
    )
    parser.add_argument(
        "--encoding", help="the encoding of a plugin, for the kills (default: compact)"
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="cut at one of so many places (default: 1, at each); 0 cuts nowhere",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes for the cuts (default: one for each core)",
    )
    options = parser.parse_args(argv)
    wrong = sum(kill(scheme, options.kills, options.encoding) for scheme in options.schemes)
    if options.every:
        wrong += cut_everywhere(options.every, options.jobs)
    print(f"{len(options.schemes) * options.kills:,} kills, {wrong} faults in kills and cuts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
