"""Resuming by RSocket's own frames: the positions of both directions, the frames that are kept to
be sent again, and the uses of a connection's token.

Rules of this file:

* Frames on a stream are counted, with their header and without their length (wire §Positions). The
  bounds of frames are positions, and no other number is one.
* A frame that arrived in part is dropped with its link: the peer sends all of it again.
* A side that has sent `ASK_BYTES` asks for the position of the peer with a KEEPALIVE, so that no
  peer needs to keep more until its own KEEPALIVE is due. One question is open at a time.
* A token is the secret of its client. The server takes none of less than `LEAST_TOKEN` bytes.
"""

from collections import deque
from collections.abc import Callable
from secrets import token_hex
from typing import Any, Final

from penstock.api import ProtocolError, Role
from penstock.session import DialectHost, RetainedBytes, retain
from penstock_rsocket._codec import keepalive
from penstock_rsocket._layout import FRAMED_HEADER_SIZE, LENGTH_SIZE

ASK_BYTES: Final = 256 << 10
"""Counted bytes that are sent without an acknowledgement before this side asks for one."""

FREE_AFTER: Final = 64 << 10
"""Counted bytes that the peer sends between two questions that cost it nothing."""

LEAST_TOKEN: Final = 16
"""Bytes of a token. rsocket-java makes tokens of 16 random bytes."""

TOKEN_BYTES: Final = 32
PIECE: Final = 4096
"""Frames are joined in pieces of this size: an object for each would cost several times its
bytes.
"""

_CONNECTION: Final = bytes(4)
"""The id of frames about the connection, which have no position."""


class FrameCounter:
    """Counts the frames that arrive, in chunks of any size."""

    __slots__ = ("_framed", "_head", "_is_counted", "_left", "_length", "position")

    def __init__(self, *, framed: bool) -> None:
        self._framed = framed
        self.position: int = 0
        """The position after the last frame that is here as a whole."""
        self._head = b""  # of a frame whose length and id are not here
        self._left = 0  # bytes of the frame that are not here
        self._length = 0
        self._is_counted = False

    def feed(self, data: bytes) -> None:
        """Count the frames that end in `data`."""
        if self._framed:
            if len(data) >= FRAMED_HEADER_SIZE and data[:4] != _CONNECTION:
                self.position += len(data)
            return
        at, end = 0, len(data)
        if self._left:
            if end < self._left:
                self._left -= end
                return
            at, self._left = self._left, 0
            self._count()
        elif self._head:
            # Joined: a head has a few bytes, and the chunk is looked at once more.
            data, self._head = self._head + data, b""
            end = len(data)
        while end - at >= LENGTH_SIZE + 4:
            length = int.from_bytes(data[at : at + LENGTH_SIZE])
            self._length = length
            self._is_counted = data[at + LENGTH_SIZE : at + LENGTH_SIZE + 4] != _CONNECTION
            after = at + LENGTH_SIZE + length
            if after > end:
                self._left = after - end
                return
            self._count()
            # A length below that of a header ends the connection.
            at = max(after, at + LENGTH_SIZE + 4)
        self._head = data[at:]

    def drop_incomplete(self) -> None:
        """Forget the frame that is here in part."""
        self._head, self._left = b"", 0

    def _count(self) -> None:
        if self._is_counted:
            self.position += self._length


