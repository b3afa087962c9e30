"""The state that both sides of one run share: a service with counted generators, and readings that
record the received elements.

Rules of this file:

* A scenario states each expected sequence before it reads:
  a `Reading` holds all elements that its publisher sends.
* Exceptions are recorded as texts. An exception object refers to its traceback and would keep
  objects alive that the run must free.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Any, Final

import trio

from campaigns.cuts._cuttable_transport import CutPlugin
from penstock.api import ConnectionLost, Limits, ProtocolError, PublisherFailed, Rejected
from penstock.runtime import Peer, Service, connect
from penstock.session._receiving_stream import ReceivingStream
from penstock.spi import build_registry

REGISTRY: Final = build_registry([CutPlugin()])
URL: Final = "cut://wire"
DOCUMENTED: Final = (ConnectionLost, PublisherFailed, Rejected, ProtocolError)
"""The exceptions that a stream may raise because of its peer or the network."""
COMPLETED: Final = "completed"
STOPPED: Final = "stopped"


class PlannedFailure(Exception):
    """Raised on purpose by a publisher."""


class Reading:
    """One subscription as its user sees it:
    the expected elements, the received elements, and the end.
    """

    def __init__(self, label: str, expected: Sequence[Any], *, restarts: bool = False) -> None:
        self.label = label
        self.expected = list(expected)
        self.received: list[Any] = []
        self.end: str | None = None
        self._restarts = restarts

    def faults(self) -> list[str]:
        """Return the faults of the received elements: each must be whole and in order, and a
        completed reading must have all.
        """
        sequences = self._split_at_restarts()
        if any(sequence != self.expected[: len(sequence)] for sequence in sequences):
            return [f"{self.label} delivered {self.received!r} where {self.expected!r} was sent"]
        if self.end == COMPLETED and sequences[-1] != self.expected:
            return [
                (
                    f"{self.label} completed with {len(sequences[-1])} of {len(self.expected)} "
                    "elements: a silent gap"
                )
            ]
        return []

    def _split_at_restarts(self) -> list[list[Any]]:
        """Split before each repetition of the first element:
        after a reconnect the publisher starts again.
        """
        if not self._restarts or not self.expected:
            return [self.received]
        sequences: list[list[Any]] = [[]]
        for element in self.received:
            if element == self.expected[0] and sequences[-1]:
                sequences.append([])
            sequences[-1].append(element)
        return sequences


Publisher = Callable[["RunContext"], AsyncGenerator[Any, None]]
"""A generator function of a scenario."""


class RunContext:
    """The state that the client, the server and the checks of a run share."""

    def __init__(self, limits: Limits, protocol: str = "") -> None:
        self.limits = limits
        self.url = (protocol or "rsio+") + URL
        self.readings: list[Reading] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.violations: list[str] = []
        """Errors that the `on_violation` hooks of both sides received."""
        self.faults: list[str] = []
        """Faults that a scenario itself has found."""
        self.subscription_scope = trio.CancelScope()
        """Around one subscription, in scenarios with a subscription that can be cancelled alone."""
        self.server_ready = trio.Event()
        self.client_done = trio.Event()
        self.signal = trio.Event()
        """Set by one side of a scenario, awaited by the other."""

    # --- for services

    def service(
        self, setup: Callable[..., Any] | None = None, /, **publishers: Publisher
    ) -> Service:
        """Return a service that publishes counted generators."""
        service = Service(setup=setup)
        for name, generator in publishers.items():
            self.publish(service, name, generator)
        return service

    def publish(self, service: Service, name: str, generator: Publisher, **options: Any) -> None:
        """Add a generator to a service, and record when it is opened and closed."""

        async def counted() -> AsyncIterator[Any]:
            self.opened.append(name)
            try:
                async with aclosing(generator(self)) as inner:
                    async for element in inner:
                        yield element
            finally:
                self.closed.append(name)

        service.publisher(name, **options)(counted)

    def open_generators(self) -> list[str]:
        """Return the names of the generators that were opened and not closed."""
        still_open = list(self.opened)
        for name in self.closed:
            still_open.remove(name)
        return still_open

    # --- for subscribers

    def connect(
        self, service: Service | None = None, *, setup: bytes = b""
    ) -> AbstractAsyncContextManager[Peer]:
        """Connect to the server of this run."""
        return connect(
            self.url,
            service=service,
            setup=setup,
            limits=self.limits,
            registry=REGISTRY,
            on_violation=self.record_violation,
        )

    def record_violation(self, error: Exception) -> None:
        """Record an error of an `on_violation` hook, as text."""
        self.violations.append(f"{type(error).__name__}: {error}")

    def add_reading(
        self, label: str, elements: Sequence[Any], *, restarts: bool = False
    ) -> Reading:
        """Add a reading that expects `elements`."""
        reading = Reading(label, elements, restarts=restarts)
        self.readings.append(reading)
        return reading

    def check_idle_counts(self, peer: Peer) -> None:
        """Record a fault for each counter of an idle connection that is not zero."""
        session = peer._connection.session
        inbound = [
            stream
            for stream in session.streams.opened.values()
            if isinstance(stream, ReceivingStream)
        ]
        counters = {
            "served": len(session.streams.serving),
            "stopping": session.streams.stopping_publishers,
            "parts": session.channel.budgets.partials.count,
            "bytes of parts": session.channel.budgets.partials.bytes,
        }
        counters |= {"read": len(inbound), "bytes to send": session.outbox.waiting}
        self.faults += [
            f"an idle connection counts {number} {counter}"
            for counter, number in counters.items()
            if number
        ]

    async def request_value(self, peer: Peer, data: str, answer: Any, **options: Any) -> Reading:
        """Request one value from the peer."""
        reading = self.add_reading(data, [answer])
        with recording_end(reading):
            reading.received.append(await peer.request_response(data, **options))
            reading.end = COMPLETED
        return reading

    async def read(
        self,
        peer: Peer,
        name: str,
        elements: Sequence[Any],
        *,
        stop_after: int | None = None,
        method: str = "subscribe",
        **options: Any,
    ) -> Reading:
        """Read elements one at a time from the stream that `method` of the peer opens. Stop
        after `stop_after` elements, or at the end.
        """
        reading = self.add_reading(name, elements)
        async with getattr(peer, method)(name, **options) as stream:
            with recording_end(reading):
                async for element in stream:
                    reading.received.append(element)
                    if len(reading.received) == stop_after:
                        break
                else:
                    reading.end = COMPLETED
        return reading


@contextmanager
def recording_end(reading: Reading) -> Iterator[None]:
    """Record how a reading ends. Exceptions outside `DOCUMENTED` pass through."""
    try:
        yield
    except DOCUMENTED as error:
        reading.end = f"{type(error).__name__}: {error}"
    else:
        reading.end = reading.end or STOPPED
