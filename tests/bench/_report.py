"""What a person sees of a run: a table of costs with bars to compare by eye, the promises with what was seen, and the same as Markdown."""

import platform
import sys

import trio

from tests.bench._measure import Measured, Verdict

WIDTH = 32


def table(measured: Measured, baseline: str) -> str:
    """Costs per element, shortest bar best, and their ratio to the baseline."""
    costs = {name: measured.cost(name) for name in measured.costs}
    longest = max(cost.median for cost in costs.values())
    rows = [f"{'cost per element':<22} {'median':>9}  {'least … most':>17}  {'ratio':>6}"]
    for name, cost in costs.items():
        spread = f"{cost.least:,.0f} … {cost.most:,.0f}"
        bar = "█" * max(1, round(WIDTH * cost.median / longest))
        rows.append(f"{name:<22} {cost.median:>6,.0f} ns  {spread:>17}  {measured.ratio(name, baseline):>5.1f}×  {bar}")
    return "\n".join(rows)


def verdicts(judged: list[Verdict]) -> str:
    """Each promise, what was seen, and whether it was kept."""
    rows = [f"{'promise':<46} {'bar':<24} {'seen':>7}"]
    rows += [f"{bar.name:<46} {bar.text():<24} {seen:>6.1f}×  {'kept' if kept else 'MISSED'}" for bar, seen, kept in judged]
    return "\n".join(rows)


def markdown(measured: Measured, baseline: str, judged: list[Verdict], command: str) -> str:
    """The run as a page for the documentation, with the command that repeats it."""
    lines = [
        f"Measured with `{command}`: medians of {measured.rounds} rounds, all contenders in one run;",
        f"{where()}.",
        "",
        f"| contender | per element | relative to {baseline} |",
        "|---|--:|--:|",
    ]
    lines += [f"| {name} | {measured.cost(name).median:,.0f} ns | {measured.ratio(name, baseline):.1f} × |" for name in measured.costs]
    lines += ["", "| promise | bar | seen |", "|---|---|--:|"]
    lines += [f"| {bar.name} | {bar.text()} | {seen:.1f} × |" for bar, seen, _ in judged]
    return "\n".join(lines) + "\n"


def where() -> str:
    """What was measured with: versions only, because they are what a reader can compare."""
    return f"Python {platform.python_version()}, trio {trio.__version__}, {sys.platform} on {platform.machine()}"
