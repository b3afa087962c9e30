"""The states of a stream, as this side knows them: one table.

A stream has two halves. Each side ends its own half with END_STREAM.
A reset, or the loss of the connection, ends both.
"""

from enum import Enum, auto
from typing import Final


class Http2StreamState(Enum):
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
        return self in {Http2StreamState.OPEN, Http2StreamState.RECEIVED_END}

    @property
    def can_receive(self) -> bool:
        """Whether data may still come."""
        return self in {Http2StreamState.OPEN, Http2StreamState.SENT_END}


class Input(Enum):
    """What can happen to a stream."""

    SEND_END = auto()
    RECEIVE_END = auto()
    BREAK = auto()


TABLE: Final[dict[tuple[Http2StreamState, Input], Http2StreamState]] = {
    (Http2StreamState.OPEN, Input.SEND_END): Http2StreamState.SENT_END,
    (Http2StreamState.OPEN, Input.RECEIVE_END): Http2StreamState.RECEIVED_END,
    (Http2StreamState.OPEN, Input.BREAK): Http2StreamState.BROKEN,
    (Http2StreamState.SENT_END, Input.RECEIVE_END): Http2StreamState.CLOSED,
    (Http2StreamState.SENT_END, Input.BREAK): Http2StreamState.BROKEN,
    (Http2StreamState.RECEIVED_END, Input.SEND_END): Http2StreamState.CLOSED,
    (Http2StreamState.RECEIVED_END, Input.BREAK): Http2StreamState.BROKEN,
    # A server may reset a stream after its end, to say that it wants no more of the request (RFC
    # 9113, 8.1).
    (Http2StreamState.CLOSED, Input.BREAK): Http2StreamState.CLOSED,
    (Http2StreamState.BROKEN, Input.BREAK): Http2StreamState.BROKEN,
}
"""A pair that is missing is a fault of this side:
h2 refuses a frame of the peer that would be one.
"""


def move(state: Http2StreamState, happened: Input) -> Http2StreamState:
    """Return the state after `happened`."""
    try:
        return TABLE[state, happened]
    except KeyError:
        raise AssertionError(f"a stream in the state {state.name} cannot {happened.name}") from None
