"""Accepting on one or several listening sockets, one connection at a time.

Rules of this file:

* Waiting and taking are two steps: a cancelled `accept` has taken no connection, also when two sockets become ready at once.
* What goes wrong with one client is that client's: its error is dropped, and the next one is accepted.
* When the process is out of files or memory, the OSError goes to the caller: only it can pause, or let go of something.
"""

import errno
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import trio

from penstock.plugins import Connection, Listener, Url

# accept() reports what happened to the client before it was accepted; Linux passes on any network error, BSD says ECONNABORTED.
_OF_ONE_CLIENT: Final = frozenset(
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


class SocketListener(Listener):
    """Listens on sockets that are bound and listening; `welcome` makes a connection of each that arrives.

    `welcome` gets the stream and the address of the peer; it must not wait. An OSError that it raises is that client's.
    `on_close` is called once, when the sockets have been closed.
    """

    def __init__(
        self,
        sockets: Iterable[socket.socket],
        addresses: Iterable[Url],
        welcome: Callable[[trio.SocketStream, Any], Connection],
        *,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.addresses = tuple(addresses)
        self._sockets = deque(sockets)
        self._welcome = welcome
        self._on_close = on_close

    async def accept(self) -> Connection:
        await trio.lowlevel.checkpoint()
        while True:
            connection = self._accept_nowait()
            if connection is not None:
                return connection
            await self._wait_readable()

    def _accept_nowait(self) -> Connection | None:
        if not self._sockets:
            raise trio.ClosedResourceError("this listener is closed")
        for _ in range(len(self._sockets)):
            listening = self._sockets[0]
            self._sockets.rotate(-1)  # each in its turn: a busy one does not keep the others waiting
            try:
                client, address = listening.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno in _OF_ONE_CLIENT:
                    continue
                raise
            connection = self._receive_guest(client, address)
            if connection is not None:
                return connection
        return None

    def _receive_guest(self, client: socket.socket, address: Any) -> Connection | None:
        try:
            return self._welcome(trio.SocketStream(trio.socket.from_stdlib_socket(client)), address)
        except OSError:
            client.close()  # it is gone already
            return None
        except BaseException:
            client.close()
            raise

    async def _wait_readable(self) -> None:
        if len(self._sockets) == 1:
            await trio.lowlevel.wait_readable(self._sockets[0])
            return
        async with trio.open_nursery() as nursery:
            for listening in self._sockets:
                nursery.start_soon(self._wait_for_one, listening, nursery.cancel_scope)

    async def _wait_for_one(self, listening: socket.socket, others: trio.CancelScope) -> None:
        with suppress(trio.ClosedResourceError):  # accept() sees it, and says it without an exception group around it
            await trio.lowlevel.wait_readable(listening)
        others.cancel()

    async def aclose(self) -> None:
        if self._sockets:
            while self._sockets:
                listening = self._sockets.popleft()
                trio.lowlevel.notify_closing(listening)
                listening.close()
            self._on_close()
        await trio.lowlevel.checkpoint()


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close sockets that nobody waits on yet."""
    for each in sockets:
        each.close()
