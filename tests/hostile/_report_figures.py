"""Prints the two figures of each attack at the end of a test run:
the largest of them, or all with `pytest -v`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tests.hostile._beside_a_canary import Aftermath

HELD = "bytes held for a hostile connection"
HOLD_UP = "hold-up of the run loop, s"
SHOWN = 5
"""How many of the largest figures are printed."""

ReportFigures: TypeAlias = Callable[[Aftermath], None]
Found: TypeAlias = Mapping[str, Mapping[str, float]]
"""The figures of each test, by its id."""


def lines(found: Found, *, everything: bool) -> Iterator[str]:
    """Yield the report: a line for each test that is shown."""
    measured = {test: figures for test, figures in found.items() if HELD in figures}
    if not measured:
        return
    for figure in (HELD, HOLD_UP):
        largest = sorted(measured, key=lambda test: measured[test][figure], reverse=True)
        yield f"{figure} in {len(measured)} attacks, the largest first:"
        for test in largest if everything else largest[:SHOWN]:
            yield f"  {_number(measured[test][figure])}  {test.partition('::')[2]}"


def _number(figure: float) -> str:
    return f"{figure:12,.0f}" if figure >= 1 else f"{figure:12.3f}"
