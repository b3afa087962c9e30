"""The table at the end of the demo:
each claim, its measurement, and whether the claim was shown.
"""

import shutil
import sys
import textwrap
from typing import TextIO

from demo_parts.screen import Finding, Ink

WIDEST = 118


def write_table(scenes: dict[str, list[Finding]], stream: TextIO = sys.stdout) -> bool:
    """Write the findings of each scene. Return True if every claim was shown."""
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
    lines += [ink.bold(f"{shown} of {len(everything)} shown"), ""]
    stream.write("\n".join(lines))
    stream.flush()
    return shown == len(everything)


def _row(finding: Finding, left: int, right: int, ink: Ink) -> list[str]:
    claim, seen = textwrap.wrap(finding.claim, left), textwrap.wrap(finding.seen, right)
    height = max(len(claim), len(seen))
    claim += [""] * (height - len(claim))
    seen += [""] * (height - len(seen))
    marks = [" " * (3 - len(ink.yes)) + ink.verdict(shown=finding.shown), *["   "] * (height - 1)]
    rows = zip(marks, claim, seen, strict=True)
    return [f"{mark} {wanted:<{left}}  {got}".rstrip() for mark, wanted, got in rows]
