"""Demand arithmetic: a count of elements that saturates at 2^63-1.

Python's integers have no largest value, so they never overflow. The bound is the standard's (rule
3.17), and the largest number that fits into the protocols' demand fields.
"""

from typing import Final

from penstock.api._errors import IllegalDemand
from penstock.api._shown import shown

UNBOUNDED: Final = 2**63 - 1
"""A demand of this size, or more, means "without bound" (rule 3.17)."""


def add_demand(outstanding: int, more: int) -> int:
    """Return the sum of two demands, at most `UNBOUNDED`."""
    total = outstanding + more
    return total if total < UNBOUNDED else UNBOUNDED


def check_demand(n: object) -> int:
    """Return `n` as a legal demand, at most `UNBOUNDED`.
    Raise IllegalDemand for anything that is not a positive integer.

    True and False are refused too: a demand that is a bool is always a mistake.
    """
    if type(n) is not int:
        if isinstance(n, bool) or not isinstance(n, int):
            raise IllegalDemand(
                f"request() was called with {shown(n)}; demand is a positive integer (rule 3.9): "
                "request(1) asks for one element"
            )
        # Not int(n): a subclass of int may override __int__, and its own value counts.
        n = int.__int__(n)
    if n <= 0:
        raise IllegalDemand(
            f"request({shown(n)}) is a non-positive subscription request; demand is at least 1 "
            "(rule 3.9). To stop receiving, call cancel(); to pause, do not request"
        )
    return n if n < UNBOUNDED else UNBOUNDED
