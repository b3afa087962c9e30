"""Two workers of one server in one run of trio, without a parent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from penstock.api import Limits
from penstock.core import log_violation
from penstock.runtime import AttemptsShare, Server, Service, Share, SharedAdmission
from penstock.runtime.server._serve import serve_share
from penstock.spi import (
    ConnectionHost,
    MessageConnection,
    PeerIdentity,
    WorkerGroup,
    WorkerStream,
)

Handler = Callable[[MessageConnection, ConnectionHost], Awaitable[None]]


class FakeWorker(WorkerGroup):
    """A group of two; it is also the door, and notes what the parent would be told."""

    def __init__(self, name: str, all_of_them: "dict[str, FakeWorker]") -> None:
        self._name = name
        self._all = all_of_them
        self._all[name] = self
        self._handlers: dict[str, Handler] = {}
        self.host: ConnectionHost | None = None
        self.told: list[tuple[Any, ...]] = []
        self.handed: tuple[int, str] | None = None
        self.admission: SharedAdmission
        self._adopted = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def others(self) -> Sequence[str]:
        return [name for name in self._all if name != self._name]

    def answer(self, purpose: str, handler: Handler) -> None:
        self._handlers[purpose] = handler

    async def open(self, worker: str, purpose: str) -> MessageConnection:
        await trio.lowlevel.checkpoint()
        own, theirs = trio.testing.memory_stream_pair()
        other = self._all[worker]
        stream = WorkerStream(theirs, worker=self._name)
        if other.host is not None:
            other.host.start_soon(
                _serve, other._handlers[purpose], stream, other.host, name="relay"
            )
        else:
            await theirs.aclose()
        return WorkerStream(own, worker=worker)

    def keep(self, page: bytes, *, replaces: int = 0) -> None:
        """Not needed here."""

    @property
    def kept(self) -> Sequence[bytes]:
        return []

    # --- as the door

    def begin(self, host: ConnectionHost, admission: SharedAdmission) -> None:
        self.host, self.admission = host, admission

    def take(self) -> tuple[int, str] | None:
        handed, self.handed = self.handed, None
        return handed

    def adopt(self, peer: PeerIdentity) -> int:
        self._adopted -= 1
        self.told.append(("adopted", self._adopted))
        return self._adopted

    def on_taken(self, number: int) -> None:
        self.told.append(("taken", number))

    def on_known(self, number: int) -> None:
        self.told.append(("known", number))

    def on_open(self, number: int) -> None:
        self.told.append(("open", number))

    def on_suspended(self, number: int, *, is_suspended: bool) -> None:
        self.told.append(("suspended", number, is_suspended))

    def on_closed(self, number: int) -> None:
        self.told.append(("closed", number))


async def _serve(handler: Handler, stream: MessageConnection, host: ConnectionHost) -> None:
    try:
        await handler(stream, host)
    finally:
        with trio.CancelScope(shield=True):
            await stream.abort()


@asynccontextmanager
async def worker(
    name: str,
    group: dict[str, FakeWorker],
    service: Service,
    url: str,
    limits: Limits,
    *,
    tell: Callable[[Sequence[bytes]], object] = lambda _keys: None,
) -> AsyncIterator[tuple[Server, FakeWorker]]:
    """Serve as the worker of that name."""
    own = FakeWorker(name, group)
    share = Share(
        group=own, parts=2, door=own, attempts=AttemptsShare(bytes(16), tell), begin=own.begin
    )
    serving = serve_share(
        service,
        [url],
        limits=limits,
        extensions=None,
        registry=None,
        options=None,
        credentials=None,
        record=None,
        resume=True,
        insecure=False,
        inspect=True,
        on_violation=log_violation,
        share=share,
    )
    try:
        async with serving as server:
            yield server, own
    finally:
        del group[name]
