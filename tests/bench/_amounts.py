"""Bounds on memory."""

from typing import Final, NamedTuple

from tests.bench import _idle


class Ceiling(NamedTuple):
    """An upper bound of an amount."""

    name: str
    unit: str
    at_most: float

    def relaxed(self, factor: float) -> "Ceiling":
        """Return the bound of a short run: `factor` times as high."""
        return self._replace(at_most=self.at_most * factor)

    def keeps(self, seen: dict[str, float]) -> bool:
        """Whether the measured amount is within the bound."""
        return seen[self.name] <= self.at_most


CEILINGS: Final = (
    Ceiling("an idle subscription, where it was opened", "bytes", 400),
    Ceiling("an idle subscription, where it is served", "bytes", 400),
    Ceiling("100,000 idle subscriptions over 1,000 connections, both processes", "MB", 400),
)


def amounts(*, short: bool) -> dict[str, float]:
    """Measure the amount of each ceiling."""
    here, there = _idle.bytes_a_side(5_000 if short else 20_000)
    return dict(zip((each.name for each in CEILINGS), (here, there, _idle.megabytes_of_both(1_000, 100)), strict=True))
