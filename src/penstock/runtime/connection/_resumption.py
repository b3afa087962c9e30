"""The part of a connection that lets it go on over another link after a loss: its token, the kept
bytes, the wait for the next link.

Rules of this file:

* Both sides must have the extension *resume*.
  If one of them lacks it, `begin` returns False, and a loss ends the connection.
* The client finds the next link, and the server waits for it. Each side has its own class, beside
  the code that opens connections.
* The server sends nothing on the next link before the client has: then the client knows its new
  token, and the old one is used up.
* There is one count of bytes for each direction, and it ends with the link. So the server answers
  only when the lost link has decoded all that had arrived.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import trio

from penstock.api import ConnectionLost, Limits, ProtocolError
from penstock.session import (
    Acknowledging,
    ConnectionState,
    RetainedBytes,
    Session,
    ignore,
    retain,
    rewind,
)
from penstock.spi import Bytes, Connection, PeerIdentity


def retained_bytes(limits: Limits) -> RetainedBytes:
    """Return an empty record of the bytes that are not acknowledged."""
    # An honest peer reaches `bound`. The outbox may hold more bytes then:
    # an element that is being sent, and one after it.
    waiting = limits.outbound_high + limits.max_element + limits.outbound_control
    return RetainedBytes(limits.resume_bytes, limits.resume_bytes + 2 * waiting)


class ResumableLinks(Protocol):
    """The links of a connection, as its resumption sees them."""

    def fail(self, reason: str, error: ConnectionLost) -> None:
        """End the connection: the numbers of the peer do not fit those of this side."""

    def drop(self) -> None:
        """End the transport connection that is used now: the peer goes on over another one."""


class Resumption(ABC):
    """The part of one connection that outlives its links. It is made before the session, and
    released with the connection.
    """

    __slots__ = (
        "_active",
        "_limits",
        "_links",
        "_session",
        "_start_writer",
        "is_awaiting",
        "is_suspended",
        "principal",
        "resumed",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._active: Acknowledging | None = None  # set when both hellos list the extension
        self._session: Session | None = None
        self._links: ResumableLinks | None = None
        self.principal: Any = None
        """The principal of the peer: another one cannot resume the connection."""
        self._start_writer: Callable[[], None] = ignore
        self.is_awaiting: bool = False
        """The writer of the new link waits until the peer has sent something."""
        self.is_suspended: bool = False
        """The link is lost, and another one may come."""
        self.resumed: int = 0
        """How often the connection went on over another link."""

    # --- for the extension

    def bind(self, active: Acknowledging) -> None:
        """Note that both sides have the extension."""
        self._active = active

    def adopt(self, _token: bytes) -> bool:
        """Let a token that a client has chosen lead to this connection. Return False if it leads
        to another one. Only a server is asked.
        """
        return False

    @abstractmethod
    def on_token(self, token: bytes, seconds: float) -> None:
        """Keep the server's token."""

    def on_input(self) -> None:
        """Send on: the peer has sent its first bytes on the new link."""
        # Set before the writer runs: the reader calls `on_input` for each chunk while `is_awaiting`
        # is true.
        self.is_awaiting = False
        self.on_confirmed()
        self._start_writer()

    # --- for the connection

    def attach(self, session: Session) -> None:
        """Keep what `session` sends, from its hello on."""
        retain(session.outbox, retained_bytes(self._limits))

    def begin(self, session: Session, links: ResumableLinks, peer: PeerIdentity) -> bool:
        """Return whether both sides have the extension, and begin to acknowledge. Called when
        the session opens, with its `peer`.
        """
        if self._active is None:
            # Bytes were kept from the hello on, in case the peer has the extension.
            retain(session.outbox, None)
            return False
        self._session, self._links, self.principal = session, links, peer.principal
        self._active.start(session, self.first_token(), self._limits.resume_timeout)
        return True

    async def next_link(self, lost: Exception) -> Connection:
        """Return the next transport connection, with the bytes that the peer lacks queued again.
        Raises ConnectionLost if none comes.
        """
        session = self._session
        if session is None:
            raise self.give_up(lost, "it had not begun")
        self.is_suspended = True
        # A writer that still waits for the peer's first bytes on the lost link is not started any
        # more: they cannot come.
        self.is_awaiting, self._start_writer = False, ignore
        try:
            connection, position = await self.find_link(lost)
        finally:
            self.is_suspended = False
        try:
            self._rewind(session, position)
        except ProtocolError as wrong:
            # Closed here: nothing else knows of this link yet.
            await connection.abort()
            # The peer counts bytes that were never sent, or has lost what it has acknowledged:
            # no stream could go on.
            raise self.give_up(lost, str(wrong)) from None
        return connection

    def start_writer(self, start: Callable[[], None]) -> None:
        """Begin to send on the new link: a client at once, a server when the client has begun."""
        if self.waits_for_peer:
            self._start_writer, self.is_awaiting = start, True
            return
        if self._active is not None:
            # The client begins on a new link, also if it has nothing else to say.
            self._active.acknowledge()  # first of all: the server waits for something
        start()

    def close(self) -> None:
        """Forget the connection: it is over."""
        self._start_writer, self._session, self._links = ignore, None, None
        if self._active is not None:
            self._active.stop()

    def _rewind(self, session: Session, position: int) -> None:
        rewind(session.outbox, position)
        self.resumed += 1
        if self._active is not None:
            # The message that resumed named the bytes that have come.
            # The next acknowledgement counts from there.
            self._active.note_acknowledged()
        # Optional: the dialect of a plugin may lack it.
        on_next_link: Callable[[], None] | None = getattr(
            session.channel.dialect, "on_next_link", None
        )
        if on_next_link is not None:
            on_next_link()
            session.on_next_link()

    # --- what the two sides do in different ways

    waits_for_peer: bool
    """This side sends on a new link only when the peer has begun."""

    @abstractmethod
    def first_token(self) -> bytes | None:
        """Return the token that goes to the peer; None on a client."""

    @abstractmethod
    async def find_link(self, lost: Exception) -> tuple[Connection, int]:
        """Return a transport connection, and the bytes that the peer has received. Raises
        ConnectionLost if none comes in time.
        """

    @abstractmethod
    def on_confirmed(self) -> None:
        """Note that the peer goes on over the new link."""

    # --- for both

    def give_up(self, lost: Exception, why: str) -> ConnectionLost:
        """Return the error of a connection that was not resumed."""
        return ConnectionLost(f"{lost}. The connection was not resumed: {why}", resumable=False)

    @property
    def lateness(self) -> str:
        """The words for a client that did not come back in time."""
        return (
            f"the client was not back within {self._limits.resume_timeout:g} s "
            "(Limits.resume_timeout)"
        )

    @property
    def received(self) -> int:
        """The position up to which this side has received: the bytes of the peer, or what the
        protocol counts.
        """
        if self._session is None:
            return 0
        # Optional: a dialect that has it counts in another way.
        position: int | None = getattr(self._session.channel.dialect, "received_position", None)
        return self._session.received_bytes if position is None else position

    @property
    def kept(self) -> int:
        """The first position that this side can send again."""
        retained = None if self._session is None else self._session.outbox.retained
        return 0 if retained is None else retained.acknowledged

    def check(self, position: int) -> None:
        """Raise ProtocolError if the peer cannot have received that number of bytes."""
        session = self._session
        if session is not None and session.outbox.retained is not None:
            session.outbox.retained.check(position)


