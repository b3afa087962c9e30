"""The states of a stream, as this side knows them: one table.

A stream has two halves. Each side ends its own half with END_STREAM.
A reset, or the loss of the connection, ends both.
"""

from enum import Enum, auto
from typing import Final


class StreamState(Enum):
    """One stream."""

    OPEN = auto()
    """Both sides may send."""
    SENT_END = auto()
    """This side has ended its half."""
    RECEIVED_END = auto()
    """The peer has ended its half."""
    CLOSED = auto()
    """Both sides have ended in good order."""
    BROKEN = auto()
    """A side has reset the stream, or the connection was lost."""

    @property
    def can_send(self) -> bool:
        """Whether this side may send data."""
        return self in {StreamState.OPEN, StreamState.RECEIVED_END}

    @property
    def can_receive(self) -> bool:
        """Whether data may still come."""
        return self in {StreamState.OPEN, StreamState.SENT_END}


class Input(Enum):
    """What can happen to a stream."""

    SEND_END = auto()
    RECEIVE_END = auto()
    BREAK = auto()


TABLE: Final[dict[tuple[StreamState, Input], StreamState]] = {
    (StreamState.OPEN, Input.SEND_END): StreamState.SENT_END,
    (StreamState.OPEN, Input.RECEIVE_END): StreamState.RECEIVED_END,
    (StreamState.OPEN, Input.BREAK): StreamState.BROKEN,
    (StreamState.SENT_END, Input.RECEIVE_END): StreamState.CLOSED,
    (StreamState.SENT_END, Input.BREAK): StreamState.BROKEN,
    (StreamState.RECEIVED_END, Input.SEND_END): StreamState.CLOSED,
    (StreamState.RECEIVED_END, Input.BREAK): StreamState.BROKEN,
    # A server may reset a stream after its end, to say that it wants no more of the request (RFC
    # 9113, 8.1).
    (StreamState.CLOSED, Input.BREAK): StreamState.CLOSED,
    (StreamState.BROKEN, Input.BREAK): StreamState.BROKEN,
}
"""A pair that is missing is a fault of this side:
h2 refuses a frame of the peer that would be one.
"""


def move(state: StreamState, happened: Input) -> StreamState:
    """Return the state after `happened`."""
    try:
        return TABLE[state, happened]
    except KeyError:
        raise AssertionError(f"a stream in the state {state.name} cannot {happened.name}") from None
