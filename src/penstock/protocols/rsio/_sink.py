"""Who a decoder tells: streams take what is about elements, the sink takes everything else, message by message, as plain calls."""

from collections.abc import Sequence
from typing import Final, Protocol

from penstock.protocols.rsio import _messages as messages

NOT_BEGUN: Final = -1
"""The element size of a stream before its onSubscribe: an element of it cannot be delimited."""


class WireStream(Protocol):
    """A stream as the decoder sees it: how its elements are delimited, and where they go. What it raises ends the decoding."""

    @property
    def element_size(self) -> int:
        """The fixed size of its elements, 0 where each has its length, or NOT_BEGUN."""

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Take two or more elements that came one right behind the other."""

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # on the path of elements
        """Take a part of an element."""


class RsioSink(Protocol):
    """Receives all other messages, in the order of arrival. What it raises ends the decoding."""

    def receive_control(self, message: messages.Message, /) -> None:
        """Take any message but those below and those for streams."""

    def receive_request(self, subscriber: int, demand: int, /) -> None:
        """Take a request."""

    def receive_on_subscribe(self, subscriber: int, element_size: int, /) -> None:
        """Take an onSubscribe."""

    def receive_on_complete(self, subscriber: int, /) -> None:
        """Take an onComplete."""
