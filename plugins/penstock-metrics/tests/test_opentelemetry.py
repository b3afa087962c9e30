"""OpenTelemetry: the same numbers as instruments, and a span for each stream and request."""

import pytest
import trio
from _metrics_helpers import quotes_service, registry_with
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from penstock_metrics import METRICS, Kind, Measurements
from penstock_metrics.opentelemetry import Spans, instrument, instrument_name

import penstock
from penstock.spi import Outcome, StreamEnded, StreamOpened


def _numbers(
    reader: InMemoryMetricReader,
) -> dict[tuple[str, tuple[tuple[str, object], ...]], float]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        (metric.name, tuple(sorted((point.attributes or {}).items()))): point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


async def test_each_metric_is_an_instrument(autojump_clock: trio.testing.MockClock) -> None:
    """Its labels are attributes. The second collection has the numbers of its time."""
    measurements, reader = Measurements(), InMemoryMetricReader()
    provider = MeterProvider([reader])
    instrument(provider, measurements=measurements)
    async with penstock.serve(quotes_service(), "memory://test") as server:
        with measurements.collect(server):
            async with penstock.connect("memory://test", registry=registry_with(object())) as peer:
                for number in (1, 2):
                    async with peer.subscribe("quotes/EURUSD") as stream:
                        assert len([element async for element in stream]) == 2
                    found = _numbers(reader)
                    assert found["penstock.elements", (("direction", "sent"),)] == 2 * number
                    assert (
                        found["penstock.publisher_elements", (("publisher", "quotes/{symbol}"),)]
                        == 2 * number
                    )
                    connections = ("protocol", "rsio"), ("side", "server"), ("transport", "memory")
                    assert found["penstock.connections", connections] == 1
    # No connection was refused, so that one has no sample.
    assert {name for name, _ in found} == {instrument_name(metric) for metric in METRICS} - {
        "penstock.refused_connections"
    }
    provider.shutdown()


async def test_instruments_have_the_kind_and_the_unit_of_their_metric() -> None:
    """Counters are monotonic sums."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    instrument(provider, measurements=Measurements())
    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    assert metrics["penstock.wire_bytes"].unit == "By"
    assert metrics["penstock.stalled_seconds"].unit == "s"
    for metric in METRICS:
        made = metrics.get(instrument_name(metric))
        if made is not None:  # without a server some have no samples
            assert getattr(made.data, "is_monotonic", False) is (metric.kind is Kind.COUNTER)
            assert made.description == metric.help
    assert len(metrics) > 10
    provider.shutdown()


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def _spans(exporter: InMemorySpanExporter, most: int = 10) -> Spans:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider, most=most)


def _attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_a_stream_has_a_span_on_each_side(
    exporter: InMemorySpanExporter, autojump_clock: trio.testing.MockClock
) -> None:
    """That of the server has the pattern of the publisher as its name;
    both have the elements and the outcome.
    """
    registry = registry_with(_spans(exporter))
    async with penstock.serve(quotes_service(), "memory://test", registry=registry):
        async with (
            penstock.connect("memory://test", registry=registry) as peer,
            peer.subscribe("quotes/EURUSD") as stream,
        ):
            assert len([element async for element in stream]) == 2
        await trio.sleep(1)
    by_kind = {span.kind: span for span in exporter.get_finished_spans()}
    assert (by_kind[SpanKind.SERVER].name, by_kind[SpanKind.CLIENT].name) == (
        "penstock quotes/{symbol}",
        "penstock other",
    )
    for span in by_kind.values():
        attributes = _attributes(span)
        assert attributes["penstock.publisher"] == "quotes/EURUSD"
        assert (
            attributes["penstock.outcome"],
            attributes["penstock.elements"],
            attributes["penstock.bytes"],
        ) == ("completed", 2, 16)
        assert span.status.status_code is StatusCode.UNSET


async def test_a_failed_stream_has_the_error_in_its_span(
    exporter: InMemorySpanExporter, autojump_clock: trio.testing.MockClock
) -> None:
    """As an event of the span; its status is an error."""
    async with penstock.serve(
        quotes_service(),
        "memory://test",
        registry=registry_with(_spans(exporter)),
        on_violation=lambda _: None,
    ):
        async with (
            penstock.connect("memory://test", registry=registry_with(object())) as peer,
            peer.subscribe("failing") as stream,
        ):
            with pytest.raises(penstock.PublisherFailed):
                assert [element async for element in stream]
        await trio.sleep(1)
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    (event,) = span.events
    assert dict(event.attributes or {})["exception.message"] == "out of stock"


def _opened(stream: int, publisher: str = "p") -> StreamOpened:
    return StreamOpened(
        connection=1, stream=stream, publisher=publisher, outbound=True, pattern="p"
    )


def _ended(stream: int) -> StreamEnded:
    return StreamEnded(
        connection=1, stream=stream, outbound=True, outcome=Outcome.CANCELLED, elements=0
    )


def test_the_number_of_open_spans_is_bounded(exporter: InMemorySpanExporter) -> None:
    """A stream beyond the bound has no span.
    When a span has ended, the next stream has one again.
    """
    spans = _spans(exporter, most=2)
    for number in (1, 2, 3):
        spans.penstock_stream_opened(_opened(number))
    for number in (3, 1):
        spans.penstock_stream_ended(_ended(number))
    spans.penstock_stream_opened(_opened(4))
    for number in (2, 4):
        spans.penstock_stream_ended(_ended(number))
    assert [_attributes(span)["penstock.stream"] for span in exporter.get_finished_spans()] == [
        1,
        2,
        4,
    ]


def test_a_name_that_a_peer_has_chosen_is_escaped(exporter: InMemorySpanExporter) -> None:
    """Exporters write attributes to terminals and logs."""
    spans = _spans(exporter)
    spans.penstock_stream_opened(_opened(1, "p/\x1b[2J"))
    spans.penstock_stream_ended(_ended(1))
    (span,) = exporter.get_finished_spans()
    assert "\x1b" not in str(_attributes(span)["penstock.publisher"])
