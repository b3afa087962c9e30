"""The benchmarks: `python -m campaigns bench` runs for some minutes with the full bars, `--short` for one
minute with half of each bar.

If a bar is missed, the program names it and exits with 1.
"""

import argparse
import sys
from pathlib import Path

from campaigns.bench import (
    _amounts,
    _clients,
    _inprocess,
    _installed,
    _logs,
    _mixed,
    _network,
    _observed,
    _on_asyncio,
    _pages,
    _plugins,
    _reactivesocket,
    _recorded,
    _report,
)
from campaigns.bench._measure import Group, measure, progress

GROUPS = (
    _inprocess.GROUP,
    *_network.GROUPS[:3],
    *_mixed.GROUPS,
    *_network.GROUPS[3:],
    *_observed.GROUPS,
    *_recorded.GROUPS,
    *_plugins.GROUPS,
    *_installed.GROUPS,
    *_reactivesocket.GROUPS,
    *_logs.GROUPS,
)
BY_NAME = (*_clients.GROUPS, *_on_asyncio.GROUPS)
"""Measured only if `--only` names them: they are on no page."""
AMOUNTS = "amounts"


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="campaigns bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one minute, with half of each bar")
    parser.add_argument(
        "--full", action="store_true", help="the default: all rounds, with the full bars"
    )
    parser.add_argument("--rounds", type=int, help="the number of rounds, instead of the default")
    parser.add_argument(
        "--only",
        metavar="KEYS",
        help=(
            "measure only these parts: "
            f"{','.join([*(each.key for each in (*GROUPS, *BY_NAME)), AMOUNTS])}"
        ),
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="FOLDER",
        help=(
            "store the figures in FOLDER, beside those of parts not measured now, and render the "
            "pages"
        ),
    )
    parser.add_argument(
        "--render",
        type=Path,
        metavar="FOLDER",
        help="measure nothing: render the pages from the figures stored in FOLDER",
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Measure the chosen parts, print them, and return the exit status."""
    options = _options(argv)
    if options.render:
        _pages.render(options.render, GROUPS)
        return 0
    keys = options.only.split(",") if options.only else [*(group.key for group in GROUPS), AMOUNTS]
    run = _pages.Run(
        "nox -s bench" if options.short else "nox -s bench -- --full", _report.environment(), {}, {}
    )
    missed: list[str] = []
    for group in (*GROUPS, *BY_NAME):
        if group.key in keys:
            missed += _measure_group(group, run, short=options.short, rounds=options.rounds)
    if AMOUNTS in keys:
        missed += _measure_amounts(run, short=options.short)
    print(run.where)
    if options.docs:
        _pages.store(run, options.docs)
        _pages.render(options.docs, GROUPS)
    for bar in missed:
        print(f"bar missed: {bar}", file=sys.stderr)
    print(f"{len(missed)} bars missed")
    return 1 if missed else 0


def _measure_group(group: Group, run: _pages.Run, *, short: bool, rounds: int | None) -> list[str]:
    """Measure a group and print it; return the bars that it misses."""
    # A round inside one process is short, so there are more of them.
    default_rounds = (5, 11) if group.key == "inprocess" else (3, 7)
    measured = run.measured[group.key] = measure(
        group, short=short, rounds=rounds or default_rounds[0 if short else 1]
    )
    judged = [measured.judge(bar.relaxed(2 if short else 1)) for bar in group.bars]
    print(_report.table(measured, group.baseline, title=group.title, unit=group.unit))
    print(f"\n{_report.verdicts(judged)}\n(medians of {measured.rounds} rounds)\n")
    return [
        f"{bar.name}: {bar.text()}, seen {seen:.2f} ×" for bar, seen, kept in judged if not kept
    ]


def _measure_amounts(run: _pages.Run, *, short: bool) -> list[str]:
    """Measure the amounts of memory and print them; return the ceilings that are missed."""
    progress("memory of idle streams")
    run.amounts.update(_amounts.measure_amounts(short=short))
    progress("")
    promised = [each.relaxed(2 if short else 1) for each in _amounts.CEILINGS]
    print(_report.ceilings(run.amounts, promised) + "\n")
    return [
        f"{each.name}: at most {each.at_most:g} {each.unit}, seen {run.amounts[each.name]:.0f}"
        for each in promised
        if not each.is_kept(run.amounts)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
