"""Reports of a run: tables of costs with a bar for each contender, tables of the promises with
the measured ratios, also as Markdown.
"""

import math
import os
import platform
import sys
from collections.abc import Sequence

import trio

from campaigns.bench._amounts import Ceiling
from campaigns.bench._measure import Group, Measured, Verdict

WIDTH = 32


def table(measured: Measured, baseline: str, *, title: str = "", unit: str = "element") -> str:
    """Return the costs per element and their ratios to the baseline;
    the shortest bar is the fastest contender.
    """
    costs = {name: measured.cost(name) for name in measured.costs}
    longest = max(cost.median for cost in costs.values())
    rows = [title] if title else []
    rows.append(
        f"{f'cost per {unit}':<24} {'median':>10}  {'least … most':>21}  {'a second':>13}  "
        f"{'ratio':>7}"
    )
    for name, cost in costs.items():
        spread = f"{cost.least:,.0f} … {cost.most:,.0f}"
        bar = "█" * max(1, round(WIDTH * cost.median / longest))
        rows.append(
            f"{name:<24} {cost.median:>7,.0f} ns  {spread:>21}  {1e9 / cost.median:>13,.0f}  "
            f"{_times(measured, name, baseline):>7}  {bar}"
        )
    return "\n".join(rows)


def _times(measured: Measured, name: str, baseline: str) -> str:
    if baseline not in measured.costs:
        return ""
    ratio = measured.ratio(name, baseline)
    return f"{ratio:.{1 if ratio >= 1 else 2}f} ×"


def verdicts(judged: Sequence[Verdict]) -> str:
    """Return each promise, the measured ratio, and whether the promise was kept."""
    rows = [f"{'promise':<46} {'bar':<34} {'seen':>8}"]
    rows += [
        f"{bar.name:<46} {bar.text():<34} {_seen(seen):>8}  {'kept' if kept else 'MISSED'}"
        for bar, seen, kept in judged
    ]
    return "\n".join(rows)


def _seen(ratio: float) -> str:
    return "not run" if math.isnan(ratio) else f"{ratio:.2f} ×"


def ceilings(seen: dict[str, float], promised: Sequence[Ceiling]) -> str:
    """Return each amount, its ceiling, and whether the ceiling was kept."""
    rows = [f"{'amount':<70} {'at most':>10} {'seen':>10}"]
    rows += [
        (
            f"{each.name:<70} {each.at_most:>10,.0f} {seen[each.name]:>10,.0f} {each.unit:<6} "
            f"{'kept' if each.is_kept(seen) else 'MISSED'}"
        )
        for each in promised
    ]
    return "\n".join(rows)


def markdown(group: Group, measured: Measured, judged: Sequence[Verdict]) -> str:
    """Return the tables of a group for a page of the documentation."""
    lines = [
        f"| {group.title.lower()} | per {group.unit} | a second | relative to {group.baseline} |",
        "|---|--:|--:|--:|",
    ]
    for name in measured.costs:
        cost = measured.cost(name).median
        lines.append(
            f"| {name} | {cost:,.0f} ns | {1e9 / cost:,.0f} | "
            f"{_times(measured, name, group.baseline)} |"
        )
    lines += ["", "| promise | bar | seen |", "|---|---|--:|"]
    lines += [f"| {bar.name} | {bar.text()} | {_seen(seen)} |" for bar, seen, _ in judged]
    return "\n".join(lines) + "\n"


def markdown_of_amounts(seen: dict[str, float], promised: Sequence[Ceiling]) -> str:
    """Return the table of the amounts for a page of the documentation."""
    lines = ["| amount | at most | seen |", "|---|--:|--:|"]
    lines += [
        f"| {each.name} | {each.at_most:,.0f} {each.unit} | {seen[each.name]:,.0f} {each.unit} |"
        for each in promised
    ]
    return "\n".join(lines) + "\n"


def environment() -> str:
    """Return versions, platform and the number of cores, so
    that a reader can compare them with another machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"Python {platform.python_version()}, trio {trio.__version__}, {sys.platform} on "
        f"{platform.machine()}, {cores} cores"
    )
