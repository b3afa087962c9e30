"""The parent and the other workers, as this worker sees them.

Rules of this file:

* The parent hands over connected sockets. They wait in `HandedListener` until the server accepts
  them; a listener that closes gives them back, and another worker gets them. A socket that the
  parent has taken back meanwhile is left alone: `ClaimReader.claim` tells it.
* `take` tells the number of the connection that a listener has returned last. Nothing comes between
  the two, because `accept` does not checkpoint after it has found a socket. If a number was not
  taken when the next socket is accepted, its client has left.
"""

import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio

from penstock.api import UsageError
from penstock.runtime import SharedAdmission
from penstock.spi import (
    Connection,
    ConnectionHost,
    GivenListeners,
    Listener,
    MessageConnection,
    PeerIdentity,
    Url,
    WorkerGroup,
    WorkerStream,
    parse_url,
)
from penstock.workers._channel import Channel
from penstock.workers._claims import ClaimReader
from penstock.workers._messages import (
    MOST_KEPT,
    Adopted,
    Closed,
    Cut,
    EndTurn,
    Handed,
    Kept,
    Known,
    Lead,
    LeadOver,
    Leave,
    Members,
    Opened,
    Ping,
    Pong,
    Refused,
    Relay,
    Suspended,
    Taken,
    ToWorker,
    Untaken,
    Wrong,
)
from penstock.workers._this_worker import Turn

Handler = Callable[[MessageConnection, ConnectionHost], Awaitable[None]]

SHARE_OF_FILES: Final = 4
"""Streams to other workers may use one in this number of the files of the process, and so may those
of other workers.
"""


