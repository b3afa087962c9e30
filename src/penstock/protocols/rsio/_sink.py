"""The receivers of decoded messages: a stream for elements, a sink for all other messages, each
called once for each message.

Elements, request, onSubscribe and onComplete never become records on their way to a session: with a
record, decoding a message takes 2 to 2.7 times as long (204 ns for an onComplete, 559 ns for a
cancel, which has the same fields and a record).
"""

from collections.abc import Sequence
from typing import Final, Protocol

from penstock.protocols.rsio import _messages as messages

NOT_BEGUN: Final = -1
"""The element size of a stream before its onSubscribe. The decoder cannot delimit an element of
such a stream, and refuses it.
"""


class WireStream(Protocol):
    """The part of a stream that the decoder uses.
    An exception from any method ends the decoding.
    """

    # wire §The model: a decoder has a state.
    # How an element is delimited depends on the onSubscribe of its stream.
    @property
    def element_size(self) -> int:
        """The fixed size of the elements; 0 if each element has a length; or NOT_BEGUN."""

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Take two or more elements that were received one directly behind the other.

        Together they have `size` bytes. A size below 0 is not known: their lengths are added up.
        """

    # Not a list of elements: a subscriber may take them as one piece of memory,
    # and then they are never cut apart.
    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Take `count` elements of the fixed size, one behind the other.
        They use up `count` of demand.
        """

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # on the path of elements
        """Take a part of the element with the number `element`."""


class RsioSink(Protocol):
    """Receives all other messages, in the order of arrival.
    An exception from any method ends the decoding.
    """

    def receive_control(self, message: messages.Message, /) -> None:
        """Take a message that has no method here or in WireStream."""

    def check_extension(self, code: int, length: int, /) -> None:
        """Refuse a message of an extension that has not arrived as a whole:
        for its type, or for the length of its body.
        """

    # Every stream has the next three messages, and a request is the control message that is sent
    # most: no records, see above.

    def receive_request(self, subscriber: int, demand: int, /) -> None:
        """Take a request."""

    def receive_on_subscribe(self, subscriber: int, element_size: int, /) -> None:
        """Take an onSubscribe. From here on the decoder must find `element_size` in the stream,
        even if the stream was cancelled.
        """

    def receive_on_complete(self, subscriber: int, /) -> None:
        """Take an onComplete."""
