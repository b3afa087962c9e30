"""The bytes that this side has sent, and that the peer has not acknowledged:
they are sent again if the connection is resumed.

Rules of this file:

* Each direction of a connection has a position, the number of bytes since the first byte of the
  hello. An acknowledgement is a position.
* The pieces are those that the writer took, and no copies. Small pieces are joined: an object for
  each small message would cost several times its bytes.
* Above `bound` no publisher is asked for elements (`Outbox.room`). Above `most` the peer takes
  bytes and acknowledges none: that ends the connection.
"""

from typing import Final

from penstock.api import ProtocolError

JOIN_BELOW: Final = 4096
"""Pieces of fewer bytes are joined."""

RESUME: Final = "protocol:resume"
"""The token of the reason for positions that do not fit."""


class RetainedBytes:
    """The end of what one side has sent."""

    __slots__ = (
        "_first",
        "_pieces",
        "_tail",
        "acknowledged",
        "bound",
        "has_new_room",
        "most",
        "sent",
    )

    def __init__(self, bound: int, most: int) -> None:
        self.bound: int = bound
        self.most: int = most
        self.sent: int = 0
        """The position behind everything that was sent."""
        self.acknowledged: int = 0
        """The position up to which the peer has acknowledged."""
        self.has_new_room: bool = False
        """The acknowledgements have made room, so publishers may be asked again.
        The writer's next turn lets them go on.
        """
        # The position of the first piece: a piece is kept as a whole until its end is acknowledged.
        self._first = 0
        # Bounded by `most`. None most of the time on an idle connection, which then has one small
        # object for the last few bytes.
        self._pieces: list[bytearray] | None = None
        self._tail: bytearray | None = None  # the small pieces behind the others, joined

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
        tail = self._tail
        if len(data) < JOIN_BELOW and (tail is None or len(tail) < JOIN_BELOW):
            # A copy: a transport may hold the piece itself for a while, and this one grows.
            if tail is None:
                self._tail = bytearray(data)
            else:
                tail += data
            return
        pieces = self._pieces = self._pieces or []
        if tail is not None:
            pieces.append(tail)
            self._tail = None
        if len(data) < JOIN_BELOW:
            self._tail = bytearray(data)
        else:
            pieces.append(data)

    def acknowledge(self, position: int) -> bool:
        """Drop the bytes before `position`. Return False if they were dropped before. Raises
        ProtocolError if they were never sent.
        """
        # An older position is not a fault: acknowledgements that were lost with their link are sent
        # again, after a newer count.
        if position <= self.acknowledged:
            return False
        self.check(position)
        self.acknowledged = position
        done = 0
        for piece in self._pieces or ():
            # A piece goes as a whole: the transport may hold it still,
            # and it must not change under it.
            if self._first + len(piece) > position:
                break
            self._first += len(piece)
            done += 1
        if self._pieces is not None:
            del self._pieces[:done]
            # An idle connection must not keep an empty list.
            if not self._pieces:
                self._pieces = None
        # The small pieces are a copy, and may be cut.
        # The others are kept uncut until their end is acknowledged.
        if self._pieces is None and self._tail is not None:
            del self._tail[: position - self._first]
            self._first = position
            self._tail = self._tail or None
        return True

    def check(self, position: int) -> None:
        """Raise ProtocolError if the peer cannot have received up to `position`,
        or has acknowledged more before.
        """
        if not self.acknowledged <= position <= self.sent:
            raise ProtocolError(
                f"the peer says that it has received {position} bytes; this side has sent "
                f"{self.sent}, and the peer has acknowledged {self.acknowledged} before",
                reason=f"{RESUME} {position}",
            )

    def take_back(self, position: int) -> bytearray:
        """Return what was sent behind `position`, and hold none of it: it will be added again.
        Raises ProtocolError as `check` does.
        """
        self.check(position)
        self.acknowledge(position)
        data = bytearray().join((*(self._pieces or ()), self._tail or b""))
        # The piece that `position` lies in was kept as a whole.
        del data[: position - self._first]
        self._pieces = self._tail = None
        self.sent = self._first = position
        return data
