"""Traces: Zipkin's metadata on the wire, and the extension *trace-context* on this side."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
from _raw import SETUP, raw_client, raw_server, route
from penstock_rsocket import (
    ROUTING,
    TRACING,
    Payload,
    RequestFnf,
    RequestResponse,
    RequestStream,
    SetupData,
    Trace,
    decode_trace,
    encode_composite,
    encode_trace,
    find_entry,
)
from penstock_rsocket._traces import message_of, trace_of
from trio.testing import MockClock as Clock

import penstock
from penstock.spi import Factory, build_registry, hookimpl

TRACE = Trace(trace_id=0xAB << 64, span_id=0xCD, is_long=True, sampled=True)
MESSAGE = bytes(7) + b"\x01" + b"00-00000000000000ab0000000000000000-00000000000000cd-01"
NO_TRACE = bytes(8) + b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-00"


class Traces:
    """An extension in the place of that of penstock-metrics: it sends one trace with each stream,
    and notes those that come.
    """

    id: int = 0x7470
    name: str = "trace-context"
    codes: frozenset[int] = frozenset({0x74})

    def __init__(self, message: bytes = MESSAGE) -> None:
        self.message = message
        self.got: list[bytes] = []
        self.ended: list[tuple[int, bool]] = []

    def open(self, link: Any, _now: float, /) -> "ActiveTraces":
        return ActiveTraces(self, link)


class ActiveTraces:
    goes_with_streams = True

    def __init__(self, traces: Traces, link: Any) -> None:
        self._traces = traces
        self._link = link

    def before_subscribe(self, stream_id: int, _target: Any, /) -> None:
        self._link.annotate(0x74, stream_id.to_bytes(8) + self._traces.message[8:])

    def received(self, type: int, body: bytes, _now: float, /) -> None:  # noqa: A002  # the protocol's word
        assert type == 0x74
        self._traces.got.append(body)

    def on_ended(self, stream_id: int, is_served: bool, /) -> None:  # passed by place
        self._traces.ended.append((stream_id, is_served))


def registry_with(traces: Traces) -> Any:
    @hookimpl
    def penstock_extensions() -> list[Factory]:
        return [Factory(name=Traces.name, id=Traces.id, make=lambda: traces, summary="")]

    return build_registry([SimpleNamespace(penstock_extensions=penstock_extensions)])


def service_of() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"1"

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    return service


# --- the two forms


@pytest.mark.parametrize(
    "trace",
    [
        TRACE,
        Trace(trace_id=1, span_id=2, is_long=True, sampled=False),
        Trace(trace_id=(1 << 128) - 1, span_id=(1 << 64) - 1, is_long=True, sampled=True),
    ],
)
def test_a_trace_keeps_its_ids_and_its_decision(trace: Trace) -> None:
    """From one form to the other and back."""
    message = message_of(5, trace)
    assert message is not None
    assert message[:8] == bytes(7) + b"\x05"
    assert trace_of(message) == trace


def test_what_has_no_place_in_the_other_form() -> None:
    """A short id is filled up, debug means sampled, and no id means no trace."""
    short = Trace(trace_id=0xAB, span_id=1, parent_id=7, debug=True)
    assert message_of(1, short) == (
        bytes(7) + b"\x01" + b"00-" + b"0" * 30 + b"ab-" + b"0" * 15 + b"1-01"
    )
    for trace in (Trace(sampled=True), Trace(trace_id=0, span_id=1), Trace(trace_id=1)):
        assert message_of(1, trace) is None
    for message in (NO_TRACE, MESSAGE[:30], b"", MESSAGE.replace(b"00-", b"ff-")):
        assert trace_of(message) is None
    assert trace_of(MESSAGE + b"a=b") == TRACE


# --- on the wire


async def test_a_client_sends_the_trace_of_each_stream_and_request(autojump_clock: Clock) -> None:
    """It is sent after the route and the metadata of the program. A message carries no trace."""
    traces = Traces()
    async with raw_server(registry=registry_with(traces)) as (peer, raw):
        entry = encode_composite([(TRACING, encode_trace(TRACE))])
        async with peer.subscribe("a", demand=2):
            assert await raw.next() == RequestStream(
                stream_id=1, demand=2, metadata=route("a") + entry
            )
        await raw.next()
        more = encode_composite([("a/b", b"c")])
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                await peer.request("a", b"1", metadata=more)
                await peer.request_response(b"2")

            nursery.start_soon(ask)
            assert await raw.next() == RequestResponse(
                stream_id=3, metadata=route("a") + more + entry, data=b"1"
            )
            await raw.send(Payload(stream_id=3, complete=True))
            assert await raw.next() == RequestResponse(stream_id=5, metadata=entry, data=b"2")
            await raw.send(Payload(stream_id=5, complete=True))
        await peer.fire_and_forget(b"3")
        assert await raw.next() == RequestFnf(stream_id=7, data=b"3")
    assert [(stream_id, served) for stream_id, served in traces.ended if not served][1:] == [
        (3, False),
        (5, False),
    ]


@pytest.mark.parametrize("message", [NO_TRACE, b"short"])
async def test_no_trace_changes_nothing(autojump_clock: Clock, message: bytes) -> None:
    """A span that records nothing has no ids."""
    async with raw_server(registry=registry_with(Traces(message))) as (peer, raw):
        async with peer.subscribe("a", demand=2):
            assert await raw.next() == RequestStream(stream_id=1, demand=2, metadata=route("a"))


async def test_the_trace_of_the_program_counts(autojump_clock: Clock) -> None:
    """And metadata without room goes alone."""
    own = encode_composite([(TRACING, encode_trace(Trace(trace_id=1, span_id=2)))])
    async with raw_server(registry=registry_with(Traces())) as (peer, raw):
        async with peer.request_stream(b"", name="a", metadata=own, demand=2):
            asked = await raw.next()
            assert isinstance(asked, RequestStream)
            assert asked.metadata == route("a") + own
        await raw.next()
        most = peer._connection.session.channel.dialect.max_unsplit - 64  # the bound itself
        full = encode_composite([("a/b", bytes(most - 4 - len(route("a")) - 4))])
        async with peer.request_stream(b"", name="a", metadata=full, demand=2):
            asked = await raw.next()
            assert isinstance(asked, RequestStream)
            assert find_entry(asked.metadata or b"", TRACING) is None


async def test_other_metadata_than_composite_has_no_place_for_a_trace(
    autojump_clock: Clock,
) -> None:
    """Then the extension does not begin."""
    setup = SetupData(metadata_type=ROUTING)
    async with raw_server(registry=registry_with(Traces()), setup=setup) as (peer, raw):
        async with peer.subscribe("a", demand=2):
            assert await raw.next() == RequestStream(stream_id=1, demand=2, metadata=b"\x01a")


async def test_a_service_gets_the_trace_before_its_stream_begins(autojump_clock: Clock) -> None:
    """Of streams and requests, whole and in fragments; one that cannot be read is ignored."""
    traces = Traces()
    entry = encode_composite([(TRACING, encode_trace(TRACE))])
    broken = encode_composite([(TRACING, b"\x80short")])
    async with raw_client(service_of(), registry=registry_with(traces)) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=route("one") + entry))
        assert await raw.next() == Payload(stream_id=1, data=b"1")
        await raw.next()
        for stream_id, metadata in ((3, route("echo") + broken), (5, route("echo"))):
            await raw.send(RequestResponse(stream_id=stream_id, metadata=metadata, data=b"a"))
            assert await raw.next() == Payload(stream_id=stream_id, data=b"a", complete=True)
        await raw.send(
            RequestResponse(
                stream_id=7, metadata=route("echo") + entry, data=b"a" * 64, follows=True
            ),
            Payload(stream_id=7, data=b"b"),
        )
        assert await raw.next() == Payload(stream_id=7, data=b"a" * 64 + b"b", complete=True)
        await raw.send(RequestFnf(stream_id=9, metadata=route("echo") + entry, data=b"a"))
        await raw.send(RequestResponse(stream_id=11, metadata=route("nothing") + entry))
        await raw.next()
    assert traces.got == [stream_id.to_bytes(8) + MESSAGE[8:] for stream_id in (1, 7, 11)]
    # The extension forgets the trace of a stream that was refused.
    assert (11, True) in traces.ended


async def test_a_client_with_other_metadata_gives_no_trace(autojump_clock: Clock) -> None:
    """Its metadata is a route alone."""
    traces = Traces()
    setup = attrs.evolve(SETUP, metadata_type=ROUTING)
    async with raw_client(service_of(), setup, registry=registry_with(traces)) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=b"\x03one"))
        assert await raw.next() == Payload(stream_id=1, data=b"1")
    assert not traces.got


async def test_spans_of_both_sides_are_one_trace(autojump_clock: Clock) -> None:
    """With the spans of penstock-metrics: that of the publisher is a child of the subscriber's."""
    opentelemetry = pytest.importorskip("penstock_metrics.opentelemetry")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporters, registries = [], []
    for _ in "ab":
        exporter = memory.InMemorySpanExporter()
        provider = sdk.TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(export.SimpleSpanProcessor(exporter))
        exporters.append(exporter)
        registries.append(build_registry([opentelemetry.Spans(provider)]))
    url = "rsocket+memory://spans"
    async with (
        penstock.serve(service_of(), url, registry=registries[0]),
        penstock.connect(url, registry=registries[1]) as peer,
    ):
        async with peer.subscribe("one") as stream:
            assert [each async for each in stream] == [b"1"]
        assert await peer.request("echo", b"a") == b"a"
    served, asked = (
        {span.context.trace_id: span for span in each.get_finished_spans()} for each in exporters
    )
    assert len(asked) == 2
    assert served.keys() == asked.keys()
    for trace_id, span in served.items():
        assert span.parent.span_id == asked[trace_id].context.span_id
    assert decode_trace(encode_trace(TRACE)) == TRACE
