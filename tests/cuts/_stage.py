"""The stage of one run: a service whose generators are counted, and subscribers who write down what they got.

Rules of this file:

* What a scenario expects it says beforehand: each reading has the whole sequence that its publisher sends.
* Exceptions are kept as words. Kept as they are, they would hold on to what must be gone.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Any, Final

import trio

from penstock.api import ConnectionLost, Limits, ProtocolError, PublisherFailed, Rejected
from penstock.plugins import build_registry
from penstock.runtime import Peer, Service, connect
from penstock.session._receiving_stream import ReceivingStream
from tests.cuts._wire import Cuts

REGISTRY: Final = build_registry([Cuts()])
URL: Final = "cut://wire"
DOCUMENTED: Final = (ConnectionLost, PublisherFailed, Rejected, ProtocolError)
"""What a stream may raise because of its peer or the network."""
COMPLETED: Final = "completed"
LEFT: Final = "left"


class Boom(Exception):
    """What a publisher raises on purpose."""


class Reading:
    """One subscription as its user sees it: what was due, what came, how it ended."""

    def __init__(self, label: str, due: Sequence[Any], *, restarts: bool = False) -> None:
        self.label = label
        self.due = list(due)
        self.got: list[Any] = []
        self.end: str | None = None
        self._restarts = restarts

    def faults(self) -> list[str]:
        """Return what is wrong with what came: each element whole, in its place, and none missing before the completion."""
        runs = self._runs()
        if any(run != self.due[: len(run)] for run in runs):
            return [f"{self.label} delivered {self.got!r} where {self.due!r} was sent"]
        if self.end == COMPLETED and runs[-1] != self.due:
            return [f"{self.label} completed with {len(runs[-1])} of {len(self.due)} elements: a silent gap"]
        return []

    def _runs(self) -> list[list[Any]]:
        """Split at each new beginning, where a new connection begins anew."""
        if not self._restarts or not self.due:
            return [self.got]
        runs: list[list[Any]] = [[]]
        for element in self.got:
            if element == self.due[0] and runs[-1]:
                runs.append([])
            runs[-1].append(element)
        return runs


Publisher = Callable[["Stage"], AsyncGenerator[Any, None]]
"""A generator function of a scenario's."""


class Stage:
    """What the two sides of a run share with the one who watches."""

    def __init__(self, limits: Limits, protocol: str = "") -> None:
        self.limits = limits
        self.url = (protocol or "rsio+") + URL
        self.readings: list[Reading] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.told: list[str] = []
        """What the `on_violation` hooks of either side were told."""
        self.faults: list[str] = []
        """What a scenario itself has found."""
        self.one = trio.CancelScope()
        """Around one subscription among others, in scenarios that have one to cancel."""
        self.serving = trio.Event()
        self.client_over = trio.Event()
        self.cue = trio.Event()
        """A sign from one side of a scenario to the other."""

    # --- for services

    def service(self, setup: Callable[..., Any] | None = None, /, **publishers: Publisher) -> Service:
        """Return a service of watched generators, by name."""
        service = Service(setup=setup)
        for name, generator in publishers.items():
            self.offer(service, name, generator)
        return service

    def offer(self, service: Service, name: str, generator: Publisher, **options: Any) -> None:
        """Add a watched generator."""

        async def watched() -> AsyncIterator[Any]:
            self.opened.append(name)
            try:
                async with aclosing(generator(self)) as inner:
                    async for element in inner:
                        yield element
            finally:
                self.closed.append(name)

        service.publisher(name, **options)(watched)

    def open_generators(self) -> list[str]:
        """Return the names of those that were begun and not closed."""
        still = list(self.opened)
        for name in self.closed:
            still.remove(name)
        return still

    # --- for subscribers

    def connect(self, service: Service | None = None, *, setup: bytes = b"") -> AbstractAsyncContextManager[Peer]:
        """Connect to the server of this run."""
        return connect(self.url, service=service, setup=setup, limits=self.limits, registry=REGISTRY, on_violation=self.hear)

    def hear(self, error: Exception) -> None:
        """Write down what nobody else is told."""
        self.told.append(f"{type(error).__name__}: {error}")

    def due(self, label: str, elements: Sequence[Any], *, restarts: bool = False) -> Reading:
        """Announce a reading."""
        reading = Reading(label, elements, restarts=restarts)
        self.readings.append(reading)
        return reading

    def count_what_is_left(self, peer: Peer) -> None:
        """Nothing is under way on a connection any more: what its session counts must have come down to nothing."""
        session = peer._connection.session
        inbound = [stream for stream in session.streams.opened.values() if isinstance(stream, ReceivingStream)]
        counted = {
            "served": len(session.streams.serving),
            "stopping": session.streams.stopping_publishers,
            "parts": session.channel.budgets.partials.count,
            "bytes of parts": session.channel.budgets.partials.bytes,
        }
        counted |= {"read": len(inbound), "bytes to send": session.outbox.waiting}
        self.faults += [f"an idle connection counts {number} {what}" for what, number in counted.items() if number]

    async def ask(self, peer: Peer, data: str, answer: Any, **options: Any) -> Reading:
        """Ask the peer for one value."""
        reading = self.due(data, [answer])
        with ending(reading):
            reading.got.append(await peer.request_response(data, **options))
            reading.end = COMPLETED
        return reading

    async def read(
        self, peer: Peer, name: str, elements: Sequence[Any], *, most: int | None = None, how: str = "subscribe", **options: Any
    ) -> Reading:
        """Read a publisher of the peer's by element, to its end or until there are `most`; `how` is the method of the peer's."""
        reading = self.due(name, elements)
        async with getattr(peer, how)(name, **options) as stream:
            with ending(reading):
                async for element in stream:
                    reading.got.append(element)
                    if len(reading.got) == most:
                        break
                else:
                    reading.end = COMPLETED
        return reading


@contextmanager
def ending(reading: Reading) -> Iterator[None]:
    """Write down how a reading ends. What is not documented goes on."""
    try:
        yield
    except DOCUMENTED as error:
        reading.end = f"{type(error).__name__}: {error}"
    else:
        reading.end = reading.end or LEFT
