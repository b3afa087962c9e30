"""Budgets for the frames of a peer that cost it little, and this side time:
one token bucket for each kind.

Each kind has stopped servers: rapid resets (CVE-2023-44487), pings and settings that each want an
answer (CVE-2019-9512, 9515), priorities and empty frames (CVE-2019-9513, 9518), header blocks
without an end (CVE-2024-27316). h2 counts none of them but the last.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from h2.errors import ErrorCodes

from penstock.api import TokenBucket

CALM: Final = ErrorCodes.ENHANCE_YOUR_CALM

RESETS: Final = "RST_STREAM frames"
REFUSALS: Final = "refused requests"
REQUESTS: Final = "requests"
PINGS: Final = "PING frames"
SETTINGS: Final = "SETTINGS frames"
PRIORITIES: Final = "PRIORITY frames"
EMPTY: Final = "empty DATA frames"
UPDATES: Final = "WINDOW_UPDATE frames"
UNKNOWN: Final = "frames of unknown types"

BUDGETS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        RESETS: (200, 33),
        REFUSALS: (100, 10),
        REQUESTS: (1000, 100),
        PINGS: (100, 10),
        SETTINGS: (100, 10),
        PRIORITIES: (200, 33),
        EMPTY: (200, 33),
        UPDATES: (1000, 33),
        UNKNOWN: (100, 10),
    }
)
"""For each kind: how many may come at once, and how many a second after that."""

UPDATES_EARNED: Final = 10
"""WINDOW_UPDATE frames that a peer may send for each DATA frame of this side, beside its budget."""


class RuleBroken(Exception):
    """The peer has broken a rule of HTTP/2, or a bound. `code` goes into GOAWAY."""

    def __init__(self, code: ErrorCodes, text: str) -> None:
        super().__init__(text)
        self.code: ErrorCodes = code


class Floods:
    """The budgets of one connection."""

    def __init__(self) -> None:
        # Only kinds that have come have a bucket: most connections see two.
        self._buckets: dict[str, TokenBucket] = {}

    def count(self, kind: str, now: float) -> None:
        """Count one of `kind`. Raises RuleBroken if there were too many."""
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = TokenBucket(*BUDGETS[kind])
        if not bucket.spend(1, now):
            raise RuleBroken(CALM, f"too many {kind}")

    def on_data_sent(self) -> None:
        """Let the peer answer a DATA frame with WINDOW_UPDATE frames."""
        self._earn(UPDATES, UPDATES_EARNED)

    def on_answered(self) -> None:
        """Let the peer send another request:
        it has waited for an answer, as a client of HTTP/1.1 does.
        """
        self._earn(REQUESTS, 1)

    def _earn(self, kind: str, tokens: float) -> None:
        bucket = self._buckets.get(kind)
        if bucket is not None:
            bucket.earn(tokens)
