"""The elements of a channel, in both directions: those that a peer sends, as a source for the
service; and those that this side sends, as a stream that needs no look-up.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.api import ByteWindow, Limits, Subscriber
from penstock.core import Scope, Stream
from penstock.runtime.service import FoundStream
from penstock.session import ChannelElements
from penstock.streams import Source

SubscribeToPeer: TypeAlias = Callable[[Any, Subscriber[Any], ByteWindow | None], None]
"""Opens a stream to a target of the peer."""


class ArrivingElements(Source[bytes]):
    """The elements that the peer sends on a channel that it has opened. One subscriber gets them;
    a second one gets an error.
    """

    __slots__ = ("_limits", "_stream_id", "_subscribe")

    def __init__(self, subscribe: SubscribeToPeer, stream_id: int, limits: Limits) -> None:
        self._subscribe = subscribe
        self._stream_id = stream_id
        self._limits = limits

    def attach(
        self, subscriber: Subscriber[Any], scope: Scope | None = None, reader: object = None
    ) -> None:
        reader = reader or (subscriber if scope is None else scope.reader)
        window = (
            reader.count_bytes(self._limits.window_bytes, self._limits.max_element)
            if isinstance(reader, Stream)
            else None
        )
        self._subscribe(ChannelElements(self._stream_id), subscriber, window)

    def __repr__(self) -> str:
        return f"<the elements of channel {self._stream_id}>"


class OwnElements:
    """The elements that this side sends on a channel that it opens."""

    __slots__ = ("found",)

    def __init__(self, found: FoundStream) -> None:
        self.found: FoundStream = found