class Group(GivenListeners, WorkerGroup):
    """The group of one worker; for its admission it is the door."""

    def __init__(
        self,
        channel: Channel[ToWorker],
        name: int,
        addresses: Sequence[Sequence[str]],
        claims: ClaimReader,
        most_streams: int,
    ) -> None:
        """`most_streams` is the number of streams to other workers at a time, and of streams of
        them. Further ones end at once, as if the other worker were over.
        """
        self._most = most_streams
        self._channel = channel
        self.claims: ClaimReader = claims
        self._name = str(name)
        self._addresses = addresses
        self._others: tuple[str, ...] = ()
        self._handlers: dict[str, Handler] = {}
        self._kept: list[bytes] = []
        self._listeners: list[HandedListener] = []
        self._accepted: int | None = None
        self._refusal = ""
        self._adopted = 0
        self._streams = 0
        self._opened = 0
        self._host: ConnectionHost | None = None
        self._admission: SharedAdmission | None = None
        self.turn: Turn = Turn(ask=lambda: channel.send(Lead()), give_back=self._give_back)
        self.on_wrong: Callable[[Sequence[bytes]], object] = _do_nothing
        """Called with the keys of credentials that were wrong in another worker."""

    def begin(self, host: ConnectionHost, admission: SharedAdmission) -> None:
        """The server listens: other workers are answered from now on."""
        if len(self._listeners) != len(self._addresses):
            raise UsageError(
                "the transport of one of the addresses binds by itself, so workers cannot share "
                "it; one that uses penstock.spi.listen_tcp or listen_unix can be shared"
            )
        self._host, self._admission = host, admission

    @property
    def room(self) -> int:
        """The connections that this process may have open."""
        return 0 if self._admission is None else self._admission.max_open

    def act(self, message: ToWorker, sock: socket.socket | None) -> None:
        """Do what the parent says."""
        match message:
            case Handed() | Cut() | Leave() | Refused():
                self._act_on_clients(message, sock)
            case Members(names=names):
                self._others = tuple(str(name) for name in names if str(name) != self._name)
            case Relay():
                self._on_relay(message, sock)
            case Wrong(keys=keys):
                self.on_wrong(keys)
            case Lead():
                self.turn.give()
            case EndTurn():
                self.turn.end_for_good()
            case Ping():
                self._channel.send(Pong())
            case Kept():
                self._on_kept(message)
            case _:
                raise AssertionError(f"{message!r} comes first, and once")

    def _act_on_clients(
        self, message: Handed | Cut | Leave | Refused, sock: socket.socket | None
    ) -> None:
        admission = self._admission
        match message:
            case Handed():
                self._on_handed(message, sock)
            case Cut(number=number, reason=reason):
                self._cut(number, reason)
            case Leave(number=number, reason=reason) if admission is not None:
                admission.leave(number, reason)
            case Refused(counts=counts) if admission is not None:
                for reason, count in counts.items():
                    admission.on_refused_elsewhere(reason, count)

    def _on_kept(self, kept: Kept) -> None:
        if kept.replaces:
            self._kept[: kept.replaces] = kept.pages
        else:
            self._kept += kept.pages
            del self._kept[:-MOST_KEPT]  # as the parent does

    # --- listeners

    def listener(
        self, url: Url, make_connection: Callable[[trio.SocketStream, Any], Connection]
    ) -> Listener:
        number = len(self._listeners)
        if number >= len(self._addresses):
            raise UsageError(f"the parent has not bound {url}")
        addresses = [parse_url(address) for address in self._addresses[number]]
        listener = HandedListener(self, addresses, make_connection)
        self._listeners.append(listener)
        return listener

    def _on_handed(self, handed: Handed, sock: socket.socket | None) -> None:
        if sock is None:
            self._refuse(handed.number, is_full=True)
        else:
            self._listeners[handed.listener].put(handed, sock)

    def give_back(self, handed: Handed, sock: socket.socket) -> None:
        """Let another worker have a connection."""
        sock.close()
        self._refuse(handed.number, is_full=False)

    def _refuse(self, number: int, *, is_full: bool) -> None:
        # If the parent has taken it back, there is nothing to tell.
        if self.claims.claim(number):
            self._channel.send(Untaken(number, is_full=is_full))

    def note_accepted(self, handed: Handed | None) -> None:
        """Note which connection a listener returns; None for none."""
        if self._accepted is not None:
            # The client of the last one has left before the listener could return it.
            self.on_closed(self._accepted)
        self._accepted = None if handed is None else handed.number
        self._refusal = "" if handed is None else handed.refusal

    def _cut(self, number: int, reason: str) -> None:
        for listener in self._listeners:
            if listener.cut(number):
                self.claims.claim(number)
                self.on_closed(number)
                if self._admission is not None:
                    self._admission.on_refused_elsewhere(reason, 1)
                return
        if self._admission is not None:
            self._admission.cut(number, reason)

    # --- as the door

    def take(self) -> tuple[int, str] | None:
        """Return the number of the connection that was accepted last."""
        number, self._accepted = self._accepted, None
        return None if number is None else (number, self._refusal)

    def adopt(self, peer: PeerIdentity) -> int:
        """Return the number of a connection that is a part of another one."""
        self._adopted -= 1
        uid = None if peer.credentials is None else peer.credentials.uid
        self._channel.send(Adopted(self._adopted, peer.host, uid))
        return self._adopted

    def on_taken(self, number: int) -> None:
        """Tell that the connection is served here."""
        if number > 0:
            self._channel.send(Taken(number))

    def on_known(self, number: int) -> None:
        """Tell that the client has made itself known."""
        self._channel.send(Known(number))

    def on_open(self, number: int) -> None:
        """Tell that both sides have said hello."""
        self._channel.send(Opened(number))

    def on_suspended(self, number: int, *, is_suspended: bool) -> None:
        """Tell that the connection has lost its transport, or has another one."""
        self._channel.send(Suspended(number, is_suspended))

    def on_closed(self, number: int) -> None:
        """Tell that the connection needs its place no longer."""
        self._channel.send(Closed(number))

    # --- other workers

    @property
    def name(self) -> str:
        return self._name

    @property
    def others(self) -> Sequence[str]:
        return self._others

    def answer(self, purpose: str, handler: Handler) -> None:
        self._handlers[purpose] = handler

    async def open(self, worker: str, purpose: str) -> MessageConnection:
        await trio.lowlevel.checkpoint()
        if self._opened >= self._most:
            raise trio.BrokenResourceError("too many streams to other workers are open")
        try:
            own, theirs = socket.socketpair()
        except OSError as error:
            raise trio.BrokenResourceError("this process has no file left") from error
        own.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        self._opened += 1
        self._channel.send(Relay(int(worker), purpose), theirs)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(own))
        return _OpenedStream(stream, worker, self._on_stream_closed)

    def _on_stream_closed(self) -> None:
        self._opened -= 1

    def _on_relay(self, relay: Relay, sock: socket.socket | None) -> None:
        if sock is None:
            return
        handler = self._handlers.get(relay.purpose)
        if handler is None or self._host is None or self._streams >= self._most:
            sock.close()
            return
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._streams += 1
        self._host.start_soon(
            self._serve,
            handler,
            WorkerStream(stream, worker=str(relay.name)),
            self._host,
            name=f"penstock worker {relay.name}: {relay.purpose}",
        )

    async def _serve(
        self, handler: Handler, stream: MessageConnection, host: ConnectionHost
    ) -> None:
        try:
            await handler(stream, host)
        finally:
            self._streams -= 1
            with trio.CancelScope(shield=True):
                await stream.abort()

    def keep(self, page: bytes, *, replaces: int = 0) -> None:
        self._channel.send(Kept([page], replaces))

    @property
    def kept(self) -> Sequence[bytes]:
        return self._kept

    def keep_pages(self, pages: Sequence[bytes]) -> None:
        """Take the pages of the workers that had ended when this one began."""
        self._kept[:] = pages

    def _give_back(self) -> None:
        self._channel.send(LeadOver())


