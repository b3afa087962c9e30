"""Counts the elements of the streams that this side has opened, without a step for each element.

A stream counts its demand down as elements come, so the elements are the demand that was requested
less the demand that is left. Demand is added here once for each request(n), and taken off again
when a stream ends before it was used.

Demand without bound is not counted down, so the elements that come against it are added here: once
a run, or once a single element.
"""

from collections.abc import Iterable

from penstock.api import UNBOUNDED


class ReceivedElements:
    """The count of one connection."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested: int = 0
        """Elements that were requested, less those that never came."""

    def total(self, outstanding: Iterable[int]) -> int:
        """Return how many elements have come.
        `outstanding` is the demand that is left on each open stream.
        """
        # Demand without bound was not added when it was requested:
        # it would be taken off for nothing.
        return self.requested - sum(left for left in outstanding if left < UNBOUNDED)
