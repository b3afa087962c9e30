"""The transport ``netstring://host:port``:
whole messages over TCP, each written as a netstring (``5:hello,``).
"""

import re
from typing import ClassVar, Final

import trio

from penstock.api import LimitExceeded
from penstock.spi import (
    Bytes,
    Connection,
    ConnectionFacts,
    Listener,
    MessageConnection,
    PeerIdentity,
    SocketConnection,
    Transport,
    TransportOptions,
    Url,
    listen_tcp,
    open_tcp,
)

_LENGTH: Final = re.compile(rb"([0-9]{1,9}):")
_INCOMPLETE_LENGTH: Final = re.compile(rb"[0-9]{0,9}")


class NetstringTransport(Transport):
    """Netstrings over TCP. `open_tcp` and `listen_tcp` resolve, connect, bind and accept."""

    schemes: ClassVar[tuple[str, ...]] = ("netstring",)
    framed: ClassVar[bool] = True

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        stream, peer = await open_tcp(url, options)
        return NetstringConnection(stream, peer, options)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        # Called for each client while the listener accepts, so it must not wait: a handshake
        # belongs into Connection.handshake.
        return await listen_tcp(
            url, options, lambda stream, peer: NetstringConnection(stream, peer, options)
        )


class NetstringConnection(MessageConnection):
    """Sends and receives netstrings.
    The byte connection below it implements the end, closing and its deadline.
    """

    def __init__(
        self, stream: trio.SocketStream, peer: PeerIdentity, options: TransportOptions
    ) -> None:
        facts = ConnectionFacts(half_close=True, local=peer.is_loopback)
        super().__init__(peer=peer, facts=facts)
        self._bytes = SocketConnection(stream, peer=peer, options=options, facts=facts)
        self._max_message = options.max_message
        # Bounded: at most one incomplete message of max_message bytes, and one receive_chunk.
        self._received = bytearray()

    async def send(self, data: Bytes, /) -> None:
        message = bytes(data)
        await self._bytes.send(b"%d:%b," % (len(message), message))

    async def receive(self) -> bytes | None:
        # even if a message is in the buffer: otherwise a fast peer could starve other tasks.
        await trio.lowlevel.checkpoint()
        while (message := self._take_message()) is None:
            # If this is cancelled, the buffer still has all bytes of the incomplete message:
            # no byte is lost.
            data = await self._bytes.receive()
            if data is None:
                if self._received:
                    raise trio.BrokenResourceError("the peer ended the connection inside a message")
                return None
            self._received += data
        return message

    def _take_message(self) -> bytes | None:
        """Remove the first message from the buffer and return it, or return None
        if it is incomplete.

        The bytes come from a peer that may be hostile. The length is checked as soon as it has
        arrived, before the message is buffered.
        """
        length = _LENGTH.match(self._received)
        if length is None:
            if not _INCOMPLETE_LENGTH.fullmatch(self._received):
                raise trio.BrokenResourceError("the peer sent bytes that are not a netstring")
            return None
        size = int(length[1])
        if size > self._max_message:
            raise LimitExceeded(
                (
                    f"a message of {size} bytes arrived; {self._max_message} are allowed. Send it "
                    "in parts, or raise max_message"
                ),
                limit="max_message",
                value=self._max_message,
            )
        start, end = length.end(), length.end() + size
        if len(self._received) <= end:
            return None
        if self._received[end] != ord(","):
            raise trio.BrokenResourceError("the peer sent bytes that are not a netstring")
        message = bytes(self._received[start:end])
        del self._received[: end + 1]
        return message

    async def send_eof(self) -> None:
        await self._bytes.send_eof()

    async def aclose(self) -> None:
        await self._bytes.aclose()

    async def abort(self) -> None:
        await self._bytes.abort()
