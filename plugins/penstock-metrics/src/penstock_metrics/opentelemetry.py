"""OpenTelemetry: the metrics as observable instruments, and a span for each stream and request.
Needs the extra ``opentelemetry``.

Rules of this file:

* `instrument` makes the instruments of `METRICS`. Their names have dots:
  `penstock_elements_total` is ``penstock.elements``.
* `Spans` is a plugin: pass it to `penstock.spi.build_registry`.
  Without it nothing is made for a stream.
* A span ends with its stream. At most `MOST_SPANS` are open at a time, so a server with 100,000
  idle streams does not hold a span for each.
* The name of a span is the pattern of the publisher, and never a name that a peer has chosen; the
  attribute has that name, escaped.
"""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_tracer_provider,
)

from penstock.api import printable
from penstock.spi import ConnectionOpened, Factory, Outcome, StreamEnded, StreamOpened, hookimpl
from penstock_metrics._hooks import MEASUREMENTS
from penstock_metrics._measurements import Measurements
from penstock_metrics._publishers import OTHER
from penstock_metrics._snapshot import Snapshot
from penstock_metrics._table import METRICS, Kind, Metric
from penstock_metrics._trace_context import ActiveTraceContext, TraceContext

MOST_SPANS: Final = 10_000
"""Spans that are open at a time. Streams beyond them get no span."""

_SCOPE: Final = "penstock_metrics"
_UNITS: Final = {"bytes": "By", "seconds": "s", "": "1"}


def instrument(
    meter_provider: MeterProvider | None = None, *, measurements: Measurements = MEASUREMENTS
) -> None:
    """Make an observable instrument for each metric. Call it once for each provider; the global one
    is used without an argument.

    The servers and connections are those of `penstock_metrics.collect`,
    or of `Measurements.collect`.
    """
    meter = (meter_provider or get_meter_provider()).get_meter(_SCOPE)
    snapshots = _SharedSnapshot(measurements)
    for metric in METRICS:
        name, unit = instrument_name(metric), _UNITS[metric.unit]
        observe = _callback(metric, snapshots)
        if metric.kind is Kind.COUNTER:
            meter.create_observable_counter(name, [observe], unit=unit, description=metric.help)
        else:
            meter.create_observable_gauge(name, [observe], unit=unit, description=metric.help)


def instrument_name(metric: Metric) -> str:
    """Return the name of the instrument of a metric:
    without ``_total``, and with a dot behind ``penstock``.
    """
    return metric.name.removesuffix("_total").replace("_", ".", 1)


class _SharedSnapshot:
    """One snapshot for all instruments of a collection: each of them has its own callback."""

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements
        self._lock = Lock()
        # The metrics that have read the snapshot; bounded by the table.
        self._read: set[str] = set()
        self._snapshot = Snapshot()

    def read(self, name: str) -> Snapshot:
        """Return the snapshot of this collection for the metric `name`. A metric that asks a
        second time begins the next collection.
        """
        with self._lock:
            if not self._read or name in self._read:
                self._read.clear()
                self._snapshot = self._measurements.take()
            self._read.add(name)
            return self._snapshot


