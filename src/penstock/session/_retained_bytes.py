"""The bytes that this side has sent, and that the peer has not acknowledged: they are sent again if the connection is resumed.

Rules of this file:

* Each direction of a connection has a position, the number of bytes since the first byte of the hello. An acknowledgement is a position.
* The pieces are those that the writer took, and no copies. Small pieces are joined: an object for each small message would cost several
  times its bytes.
* Above `bound` no publisher is asked for elements (`Outbox.room`). Above `most` the peer takes bytes and acknowledges none: that ends the
  connection.
"""

from typing import Final

from penstock.api import ProtocolError

JOIN_BELOW: Final = 4096
"""Pieces of fewer bytes are joined."""

RESUME: Final = "protocol:resume"
"""The token of the reason for positions that do not fit."""


class RetainedBytes:
    """The end of what one side has sent."""

    __slots__ = ("_first", "_is_joining", "_pieces", "acknowledged", "bound", "has_new_room", "most", "sent")

    def __init__(self, bound: int, most: int) -> None:
        self.bound: int = bound
        self.most: int = most
        self.sent: int = 0
        """The position behind everything that was sent."""
        self.acknowledged: int = 0
        """The position up to which the peer has acknowledged."""
        self.has_new_room: bool = False
        """The peer has acknowledged so much that publishers may be asked again. The writer's next turn lets them go on."""
        self._first = 0  # the position of the first piece: a piece is kept as a whole until its end is acknowledged
        self._pieces: list[bytearray] = []  # bounded by `most`
        self._is_joining = False  # the last piece is a copy, and small ones are appended to it

    @property
    def held(self) -> int:
        """The number of bytes in memory."""
        return self.sent - self._first

    @property
    def is_full(self) -> bool:
        """True if nothing more should be asked for until the peer acknowledges."""
        return self.sent - self.acknowledged >= self.bound

    def add(self, data: bytearray) -> None:
        """Keep what is about to be sent."""
        self.sent += len(data)
        pieces = self._pieces
        if len(data) >= JOIN_BELOW:
            pieces.append(data)
            self._is_joining = False
        elif self._is_joining and len(pieces[-1]) < JOIN_BELOW:
            pieces[-1] += data
        else:
            # A copy: a transport may hold the piece itself for a while, and this one grows.
            pieces.append(bytearray(data))
            self._is_joining = True

    def acknowledge(self, position: int) -> bool:
        """Drop what the peer has. Return whether that was news. Raises ProtocolError if so much was never sent."""
        # An older position is no fault: acknowledgements that were lost with their link are sent again, behind a newer count.
        if position <= self.acknowledged:
            return False
        self.check(position)
        self.acknowledged = position
        done = 0
        for piece in self._pieces:
            if self._first + len(piece) > position:
                break
            self._first += len(piece)
            done += 1
        if done:
            del self._pieces[:done]
            self._is_joining = self._is_joining and bool(self._pieces)
        return True

    def check(self, position: int) -> None:
        """Raise ProtocolError if the peer cannot have received up to `position`, or has acknowledged more before."""
        if not self.acknowledged <= position <= self.sent:
            raise ProtocolError(
                f"the peer says that it has received {position} bytes; this side has sent {self.sent}, and the peer has acknowledged "
                f"{self.acknowledged} before",
                reason=f"{RESUME} {position}",
            )

    def take_back(self, position: int) -> bytearray:
        """Return what was sent behind `position`, and hold none of it: it will be added again. Raises ProtocolError as `check` does."""
        self.check(position)
        self.acknowledge(position)
        data = bytearray().join(self._pieces)
        del data[: position - self._first]
        self._pieces.clear()
        self._is_joining = False
        self.sent = self._first = position
        return data
