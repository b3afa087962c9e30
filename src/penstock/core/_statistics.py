"""The statistics of a stream: one frozen record, cheap enough to take every second."""

import enum

import attrs


class StreamState(enum.Enum):
    """The state of a stream as its consumer sees it."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# Frozen, because it describes one time; by keyword, because seven numbers by position could not be read.
@attrs.frozen(kw_only=True)
class StreamStatistics:
    """The state and the counts of a `Stream` at one time.

    If nothing moves, look at `starved`: when it is true, the stream waits for a `request()` of your program.
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
    """The program gives the demand (``demand=0``), nothing is buffered and nothing is outstanding: only a `request()` can bring more."""
