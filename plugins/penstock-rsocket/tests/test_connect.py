"""Tests of a client, frame by frame."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import penstock_rsocket as rsocket
import pytest
import trio
from _raw import SETUP, URL, Raw, raw_client, raw_listener, raw_server, route
from penstock_rsocket import (
    Cancel,
    Error,
    ErrorCode,
    Keepalive,
    Payload,
    RequestFnf,
    RequestResponse,
    RequestStream,
    SetupData,
    find_entry,
)
from trio.testing import MockClock as Clock

import penstock
from penstock.api import Limits, PublisherFailed


async def test_the_setup_says_what_the_program_says(autojump_clock: Clock) -> None:
    """Times by the limits, MIME types and data by `SetupData`, credentials as metadata."""
    limits = replace(Limits(), keepalive=5.0, keepalive_timeout=2.5)
    setup = SetupData(b"hi", data_type="application/json")
    credentials = penstock.Credentials.bearer("tok")
    async with raw_listener() as (_, listener):
        async with penstock.connect(URL, limits=limits, setup=setup, credentials=credentials):
            raw = Raw(await listener.accept())
            first = await raw.next()
            await raw.close()
    assert isinstance(first, rsocket.Setup)
    assert (first.keepalive, first.lifetime) == (5000, 7500)
    assert (first.metadata_type, first.data_type) == (rsocket.COMPOSITE, "application/json")
    assert first.data == b"hi"
    assert find_entry(first.metadata or b"", rsocket.AUTHENTICATION) == b"\x81tok"
    assert "hi" not in repr(setup)


async def test_names_are_routes_and_ids_are_odd(autojump_clock: Clock) -> None:
    """Requests, messages, streams."""
    async with raw_server() as (peer, raw), trio.open_nursery() as nursery:
        nursery.start_soon(peer.request, "a.b", b"data")
        assert await raw.next() == RequestResponse(stream_id=1, metadata=route("a.b"), data=b"data")
        nursery.start_soon(peer.request_response, b"alone")
        assert await raw.next() == RequestResponse(stream_id=3, data=b"alone")
        await peer.fire_and_forget(b"message")
        assert await raw.next() == RequestFnf(stream_id=5, data=b"message")
        async with peer.subscribe("quotes", demand=7):
            assert await raw.next() == RequestStream(
                stream_id=7, demand=7, metadata=route("quotes")
            )
        assert await raw.next() == Cancel(stream_id=7)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("answer", "error", "processed"),
    [
        (Error(stream_id=1, code=ErrorCode.REJECTED, data=b"no"), penstock.Rejected, False),
        (Error(stream_id=1, code=ErrorCode.CANCELED, data=b"no"), penstock.Rejected, True),
        (Error(stream_id=1, code=ErrorCode.INVALID, data=b"no"), penstock.Rejected, True),
        (Error(stream_id=1, code=ErrorCode.APPLICATION_ERROR, data=b"no"), PublisherFailed, None),
        (Error(stream_id=1, code=0x4711, data=b"no"), PublisherFailed, None),
    ],
)
async def test_a_code_decides_what_is_raised(
    autojump_clock: Clock, answer: Error, error: type[Exception], processed: bool | None
) -> None:
    """REJECTED says that nothing was done; a number of an application is kept."""
    async with raw_server() as (peer, raw):
        await raw.send(answer)  # its request is not sent yet: it is for no stream
        caught: list[BaseException] = []

        async def ask() -> None:
            try:
                await peer.request("a")
            except penstock.PenstockError as failed:
                caught.append(failed)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            assert isinstance(await raw.next(), RequestResponse)
            await raw.send(answer)
        assert type(caught[0]) is error
        assert "no" in str(caught[0])
        assert getattr(caught[0], "processed", None) is processed
        assert isinstance(caught[0], PublisherFailed | penstock.Rejected)
        assert caught[0].code == answer.code


@pytest.mark.parametrize(
    "answers",
    [
        [Payload(stream_id=1, data=b"abc", complete=True)],
        [Payload(stream_id=1, data=b"abc"), Payload(stream_id=1, complete=True, next=False)],
        [Payload(stream_id=1, metadata=b"m", data=b"abc")],
        [
            Payload(stream_id=1, metadata=b"m" * 64, data=b"a" * 1, follows=True),
            Payload(stream_id=1, data=b"bc", complete=True),
        ],
        [
            Payload(stream_id=1, metadata=b"m" * 64, follows=True),
            Payload(stream_id=1, metadata=b"m" * 64, data=b"a", follows=True),
            Payload(stream_id=1, data=b"bc", follows=True, complete=True),
        ],
    ],
)
async def test_an_answer_has_many_forms(autojump_clock: Clock, answers: list[Payload]) -> None:
    """With its end and without it, in fragments, with metadata, which is dropped."""
    async with raw_server() as (peer, raw):
        got: list[bytes] = []

        async def ask() -> None:
            got.append(await peer.request("a"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            assert isinstance(await raw.next(), RequestResponse)
            await raw.send(*answers)
        assert got == [b"abc"]
        await raw.send(Keepalive(respond=True, data=b"still there"))
        assert await raw.next(keepalives=True) == Keepalive(data=b"still there")


async def test_a_long_request_goes_in_fragments(autojump_clock: Clock) -> None:
    """The request with its metadata and the first of the data, then PAYLOAD frames."""
    data = bytes(range(250)) * 200
    async with raw_server() as (peer, raw), trio.open_nursery() as nursery:
        nursery.start_soon(peer.request, "a", data)
        first = await raw.next()
        assert isinstance(first, RequestResponse)
        assert (first.metadata, first.follows) == (route("a"), True)
        joined = first.data
        follows = True
        while follows:
            part = await raw.next()
            assert isinstance(part, Payload)
            assert (part.stream_id, part.next, part.complete) == (1, True, False)
            joined, follows = joined + part.data, part.follows
        assert joined == data
        nursery.cancel_scope.cancel()


async def test_a_refused_setup_says_that_nothing_was_done(autojump_clock: Clock) -> None:
    """`Rejected(processed=False)`, also for requests that followed the SETUP."""
    refusal = Error(stream_id=0, code=ErrorCode.UNSUPPORTED_SETUP, data=b"no json")

    async def refuse(listener: Any) -> None:
        raw = Raw(await listener.accept())
        await raw.send(refusal)

    async with raw_listener() as (nursery, listener):
        nursery.start_soon(refuse, listener)
        with pytest.raises(penstock.Rejected, match="no json") as caught:
            async with penstock.connect(URL) as peer:
                await peer.request("a")
        assert not caught.value.processed


async def test_an_answer_shows_that_the_setup_was_accepted(autojump_clock: Clock) -> None:
    """Before any other frame of the server. An ERROR after it refuses no SETUP."""
    got: list[bytes] = []
    async with raw_listener() as (nursery, listener), penstock.connect(URL) as peer:
        raw = Raw(await listener.accept())

        async def ask() -> None:
            got.append(await peer.request("a"))

        nursery.start_soon(ask)
        assert isinstance(await raw.next(), rsocket.Setup)
        assert isinstance(await raw.next(), RequestResponse)
        await raw.send(Payload(stream_id=1, data=b"abc", complete=True))
        async with peer.subscribe("quotes") as stream:
            assert isinstance(await raw.next(), RequestStream)
            await raw.send(Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"late"))
            with pytest.raises(penstock.ConnectionLost, match="late"):
                await anext(stream)
        await raw.close()
    assert got == [b"abc"]


GOING = Error(stream_id=0, code=ErrorCode.CONNECTION_CLOSE, data=b"going")


@pytest.mark.parametrize("ends", [True, False])
async def test_a_server_that_leaves_may_end_its_streams(autojump_clock: Clock, ends: bool) -> None:
    """After CONNECTION_CLOSE a client reads what still comes, and leaves after its last stream. A
    stream that the end of the connection cuts gets the words of the server.
    """
    async with raw_server() as (peer, raw), peer.subscribe("quotes", demand=9) as stream:
        assert isinstance(await raw.next(), RequestStream)
        await raw.send(Payload(stream_id=1, data=b"one"), GOING)
        assert await anext(stream) == b"one"
        await trio.sleep(5)
        await raw.send(Payload(stream_id=1, data=b"two"))
        assert await anext(stream) == b"two"
        if ends:
            await raw.send(Payload(stream_id=1, complete=True, next=False))
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            assert await raw.next() is None
        else:
            await raw.close()
            with pytest.raises(penstock.ConnectionLost, match="going"):
                await anext(stream)


async def test_a_stream_that_a_leaving_server_refuses_may_be_asked_elsewhere(
    autojump_clock: Clock,
) -> None:
    """REJECTED says that nothing was done, and CONNECTION_CLOSE why."""
    caught: list[penstock.Rejected] = []
    async with raw_server() as (peer, raw), peer.subscribe("quotes"):
        assert isinstance(await raw.next(), RequestStream)
        await raw.send(GOING)
        await trio.sleep(0.1)

        async def ask() -> None:
            try:
                await peer.request("a")
            except penstock.Rejected as refused:
                caught.append(refused)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            assert isinstance(await raw.next(), RequestResponse)
            await raw.send(Error(stream_id=3, code=ErrorCode.REJECTED, data=b"no"))
    assert [(each.temporary, each.processed) for each in caught] == [(True, False)]


async def test_requests_after_a_goodbye_go_to_another_connection(autojump_clock: Clock) -> None:
    """A client that may connect again does so, and its open stream goes on over the first one."""

    async def accept(listener: Any) -> Raw:
        raw = Raw(await listener.accept())
        assert isinstance(await raw.next(keepalives=True), rsocket.Setup)
        assert await raw.next(keepalives=True) == Keepalive(respond=True)
        return await raw.send(Keepalive())

    async with (
        raw_listener() as (nursery, listener),
        penstock.connect(URL, reconnect=penstock.Reconnect()) as peer,
    ):
        first = await accept(listener)
        async with peer.subscribe("quotes", demand=9) as stream:
            assert isinstance(await first.next(), RequestStream)
            await first.send(GOING)
            second = await accept(listener)
            nursery.start_soon(peer.request, "a")
            assert await second.next() == RequestResponse(stream_id=1, metadata=route("a"))
            await second.send(Payload(stream_id=1, complete=True))
            await first.send(Payload(stream_id=1, data=b"one"))
            assert await anext(stream) == b"one"
        for raw in (first, second):
            await raw.close()


async def test_an_element_that_cannot_be_read_ends_its_stream(autojump_clock: Clock) -> None:
    """Its frame has the flag I, and metadata that is cut. Without the element the stream would have
    a hole.
    """
    async with raw_server() as (peer, raw), peer.subscribe("quotes", demand=9) as stream:
        assert isinstance(await raw.next(), RequestStream)
        await raw.send_bytes(bytes.fromhex("000009 00000001 2b20 0fffff"))
        with pytest.raises(penstock.ProtocolError, match="a frame was skipped"):
            await anext(stream)
        assert await raw.next() == Cancel(stream_id=1)


async def test_a_server_may_ask_its_client(autojump_clock: Clock) -> None:
    """With even ids; the client answers by its service."""
    service = penstock.Service()

    @service.request("name")
    async def name() -> bytes:
        return b"client"

    async with raw_server(service=service) as (_, raw):
        await raw.send(RequestResponse(stream_id=2, metadata=route("name")))
        assert await raw.next() == Payload(stream_id=2, data=b"client", complete=True)
        await raw.send(RequestResponse(stream_id=3, metadata=route("name")))  # not its id
        await raw.send(RequestResponse(stream_id=4, metadata=route("name")))
        assert await raw.next() == Payload(stream_id=4, data=b"client", complete=True)


async def test_late_elements_of_a_cancelled_stream_are_dropped(autojump_clock: Clock) -> None:
    """They have crossed the CANCEL."""
    async with raw_server() as (peer, raw):
        async with peer.request_stream(b"all", demand=100):
            assert isinstance(await raw.next(), RequestStream)
        assert await raw.next() == Cancel(stream_id=1)
        await raw.send(
            *(Payload(stream_id=1, data=b"late") for _ in range(50)),
            Payload(stream_id=1, complete=True, next=False),
            Keepalive(respond=True, data=b"!"),
        )
        assert await raw.next(keepalives=True) == Keepalive(data=b"!")


async def test_a_name_that_is_no_route_is_a_usage_error(autojump_clock: Clock) -> None:
    """It takes no id."""
    async with raw_server(setup=SetupData(metadata_type="text/plain")) as (peer, raw):
        with pytest.raises(penstock.UsageError, match="has no place for it"):
            await peer.request("a")
        async with peer.request_stream(b"raw"):
            frame = await raw.next()
            assert isinstance(frame, RequestStream)
            assert frame.stream_id == 1
    async with raw_server() as (peer, _):
        with pytest.raises(penstock.UsageError, match="a route of RSocket has 255 at most"):
            await peer.request("a" * 256)
        with pytest.raises(penstock.UsageError, match="ASCII"):
            SetupData(data_type="ä")


async def test_both_sides_are_penstock(autojump_clock: Clock) -> None:
    """Every model, elements of all lengths, over memory."""
    service = penstock.Service()

    @service.publisher("sizes")
    async def sizes() -> AsyncIterator[bytes]:
        for size in (0, 1, 20_000, 3, 70_000, 5):
            yield bytes(size)

    async with raw_client(service, SETUP):
        pass  # a client that leaves at once harms nothing
    async with (
        penstock.serve(service, URL),
        penstock.connect(URL) as peer,
    ):
        async with peer.subscribe("sizes", demand=2) as stream:
            assert [len(element) async for element in stream] == [0, 1, 20_000, 3, 70_000, 5]
        with pytest.raises(penstock.Rejected) as caught:
            await peer.request("missing")
        assert not caught.value.processed


async def test_a_message_may_have_a_name(autojump_clock: Clock) -> None:
    """As a route. On a connection without routes it is refused."""
    async with raw_server() as (peer, raw):
        await peer.fire_and_forget(b"data", name="log")
        assert await raw.next() == RequestFnf(stream_id=1, metadata=route("log"), data=b"data")
    service = penstock.Service()
    async with (
        penstock.serve(service, "memory://tests"),
        penstock.connect("reactivesocket+memory://tests") as peer,
    ):
        with pytest.raises(penstock.UsageError, match="has data and no name"):
            await peer.fire_and_forget(b"data", name="log")


async def test_metadata_about_the_connection_crosses(autojump_clock: Clock) -> None:
    """It is sent in both directions, on stream 0, and without an id."""
    service, got = penstock.Service(), list[bytes]()

    @service.metadata_push
    async def pushed(metadata: bytes) -> None:
        got.append(metadata)

    @service.request("done")
    async def done() -> bytes:
        return b""

    async with raw_server(service=service) as (peer, raw):
        await peer.metadata_push(b"about us")
        assert await raw.next() == rsocket.MetadataPush(metadata=b"about us")
        async with peer.request_stream(b"data", name="quotes", demand=3):
            assert await raw.next() == RequestStream(
                stream_id=1, demand=3, metadata=route("quotes"), data=b"data"
            )
        assert await raw.next() == Cancel(stream_id=1)
        await raw.send(
            rsocket.MetadataPush(metadata=b"about you"),
            RequestResponse(stream_id=2, metadata=route("done")),
        )
        assert await raw.next() == Payload(stream_id=2, complete=True)
    assert got == [b"about you"]
    with pytest.raises(penstock.UsageError, match="make it an `async def`"):
        service.metadata_push(lambda _: None)
