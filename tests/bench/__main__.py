"""The benchmarks: `python tests/bench` measures for a minute or two at the full bars, `--short` some seconds at half of them.

Exits with 1, and names the bar, when one is missed.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that `python tests/bench` finds its own parts

from tests.bench import _inprocess, _report
from tests.bench._measure import measure

BASELINE = "bare async for"


def main(argv: list[str]) -> int:
    """Measure, show, judge."""
    parser = argparse.ArgumentParser(prog="tests/bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds, at half the bars: what CI runs")
    parser.add_argument("--full", action="store_true", help="the default: all rounds, at the full bars")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the figures as a page for the documentation")
    options = parser.parse_args(argv)
    scale, rounds, forgiven = (1_000, 5, 2) if options.short else (10_000, 11, 1)
    measured = measure(_inprocess.contenders(scale), rounds=rounds)
    judged = [measured.judge(bar.relaxed(forgiven)) for bar in _inprocess.BARS]
    print(_report.table(measured, BASELINE))
    print()
    print(_report.verdicts(judged))
    print(f"\n{_report.where()}; medians of {rounds} rounds")
    if options.markdown:
        command = "nox -s bench" if options.short else "nox -s bench -- --full"
        options.markdown.write_text(_report.markdown(measured, BASELINE, judged, command), encoding="utf-8")
    missed = [verdict for verdict in judged if not verdict.kept]
    for verdict in missed:
        print(f"bar missed: {verdict.bar.name}: {verdict.bar.text()}, seen {verdict.seen:.2f}×", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