def _callback(
    metric: Metric, snapshots: _SharedSnapshot
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        samples = metric.read(snapshots.read(metric.name))
        return [
            Observation(value, dict(zip(metric.labels, labels, strict=True)))
            for labels, value in samples
        ]

    return observe


class Spans:
    """An observer that makes a span for each stream and request: of the kind server if this side
    publishes, else of the kind client.

    It also offers the extension *trace-context*: if the peer has it too, the span of a publisher is
    a child of that of its subscriber.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        most: int = MOST_SPANS,
        propagate: bool = True,
    ) -> None:
        """Without a provider the global one is used. At most `most` spans are open at a time.

        With `propagate` the contexts of traces cross RS.io connections. The first requests of a
        client then wait for the server's hello.
        """
        self._tracer = (tracer_provider or get_tracer_provider()).get_tracer(_SCOPE)
        self._most = most
        self._propagates = propagate
        # By connection, id and direction; bounded by `most`.
        self._open: dict[tuple[int, int, bool], Span] = {}
        # Those of `_open` whose streams were not reported yet.
        self._unreported: set[tuple[int, int, bool]] = set()
        # Both are bounded by the connections.
        self._opening: list[ActiveTraceContext] = []
        self._links: dict[int, ActiveTraceContext] = {}

    # --- the hooks

    @hookimpl
    def penstock_extensions(self) -> list[Factory]:
        """Offer the extension that carries contexts."""
        if not self._propagates:
            return []
        make = partial(TraceContext, self)
        return [
            Factory(
                name=TraceContext.name,
                id=TraceContext.id,
                make=make,
                summary="carries the contexts of traces",
            )
        ]

    @hookimpl
    def penstock_connection_opened(self, event: ConnectionOpened) -> None:
        """Give the extension of a connection the number that streams are reported with."""
        # By the object: the link of an extension and the event have the same one.
        for link in self._opening:
            if link.peer is event.peer:
                self._opening.remove(link)
                link.connection = event.connection
                self._links[event.connection] = link
                return

    @hookimpl
    def penstock_stream_opened(self, event: StreamOpened) -> None:
        """Begin a span, unless the extension has begun it."""
        key = event.connection, event.stream, event.outbound
        if key in self._unreported:
            self._unreported.discard(key)
            return
        link = self._links.get(event.connection) if event.outbound else None
        self._begin(
            key, event.publisher, event.pattern, None if link is None else link.take(event.stream)
        )

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        """End the span of the stream, if it has one."""
        span = self._open.pop((event.connection, event.stream, event.outbound), None)
        if span is None:
            return
        span.set_attributes(
            {
                "penstock.outcome": event.outcome.value,
                "penstock.elements": event.elements,
                "penstock.bytes": event.bytes,
            }
        )
        if event.error is not None:
            span.record_exception(event.error)
        if event.outcome in {Outcome.FAILED, Outcome.LOST}:
            span.set_status(Status(StatusCode.ERROR, event.outcome.value))
        span.end()

    # --- for the extension

    def add_link(self, link: ActiveTraceContext) -> None:
        """Note that the extension runs on a connection that is not open yet."""
        self._opening.append(link)

    def remove_link(self, link: ActiveTraceContext) -> None:
        """Note that the connection is over."""
        if link in self._opening:
            self._opening.remove(link)
        if self._links.pop(link.connection, None) is not None:
            for connection, stream, _ in [
                key for key in self._unreported if key[0] == link.connection
            ]:
                self.end_unreported(connection, stream)

    def span_of(self, connection: int, stream: int, publisher: str) -> Span | None:
        """Return the span of a stream of this side that is about to be opened;
        None if too many are open.
        """
        key = connection, stream, False
        span = self._open.get(key)
        if span is None:
            # In the task of the program: the span that is current there is the parent. The stream
            # is reported right after this.
            span = self._begin(key, publisher, "", None)
            if span is not None:
                self._unreported.add(key)
        return span

    def end_unreported(self, connection: int, stream: int) -> None:
        """End the span of a stream of this side that has ended before it was reported."""
        key = connection, stream, False
        if key in self._unreported:
            self._unreported.discard(key)
            self._open.pop(key).end()

    def _begin(
        self, key: tuple[int, int, bool], publisher: str, pattern: str, parent: Context | None
    ) -> Span | None:
        if len(self._open) >= self._most:
            return None
        connection, stream, is_served = key
        span = self._open[key] = self._tracer.start_span(
            f"penstock {pattern or OTHER}",
            context=parent,
            kind=SpanKind.SERVER if is_served else SpanKind.CLIENT,
            attributes={
                "penstock.connection": connection,
                "penstock.stream": stream,
                "penstock.publisher": printable(publisher),
            },
        )
        return span
