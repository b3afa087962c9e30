"""What a stream is asked for by, where that is more than a publisher's name: an interaction model, and data."""

from dataclasses import dataclass
from enum import Enum


class Model(Enum):
    """The shapes that an interaction can have. `NAMED` is a subscription to a publisher by its name."""

    NAMED = "named publisher"
    RESPONSE = "request and response"
    FIRE_AND_FORGET = "fire and forget"
    STREAM = "request for a stream"
    SUBSCRIPTION = "request for a subscription"


@dataclass(slots=True)
class Request:
    """A request as it crosses the wire. (Nobody changes it, and it is not frozen: there is one for each value, and that costs twice.)"""

    model: Model
    data: bytes
    """What identifies the thing that is asked for, and its parameters."""

    def __str__(self) -> str:
        # For people, and for observers: a publisher's name, most of the time.
        return self.data[:200].decode(errors="backslashreplace")
