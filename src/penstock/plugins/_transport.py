"""What a transport must offer: it makes connections and listens for them; what is spoken on them it never knows.

Rules of this file:

* A connection carries either a stream of bytes (`framed` is False) or whole messages (`framed` is True). Protocols know no more.
* One task sends, one receives, at the same time. A cancelled `send` may have sent a part: then only `abort` is left. `send_now` is a
  plain call, made while no `send` is at work, and what it has not sent is the caller's to send.
* `connect`, `listen` and `handshake` raise UsageError (the URL or an option is wrong) or ConnectionLost (nobody there, or not what was
  expected); everything after that raises what trio's streams raise: BrokenResourceError, ClosedResourceError, BusyResourceError.
* A client's fault is never a listener's: `accept` does not wait for a client, and what a client does wrong shows in its `handshake`.
* Tasks that a transport needs go to the nursery that it is handed, and end when the connection or listener is closed.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar

import trio

from penstock.api import UsageError
from penstock.plugins._options import TransportOptions
from penstock.plugins._peer_identity import ConnectionFacts, PeerIdentity
from penstock.plugins._url import Url

Bytes = bytes | bytearray | memoryview
"""What can be sent."""


class Connection(ABC):
    """One connection, made or accepted. Call `handshake` first, and `aclose` or `abort` last, whatever happens in between."""

    framed: ClassVar[bool]
    """Whether `send` and `receive` speak of whole messages. Inherit from `ByteConnection` or `MessageConnection`, which say it."""

    peer: PeerIdentity
    """Who is there. Complete after `handshake`."""

    facts: ConnectionFacts
    """What is known about the connection. Complete after `handshake`."""

    async def handshake(self, nursery: trio.Nursery) -> None:
        """Get ready to send and receive (TLS, an HTTP upgrade), on either side. Checkpoints.

        Called once, in the connection's own task, whose nursery may be given tasks. Ends within `TransportOptions.handshake_timeout`.
        Raises ConnectionLost when it fails; the connection is closed then.
        """
        await trio.lowlevel.checkpoint()

    @abstractmethod
    async def send(self, data: Bytes, /) -> None:
        """Send bytes, all of them, or one whole message. Waits while the peer does not read. Checkpoints."""

    def send_now(self, data: Bytes, /) -> int:
        """Send what goes without waiting, from the beginning of `data`, and return how many bytes that was; 0 where nothing does.

        So messages are spared a deadline, and the turn of a task. Never called while `send` is at work. A transport need not write
        it; one that is framed sends a message whole or not at all. Raises as `send` does.
        """
        return 0

    @abstractmethod
    async def receive(self) -> bytes | bytearray | None:
        """Return some bytes, or one whole message; None once the peer has ended its half in good order. Checkpoints.

        A framed transport raises LimitExceeded for a message above `TransportOptions.max_message`, if it can before it has all of it;
        then only `aclose` and `abort` are left.
        """

    async def send_eof(self) -> None:
        """Tell the peer that nothing more will be sent, where `Facts.half_close` says that this is possible. Checkpoints."""
        await trio.lowlevel.checkpoint()

    @abstractmethod
    async def aclose(self) -> None:
        """Close in good order, within `TransportOptions.close_timeout`; then, or when cancelled, forcefully. Checkpoints.

        May be called again. Never raises because of the peer.
        """

    @abstractmethod
    async def abort(self) -> None:
        """Close at once; what waits to be sent may be lost. Never waits for the peer. May be called again. Checkpoints."""

    def farewell(self) -> str | None:
        """Tell how the other side ended, where the transport knows more than the stream does (a child's exit status), or None.

        Ask after `aclose` or `abort`.
        """
        return None


class ByteConnection(Connection):
    """A connection over a trio stream; for many transports all that is needed: ``ByteConnection(stream, peer=…, options=…)``."""

    framed: ClassVar[bool] = False

    stream: trio.abc.Stream
    """The stream, for transports that are built on this one. Who takes it sends and receives on it alone."""

    def __init__(
        self, stream: trio.abc.Stream, *, peer: PeerIdentity, options: TransportOptions, facts: ConnectionFacts | None = None
    ) -> None:
        self.stream = stream
        self.peer = peer
        self.facts: ConnectionFacts = facts or ConnectionFacts(half_close=isinstance(stream, trio.abc.HalfCloseableStream))
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
        # SSLStream.aclose waits for a peer that does not read. trio's streams close forcefully when they are cancelled while closing.
        with suppress(trio.BrokenResourceError), trio.move_on_after(self._close_timeout):  # broken by the peer is closed, too
            await self.stream.aclose()

    async def abort(self) -> None:
        with suppress(trio.BrokenResourceError):
            await trio.aclose_forcefully(self.stream)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


class MessageConnection(Connection):
    """A connection that carries whole messages. Write `send`, `receive`, `aclose` and `abort`.

    An empty message is a message: only None means the end.
    """

    framed: ClassVar[bool] = True

    def __init__(self, *, peer: PeerIdentity, facts: ConnectionFacts | None = None) -> None:
        self.peer = peer
        self.facts: ConnectionFacts = facts or ConnectionFacts()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


class Listener(ABC):
    """What accepts connections, one at a time; the loop around it, its bounds and its tasks are the caller's."""

    addresses: tuple[Url, ...]
    """Where it can be reached, with the real port where 0 was asked for."""

    @abstractmethod
    async def accept(self) -> Connection:
        """Return the next connection; it has not been talked to yet. Cancelled, it has taken none. Checkpoints.

        Never raises because of a client. Raises trio.ClosedResourceError once the listener is closed, trio.EndOfChannel when no other
        connection can ever come (``pipe:``), and OSError when the process is out of something (files, memory): pause, then call again.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Stop listening; connections that were accepted live on, those that wait are closed. May be called again. Checkpoints."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {', '.join(map(str, self.addresses))}>"


class Transport(ABC):
    """A way to carry bytes or messages: connects, and perhaps listens. One object serves the whole process; it holds no connection."""

    schemes: ClassVar[tuple[str, ...]]
    """The schemes of its URLs: small letters, digits, '.' and '-'. No '+': that separates the dialect."""

    framed: ClassVar[bool] = False
    """Whether its connections carry whole messages."""

    @abstractmethod
    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        """Connect to `url` and return a connection whose handshake is still due. Cancelled or failed, it leaves nothing behind.

        The caller sets the deadline. `nursery` is the connection's, for tasks that must live as long. Checkpoints.
        """

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        """Listen at `url`. `nursery` is the server's: a task in it must never raise, or it takes the server down. Checkpoints.

        A transport that can only connect need not write this one: it raises UsageError.
        """
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{url.transport!r} can be connected to, but not listened at")
