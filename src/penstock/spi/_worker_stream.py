"""A stream between two workers of one server: whole messages over a Unix socket.

Rules of this file:

* An end in good order is a message of its own. A worker that dies ends its sockets without one, so
  `receive` raises BrokenResourceError then, as for a peer that has reset its connection.
* Both ends are processes of one server, so a message is not judged. Its length is checked all the
  same: a program that writes into this socket by mistake must not make the other one wait.
"""

from typing import Final

import trio

from penstock.spi._peer_identity import ConnectionFacts, PeerIdentity
from penstock.spi._transport import Bytes, MessageConnection

_END: Final = 0xFFFF_FFFF
_LONGEST: Final = 1 << 30
_CHUNK: Final = 128 << 10


class WorkerStream(MessageConnection):
    """One end of a stream between two workers."""

    def __init__(self, stream: trio.abc.Stream, *, worker: str) -> None:
        """`worker` is the name of the other one, for people."""
        super().__init__(
            peer=PeerIdentity(address=f"worker {worker}"),
            facts=ConnectionFacts(half_close=True, local=True),
        )
        self._stream = stream
        self._received = bytearray()

    async def send(self, data: Bytes, /) -> None:
        await self._stream.send_all(len(data).to_bytes(4) + bytes(data))

    async def receive(self) -> bytes | bytearray | None:
        head = await self._take(4)
        length = int.from_bytes(head)
        if length == _END:
            return None
        if length > _LONGEST:
            raise trio.BrokenResourceError("the bytes between two workers are no messages")
        return await self._take(length)

    async def send_eof(self) -> None:
        await self._stream.send_all(_END.to_bytes(4))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def abort(self) -> None:
        await trio.aclose_forcefully(self._stream)

    async def _take(self, length: int) -> bytes:
        await trio.lowlevel.checkpoint()
        while len(self._received) < length:
            data = await self._stream.receive_some(_CHUNK)
            if not data:
                raise trio.BrokenResourceError(f"{self.peer.address} has ended")
            self._received += data
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken
