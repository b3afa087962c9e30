"""Streams that this side has cancelled: what still arrives for them was asked for, and must perhaps be delimited.

Rules of this file:

* Those of one element size are one object: a thousand cancelled streams cost their ids.
* As many elements as were asked for may be on their way when a cancel is sent. They cost the peer nothing; more are odd.
"""

from typing import TYPE_CHECKING, Final

from penstock.session._receiving_stream import CancelledStream, ReceivingStream

if TYPE_CHECKING:
    from penstock.session._session import Session

MOST_LATE: Final = 1 << 20
"""Elements that may arrive after cancels at no cost to the peer, over a connection."""


class CancelledStreams:
    """Keeps the places of cancelled streams in the session's table, where the dialect needs them kept."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.count: int = 0
        """Places kept for streams whose end the peer has not told."""
        self._late = 0
        self._by_size: dict[int, CancelledStream] = {}

    def take(self, stream: ReceivingStream) -> None:
        """The stream was cancelled."""
        self._late = min(self._late + stream.outstanding, MOST_LATE)
        if self._session.dialect.delimits_cancelled:
            self.count += 1
        self.replace(stream)

    def replace(self, stream: ReceivingStream) -> None:
        """Nobody here listens to the stream any more."""
        if self._session.dialect.delimits_cancelled:
            self.resize(stream.id, stream.element_size)
        else:
            del self._session.streams[stream.id]

    def resize(self, stream_id: int, element_size: int) -> None:
        """Elements of this stream, to be dropped, have that size."""
        retired = self._by_size.get(element_size)
        if retired is None:
            retired = self._by_size[element_size] = CancelledStream(self._session, element_size)
        self._session.streams[stream_id] = retired

    def late_elements(self, count: int) -> None:
        """So many have arrived, and were dropped."""
        if count <= self._late:
            self._late -= count
        else:
            self._session.count_oddity()
