"""The extension *requests* of RS.io (id 7):
a subscription to one element that carries data in place of a name.

Its messages have two types. ``4c`` opens a request: id and length as varints, then the first bytes
of the data. ``4d`` brings more of them: id, then bytes. Answers are those of any other stream.
Without the extension a request has a name only, and is a subscribe with demand 1.
"""

from collections.abc import Callable, Container
from typing import Final

from penstock.api import ActiveExtension, ExtensionLink, ProtocolError
from penstock.protocols.rsio._layout import decode_varint, encode_varint
from penstock.session import DialectHost, OutgoingData, RequestData, TooMuchDataError

REQUEST_DATA: Final = 0x4C
MORE_DATA: Final = 0x4D


class Requests:
    """Lets requests carry data, and so a payload. Both sides must have the extension."""

    id: int = 7
    name: str = "requests"
    codes: frozenset[int] = frozenset({REQUEST_DATA, MORE_DATA})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection. Only RS.io uses it: ReactiveSocket has frames for requests."""
        return ActiveRequests()


class ActiveRequests:
    """The extension on one connection. The dialect calls `start` and the methods below it; it is
    also an `ActiveExtension`.
    """

    _arriving: RequestData
    _leaving: OutgoingData
    _most: int
    # The header of an extension's message, by its code and the length of its body.
    _header: Callable[[int, int], bytes]
    # Looked at before a call: most streams have no data,
    # and their path shall not lead through here.
    unwritten: Container[int]
    """The requests of this side whose data is not written yet."""
    served: Container[int]
    """The requests of the peer that are served, and whose data counts."""

    def start(self, session: DialectHost, header: Callable[[int, int], bytes]) -> None:
        """Use the streams of `session`. `header` encodes what stands before the body of a
        message with a code and a length.
        """
        self._header = header
        self._arriving = RequestData(session.channel, session.streams)
        self._leaving = OutgoingData(session.channel, self._part_header)
        self._most = session.channel.limits.split_outbound_at
        self.unwritten, self.served = self._leaving.senders, self._arriving.sizes

    def release(self) -> None:
        """Drop what refers to the connection: it is over."""
        del self._arriving, self._leaving, self._header, self.unwritten, self.served

    def encode(self, stream_id: int, data: bytes) -> bytes:
        """Return the message that opens a request; if the data is long, it follows in parts."""
        head = encode_varint(stream_id) + encode_varint(len(data))
        if len(data) <= self._most:
            return b"".join((self._header(REQUEST_DATA, len(head) + len(data)), head, data))
        self._leaving.add(stream_id, data)
        return self._header(REQUEST_DATA, len(head)) + head

    def on_request_end(self, stream_id: int) -> None:
        """Send nothing more for a request of this side."""
        self._leaving.forget(stream_id)

    def on_answer_end(self, stream_id: int) -> None:
        """Count the data of a request of the peer as gone."""
        self._arriving.release(stream_id)

    def receive_message(self, code: int, body: bytes) -> None:
        """Act on a message. Raises ProtocolError for one that cannot be read."""
        stream_id, position = decode_varint(body, 0)
        length = 0
        if code == REQUEST_DATA and position > 0:
            length, position = decode_varint(body, position)
        # Below 0 if the body ended within a number.
        # The body is whole, so no further bytes of it come.
        if position < 0:
            raise ProtocolError(
                f"a message of type {code:#04x} ends within its first fields",
                reason="protocol:request",
            )
        try:
            if code == REQUEST_DATA:
                self._arriving.receive(stream_id, length, body[position:])
            else:
                self._arriving.receive_part(stream_id, body[position:])
        except TooMuchDataError:
            raise ProtocolError(
                f"the request on stream {stream_id} has more data than it announced",
                reason=f"protocol:request {stream_id}",
            ) from None

    # --- the ActiveExtension, for a dialect that does not know the extension

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Ignore a message: ReactiveSocket has frames for requests."""

    def _part_header(self, stream_id: int, size: int, _last: bool) -> bytes:  # noqa: FBT001  # as the sender calls it
        # The body is the same in every encoding; only what stands before it differs.
        encoded = encode_varint(stream_id)
        return self._header(MORE_DATA, len(encoded) + size) + encoded
