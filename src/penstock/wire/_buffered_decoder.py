"""The base of all decoders: keeps received bytes until there are enough of them to decode the next
message.

Rules of this file:

* The work is linear in the input, for chunks of any size: no byte is examined or copied again
  before `_need` bytes are there.
* The memory is linear in the input too: small chunks are joined while they wait.
* A decoder that has raised ProtocolError decodes nothing more. Each later call raises a new
  ProtocolError with the same text and reason.
"""

from abc import ABC, abstractmethod
from typing import Final

from penstock.api import ProtocolError

JOIN_BELOW: Final = 4096
"""Chunks of fewer bytes are joined while they wait."""


class BufferedDecoder(ABC):
    """Holds received bytes. A subclass says in `_decode` what a message is."""

    __slots__ = ("_data", "_failure", "_need", "_pieces", "_position", "_waiting")

    def __init__(self, need: int) -> None:
        """Start empty. `need` is the number of bytes without
        which the subclass can decode nothing.
        """
        # Invariant between two calls: the buffer is _data[_position:] followed by all of _pieces.
        self._data = b""  # bytes that _decode has seen
        self._position = 0  # where the next message begins in _data
        # bytes that _decode has not seen;
        # fewer than _need, because _append joins them at that size.
        self._pieces: list[bytes] = []
        # The sum of the lengths of _pieces, so that `held` does not add them up again.
        self._waiting = 0
        self._need = need  # bytes from _position on; with fewer, _decode would find nothing new
        # The text and the reason, not the exception: each `raise` of a stored exception adds frames
        # to its traceback, and each of these frames keeps the chunk that was fed. A peer that goes
        # on sending after its fault would fill the memory.
        self._failure: tuple[str, str] | None = None

    @property
    def held(self) -> int:
        """The number of bytes that were received and are not decoded yet."""
        return len(self._data) - self._position + self._waiting

    def feed(self, data: bytes, *, max_messages: int = 1 << 62) -> bool:
        """Take `data` and decode at most `max_messages` messages (a run of elements counts as one).

        Return whether more messages may be ready; if so, call again, with or without data. Raises
        ProtocolError if the peer broke the protocol, and again, with the same text and reason, for
        each later call.
        """
        if self._failure is not None:
            raise self._error_again(*self._failure)
        if len(data) >= self._need and not (self._data or self._pieces):
            # The usual case: the chunk before ended with a message.
            # `data` itself becomes the buffer, without a copy.
            self._data, self._position = data, 0
        elif not self._append(data):
            return False
        try:
            return self._decode(max_messages)
        except ProtocolError as broken:
            self._fail(broken)
            raise

    def take_rest(self) -> bytes:
        """Return the bytes that are not decoded yet, and hold none of them:
        another decoder goes on with them.
        """
        rest = b"".join((self._data[self._position :], *self._pieces))
        self._data, self._position = b"", 0
        self._pieces.clear()
        self._waiting = 0
        return rest

    def _append(self, data: bytes) -> bool:
        """Put `data` behind the buffer. Return whether there are `_need` bytes;
        if so, all of them are in `_data`.
        """
        if data:
            if len(data) < JOIN_BELOW and self._pieces and len(self._pieces[-1]) < JOIN_BELOW:
                # A bytes object of 1 byte takes 34 bytes, and its place in the list 8. A message
                # that comes byte by byte would take 42 times its size. Joining copies less than
                # JOIN_BELOW bytes for each chunk.
                self._pieces[-1] += data
            else:
                # Large pieces are not joined here:
                # a message of n pieces would be copied n / 2 times.
                self._pieces.append(data)
            self._waiting += len(data)
        if self.held < self._need:
            return False
        if self._pieces:
            if self.held > self._waiting:
                # One join of all pieces, and only when the message is complete: each byte is copied
                # once for each message that waited.
                self._data = b"".join((self._data[self._position :], *self._pieces))
            else:
                self._data = b"".join(self._pieces)  # _data is used up: no empty slice in front
            self._pieces.clear()
            self._waiting = self._position = 0
        return True

    @abstractmethod
    def _decode(self, max_messages: int) -> bool:
        """Decode at most `max_messages` messages of `_data`, from `_position` on.
        Return what `feed` returns.

        Set `_need` to the number of bytes that the next message takes.
        """

    @staticmethod
    def _error_again(text: str, reason: str) -> ProtocolError:
        return ProtocolError(text, reason=reason)

    def _fail(self, broken: ProtocolError) -> None:
        """Decode nothing from now on. Bytes behind the fault are dropped:
        where the next message begins is not known.
        """
        self._failure = str(broken), broken.reason
        self._data, self._position = b"", 0
