"""The interface of a transport: it opens connections and listens for them,
and does not know what is spoken on them.

Rules of this file:

* A connection carries either a stream of bytes (`framed` is False) or whole messages (`framed` is
  True). Protocols know nothing else about it.
* One task sends and one task receives, at the same time. A cancelled `send` may have sent a part;
  only `abort` is allowed after that. `send_now` is a plain call, made only while no `send` is at
  work. The caller sends the bytes that it has not sent.
* `connect`, `listen` and `handshake` raise UsageError (the URL or an option is wrong) or
  ConnectionLost (no peer, or not the expected one). All other methods raise the exceptions of
  trio's streams: BrokenResourceError, ClosedResourceError, BusyResourceError.
* A faulty client never affects the listener: `accept` does not wait for a client, and a client's
  errors are raised by its `handshake`.
* A transport starts its tasks in the nursery that it is given.
  They end when the connection or the listener is closed.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from ipaddress import ip_address
from typing import ClassVar

import trio

from penstock.api import UsageError
from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import ConnectionFacts, PeerIdentity
from penstock.spi._socket_options import tcp_identity
from penstock.spi._url import Url

Bytes = bytes | bytearray | memoryview
"""The types that can be sent."""


class Connection(ABC):
    """One connection, opened or accepted. Call `handshake` first. Call `aclose` or `abort` last,
    even if another method has raised.
    """

    framed: bool
    """Whether `send` and `receive` handle whole messages.
    `ByteConnection` and `MessageConnection` set it.

    Complete after `handshake`: a transport may set it there, if the protocol
    that is agreed on decides it.
    """

    peer: PeerIdentity
    """The peer's identity. Complete after `handshake`."""

    facts: ConnectionFacts
    """Facts about the connection. Complete after `handshake`."""

    async def handshake(self, nursery: trio.Nursery) -> None:
        """Prepare for sending and receiving (TLS, an HTTP upgrade), on either side. Checkpoints.

        Called once, in the connection's own task; `nursery` is that task's, for tasks of the
        connection. It ends within `TransportOptions.handshake_timeout`. If it fails, it closes the
        connection and raises ConnectionLost.
        """
        await trio.lowlevel.checkpoint()

    @abstractmethod
    async def send(self, data: Bytes, /) -> None:
        """Send all of `data`: bytes of the stream, or one whole message. Waits while the peer
        does not read. Checkpoints.
        """

    def send_now(self, data: Bytes, /) -> int:
        """Send the part of `data` that can be sent without waiting, from its beginning; return the
        number of bytes, 0 for none.

        It saves a small message the deadline and the scheduler pass that `send` needs. Never called
        while `send` is at work. Optional: this method sends nothing. A framed transport sends a
        message as a whole or not at all. Raises as `send` does.
        """
        return 0

    @abstractmethod
    async def receive(self) -> bytes | bytearray | None:
        """Return some bytes, or one whole message.
        None means that the peer has ended its sending direction. Checkpoints.

        A framed transport raises LimitExceeded for a message above `TransportOptions.max_message`,
        if possible before the whole message has arrived. After that only `aclose` and `abort` are
        allowed.
        """

    def receive_now(self) -> bytes | bytearray | None:
        """Return what has arrived and `receive` would return next, without a wait; None for
        nothing, or to have `receive` called.

        It saves a reader that is behind its peer a scheduler pass for each chunk. Called by the
        task that receives, which bounds neither the number of calls nor their bytes: return None
        now and then, so that other tasks run. Optional: this method returns None, and so it does at
        the end of the stream. Raises as `receive` does.
        """
        return None

    async def send_eof(self) -> None:
        """Tell the peer that nothing more will be sent, if `ConnectionFacts.half_close` says
        that this is possible. Checkpoints.
        """
        await trio.lowlevel.checkpoint()

    @abstractmethod
    async def aclose(self) -> None:
        """Close in an orderly way, within `TransportOptions.close_timeout`. After that time, or if
        cancelled, close forcefully. Checkpoints.

        It may be called again. It never raises because of the peer.
        """

    @abstractmethod
    async def abort(self) -> None:
        """Close at once; bytes that wait to be sent may be lost. Never waits for the peer. It
        may be called again. Checkpoints.
        """

    def farewell(self) -> str | None:
        """Return how the other side ended, if the transport knows more than the stream does (the
        exit status of a child); else None.

        Call it after `aclose` or `abort`.
        """
        return None

    @property
    def local_address(self) -> str:
        """The address of this side, in the words in which `PeerIdentity.address` tells it to the
        other side; empty if it is not known. Asked only when somebody looks at the streams.
        """
        return ""

    # The next three are for transports that have messages of their own, such as WebSocket.
    # Not abstract: most transports have no messages.

    def on_open(self) -> None:  # noqa: B027 (optional: most transports need nothing here)
        """React to the hellos of both sides: from now on the peer is known. Called once at most. It
        must neither wait nor raise.
        """

    def on_goodbye(self, reason: str) -> None:  # noqa: B027 (optional: most transports need nothing here)
        """Note why this side ends the connection:
        a token such as ``protocol:varint``, or ``""`` for an end in good order.

        Called once at most, before the `send_eof`, `aclose` or `abort` that it explains.
        It must neither wait nor raise.
        """

    def held(self) -> int:
        """Return how many bytes of the peer wait in this connection.
        They count against `Limits.memory_budget`.
        """
        return 0


