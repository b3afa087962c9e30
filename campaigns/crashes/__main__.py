"""Crashes of a log on disk: `python -m campaigns crashes` kills a writer 200 times,
and cuts its file at each byte of the last commit.

It also changes each bit of the last group, and each 97th bit of the rest. It prints the figures,
and exits with 1 if an appended element was lost, or another one was served. `--kills 20 --step 50`
is shorter.
"""

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from campaigns.crashes._damage import (
    Outcome,
    bits_of_last_group,
    closed_log,
    crashed_log,
    cut_outcomes,
    flip_outcomes,
    last_commit_of,
)
from campaigns.crashes._killed import after_kill, kill_writer

BATCH = 1_000
"""Changes between two reads of the files."""

REST = 97
"""One of this number of bits outside of the last group is changed."""


async def kills(folder: Path, times: int, seed: int) -> bool:
    """Kill a writer `times` times, and return whether nothing was lost."""
    path, chance = folder / "killed.log", random.Random(seed)
    lost = torn = appended = 0
    for _ in range(times):
        after = await after_kill(path, kill_writer(path, chance))
        lost, torn, appended = (
            lost + max(0, after.promised - after.latest),
            torn + after.torn,
            after.latest,
        )
    print(
        (
            f"killed {times} times, seed {seed}: {appended:,} elements, {lost} lost, {torn} "
            "appends torn"
        ),
        flush=True,
    )
    return not lost and not torn


async def damage(folder: Path, step: int) -> bool:
    """Cut and change the files of a log, and return whether each outcome was a right one."""
    crashed, closed = await crashed_log(folder), await closed_log(folder)
    begin, end = last_commit_of(crashed)
    copy = folder / "copy.log"
    cut = Counter(await cut_outcomes(crashed, copy, range(begin, end, step)))
    print(f"PATH-wal cut at {cut.total():,} places of its last commit: {_text(cut)}", flush=True)
    in_wal = await _flipped(crashed, copy, "-wal", step, begin * 8, end * 8)
    in_main = await _flipped(closed, copy, "", step, 0, closed.stat().st_size * 8)
    return (
        set(cut) == {Outcome.WITHOUT_THE_LAST}
        and set(in_wal) <= {Outcome.WITHOUT_THE_LAST, Outcome.WHOLE}
        and set(in_main) <= {Outcome.REFUSED, Outcome.WHOLE}
    )


async def _flipped(
    path: Path, copy: Path, ending: str, step: int, begin: int, end: int
) -> Counter[Outcome]:
    """Change each STEP-th bit of the last group,
    and each `REST`-th one of the rest from `begin` to `end`.
    """
    group = bits_of_last_group(path, ending)
    bits = [*group[::step], *(bit for bit in range(begin, end, REST * step) if bit not in group)]
    outcomes: Counter[Outcome] = Counter()
    for first in range(0, len(bits), BATCH):
        outcomes.update(await flip_outcomes(path, copy, ending, bits[first : first + BATCH]))
    print(
        f"{outcomes.total():,} bits of {path.name}{ending} changed: {_text(outcomes)}", flush=True
    )
    return outcomes


def _text(outcomes: Counter[Outcome]) -> str:
    return ", ".join(f"{count:,} {outcome.value}" for outcome, count in outcomes.most_common())


async def main(argv: list[str]) -> int:
    """Run all of it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns crashes", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step", type=int, default=1, help="take each STEP-th byte and bit")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the files are made; a memory file system is fastest for bits",
    )
    options = parser.parse_args(argv)
    with TemporaryDirectory(dir=options.folder) as folder:
        good = [
            await kills(Path(folder), options.kills, options.seed),
            await damage(Path(folder), options.step),
        ]
    print(f"{options.kills} kills, damage at each {options.step}. place: ", end="")
    print("nothing was lost" if all(good) else "elements were lost or wrong")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(trio.run(main, sys.argv[1:]))
