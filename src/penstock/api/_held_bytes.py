"""An optional interface of subscribers that keep elements: how many bytes wait in them. The
memory budget of a connection asks.
"""

from collections.abc import Callable
from typing import Protocol


class HoldsBytes(Protocol):
    """Keeps elements that its program has not taken.
    A subscriber may offer this beside its four signals.
    """

    def held(self) -> int:
        """Return the number of bytes of the elements that wait.
        Called now and then, and never for an element.
        """


def held_of(subscriber: object) -> Callable[[], int] | None:
    """Return the `held` of `subscriber`, or None if it has none."""
    method: Callable[[], int] | None = getattr(subscriber, "held", None)
    return method
