"""What a stream tells about itself: one frozen record, cheap enough to ask for every second."""

import enum

import attrs


class StreamState(enum.Enum):
    """The life of a stream as its consumer sees it."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class StreamStatistics:
    """A moment in the life of a `Stream`.

    `starved` is the state to look for when nothing moves: nothing is buffered, and nothing was asked for that has not come,
    so the stream waits for a `request()` of yours.
    """

    state: StreamState
    requested: int
    """Elements asked of the publisher, in all."""
    received: int
    """Elements that have arrived, in all."""
    taken: int
    """Elements that the consumer has taken, in all."""
    buffered: int
    """Arrived and not yet taken; never more than was requested."""
    outstanding: int
    """Requested and not yet arrived."""
    starved: bool
    """Demand is yours to give (``demand=0``), nothing is buffered, nothing outstanding: only a `request()` can bring more."""
