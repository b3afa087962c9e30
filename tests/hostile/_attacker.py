"""An attacker: a socket, what is sent on it, what is heard, and how it ended."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack

import trio

from tests.hostile._messages import open_framed
from tests.hostile._own_time import OwnTime
from tests.hostile._tongue import RSIO, Tongue
from tests.hostile._wire import Message

COMPANION = RSIO.companion
VICTIM = 1
PROBE = 9

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


class Attacker:
    """One hostile connection, from either side. It listens all the while, unless it is told not to."""

    def __init__(self, stream: trio.abc.Stream, clock: OwnTime, tongue: Tongue = RSIO) -> None:
        self.stream = stream
        self.tongue = tongue
        self.heard: list[Message] = []
        self.ending = ""
        """"end" in good order, "cut" else; nothing while it lasts."""
        self.times: list[float] = []
        """When the companion's elements came."""
        self._clock = clock
        self._understanding = tongue.understanding()
        self._news = trio.Event()
        self._sending = trio.Lock()

    async def send(self, data: bytes) -> bool:
        """Send, and return whether that was possible: the other side may have closed meanwhile, as it should."""
        try:
            async with self._sending:
                await self.stream.send_all(data)
        except BROKEN:
            return False
        return True

    async def listen(self) -> None:
        """Take what comes, until nothing more will."""
        try:
            while data := await self.stream.receive_some(65_536):
                for message in self._understanding.feed(bytes(data)):
                    self._note(message)
                self._tell()
            self.ending = "end"
        except BROKEN:
            self.ending = "cut"
        self._tell()

    def _note(self, message: Message) -> None:
        if message[:2] == ("onNext", self.tongue.companion):
            self.times.append(self._clock.now())
        else:
            self.heard.append(message)

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def wait(self, condition: Callable[[], object]) -> None:
        """Return when `condition` holds, or the connection has ended."""
        while not condition() and not self.ending:
            await self._news.wait()

    async def wait_heard(self, *message: object) -> None:
        await self.wait(lambda: message in self.heard)

    async def wait_companion(self, more: int = 2) -> None:
        """Return when so many more elements of the companion have come."""
        there = len(self.times) + more
        await self.wait(lambda: len(self.times) >= there)

    async def pause(self, seconds: float) -> None:
        """Bide one's time, or as much of it as there is."""
        with trio.move_on_after(seconds):
            await self.wait(lambda: False)

    @property
    def goodbyes(self) -> list[str]:
        return [message[1] for message in self.heard if message[0] == "goodbye"]

    # --- unfriendly ways to leave

    async def finish(self) -> None:
        """FIN: nothing more is said, though there may be somebody to read."""
        with suppress(*BROKEN):
            await self._transport.send_eof()

    async def reset(self) -> None:
        """RST."""
        transport = self._transport
        assert isinstance(transport, trio.SocketStream)
        with suppress(OSError):
            transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        transport.socket.close()
        await trio.lowlevel.checkpoint()

    @property
    def _transport(self) -> trio.abc.HalfCloseableStream:
        """What is below TLS, if anything is above it."""
        transport = self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream
        assert isinstance(transport, trio.abc.HalfCloseableStream)
        return transport

    async def close(self) -> None:
        with suppress(*BROKEN):
            await trio.aclose_forcefully(self.stream)


async def open_stream(address: str, authorities: Path, *, plain: bool = False, small: bool = False) -> trio.abc.Stream:
    """Connect to a server at its URL; `plain` leaves TLS out where it should be, `small` takes a receive buffer that fills soon."""
    scheme, _, place = address.rpartition("+")[2].partition("://")
    if scheme == "unix":
        return await trio.open_unix_socket(place)
    if scheme == "memory-framed":
        return await open_framed(address)
    host, _, port = place.rpartition(":")
    if small:
        sock = trio.socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await sock.connect((host, int(port)))
        stream = trio.SocketStream(sock)
    else:
        stream = await trio.open_tcp_stream(host, int(port))
    if scheme == "tcp" or plain:
        return stream
    context = ssl.create_default_context(cafile=str(authorities))
    secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    await secured.do_handshake()
    return secured


def companion(tongue: Tongue = RSIO) -> bytes:
    """What a hostile client says to have a well-behaved stream beside its attack."""
    return tongue.subscribe("ticks", tongue.companion, 1_000_000)


def steady(tongue: Tongue) -> bytes:
    """What a hostile server says on the companion."""
    return tongue.on_next(tongue.companion, b"tick")


def client_hello_of_tls() -> bytes:
    """The first bytes of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        talk.do_handshake()
    return outgoing.read()
