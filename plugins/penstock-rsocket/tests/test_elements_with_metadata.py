"""Metadata of elements and answers, in both directions, whole and in fragments."""

import copy
import pickle
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio
from _raw import raw_client, raw_server, route
from penstock_rsocket import (
    Error,
    Payload,
    RequestChannel,
    RequestN,
    RequestResponse,
    RequestStream,
)
from trio.testing import MockClock as Clock

import penstock
from penstock.api import Limits, ProtocolError, WithMetadata


def service_of() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("mixed")
    async def mixed() -> AsyncIterator[bytes]:
        yield b"0"
        yield WithMetadata(b"1", metadata=b"one")
        yield b"2"
        yield b"3"
        yield WithMetadata(b"", metadata=b"")

    @service.publisher("after-large")
    async def after_large() -> AsyncIterator[bytes]:
        yield bytes(100_000)
        yield WithMetadata(b"1", metadata=b"one")

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield WithMetadata(bytes(60_000), metadata=bytes(60_000))

    @service.request("answer")
    async def answer() -> bytes:
        return WithMetadata(b"data", metadata=b"beside")

    return service


def test_the_data_is_bytes_and_keeps_its_metadata() -> None:
    """Its copies do so, also after pickling for another process."""
    made = WithMetadata(b"data", metadata=b"beside")
    assert made == b"data"
    for other in (
        made,
        copy.copy(made),
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
    ):  # made here
        assert (bytes(other), other.metadata) == (b"data", b"beside")


async def test_a_service_sends_metadata_with_elements_and_answers(autojump_clock: Clock) -> None:
    """In the order of the elements, also after one that goes in fragments; an answer with its end
    in the same frame.
    """
    async with raw_client(service_of()) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=route("mixed")))
        assert [await raw.next() for _ in range(6)] == [
            Payload(stream_id=1, data=b"0"),
            Payload(stream_id=1, metadata=b"one", data=b"1"),
            Payload(stream_id=1, data=b"2"),
            Payload(stream_id=1, data=b"3"),
            Payload(stream_id=1, metadata=b"", data=b""),
            Payload(stream_id=1, complete=True, next=False),
        ]
        await raw.send(RequestResponse(stream_id=3, metadata=route("answer")))
        assert await raw.next() == Payload(
            stream_id=3, metadata=b"beside", data=b"data", complete=True
        )
        await raw.send(RequestStream(stream_id=5, demand=9, metadata=route("after-large")))
        size = 0
        while isinstance(part := await raw.next(), Payload) and part.metadata is None:
            size += len(part.data)
        assert size == 100_000
        assert part == Payload(stream_id=5, metadata=b"one", data=b"1")


async def test_an_element_that_is_too_long_with_its_metadata_fails_its_stream(
    autojump_clock: Clock,
) -> None:
    """The program is told how much may go."""
    reports: list[BaseException] = []
    limits = replace(Limits(), split_outbound_at=65_536)
    async with raw_client(service_of(), on_violation=reports.append, limits=limits) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=route("large")))
        assert isinstance(await raw.next(), Error)
    assert "60000 bytes with 60000 of metadata" in str(reports[0])


async def test_other_protocols_send_the_data_alone(autojump_clock: Clock) -> None:
    """The same service, over RS.io."""
    async with (
        penstock.serve(service_of(), "memory://plain"),
        penstock.connect("memory://plain") as peer,
    ):
        async with peer.subscribe("mixed") as stream:
            found = [each async for each in stream]
        assert found == [b"0", b"1", b"2", b"3", b""]
        assert {type(each) for each in found} == {bytes}


async def test_the_first_element_of_a_channel_brings_its_metadata(autojump_clock: Clock) -> None:
    """After that of the request."""
    async with raw_server() as (peer, raw):
        elements = [WithMetadata(b"0", metadata=b"zero"), WithMetadata(b"1", metadata=b"one")]
        async with peer.request_channel(elements, metadata=b"m", demand=2) as stream:
            assert await raw.next() == RequestChannel(
                stream_id=1, demand=2, metadata=b"mzero", data=b"0"
            )
            await raw.send(Payload(stream_id=1, metadata=b"back", data=b"a", complete=True))
            found = await anext(stream)
    assert (found, found.metadata) == (b"a", b"back")


