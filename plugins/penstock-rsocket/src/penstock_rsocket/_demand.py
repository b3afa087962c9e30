"""Demand that a frame cannot carry: more than 2^31-1, or without bound.

RSocket adds demands up, and no value means "without bound". So this side grants at most 2^31-1 at a
time, and more when half of that has arrived. A stream with less demand needs none of this.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from penstock.api import UNBOUNDED
from penstock.wire import WireStream
from penstock_rsocket._layout import LARGEST_NUMBER

GRANTED_AGAIN: Final = LARGEST_NUMBER // 2
"""More is granted when at most this is left of the demand that was granted."""


class LargeDemand:
    """The demand of one stream: the part that was granted, and the rest."""

    __slots__ = ("open", "owed")

    def __init__(self) -> None:
        self.open: int = 0
        """Granted, and not used up by elements."""
        self.owed: int = 0
        """Requested by the subscriber, and not granted. `UNBOUNDED` stays what it is."""

    def add(self, n: int) -> int:
        """Add demand of the subscriber. Return how much to grant now."""
        self.owed = min(UNBOUNDED, self.owed + n)
        return self.take()

    def receive(self, count: int) -> int:
        """Count elements that have arrived. Return how much to grant now."""
        # More than was granted is for the stream to judge, which counts its whole demand.
        self.open = max(0, self.open - count)
        return self.take() if self.open <= GRANTED_AGAIN else 0

    def take(self) -> int:
        """Return how much of the rest fits into what a peer may have."""
        n = min(self.owed, LARGEST_NUMBER - self.open)
        self.open += n
        if self.owed < UNBOUNDED:
            self.owed -= n
        return n


class CountedStream:
    """A stream with a large demand, before the stream itself: it counts what arrives."""

    __slots__ = ("_grant", "_stream", "demand")

    def __init__(self, stream: WireStream, grant: Callable[[int], None]) -> None:
        """`grant` sends a demand that is not 0."""
        self._stream = stream
        self._grant = grant
        self.demand: LargeDemand = LargeDemand()

    @property
    def takes_whole(self) -> bool:
        """As the stream."""
        return self._stream.takes_whole

    @property
    def takes_runs(self) -> bool:
        """As the stream."""
        return getattr(self._stream, "takes_runs", False)

    def receive_element(self, element: bytes, /) -> None:
        """Pass an element on."""
        self._stream.receive_element(element)
        self.count(1)

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Pass elements on."""
        self._stream.receive_run(elements, size)
        self.count(len(elements))

    def count(self, count: int) -> None:
        """Count elements that have arrived, and grant more if it is time."""
        n = self.demand.receive(count)
        if n:
            self._grant(n)


class CountedTable(dict[int, CountedStream]):
    """The streams with a large demand, and after them the table of all streams. A decoder looks
    streams up here while one of them has a large demand.
    """

    __slots__ = ("_all",)

    def __init__(self, all_streams: Mapping[int, WireStream]) -> None:
        super().__init__()
        self._all = all_streams

    def counted(self, stream_id: int) -> CountedStream | None:
        """Return the counted stream of an id, or None for another one."""
        return super().get(stream_id)

    def get(self, stream_id: int, default: None = None, /) -> WireStream | None:  # type: ignore[override]  # the decoder calls it with an id alone
        """Return the counted stream of an id, or the stream itself."""
        counted = super().get(stream_id)
        # A stream that has ended is not in the table of all streams any more.
        stream = self._all.get(stream_id)
        return stream if counted is None or stream is None else counted
