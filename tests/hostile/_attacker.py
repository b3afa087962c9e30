"""An attacker: a socket, what was received on it, and how it ended."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import Any

import trio

from penstock.spi import Url
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker_protocol import RSIO, AttackerProtocol, Message
from tests.hostile._framed_stream import open_framed, open_memory

COMPANION = RSIO.companion
"""The id of the well-behaved stream on the attacked connection."""
VICTIM = 1
"""The id of the stream that is attacked."""
PROBE = 9
"""The id of a request that shows, after an attack, that the connection still works."""

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


class Attacker:
    """One hostile connection, on either side. `listen` decodes what the other side sends."""

    def __init__(
        self, stream: trio.abc.Stream, clock: AttackClock, protocol: AttackerProtocol = RSIO
    ) -> None:
        self.stream = stream
        self.protocol = protocol
        self.heard: list[Message] = []
        self.received = 0
        """Bytes that came while it listened."""
        self.ending = ""
        """How the connection ended: "end" in good order, "cut" otherwise. Empty before that."""
        self.times: list[float] = []
        """When the companion's elements came."""
        self._clock = clock
        self._decoder = protocol.decoder()
        self._news = trio.Event()
        self._sending = trio.Lock()

    async def send(self, data: bytes) -> bool:
        """Send, and return whether that was possible:
        the other side may have closed by now, as it should.
        """
        try:
            async with self._sending:
                await self.stream.send_all(data)
        except BROKEN:
            return False
        return True

    async def listen(self) -> None:
        """Receive and decode until the connection ends."""
        try:
            while data := await self.stream.receive_some(65_536):
                self.received += len(data)
                for message in self._decoder.feed(bytes(data)):
                    self._record(message)
                self._announce()
            self.ending = "end"
        except BROKEN:
            self.ending = "cut"
        self._announce()

    async def receive(self, most: int) -> bytes:
        """Receive without decoding: at most `most` bytes, none at the end.
        For an attacker that does not `listen`.
        """
        try:
            return bytes(await self.stream.receive_some(most))
        except BROKEN:
            return b""

    def _record(self, message: Message) -> None:
        if message[:2] == ("onNext", self.protocol.companion):
            self.times.append(self._clock.now())
        else:
            self.heard.append(message)

    def _announce(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def wait(self, condition: Callable[[], object]) -> None:
        """Return when `condition` holds, or the connection has ended."""
        while not condition() and not self.ending:
            await self._news.wait()

    async def wait_heard(self, *message: object) -> None:
        await self.wait(lambda: message in self.heard)

    async def wait_companion(self, more: int = 2) -> None:
        """Return when `more` further elements of the companion have come."""
        wanted = len(self.times) + more
        await self.wait(lambda: len(self.times) >= wanted)

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, stretched as the limits of the other side are,
        or until the connection ends.
        """
        with trio.move_on_after(seconds * self._clock.stretch):
            await self.wait(lambda: False)

    @property
    def goodbyes(self) -> list[str]:
        return self.found("goodbye")

    def found(self, name: str) -> list[Any]:
        """Return the first field of each message with that name."""
        return [message[1] for message in self.heard if message[0] == name]

    async def open_another(self) -> "Attacker":
        """Open another connection to the same server, over TCP."""
        assert isinstance(self.stream, trio.SocketStream)
        address = self.stream.socket.getpeername()
        return Attacker(
            await trio.open_tcp_stream(address[0], address[1]), self._clock, self.protocol
        )

    # --- ways to leave without a goodbye

    async def send_fin(self) -> None:
        """Close this direction (FIN); the other direction stays open."""
        with suppress(*BROKEN):
            await self._transport.send_eof()

    async def send_rst(self) -> None:
        """Reset the connection (RST)."""
        transport = self._transport
        assert isinstance(transport, trio.SocketStream)
        with suppress(OSError):
            transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        transport.socket.close()
        await trio.lowlevel.checkpoint()

    @property
    def _transport(self) -> trio.abc.HalfCloseableStream:
        """The stream below TLS, or the stream itself."""
        transport = (
            self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream
        )
        assert isinstance(transport, trio.abc.HalfCloseableStream)
        return transport

    async def close(self) -> None:
        with suppress(*BROKEN):
            await trio.aclose_forcefully(self.stream)


async def open_stream(
    address: str | Url, authorities: Path, *, without_tls: bool = False, small_buffer: bool = False
) -> trio.abc.Stream:
    """Connect to a server at its URL; `plain` leaves TLS out where it should be, `small` takes a
    receive buffer that fills soon.
    """
    address = str(address)
    scheme, _, place = address.rpartition("+")[2].partition("://")
    if scheme == "unix":
        return await trio.open_unix_socket(place)
    if scheme == "memory-framed":
        return await open_framed(address)
    if scheme == "memory":
        return await open_memory(address)
    host, _, port = place.rpartition(":")
    if small_buffer:
        sock = trio.socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await sock.connect((host, int(port)))
        stream = trio.SocketStream(sock)
    else:
        stream = await trio.open_tcp_stream(host, int(port))
    if scheme == "tcp" or without_tls:
        return stream
    context = ssl.create_default_context(cafile=str(authorities))
    secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    await secured.do_handshake()
    return secured


def companion(protocol: AttackerProtocol = RSIO) -> bytes:
    """Return a hostile client's request for a well-behaved stream beside its attack."""
    return protocol.subscribe("ticks", protocol.companion, 1_000_000)


def steady_element(protocol: AttackerProtocol) -> bytes:
    """Return the element that a hostile server repeats on the companion stream."""
    return protocol.on_next(protocol.companion, b"tick")


def client_hello_of_tls() -> bytes:
    """Return the first bytes of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        talk.do_handshake()
    return outgoing.read()
