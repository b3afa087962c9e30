"""The channels of one connection: one id for two streams, one in each direction.

The session has each direction in one of its tables: the elements of the peer among the opened
streams, those of this side among the served ones. This file knows what the two have to do with each
other, by wire §Streams:

=====================================  ============================================================
event                                  what it ends
=====================================  ============================================================
a direction completes                  that direction
CANCEL of the requester                both
CANCEL of the responder                the direction towards it
ERROR of either side                   both
=====================================  ============================================================

A channel that this side opens is sent with its first element. A channel of the peer begins with an
element, which waits for the first demand of the service.
"""

from typing import Any

import attrs

from penstock.api import Request
from penstock.session import ChannelElements


@attrs.define
class Opening:
    """A channel of this side whose first element has not come."""

    request: Request
    demand: int


@attrs.define
class Arriving:
    """The direction towards this side of a channel of the peer."""

    first: bytes | None
    """The first element, until it is requested."""
    is_complete: bool = False
    """Its last element has come, perhaps with the first one."""
    is_taken: bool = False
    """The service has subscribed to it. One subscriber gets it."""
    is_open: bool = True
    """Its end was not delivered, and it was not cancelled."""


class Channels:
    """The channels of one connection."""

    __slots__ = ("arriving", "opening", "own")

    def __init__(self) -> None:
        # Bounded by the streams that are open.
        self.opening: dict[int, Opening] = {}
        """Channels of this side that were not sent."""
        self.own: set[int] = set()
        """Channels of this side."""
        self.arriving: dict[int, Arriving] = {}
        """Channels of the peer."""

    def knows(self, stream_id: int) -> bool:
        """Return whether an id is that of a channel."""
        return stream_id in self.own or stream_id in self.arriving

    def forget(self, stream_id: int) -> None:
        """Forget a channel: both directions are over."""
        self.own.discard(stream_id)
        self.arriving.pop(stream_id, None)
        self.opening.pop(stream_id, None)

    def join(self, target: Any) -> int | None:
        """Return the id for a subscribe to the elements of a channel of the peer; None for another
        target, or if they are not there any more.
        """
        if target.__class__ is not ChannelElements:
            return None
        arriving = self.arriving.get(target.stream_id)
        if arriving is None or arriving.is_taken or not arriving.is_open:
            return None
        arriving.is_taken = True
        return target.stream_id
