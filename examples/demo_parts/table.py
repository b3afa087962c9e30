"""The table at the end of the demo:
each claim, its measurement, and whether the claim was shown; and what was left out, and why.
"""

import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import TextIO

from demo_parts.screen import Finding, Ink

WIDEST = 118


def write_table(
    scenes: Mapping[str, list[Finding]],
    left_out: Mapping[str, str] | None = None,
    stream: TextIO | None = None,
) -> bool:
    """Write the findings of each scene, and the scenes that were left out, each with the reason.
    Return True if every claim was shown.
    """
    stream = stream or sys.stdout
    ink = Ink(stream)
    width = min(WIDEST, max(72, shutil.get_terminal_size((WIDEST, 24)).columns))
    left = (width - 8) * 45 // 100
    right = width - 8 - left
    rule = "─" * width if ink.yes == "✓" else "-" * width
    lines = ["", ink.bold(f"    {'claim':<{left}}  measured"), rule]
    for title, findings in scenes.items():
        lines.append(ink.bold(title))
        for finding in findings:
            lines += _row(finding, left, right, ink)
    lines.append(rule)
    everything = [finding for findings in scenes.values() for finding in findings]
    shown = sum(finding.shown for finding in everything)
    lines.append(ink.bold(f"{shown} of {len(everything)} shown in {_count(scenes)}"))
    if left_out:
        lines.append(ink.bold(f"left out: {_count(left_out)}"))
        for title, reason in left_out.items():
            text = textwrap.wrap(f"{title}: {reason}", width - 8)
            lines += [f"    {line}" for line in text]
    lines.append("")
    stream.write("\n".join(lines))
    stream.flush()
    return shown == len(everything)


def _count(scenes: Mapping[str, object]) -> str:
    return f"{len(scenes)} scene{'' if len(scenes) == 1 else 's'}"


def _row(finding: Finding, left: int, right: int, ink: Ink) -> list[str]:
    claim, seen = textwrap.wrap(finding.claim, left), textwrap.wrap(finding.seen, right)
    height = max(len(claim), len(seen))
    claim += [""] * (height - len(claim))
    seen += [""] * (height - len(seen))
    marks = [" " * (3 - len(ink.yes)) + ink.verdict(shown=finding.shown), *["   "] * (height - 1)]
    rows = zip(marks, claim, seen, strict=True)
    return [f"{mark} {wanted:<{left}}  {got}".rstrip() for mark, wanted, got in rows]