ELEMENTS = [
    [Payload(stream_id=1, metadata=b"m" * 100, data=b"abc")],
    [
        Payload(stream_id=1, metadata=b"m" * 64, data=b"", follows=True),
        Payload(stream_id=1, metadata=b"m" * 36, data=b"a" * 64, follows=True),
        Payload(stream_id=1, data=b"bc"),
    ],
    [
        Payload(stream_id=1, metadata=b"m" * 99, follows=True),
        Payload(stream_id=1, metadata=b"m", data=b"abc"),
    ],
    [
        Payload(stream_id=1, metadata=b"m" * 100, data=b"a", follows=True),
        Payload(stream_id=1, data=b"b" * 64, follows=True),
        Payload(stream_id=1, data=b"c"),
    ],
]


@pytest.mark.parametrize("frames", ELEMENTS)
async def test_a_client_reads_the_metadata_of_elements_and_answers(
    autojump_clock: Clock, frames: list[Payload]
) -> None:
    """Whole and in fragments, in a stream and as an answer. The next element has no metadata."""
    data = b"".join(frame.data for frame in frames)
    async with raw_server() as (peer, raw):
        async with peer.subscribe("a", demand=9) as stream:
            await raw.next()
            await raw.send(*frames, Payload(stream_id=1, data=b"plain", complete=True))
            first, second = [each async for each in stream]
        assert (first, first.metadata) == (data, b"m" * 100)
        assert (second, type(second)) == (b"plain", bytes)
        answers: list[WithMetadata] = []

        async def ask() -> None:
            answers.append(await peer.request("a"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await raw.next()
            await raw.send(*(replace_id(frame, 3) for frame in frames))
        assert (answers[0], answers[0].metadata) == (data, b"m" * 100)


def replace_id(frame: Payload, stream_id: int) -> Payload:
    return Payload(
        stream_id=stream_id, metadata=frame.metadata, data=frame.data, follows=frame.follows
    )


async def test_metadata_after_data_ends_the_stream(autojump_clock: Clock) -> None:
    """Of one element: the specification has metadata first."""
    async with raw_server() as (peer, raw), peer.subscribe("a", demand=9) as stream:
        await raw.next()
        await raw.send(
            Payload(stream_id=1, metadata=b"m" * 64, data=b"d" * 64, follows=True),
            Payload(stream_id=1, metadata=b"m" * 64, follows=True),
        )
        with pytest.raises(ProtocolError, match="metadata came after the data"):
            await anext(stream)


@pytest.mark.parametrize("in_fragments", [False, True])
async def test_metadata_counts_as_bytes_that_are_not_read(
    autojump_clock: Clock,
    in_fragments: bool,  # a parameter of the test
) -> None:
    """A subscriber that does not read asks for as many elements as fit into its window, metadata
    included.
    """
    beside, window = bytes(20_000), 200_000
    async with raw_server() as (peer, raw):
        async with peer.subscribe("a", demand=300, window_bytes=window) as stream:
            asked = await raw.next()
            assert isinstance(asked, RequestStream)
            granted, sent = asked.demand, 0
            while granted:
                granted, sent = granted - 1, sent + 1
                if in_fragments:
                    await raw.send(
                        Payload(stream_id=1, metadata=beside, follows=True),
                        Payload(stream_id=1, data=b"x"),
                    )
                else:
                    await raw.send(Payload(stream_id=1, metadata=beside, data=b"x"))
                await trio.testing.wait_all_tasks_blocked()
                if not granted:
                    # One element is read, so that the subscriber looks at its window.
                    await anext(stream)
                    with trio.move_on_after(1):
                        more = await raw.next()
                        assert isinstance(more, RequestN)
                        granted = more.demand
                if sent > 60:
                    break
    # Without the count it would be all 300.
    assert sent <= 60
