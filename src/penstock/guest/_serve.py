"""`serve` for programs on asyncio."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from os import PathLike
from typing import Unpack

from penstock.aio import Peer
from penstock.api import Credentials, Extension, Limits, UsageError
from penstock.client import NoOptions
from penstock.core import Report, log_violation
from penstock.guest._blocks import TrioBlock
from penstock.guest._clients import ClientPeers
from penstock.guest._guest_run import GuestRun
from penstock.guest._service import Service
from penstock.recording import Recorder
from penstock.runtime import Server as TrioServer
from penstock.runtime import serve as serve_in_trio
from penstock.spi import LiveStream, Registry, ServerStatistics, TransportOptions, Url


def serve(  # noqa: PLR0913  # the options of `penstock.serve`
    service: Service,
    *urls: str,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    credentials: Credentials | None = None,
    record: Recorder | str | PathLike[str] | None = None,
    resume: bool = False,
    insecure: bool = False,
    inspect: bool = False,
    on_violation: Report = log_violation,
    **unknown: Unpack[NoOptions],
) -> AbstractAsyncContextManager["Server"]:
    """Serve `service` at each of `urls` for the length of an ``async with`` block of a program on
    asyncio. `urls` and `options` are those of `penstock.serve`.

    trio runs in the loop of the program, in the same thread, for as long as a block is open. The
    functions of the service run in tasks of asyncio, and have ended when the block is left. If a
    task is cancelled inside the block, the server drains first, as on every way out of it.
    Raises UsageError as `penstock.serve` does, and for a service that is no `Service` of
    `penstock.aio`.
    """
    if not isinstance(service, Service):
        raise UsageError(
            f"penstock.aio.serve() was given {service!r} to serve; give a penstock.aio.Service, "
            "whose functions run on asyncio. The functions of a penstock.Service run on trio: "
            "penstock.serve() serves them"
        )
    service.check_loop()
    block = serve_in_trio(
        service,
        *urls,
        limits=limits,
        extensions=extensions,
        registry=registry,
        options=options,
        credentials=credentials,
        record=record,
        resume=resume,
        insecure=insecure,
        inspect=inspect,
        on_violation=on_violation,
        **unknown,
    )
    return TrioBlock(block, Server)


class Server:
    """A service that is being served. Use it in the loop of asyncio that serves."""

    def __init__(self, server: TrioServer, run: GuestRun) -> None:
        self._server = server
        self._run = run
        self._clients = ClientPeers(run)

    @property
    def addresses(self) -> tuple[Url, ...]:
        """The URLs at which clients reach it, with the real ports. Each has a `host` and a `port`,
        and `connect` takes it.
        """
        return self._server.addresses

    @property
    def peers(self) -> tuple[Peer, ...]:
        """The peers that are connected and have said hello: subscribe to their publishers. A client
        has the same peer each time.
        """
        address = self._server.addresses[0]
        return tuple(self._clients.peer_of(client, address) for client in self._server.peers)

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of refused connections since the start, by reason. It stays up to date."""
        return self._server.refused

    def statistics(self) -> ServerStatistics:
        """Return the counts of the server since it began to listen, and the bytes that it holds
        now, as `penstock.Server.statistics` does.
        """
        self._run.check_caller("Server.statistics()")
        return self._server.statistics()

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now, as
        `penstock.Server.streams` does.
        """
        self._run.check_caller("Server.streams()")
        return self._server.streams()

    def waits_for(self) -> dict[str, int]:
        """Return the streams that clients read now:
        the name or pattern of each publisher, with the number of its streams.
        """
        self._run.check_caller("Server.waits_for()")
        return self._server.waits_for()

    async def wait_over(self) -> None:
        """Wait until no client is connected and none can connect any more."""
        self._run.check_caller("Server.wait_over()")
        await self._run.begin(self._server.wait_over).result()

    async def drain(
        self,
        seconds: float | None = None,
        *,
        on_waiting: Callable[[Mapping[str, int], float], object] | None = None,
    ) -> None:
        """Take no new connections and streams, let the streams that run end, and return when no
        client is connected, as `penstock.Server.drain` does.
        """
        self._run.check_caller("Server.drain()")

        async def drain() -> None:
            await self._server.drain(seconds, on_waiting=on_waiting)

        await self._run.begin(drain).result()

    def __repr__(self) -> str:
        return repr(self._server)