class Handover(ABC):
    """The transport connection of a client that resumes:
    from its hello until a lost connection has it.
    """

    connection: Connection | None = None
    """The transport connection, once the connection task
    that has said hello on it needs it no longer.
    """

    @property
    @abstractmethod
    def is_asked(self) -> bool:
        """The other side has said what it must, so the connection does not open."""

    def is_due(self, session: Session) -> bool:
        """Return whether the transport of `session` is to be handed over:
        it was asked for, and the peer is let in.
        """
        return self.is_asked and session.state is ConnectionState.OPEN

    @abstractmethod
    async def prepare(self, principal: object, stop_reading: Callable[[], None]) -> None:
        """Find the lost connection, and answer. Raises ConnectionLost to refuse. Checkpoints.

        `stop_reading` is called before the answer: bytes that the peer sends behind the answer
        belong to the lost connection.
        """


class UnreadConnection(Connection):
    """A transport connection on which more has come than the connection task that said hello on it
    has used: the rest is read first.
    """

    def __init__(self, connection: Connection, rest: Sequence[bytes]) -> None:
        self.framed, self.peer, self.facts = connection.framed, connection.peer, connection.facts
        self._connection = connection
        self._rest = deque(rest)

    async def send(self, data: Bytes, /) -> None:
        await self._connection.send(data)

    def send_now(self, data: Bytes, /) -> int:
        return self._connection.send_now(data)

    async def receive(self) -> bytes | bytearray | None:
        if self._rest:
            await trio.lowlevel.checkpoint()
            return self._rest.popleft()
        return await self._connection.receive()

    def receive_now(self) -> bytes | bytearray | None:
        return self._rest.popleft() if self._rest else self._connection.receive_now()

    async def send_eof(self) -> None:
        await self._connection.send_eof()

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def abort(self) -> None:
        await self._connection.abort()

    def farewell(self) -> str | None:
        return self._connection.farewell()

    def on_open(self) -> None:
        self._connection.on_open()

    def on_goodbye(self, reason: str) -> None:
        self._connection.on_goodbye(reason)

    def held(self) -> int:
        return self._connection.held() + sum(map(len, self._rest))


class SurrenderedConnection(Connection):
    """Stands in the place of a transport connection that another connection task uses now:
    to close it does nothing.
    """

    def __init__(self, connection: Connection) -> None:
        self.framed, self.peer, self.facts = connection.framed, connection.peer, connection.facts

    async def send(self, _: object, /) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError("this transport connection was handed over")

    async def receive(self) -> bytes | bytearray | None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError("this transport connection was handed over")

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def abort(self) -> None:
        await trio.lowlevel.checkpoint()
