"""Ceilings on memory: the promises that are amounts instead of ratios of speed."""

from typing import Final, NamedTuple

from campaigns.bench import _idle


class Ceiling(NamedTuple):
    """An amount and the most that it may be."""

    name: str
    unit: str
    at_most: float

    def relaxed(self, factor: float) -> "Ceiling":
        """Return the ceiling of a short run: `factor` times as high."""
        return self._replace(at_most=self.at_most * factor)

    def is_kept(self, seen: dict[str, float]) -> bool:
        """Tell whether the measured amount is at most the ceiling."""
        return seen[self.name] <= self.at_most


CEILINGS: Final = (
    Ceiling("an idle subscription, where it was opened", "bytes", 400),
    Ceiling("an idle subscription, where it is served", "bytes", 400),
    Ceiling("100,000 idle subscriptions over 1,000 connections, both processes", "MB", 400),
)


def measure_amounts(*, short: bool) -> dict[str, float]:
    """Measure the amount of each ceiling; the keys are the names of the ceilings."""
    client, server = _idle.bytes_per_subscription(5_000 if short else 20_000)
    return dict(
        zip(
            (each.name for each in CEILINGS),
            (client, server, _idle.resident_megabytes(1_000, 100)),
            strict=True,
        )
    )
