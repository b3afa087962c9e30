"""The extension *trace-context*: spans of both sides in one trace, and bad input."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from _metrics_helpers import quotes_service, registry_with
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    TraceState,
    get_current_span,
)
from penstock_metrics._trace_context import (
    LONGEST,
    MOST_WAITING,
    ActiveTraceContext,
    decode_context,
    encode_context,
)
from penstock_metrics.opentelemetry import Spans

import penstock
from penstock.api import Limits
from penstock.spi import ConnectionOpened, PeerIdentity

SPAN = NonRecordingSpan(
    SpanContext(
        0xAB << 120,
        0xCD << 56,
        is_remote=False,
        trace_flags=TraceFlags(1),
        trace_state=TraceState([("a", "b")]),
    )
)
BODY = bytes(7) + b"\x05" + b"00-ab" + b"0" * 30 + b"-cd" + b"0" * 14 + b"-01" + b"a=b"


class Side:
    """The spans of one process, and where they end."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = Spans(self.provider, **options)

    def finished(self, kind: SpanKind) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.kind is kind]

    def holds_nothing(self) -> bool:
        spans = self.spans
        return not (spans._open or spans._unreported or spans._opening or spans._links)


def _ids(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id


def _parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    server, client = Side(), Side()
    yield server, client
    assert server.holds_nothing()
    assert client.holds_nothing()


async def test_the_span_of_a_publisher_is_a_child_of_that_of_its_subscriber(
    sides: tuple[Side, Side], autojump_clock: trio.testing.MockClock
) -> None:
    """Its own parent is the span in which the program subscribes. A request is like a stream."""
    server, client = sides
    async with penstock.serve(quotes_service(), "memory://a", registry=registry_with(server.spans)):
        async with penstock.connect("memory://a", registry=registry_with(client.spans)) as peer:
            await peer.wait_accepted()
            with client.provider.get_tracer("program").start_as_current_span("order") as order:
                async with peer.subscribe("quotes/EURUSD") as stream:
                    assert len([element async for element in stream]) == 2
                assert await peer.request("twice", b"ab") == b"abab"
        await trio.sleep(1)
    published, subscribed = server.finished(SpanKind.SERVER), client.finished(SpanKind.CLIENT)
    assert [span.name for span in published] == ["penstock quotes/{symbol}", "penstock twice"]
    assert [_parent(span) for span in published] == [_ids(span) for span in subscribed]
    assert {_parent(span) for span in subscribed} == {
        (order.get_span_context().trace_id, order.get_span_context().span_id)
    }
    assert all(span.parent is not None and span.parent.is_remote for span in published)


async def test_a_stream_that_is_opened_before_the_hello_is_in_the_trace_too(
    sides: tuple[Side, Side], autojump_clock: trio.testing.MockClock
) -> None:
    """`subscribe(url)` does not wait, and its subscribe is sent behind the server's hello."""
    server, client = sides
    async with penstock.serve(quotes_service(), "memory://a", registry=registry_with(server.spans)):
        async with penstock.subscribe(
            "memory://a/quotes/EURUSD", registry=registry_with(client.spans)
        ) as stream:
            assert len([element async for element in stream]) == 2
        await trio.sleep(1)
    (published,), (subscribed,) = server.finished(SpanKind.SERVER), client.finished(SpanKind.CLIENT)
    assert _parent(published) == _ids(subscribed)


async def test_a_server_that_subscribes_at_its_client_sends_the_context_as_well(
    sides: tuple[Side, Side], autojump_clock: trio.testing.MockClock
) -> None:
    """The client publishes here, and its span continues that of the server."""
    server, client = sides
    async with penstock.serve(
        penstock.Service(), "memory://a", registry=registry_with(server.spans)
    ) as serving:
        async with penstock.connect(
            "memory://a", service=quotes_service(), registry=registry_with(client.spans)
        ) as peer:
            await peer.wait_accepted()
            async with serving.peers[0].subscribe("quotes/EURUSD") as stream:
                assert len([element async for element in stream]) == 2
        await trio.sleep(1)
    (published,), (subscribed,) = client.finished(SpanKind.SERVER), server.finished(SpanKind.CLIENT)
    assert _parent(published) == _ids(subscribed)


@pytest.mark.parametrize("which", ["server", "client"])
async def test_without_the_extension_on_both_sides_spans_are_not_linked(
    which: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Each side has its own traces."""
    server, client = Side(propagate=which == "server"), Side(propagate=which == "client")
    async with penstock.serve(quotes_service(), "memory://a", registry=registry_with(server.spans)):
        async with (
            penstock.connect("memory://a", registry=registry_with(client.spans)) as peer,
            peer.subscribe("quotes/EURUSD") as stream,
        ):
            assert len([element async for element in stream]) == 2
        await trio.sleep(1)
    (published,), (subscribed,) = server.finished(SpanKind.SERVER), client.finished(SpanKind.CLIENT)
    assert published.parent is None
    assert _ids(published) != _ids(subscribed)


async def test_a_refused_stream_and_a_lost_connection_leave_nothing(
    sides: tuple[Side, Side], autojump_clock: trio.testing.MockClock
) -> None:
    """The span of the subscriber ends with an error; the publisher has no span."""
    server, client = sides
    async with (
        penstock.serve(
            quotes_service(), "memory://a", registry=registry_with(server.spans)
        ) as serving,
        penstock.connect("memory://a", registry=registry_with(client.spans)) as peer,
    ):
        await peer.wait_accepted()
        async with peer.subscribe("missing") as stream:
            with pytest.raises(penstock.Rejected):
                await anext(stream)
        async with peer.subscribe("quiet") as stream:
            await anext(stream)
            await serving.drain(0.1)
            with pytest.raises(penstock.ConnectionLost):
                await anext(stream)
    assert len(server.finished(SpanKind.SERVER)) == 1
    assert len(client.finished(SpanKind.CLIENT)) == 2


async def test_more_streams_than_answers_may_wait_are_opened_at_once(
    sides: tuple[Side, Side], autojump_clock: trio.testing.MockClock
) -> None:
    """Each has its context: a message that goes with a stream has the bound of streams."""
    server, client = sides
    count = Limits().max_subscriptions
    async with penstock.serve(quotes_service(), "memory://a", registry=registry_with(server.spans)):
        async with penstock.connect("memory://a", registry=registry_with(client.spans)) as peer:
            await peer.wait_accepted()
            streams = [peer.subscribe("quiet", demand=1) for _ in range(count)]
            for stream in streams:
                await stream.__aenter__()
            await trio.sleep(1)
            assert len(server.spans._open) == count
            for stream in streams:
                await stream.__aexit__(None, None, None)
        await trio.sleep(1)
    parents = {_parent(span) for span in server.finished(SpanKind.SERVER)}
    assert parents == {_ids(span) for span in client.finished(SpanKind.CLIENT)}


# --- the messages


class Link:
    """The link of a connection on which nothing happens."""

    def __init__(self) -> None:
        self.peer = PeerIdentity(address="a")
        self.reasons: list[str] = []
        self.sent: list[bytes] = []

    def break_off(self, reason: str) -> None:
        self.reasons.append(reason)

    def annotate(self, code: int, body: bytes) -> None:
        self.sent.append(body)


def _active(**options: Any) -> tuple[ActiveTraceContext, Link, Side]:
    side, link = Side(**options), Link()
    active = ActiveTraceContext(link, side.spans)  # type: ignore[arg-type]  # it has what is used
    side.spans.penstock_connection_opened(
        ConnectionOpened(connection=7, address="a", dialect="rsio", accepted=True, peer=link.peer)
    )
    return active, link, side


def test_the_bytes_are_those_of_the_page() -> None:
    """A context is encoded and decoded as the page says."""
    assert encode_context(5, SPAN) == BODY
    context = get_current_span(decode_context(BODY)).get_span_context()
    assert (context.trace_id, context.span_id, context.trace_state.get("a")) == (
        0xAB << 120,
        0xCD << 56,
        "b",
    )


def test_a_span_that_records_nothing_sends_a_context_that_is_ignored() -> None:
    """So the publisher begins its own trace. A state that is too long is left out."""
    body = encode_context(5, NonRecordingSpan(SpanContext(0, 0, is_remote=False)))
    assert not get_current_span(decode_context(body)).get_span_context().is_valid
    long = NonRecordingSpan(
        SpanContext(
            1, 1, is_remote=False, trace_state=TraceState([(f"k{n}", "v" * 200) for n in range(3)])
        )
    )
    assert len(encode_context(5, long)) == len(BODY) - 3


@pytest.mark.parametrize("body", [b"", BODY[:62], BODY + b"x" * 600, BODY[:-1] + b"\xff"])
def test_a_message_that_cannot_be_read_breaks_the_protocol(body: bytes) -> None:
    """It is too short, too long, or no ASCII."""
    active, link, _ = _active()
    active.received(0x74, body, 0.0)
    assert link.reasons == ["protocol:trace"]


@pytest.mark.parametrize(
    "parent", [b"x" * 55, b"ff" + BODY[10:63], b"00-" + b"0" * 32 + BODY[43:63]]
)
def test_a_context_that_is_none_by_the_rules_of_w3c_is_ignored(parent: bytes) -> None:
    """The stream begins its own trace."""
    active, link, _ = _active()
    active.received(0x74, BODY[:8] + parent, 0.0)
    context = active.take(5)
    assert context is not None
    assert not get_current_span(context).get_span_context().is_valid
    assert link.reasons == []


def test_a_long_message_is_refused_before_its_body() -> None:
    """The announced length alone ends the connection."""
    active, link, _ = _active()
    active.check_length(0x74, LONGEST)
    assert link.reasons == []
    active.check_length(0x74, LONGEST + 1)
    assert link.reasons == ["protocol:trace"]


def test_contexts_without_their_streams_are_bounded() -> None:
    """A second one for an id, and one more than `MOST_WAITING`."""
    active, link, _ = _active()
    active.received(0x74, BODY, 0.0)
    active.received(0x74, BODY, 0.0)
    assert link.reasons == ["protocol:trace"]
    active, link, _ = _active()
    for number in range(MOST_WAITING + 1):
        assert link.reasons == []
        active.received(0x74, number.to_bytes(8) + BODY[8:], 0.0)
    assert link.reasons == ["protocol:trace"]


def test_a_stream_that_ends_before_it_is_reported_ends_its_span() -> None:
    """Alone, and with the connection. A refused stream of the peer forgets its context."""
    active, link, side = _active()
    for number in (1, 2):
        active.before_subscribe(number, "p")
    active.on_ended(1, False)
    assert len(side.finished(SpanKind.CLIENT)) == 1
    active.received(0x74, BODY, 0.0)
    active.on_ended(5, True)
    assert active.take(5) is None
    active.closed()
    assert len(side.finished(SpanKind.CLIENT)) == 2
    assert side.holds_nothing()
    assert len(link.sent) == 2


def test_a_stream_beyond_the_bound_of_spans_sends_no_context() -> None:
    """It has no span."""
    active, link, _ = _active(most=1)
    active.before_subscribe(1, "p")
    active.before_subscribe(2, "p")
    assert len(link.sent) == 1
