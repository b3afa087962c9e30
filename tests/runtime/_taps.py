"""A plugin that keeps the rows of each stream, as an outsider would write one."""

import attrs

from penstock.api import SignalKind
from penstock.spi import Registry, StreamOpened, build_registry, hookimpl


@attrs.frozen
class Row:
    """One row of a tap."""

    kind: SignalKind
    n: int
    size: int
    first: int
    last: int
    longest: int


class ListTap:
    """Keeps the rows of one stream."""

    def __init__(self, event: StreamOpened, *, each_signal: bool = False) -> None:
        self.event = event
        self.each_signal = each_signal
        self.rows: list[Row] = []

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        self.rows.append(Row(kind, n, size, first, last, longest))

    @property
    def kinds(self) -> list[SignalKind]:
        return [row.kind for row in self.rows]

    def total(self, kind: SignalKind) -> int:
        return sum(row.n for row in self.rows if row.kind is kind)

    @property
    def size(self) -> int:
        return sum(row.size for row in self.rows)

    def most_beyond_demand(self) -> int:
        """Return the largest number of elements that came without a request;
        0 or less on a sound stream.
        """
        demand = elements = most = 0
        for row in self.rows:
            demand += row.n if row.kind is SignalKind.REQUEST else 0
            elements += row.n if row.kind is SignalKind.ON_NEXT else 0
            most = max(most, elements - demand)
        return most


class Taps:
    """The plugin."""

    def __init__(self, *, each_signal: bool = False) -> None:
        self.each_signal = each_signal
        self.taps: list[ListTap] = []

    @hookimpl
    def penstock_signals(self, event: StreamOpened) -> ListTap:
        self.taps.append(ListTap(event, each_signal=self.each_signal))
        return self.taps[-1]

    def registry(self) -> Registry:
        return build_registry([self])
