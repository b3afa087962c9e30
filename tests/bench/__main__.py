"""The benchmarks: `python tests/bench` measures for some minutes against the full bars, `--short` for one minute against half of each.

Exits with 1 and names the bar if one is missed.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that `python tests/bench` finds its own parts

from tests.bench import _amounts, _inprocess, _network, _pages, _reactivesocket, _report
from tests.bench._measure import Group, measure, progress

GROUPS = (_inprocess.GROUP, *_network.GROUPS, *_reactivesocket.GROUPS)
AMOUNTS = "amounts"


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one minute, against half of each bar")
    parser.add_argument("--full", action="store_true", help="the default: all rounds, against the full bars")
    parser.add_argument("--rounds", type=int, help="how many rounds, instead of the usual number")
    parser.add_argument("--only", metavar="KEYS", help=f"measure only these parts: {','.join([*(each.key for each in GROUPS), AMOUNTS])}")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="store the figures there, beside those of other parts, and make the pages"
    )
    parser.add_argument("--render", type=Path, metavar="FOLDER", help="measure nothing: make the pages again from the figures there")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Measure, print and judge; return the exit status."""
    options = _options(argv)
    if options.render:
        _pages.write(options.render, GROUPS)
        return 0
    keys = options.only.split(",") if options.only else [*(group.key for group in GROUPS), AMOUNTS]
    run = _pages.Run("nox -s bench" if options.short else "nox -s bench -- --full", _report.where(), {}, {})
    missed: list[str] = []
    for group in GROUPS:
        if group.key in keys:
            missed += _measure_group(group, run, short=options.short, rounds=options.rounds)
    if AMOUNTS in keys:
        missed += _measure_amounts(run, short=options.short)
    print(run.where)
    if options.docs:
        _pages.store(run, options.docs)
        _pages.write(options.docs, GROUPS)
    for bar in missed:
        print(f"bar missed: {bar}", file=sys.stderr)
    return 1 if missed else 0


def _measure_group(group: Group, run: _pages.Run, *, short: bool, rounds: int | None) -> list[str]:
    """Measure a group and print it; return the bars that it misses."""
    usual = (5, 11) if group.key == "inprocess" else (3, 7)
    measured = run.measured[group.key] = measure(group, short=short, rounds=rounds or usual[0 if short else 1])
    judged = [measured.judge(bar.relaxed(2 if short else 1)) for bar in group.bars]
    print(_report.table(measured, group.baseline, title=group.title, unit=group.unit))
    print(f"\n{_report.verdicts(judged)}\n(medians of {measured.rounds} rounds)\n")
    return [f"{bar.name}: {bar.text()}, seen {seen:.2f} ×" for bar, seen, kept in judged if not kept]


def _measure_amounts(run: _pages.Run, *, short: bool) -> list[str]:
    """Measure the amounts and print them; return the ceilings that are missed."""
    progress("memory of idle streams")
    run.amounts.update(_amounts.amounts(short=short))
    progress("")
    promised = [each.relaxed(2 if short else 1) for each in _amounts.CEILINGS]
    print(_report.ceilings(run.amounts, promised) + "\n")
    return [
        f"{each.name}: at most {each.at_most:g} {each.unit}, seen {run.amounts[each.name]:.0f}"
        for each in promised
        if not each.keeps(run.amounts)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
