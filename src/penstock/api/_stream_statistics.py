"""The statistics of a stream: one frozen record, cheap enough to take every second."""

import enum
from dataclasses import dataclass, field


class StreamState(enum.Enum):
    """The state of a stream as its consumer sees it."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# Frozen, because it describes one time; by keyword, because seven numbers by position could not be
# read. In `api`, so that each client returns the same record; and so a dataclass: this layer
# imports the standard library only.
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatistics:
    """The state and the counts of a `Stream` at one time.

    If nothing moves, look at `starved`:
    when it is true, the stream waits for a `request()` of your program.
    """

    state: StreamState
    requested: int
    """Elements requested of the publisher, in all."""
    received: int
    """Elements that have arrived, in all."""
    taken: int
    """Elements that the consumer has taken, in all."""
    buffered: int
    """Elements that have arrived and are not yet taken; never more than were requested."""
    outstanding: int
    """Elements that were requested and have not yet arrived."""
    starved: bool
    """The program gives the demand (``demand=0``), nothing is buffered and nothing is
    outstanding: only a `request()` can bring more.
    """
    received_bytes: int | None = None
    """Bytes of the elements that have arrived over a network, estimated if they come in large
    numbers. None in one process, and on a stream whose program gives the demand: their bytes bound
    nothing there, so they are not counted.
    """
    # Not compared, like the next one: two records of a stream on
    # which nothing has happened are equal.
    age: float = field(default=0.0, compare=False)
    """Seconds since the stream was made."""
    since_taken: float | None = field(default=None, compare=False)
    """Seconds since the consumer was last given elements; None before the first. If it waits for
    one, none has arrived for that time.
    """
