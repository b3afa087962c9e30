"""A listener for sockets: accept connections on one or several listening sockets, one at a time.

Rules of this file:

* Waiting and accepting are two steps. A cancelled `accept` has accepted no connection, even if two
  sockets become ready at the same time.
* An error that concerns one client is dropped, and the next client is accepted.
* A client that has left before it sent a byte is closed here. `accept` never returns it: a caller
  that accepts at a bounded rate would else spend that rate on such clients. With 1,700 of them a
  second, an honest client once waited for 10 s.
* If the process is out of files or memory, `accept` raises the OSError:
  only the caller can pause or close something.
"""

import errno
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import trio

from penstock.spi._transport import Connection, Listener
from penstock.spi._url import Url

# accept() reports errors of a client that has disconnected before it was accepted. Linux passes on
# any network error, BSD says ECONNABORTED.
_ERRORS_OF_ONE_CLIENT: Final = frozenset(
    getattr(errno, name)
    for name in (
        "ECONNABORTED",
        "ECONNRESET",
        "EHOSTDOWN",
        "EHOSTUNREACH",
        "ENETDOWN",
        "ENETUNREACH",
        "ENONET",
        "ENOPROTOOPT",
        "EOPNOTSUPP",
        "EPERM",
        "EPROTO",
        "ETIMEDOUT",
    )
    if hasattr(errno, name)
)


GONE_PER_TURN: Final = 64
"""Clients that have left, and are closed in one turn: some 5 us each. Then other tasks run."""

# Windows has no way to look at a socket without waiting.
_LOOK: Final = getattr(socket, "MSG_DONTWAIT", 0) and socket.MSG_DONTWAIT | socket.MSG_PEEK


class SocketListener(Listener):
    """Accepts on sockets that are bound, listening and non-blocking. `listen_tcp` and `listen_unix`
    make one; use it for other families.

    `make_connection` is called with the stream and the socket address of each client. It must not
    wait and must not raise for a slow client. If it raises an OSError, that client is closed and
    skipped. So is a client that has left before it sent a byte. `on_close` is called once, after
    the sockets have been closed.
    """

    def __init__(
        self,
        sockets: Iterable[socket.socket],
        addresses: Iterable[Url],
        make_connection: Callable[[trio.SocketStream, Any], Connection],
        *,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.addresses: tuple[Url, ...] = tuple(addresses)
        self._sockets = deque(sockets)
        self._make_connection = make_connection
        self._on_close = on_close

    async def accept(self) -> Connection:
        # A checkpoint even if a client is waiting:
        # without it a flood of clients would starve the other tasks.
        await trio.lowlevel.checkpoint()
        while True:
            connection = self.accept_nowait()
            if connection is not None:
                return connection
            await self.wait_readable()

    def accept_nowait(self) -> Connection | None:
        for _ in range(GONE_PER_TURN):
            accepted = self.accept_socket_nowait()
            if accepted is None:
                return None
            connection = self.connection_of(*accepted)
            if connection is not None:
                return connection
        return None

    def accept_socket_nowait(self) -> tuple[socket.socket, Any] | None:
        """Return the socket of a client that waits, and its address; None without one.

        For a process that passes the socket on to another one: see `connection_of`.
        """
        if not self._sockets:
            raise trio.ClosedResourceError("this listener is closed")
        empty = 0
        for _ in range(GONE_PER_TURN):
            listening = self._sockets[0]
            # round robin: a busy socket does not delay the clients of the others.
            self._sockets.rotate(-1)
            try:
                client, address = listening.accept()
            except BlockingIOError:
                empty += 1
                if empty == len(self._sockets):
                    return None
                continue
            except OSError as error:
                if error.errno in _ERRORS_OF_ONE_CLIENT:
                    continue
                raise
            empty = 0
            if _has_left(client):
                client.close()
                continue
            return client, address
        return None

    def connection_of(self, client: socket.socket, address: Any) -> Connection | None:
        """Return the connection on the socket of a client, or None if the client has left."""
        try:
            return self._make_connection(
                trio.SocketStream(trio.socket.from_stdlib_socket(client)), address
            )
        except OSError:
            # The client has disconnected: for example, the address of its socket cannot be read any
            # more.
            client.close()
            return None
        except BaseException:
            client.close()
            raise

    async def wait_readable(self) -> None:
        """Wait until a client may be there. Checkpoints."""
        if len(self._sockets) == 1:
            await trio.lowlevel.wait_readable(self._sockets[0])
            return
        async with trio.open_nursery() as nursery:
            for listening in self._sockets:
                nursery.start_soon(self._wait_for_one, listening, nursery.cancel_scope)

    async def _wait_for_one(self, listening: socket.socket, others: trio.CancelScope) -> None:
        # The next accept_nowait finds out that the listener was closed, and raises outside the
        # nursery: without an exception group.
        with suppress(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(listening)
        others.cancel()

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The listening sockets; none after `aclose`."""
        return tuple(self._sockets)

    async def abandon(self) -> None:
        """Close the sockets of this process alone: another process has them too, and listens on. A
        socket file stays.
        """
        self._on_close = _do_nothing
        await self.aclose()

    async def aclose(self) -> None:
        if self._sockets:
            while self._sockets:
                listening = self._sockets.popleft()
                trio.lowlevel.notify_closing(listening)
                listening.close()
            self._on_close()
        await trio.lowlevel.checkpoint()


def _do_nothing() -> None:
    """Leave everything as it is."""


def _has_left(client: socket.socket) -> bool:
    """Return True if `client` has closed or reset its connection before it sent a byte."""
    if not _LOOK:
        return False
    try:
        return not client.recv(1, _LOOK)
    except BlockingIOError:
        return False  # it is there, and has sent nothing yet
    except OSError:
        return True