class _OpenedStream(WorkerStream):
    """A stream that this worker has opened."""

    def __init__(
        self, stream: trio.SocketStream, worker: str, on_closed: Callable[[], object]
    ) -> None:
        super().__init__(stream, worker=worker)
        self._on_closed: Callable[[], object] | None = on_closed

    async def aclose(self) -> None:
        self._note_closed()
        await super().aclose()

    async def abort(self) -> None:
        self._note_closed()
        await super().abort()

    def _note_closed(self) -> None:
        if self._on_closed is not None:
            self._on_closed()
            self._on_closed = None


class HandedListener(Listener):
    """The clients of one address that the parent has handed over."""

    def __init__(
        self,
        group: Group,
        addresses: Sequence[Url],
        make_connection: Callable[[trio.SocketStream, Any], Connection],
    ) -> None:
        self.addresses: tuple[Url, ...] = tuple(addresses)
        self._group = group
        self._make_connection = make_connection
        # Bounded by the parent: it hands over no more than a few that are not taken.
        self._waiting: deque[tuple[Handed, socket.socket]] = deque()
        self._is_closed = False
        self._changed = trio.Event()

    def put(self, handed: Handed, sock: socket.socket) -> None:
        """Let the server accept a client."""
        if self._is_closed:
            self._group.give_back(handed, sock)
            return
        self._waiting.append((handed, sock))
        self._changed.set()

    def cut(self, number: int) -> bool:
        """Drop a client that was not accepted, and return whether it was here."""
        for each in self._waiting:
            if each[0].number == number:
                self._waiting.remove(each)
                each[1].close()
                return True
        return False

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        while True:
            connection = self.accept_nowait()
            if connection is not None:
                return connection
            self._changed = trio.Event()
            await self._changed.wait()

    def accept_nowait(self) -> Connection | None:
        if self._is_closed:
            raise trio.ClosedResourceError("this listener is closed")
        while self._waiting:
            handed, sock = self._waiting.popleft()
            if not self._group.claims.claim(handed.number):
                # This process was blocked, and another worker has it. Only the number of the
                # socket is closed here.
                sock.close()
                continue
            self._group.note_accepted(handed)
            try:
                return self._make_connection(
                    trio.SocketStream(trio.socket.from_stdlib_socket(sock)), tuple(handed.address)
                )
            except OSError:
                # The client has left: the address of its socket cannot be read any more.
                sock.close()
                self._group.note_accepted(None)
        return None

    async def aclose(self) -> None:
        self._is_closed = True
        self._changed.set()
        while self._waiting:
            self._group.give_back(*self._waiting.popleft())
        await trio.lowlevel.checkpoint()


def _do_nothing(_keys: Sequence[bytes]) -> None:
    """Do nothing: no server examines credentials."""
