"""The tap of one stream: numbers the rows, packs them,
and keeps them until the recorder's thread takes them.

Rules of this file:

* A tap may be called from any thread, by one at a time. The recorder's thread takes rows at the
  same time, without a lock: each of the operations on the buffer that both use is one step of the
  interpreter.
* Each row gets the next number, whether it is kept or dropped.
  So a reader sees how many rows are missing, and where.
"""

import struct
from collections import deque
from collections.abc import Callable
from typing import Final

import attrs

from penstock.api import SignalKind
from penstock.recording._columns import MOST, ROW, ROW_BYTES

_PACK: Final = ROW.pack


@attrs.frozen
class StreamFacts:
    """A stream that is recorded."""

    subscription: int
    """Its number in the process, counted from 1."""
    connection: int
    """The number of its connection; 0 for a stream inside the process."""
    stream: int
    """Its id on the connection; 0 as well."""
    outbound: bool
    """True if this process publishes."""
    publisher: str
    """The publisher's name, as the subscriber asked for it."""
    pattern: str
    """The name under which the service offers it."""
    peer: str
    """The address of the peer."""
    began: int
    """When it began, in nanoseconds since 1970."""


@attrs.define
class Intake:
    """The rows that the taps give and the recorder's thread takes."""

    max_rows: int
    """How many rows may wait, and how many new streams."""

    room: int = attrs.field(init=False)
    """How many rows still find room. The thread sets it anew each time, so it does no lasting
    harm if two threads subtract at once.
    """

    dropped: int = 0
    """Rows that found no room."""

    when_dropped: Callable[[], None] | None = None
    """Called for each row that is dropped.
    Set in a process that was forked, for the streams that were open then.
    """

    streams_left_out: int = 0
    """Streams that were not recorded, because too many new ones waited."""

    waiting: "deque[RowTap]" = attrs.Factory(deque)
    """The taps that have rows."""

    begun: deque[StreamFacts] = attrs.Factory(deque)
    """The streams that the thread does not know yet."""

    def __attrs_post_init__(self) -> None:
        self.room = self.max_rows

    def drop(self) -> None:
        """Count a row that is dropped."""
        self.dropped += 1
        if self.when_dropped is not None:
            self.when_dropped()


class RowTap:
    """Takes the rows of one stream."""

    __slots__ = ("_intake", "_rows", "_seq", "each_signal", "recorded")

    def __init__(self, recorded: StreamFacts, intake: Intake, *, each_signal: bool) -> None:
        self.recorded: StreamFacts = recorded
        self.each_signal: bool = each_signal
        self._intake = intake
        self._rows = bytearray()
        self._seq = 0

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        """Keep one row, or drop it and count it if too many wait."""
        seq = self._seq
        self._seq = seq + 1
        intake = self._intake
        room = intake.room
        if room <= 0:
            intake.drop()
            return
        intake.room = room - 1
        rows = self._rows
        try:
            rows += _PACK(seq, kind, n, size, first, last, longest)
        except struct.error:
            # A request of a user's object may be any number,
            # and a sum may exceed what a column holds.
            rows += _PACK(seq, kind, _clamped(n), _clamped(size), first, last, longest)
        # Looked at after the row was added:
        # if the thread takes it between the two, there is nothing to announce.
        if len(rows) == ROW_BYTES:
            intake.waiting.append(self)

    def take(self) -> bytearray:
        """Return the rows that wait, and forget them. For the recorder's thread."""
        rows = self._rows
        length = len(rows)
        taken = rows[:length]
        del rows[:length]
        return taken


def _clamped(number: int) -> int:
    return max(-MOST, min(MOST, number))