class ByteConnection(Connection):
    """A connection over a trio stream. Many transports need nothing else:
    ``ByteConnection(stream, peer=…, options=…)``.
    """

    framed = False

    stream: trio.abc.Stream
    """The stream, for transports that are built on this one. A transport that takes it over
    sends and receives on it exclusively.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        peer: PeerIdentity,
        options: TransportOptions,
        facts: ConnectionFacts | None = None,
    ) -> None:
        self.stream = stream
        self.peer = peer
        self.facts: ConnectionFacts = facts or ConnectionFacts(
            half_close=isinstance(stream, trio.abc.HalfCloseableStream)
        )
        self._chunk = options.receive_chunk
        self._close_timeout = options.close_timeout

    async def send(self, data: Bytes, /) -> None:
        await self.stream.send_all(data)

    async def receive(self) -> bytes | bytearray | None:
        return await self.stream.receive_some(self._chunk) or None

    async def send_eof(self) -> None:
        if isinstance(self.stream, trio.abc.HalfCloseableStream):
            await self.stream.send_eof()
        else:
            await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        # The deadline is for SSLStream.aclose, which waits for a peer that does not read. When it
        # is cancelled, it closes forcefully.
        # If the peer broke it, it is closed as well.
        with suppress(trio.BrokenResourceError), trio.move_on_after(self._close_timeout):
            await self.stream.aclose()

    async def abort(self) -> None:
        with suppress(trio.BrokenResourceError):
            await trio.aclose_forcefully(self.stream)

    @property
    def local_address(self) -> str:
        stream: object = self.stream
        # Under TLS, and under a proxy's part of a stream.
        while (below := getattr(stream, "transport_stream", None)) is not None:
            stream = below
        if not isinstance(stream, trio.SocketStream):
            return ""
        try:
            address = stream.socket.getsockname()
        except OSError:
            return ""  # it is closed
        # The address of a Unix socket is the same for all clients.
        return tcp_identity(address).address if isinstance(address, tuple) else ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


class MessageConnection(Connection):
    """A connection that carries whole messages.
    Subclasses implement `send`, `receive`, `aclose` and `abort`.

    An empty message is a message: only None is the end.
    """

    framed = True

    def __init__(self, *, peer: PeerIdentity, facts: ConnectionFacts | None = None) -> None:
        self.peer = peer
        self.facts: ConnectionFacts = facts or ConnectionFacts()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


def _is_loopback(host: str) -> bool:
    # Names other than this one are not looked up: a name may lead to another address when the
    # server is started the next time.
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False  # a name, or no host, which listens at every address
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class Listener(ABC):
    """Accepts connections, one at a time.
    `serve` runs the loop around it, with its bounds and tasks.

    `SocketListener` is one for sockets.
    """

    addresses: tuple[Url, ...]
    """The URLs to connect to; if port 0 was asked for, with the real port."""

    @abstractmethod
    async def accept(self) -> Connection:
        """Return the next connection, before any handshake. If cancelled, it has accepted none.
        Checkpoints.

        Never raises because of a client. Raises trio.ClosedResourceError if the listener is closed,
        trio.EndOfChannel if no further connection is possible (``pipe:``), and OSError if the
        process lacks a resource (files, memory): pause, then call it again.
        """

    def accept_nowait(self) -> Connection | None:
        """Return a connection that waits already, or None.
        Raises as `accept` does, and does not checkpoint.

        `serve` calls it after `accept`, some times in a pass of the run loop. The default returns
        None: then one is accepted in a pass.
        """
        return None

    @abstractmethod
    async def aclose(self) -> None:
        """Stop listening. Accepted connections stay open; connections that wait are closed. It
        may be called again. Checkpoints.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {', '.join(map(str, self.addresses))}>"


class Transport(ABC):
    """A way to carry bytes or messages: it connects, and may listen. One object serves the whole
    process; it holds no connection.
    """

    schemes: ClassVar[tuple[str, ...]]
    """The schemes of its URLs: lower-case letters, digits, '.' and '-'.
    No '+', which separates the dialect.
    """

    framed: ClassVar[bool] = False
    """Whether its connections carry whole messages, if that is the same for all of them;
    `Connection.framed` is what counts.
    """

    needs_certificate: ClassVar[tuple[str, ...]] = ()
    """Those of its `schemes` that can be listened at only with `TransportOptions.tls`; the
    command line asks for the certificate.
    """

    has_mounts: ClassVar[bool] = False
    """Whether its servers may be mounted at a path of their host. `connect` leads to a whole
    connection, so it takes the path of ``ws://host/streams/`` for that of a mount. Elsewhere the
    path is the name of a publisher, unless a '#' follows it.
    """

    def is_exposed(self, url: Url, /) -> bool:
        """Return whether the bytes of a listener at `url` cross a network in the clear. `serve`
        then asks for authentication.

        By default that is so for a URL with a port, unless its scheme needs a certificate, or its
        host is a loopback address.
        """
        return (
            url.port is not None
            and url.transport not in self.needs_certificate
            and not _is_loopback(url.host or "")
        )

    @abstractmethod
    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        """Connect to `url` and return a connection before its handshake.
        If cancelled or failed, it leaves nothing open.

        The caller sets the deadline. `nursery` is the connection's, for tasks that live as long as
        the connection. Checkpoints.
        """

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        """Listen at `url`. `nursery` is the server's: a task in it must never raise, because that
        would end the server. Checkpoints.

        A transport that can only connect does not implement this method: it raises UsageError.
        """
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{url.transport!r} can be connected to, but not listened at")
