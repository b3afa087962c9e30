"""Messages about streams that come while an extension holds the peer: kept in order, within a
bound, until the peer is let in.
"""

from penstock.api import ProtocolError
from penstock.protocols.rsio import _codec as rsio


class EarlyMessages:
    """The messages of one peer that is held."""

    __slots__ = ("_most", "_size", "messages")

    def __init__(self, most: int) -> None:
        """`most` is the number of bytes that the messages may have on the wire together."""
        self._most = most
        self._size = 0
        self.messages: list[rsio.Message] = []

    def add(self, message: rsio.Message) -> None:
        """Keep a message. Raises ProtocolError if all messages together are too long."""
        # Encoded again, which takes a microsecond for each message of a stranger: the decoder does
        # not tell how long the message was.
        self._size += len(rsio.encode(message))
        # Before the message is kept, so that a stranger cannot make this side hold more than the
        # bound.
        self.check(0)
        self.messages.append(message)

    def check(self, length: int) -> None:
        """Raise ProtocolError if a body of `length` bytes, which has not arrived, would not fit."""
        size = self._size + length
        if size > self._most:
            text = (
                f"{size} bytes of messages before this side has let the peer in; {self._most} is "
                "the most"
            )
            raise ProtocolError(text, reason=f"limit:auth {size} > {self._most}")
