"""What a decoder tells, message by message, as plain calls: the session implements it, and so does whoever only wants to look."""

from collections.abc import Sequence
from typing import Protocol

from penstock.wire.rsio import _messages as messages

NO_STREAM = -1
"""The element size of an id whose stream has not begun: an element of it cannot be delimited."""


class RsioSink(Protocol):
    """Receives what was decoded, in the order of arrival. What it raises ends the decoding."""

    def control(self, message: messages.Message, /) -> None:
        """Take any message but those below."""

    def request(self, subscriber: int, demand: int, /) -> None:
        """Take a request."""

    def on_next(self, subscriber: int, element: bytes, /) -> None:
        """Take an element."""

    def on_next_run(self, subscriber: int, elements: Sequence[bytes], /) -> None:
        """Take two or more elements that arrived one right behind the other."""

    def on_next_packed(self, subscriber: int, count: int, elements: bytes, /) -> None:
        """Take packed elements."""

    def on_part(self, subscriber: int, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # on the path of elements
        """Take a part of an element."""


class MessageList:
    """Collects every message as a record; for tests, tools and traces. `sizes` tells the fixed sizes of streams, learned from onSubscribe."""

    def __init__(self) -> None:
        self.messages: list[messages.Message] = []
        self.sizes: dict[int, int] = {}

    def control(self, message: messages.Message, /) -> None:
        if isinstance(message, messages.OnSubscribe):
            self.sizes[message.subscriber] = message.element_size
        self.messages.append(message)

    def request(self, subscriber: int, demand: int, /) -> None:
        self.messages.append(messages.Request(subscriber=subscriber, demand=demand))

    def on_next(self, subscriber: int, element: bytes, /) -> None:
        self.messages.append(messages.OnNext(subscriber=subscriber, element=element))

    def on_next_run(self, subscriber: int, elements: Sequence[bytes], /) -> None:
        self.messages += [messages.OnNext(subscriber=subscriber, element=element) for element in elements]

    def on_next_packed(self, subscriber: int, count: int, elements: bytes, /) -> None:
        self.messages.append(messages.OnNextPacked(subscriber=subscriber, count=count, elements=elements))

    def on_part(self, subscriber: int, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # as in the protocol
        kind = messages.OnNextLastPart if last else messages.OnNextPart
        self.messages.append(kind(subscriber=subscriber, element=element, data=data))
