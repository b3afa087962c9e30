"""What has arrived and is not decoded yet: kept in pieces, and joined once when there is enough. Any decoder of bytes is one of these.

Rules of this file:

* Linear in the input, whatever the chunks: nothing is looked at, or copied, before as much is there as the decoder has said it needs.
* Each piece costs an object, so small ones are joined while they wait.
* A decoder that has raised ProtocolError is broken, and raises it ever after.
"""

from abc import ABC, abstractmethod
from typing import Final

from penstock.api import ProtocolError

SMALL: Final = 4096
"""Pieces below this are joined while they wait, so that none is much smaller than what it costs to keep it."""


class BufferedDecoder(ABC):
    """Keeps what arrives until there is enough of it. What is a message is said by who inherits from it."""

    __slots__ = ("_data", "_failed", "_need", "_pieces", "_position", "_waiting")

    def __init__(self, need: int) -> None:
        """`need` is what must be there before there is anything to look at."""
        self._data = b""  # what is being decoded, from _position on
        self._position = 0
        self._pieces: list[bytes] = []  # what arrived after it; joined when there is enough
        self._waiting = 0  # bytes in _pieces
        self._need = need  # bytes from _position on without which there is nothing new to look at
        self._failed: ProtocolError | None = None

    @property
    def held(self) -> int:
        """Bytes that have arrived and are not decoded yet."""
        return len(self._data) - self._position + self._waiting

    def feed(self, data: bytes, *, max_messages: int = 1 << 62) -> bool:
        """Take `data` and decode at most `max_messages` messages (a run counts as one); return whether some may be left to decode.

        Call it with no data to go on. Raises ProtocolError, now and ever after, for what the protocol does not allow.
        """
        if self._failed is not None:
            raise self._failed
        if len(data) >= self._need and not (self._data or self._pieces):
            self._data, self._position = data, 0  # nothing was left of what came before, as most of the time
        elif not self._gather(data):
            return False
        try:
            return self._decode(max_messages)
        except ProtocolError as broken:
            self._fail(broken)
            raise

    def _gather(self, data: bytes) -> bool:
        """Keep `data` behind what is there; return whether that is enough, and then join it."""
        if data:
            if len(data) < SMALL and self._pieces and len(self._pieces[-1]) < SMALL:
                self._pieces[-1] += data  # byte by byte, a message would cost forty times its size in objects
            else:
                self._pieces.append(data)
            self._waiting += len(data)
        if self.held < self._need:
            return False
        if self._pieces:
            self._data = b"".join((self._data[self._position :], *self._pieces)) if self.held > self._waiting else b"".join(self._pieces)
            self._pieces.clear()
            self._waiting = self._position = 0
        return True

    @abstractmethod
    def _decode(self, max_messages: int) -> bool:
        """Decode at most `max_messages` messages of `_data`, from `_position` on. Return what `feed` returns.

        Set `_need` to the number of bytes that the next message takes.
        """

    def _fail(self, broken: ProtocolError) -> None:
        self._failed = broken
        self._data, self._position = b"", 0