class RetainedFrames(RetainedBytes):
    """The counted frames that were sent, and that the peer has not acknowledged. Positions are
    those of RSocket.
    """

    __slots__ = ("_ask", "_asked", "_bytes", "_kept", "_offset")

    def __init__(self, bound: int, most: int, ask: Callable[[], bytes]) -> None:
        """`ask` returns a frame that asks the peer for its position."""
        super().__init__(bound, most)
        self._ask = ask
        self._asked = 0  # the position of the last question
        # Whole frames with their lengths. The first `_offset` bytes are acknowledged.
        self._kept: deque[bytearray] = deque()
        self._offset = 0
        self._bytes = 0

    @property
    def held(self) -> int:
        """The number of bytes in memory."""
        return self._bytes

    def add(self, data: bytearray) -> None:
        """Keep the counted frames of `data`, which is about to be sent. Add a question to it if one
        is due.
        """
        at, begin, end = 0, 0, len(data)
        while at < end:
            after = at + LENGTH_SIZE + int.from_bytes(data[at : at + LENGTH_SIZE])
            if data.startswith(_CONNECTION, at + LENGTH_SIZE):
                self._keep(data, begin, at)
                begin = after
            else:
                self.sent += after - at - LENGTH_SIZE
            at = after
        self._keep(data, begin, at)
        # After an answer to the last question: one is open at a time.
        if self.sent - self.acknowledged >= ASK_BYTES and self.acknowledged >= self._asked:
            self._asked = self.sent
            data += self._ask()

    def acknowledge(self, position: int) -> bool:
        """Drop the frames before `position`. Return False if they were dropped before. Raises
        ProtocolError for a position that is inside a frame, or was never sent.
        """
        if position <= self.acknowledged:
            return False
        super().check(position)
        pieces, offset = self._place_of(position)
        self.acknowledged = position
        for _ in range(pieces):
            self._bytes -= len(self._kept.popleft())
        self._offset = offset
        return True

    def check(self, position: int) -> None:
        """Raise ProtocolError for a position that is not kept, or is inside a frame."""
        super().check(position)
        self._place_of(position)

    def _place_of(self, position: int) -> tuple[int, int]:
        """Return how many pieces end before `position`, and where it is in the next one."""
        reached, pieces, offset = self.acknowledged, 0, self._offset
        while reached < position:
            piece = self._kept[pieces]
            length = int.from_bytes(piece[offset : offset + LENGTH_SIZE])
            reached += length
            offset += LENGTH_SIZE + length
            if offset == len(piece):
                pieces, offset = pieces + 1, 0
        if reached > position:
            raise ProtocolError(
                f"the peer says that it has received up to {position}, which is within a frame",
                reason=f"protocol:resume {position}",
            )
        return pieces, offset

    def take_back(self, position: int) -> bytearray:
        """Return what was sent after `position`, and hold none of it: it will be added again.
        Raises ProtocolError as `acknowledge` does.
        """
        self.check(position)
        self.acknowledge(position)
        data = bytearray().join(self._kept)
        del data[: self._offset]
        self._kept.clear()
        self._offset = self._bytes = 0
        self.sent = self._asked = position
        return data

    def _keep(self, data: bytearray, begin: int, end: int) -> None:
        if begin == end:
            return
        self._bytes += end - begin
        # A copy: the transport holds the bytes themselves for a while.
        if self._kept and len(self._kept[-1]) < PIECE:
            self._kept[-1] += data[begin:end]
        else:
            self._kept.append(data[begin:end])


class ResumableFrames:
    """What lets one connection go on over another link: its token, and the positions."""

    __slots__ = ("_channel", "_free_at", "_owner", "_retained", "counter", "token")

    def __init__(self, session: DialectHost, owner: Any, *, framed: bool) -> None:
        """`owner` is what keeps the connection after a loss. Nothing is kept before `begin`."""
        self._channel = session.channel
        self._owner = owner
        self._retained: RetainedFrames | None = None
        self._free_at = 0
        self.counter: FrameCounter = FrameCounter(framed=framed)
        """The frames of the peer, from the first byte on."""
        self.token: bytes = b""
        """The secret of this side; empty on a server."""

    def begin(self, token: bytes) -> None:
        """Keep what is sent from now on: the connection has a token."""
        self.token = token
        outbox = self._channel.outbox
        before = outbox.retained
        if before is not None:
            self._retained = RetainedFrames(before.bound, before.most, self.question)
            retain(outbox, self._retained)
        self._owner.bind(self)

    def adopt(self, token: bytes) -> str:
        """Begin with the token of a client. Return why it cannot be, or an empty text."""
        if len(token) < LEAST_TOKEN:
            return f"a token of {len(token)} bytes; {LEAST_TOKEN} is the least"
        if not self._owner.adopt(token):
            return "a token that is in use"
        # Without the token: this side needs no secret of its client.
        self.begin(b"")
        return ""

    def question(self) -> bytes:
        """Encode a KEEPALIVE that is answered with the position of the peer."""
        return keepalive(b"", respond=True, position=self.counter.position)

    def receive_position(self, position: int) -> None:
        """Drop what the peer says that it has. Raises ProtocolError."""
        retained = self._retained
        if retained is None or retained is not self._channel.outbox.retained:
            return
        was_full = retained.is_full
        if retained.acknowledge(position) and was_full and not retained.is_full:
            # Nothing is to be sent, so nothing else would wake the writer,
            # whose next turn lets the publishers go on.
            retained.has_new_room = True
            self._channel.outbox.wake()

    def is_question_free(self) -> bool:
        """Return whether a question costs the peer nothing: it has sent enough since the last."""
        if self.counter.position < self._free_at:
            return False
        self._free_at = self.counter.position + FREE_AFTER
        return True

    # --- for the owner

    def start(self, _session: object, _token: bytes | None, seconds: float) -> None:
        """Begin: the session is open."""
        if self._channel.role is Role.CLIENT:
            self._owner.on_token(self.token, seconds)

    def acknowledge(self) -> None:
        """Tell the peer how much has come, and ask it for the same."""
        self._channel.send(self.question())

    def note_acknowledged(self) -> None:
        """Do nothing: each KEEPALIVE has the position."""

    def stop(self) -> None:
        """Do nothing: the dialect is released with its connection."""


def new_token() -> bytes:
    """Return a token for a connection of this side."""
    # In ASCII: rsocket-java reads tokens as UTF-8, and would replace other bytes.
    return token_hex(TOKEN_BYTES).encode()
