"""A plot of elements per second as SVG, written as text:
bars on a logarithmic scale, those of penstock in a colour.
"""

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from campaigns.bench._measure import Group, Measured

LEFT: Final = 180
WIDTH: Final = 560
ROW: Final = 20
RIGHT: Final = 110
STYLE: Final = (
    "text{font:12px "
    "sans-serif;fill:#333}.head{font-weight:bold}.bar{fill:#9aa5b1}.ours{fill:#1f77b4}.grid{stroke:#ccc}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#555}.bar{fill:#6b7682}.ours{fill:#4aa3df}}"
)


def svg(groups: Sequence[tuple[Group, Measured]]) -> str:
    """Return the plot: one block of bars for each group;
    the longest bar is the fastest contender.
    """
    rates = [1e9 / measured.cost(name).median for _, measured in groups for name in measured.costs]
    low, high = (
        (math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))) if rates else (0, 1)
    )
    parts: list[str] = []
    y = ROW
    for group, measured in groups:
        parts.append(f'<text class="head" x="0" y="{y}">{escape(group.title)}, a second</text>')
        y += 8
        for name in measured.costs:
            parts += _row(name, 1e9 / measured.cost(name).median, y, low, high)
            y += ROW
        y += ROW + 8
    axis = _grid(low, high, y)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {y + ROW}" '
        'role="img">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *axis, *parts, "</svg>"]) + "\n"


def _row(name: str, rate: float, y: int, low: int, high: int) -> list[str]:
    length = _x_of(rate, low, high) - LEFT
    kind = "bar ours" if name.startswith("penstock") else "bar"
    return [
        f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 6}"/>',
        f'<text x="{LEFT + length + 6:.1f}" y="{y + 14}">{rate:,.0f}</text>',
    ]


def _grid(low: int, high: int, bottom: int) -> list[str]:
    lines: list[str] = []
    for power in range(low, high + 1):
        x = _x_of(10**power, low, high)
        lines.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{ROW + 4}" y2="{bottom - 8}"/>'
        )
        lines.append(
            f'<text x="{x:.1f}" y="{bottom + 8}" text-anchor="middle">{10**power:,}</text>'
        )
    return lines


def _x_of(rate: float, low: int, high: int) -> float:
    return LEFT + WIDTH * (math.log10(rate) - low) / (high - low)
