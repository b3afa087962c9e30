"""The lives of a connection and of its streams, as tables: a pair that is not there cannot happen, or is the peer's fault."""

from enum import Enum
from typing import Final


class ConnectionState(Enum):
    """The life of a connection, seen from one side."""

    FRESH = "fresh"
    """Nothing was said yet."""
    GREETING = "greeting"
    """Our hello is out, the peer's is not in."""
    OPEN = "open"
    LEAVING = "leaving"
    """Our goodbye is out; what comes is discarded until the peer's."""
    OVER = "over"
    """Both goodbyes, or the transport's end."""


class Move(Enum):
    """What can happen to a connection."""

    GREETED = "our hello"
    WELCOMED = "the peer's hello"
    LEFT = "our goodbye"
    TOLD_TO_LEAVE = "the peer's goodbye"
    CUT = "the transport's end"


NEXT_STATE: Final = {
    (ConnectionState.FRESH, Move.GREETED): ConnectionState.GREETING,
    (ConnectionState.FRESH, Move.LEFT): ConnectionState.LEAVING,
    (ConnectionState.FRESH, Move.TOLD_TO_LEAVE): ConnectionState.OVER,
    (ConnectionState.FRESH, Move.CUT): ConnectionState.OVER,
    (ConnectionState.GREETING, Move.WELCOMED): ConnectionState.OPEN,
    (ConnectionState.GREETING, Move.LEFT): ConnectionState.LEAVING,
    (ConnectionState.GREETING, Move.TOLD_TO_LEAVE): ConnectionState.OVER,
    (ConnectionState.GREETING, Move.CUT): ConnectionState.OVER,
    (ConnectionState.OPEN, Move.LEFT): ConnectionState.LEAVING,
    (ConnectionState.OPEN, Move.TOLD_TO_LEAVE): ConnectionState.OVER,
    (ConnectionState.OPEN, Move.CUT): ConnectionState.OVER,
    # Crossing goodbyes acknowledge each other.
    (ConnectionState.LEAVING, Move.TOLD_TO_LEAVE): ConnectionState.OVER,
    (ConnectionState.LEAVING, Move.CUT): ConnectionState.OVER,
}
