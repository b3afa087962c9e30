"""A server that runs in several worker processes, as a transport in one of them sees it.

Rules of this file:

* The parent of the workers has bound every address. A worker binds none: `listen_tcp` and
  `listen_unix` ask `TransportOptions.given` for the listener, so the transport of a plugin that
  uses one of them needs no line for this.
* A transport keeps state in one process: a subscription over HTTP, for example. The id of such
  state ends with the name of its worker. A worker that gets a request for the state of another one
  opens a stream to it, and passes the request on.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.spi._url import Url

if TYPE_CHECKING:
    import trio

    from penstock.spi._connection_host import ConnectionHost
    from penstock.spi._transport import Connection, Listener, MessageConnection


class GivenListeners(ABC):
    """Listeners whose addresses another process has bound."""

    @abstractmethod
    def listener(
        self, url: Url, make_connection: "Callable[[trio.SocketStream, Any], Connection]"
    ) -> "Listener | None":
        """Return the listener for the next URL that is listened at, or None: bind it.

        `make_connection` is called as that of a `SocketListener`. Raises UsageError if the other
        process has not bound `url`.
        """


class WorkerGroup(ABC):
    """The workers of a server, as one of them sees them: its name, and streams to the others."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of this worker in the ids of objects that it holds: digits, and never given
        again.
        """

    @property
    @abstractmethod
    def others(self) -> Sequence[str]:
        """The names of the workers beside this one that run."""

    @abstractmethod
    def answer(
        self,
        purpose: str,
        handler: "Callable[[MessageConnection, ConnectionHost], Awaitable[None]]",
    ) -> None:
        """Let `handler` serve each stream that another worker opens for `purpose`.

        It runs in a task of the server, and the stream is closed when it returns. The host is that
        of the server: no client is connected to it.
        """

    @abstractmethod
    async def open(self, worker: str, purpose: str) -> "MessageConnection":
        """Return a stream to the handler that another worker has for `purpose`. Checkpoints. Raises
        BrokenResourceError if too many are open already, or if this process has no file left.

        A worker that is over, or has no such handler, ends the stream at once: `receive` raises
        BrokenResourceError. It does so too when the worker dies.
        """

    @abstractmethod
    def keep(self, page: bytes, *, replaces: int = 0) -> None:
        """Let the counts of this worker outlive it: `page` is in `kept` of every worker once this
        one has ended. A later page takes the place of an earlier one.

        With `replaces`, `page` is the sum of that number of pages of `kept`, and takes their place.
        """

    @property
    @abstractmethod
    def kept(self) -> Sequence[bytes]:
        """The last pages of the workers that have ended."""
