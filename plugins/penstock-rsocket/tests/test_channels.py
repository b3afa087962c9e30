"""Tests of channels, frame by frame, on both sides."""

from collections.abc import AsyncIterator

import penstock_rsocket as rsocket
import pytest
import trio.testing
from _raw import URL, Raw, raw_client, raw_server, route
from penstock_rsocket import Cancel, Error, ErrorCode, Payload, RequestChannel, RequestN
from trio.testing import MockClock as Clock

import penstock
from penstock import PublisherFailed, Source


async def numbers(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"%d" % number


def service_of() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("twice/{demand}")
    async def twice(demand: int, elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=demand) as stream:
            async for element in stream:
                yield element * 2

    @service.publisher("first")
    async def first(elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=1) as stream:
            yield await anext(stream)

    @service.publisher("deaf")
    async def deaf(elements: Source[bytes]) -> AsyncIterator[bytes]:
        yield b"a"

    @service.publisher("plain")
    async def plain() -> AsyncIterator[bytes]:
        yield b"a"

    @service.publisher("fails")
    async def fails(elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=1) as stream:
            yield await anext(stream)
            raise penstock.PublicError("enough")

    @service.request_channel
    async def echo(elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements) as stream:
            async for element in stream:
                yield element

    return service


async def open_channel(raw: Raw, name: str, *, complete: bool = False) -> None:
    await raw.send(
        RequestChannel(stream_id=1, demand=100, metadata=route(name), data=b"0", complete=complete)
    )


async def test_each_direction_has_its_demand(autojump_clock: Clock) -> None:
    """The first element needs none. The service requests the others, and the end crosses."""
    async with raw_client(service_of()) as raw:
        await open_channel(raw, "twice/2")
        got = [await raw.next(), await raw.next()]
        assert RequestN(stream_id=1, demand=1) in got
        assert Payload(stream_id=1, data=b"00") in got
        await raw.send(Payload(stream_id=1, data=b"1"))
        while (frame := await raw.next()) != Payload(stream_id=1, data=b"11"):
            assert isinstance(frame, RequestN)
        await raw.send(Payload(stream_id=1, data=b"2", complete=True))
        while (frame := await raw.next()) != Payload(stream_id=1, data=b"22"):
            assert isinstance(frame, RequestN)
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


async def test_a_channel_of_one_element(autojump_clock: Clock) -> None:
    """The flag C on the request: nothing is requested."""
    async with raw_client(service_of()) as raw:
        await open_channel(raw, "twice/5", complete=True)
        assert await raw.next() == Payload(stream_id=1, data=b"00")
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


async def test_a_channel_without_a_name_is_for_its_handler(autojump_clock: Clock) -> None:
    """`Service.request_channel`."""
    async with raw_client(service_of()) as raw:
        await raw.send(RequestChannel(stream_id=1, demand=5, data=b"x", complete=True))
        assert await raw.next() == Payload(stream_id=1, data=b"x")
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


async def test_a_first_element_in_fragments(autojump_clock: Clock) -> None:
    """It is joined before the channel begins."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestChannel(
                stream_id=1, demand=5, metadata=route("twice/1"), data=b"a" * 99, follows=True
            ),
            Payload(stream_id=1, data=b"b" * 99),
            Payload(stream_id=1, complete=True, next=False),
        )
        assert await raw.next() == Payload(
            stream_id=1, data=b"a" * 99 + b"b" * 99 + b"a" * 99 + b"b" * 99
        )
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


@pytest.mark.parametrize(
    "rest",
    [
        [Payload(stream_id=1, data=b"b", complete=True)],
        [Payload(stream_id=1, data=b"b", complete=True, next=False)],
        [
            Payload(stream_id=1, data=b"", follows=True),
            Payload(stream_id=1, data=b"b", complete=True),
        ],
    ],
    ids=["NEXT and COMPLETE", "COMPLETE alone", "three fragments"],
)
async def test_the_last_fragment_of_the_only_element_may_end_the_channel(
    rest: list[Payload], autojump_clock: Clock
) -> None:
    """As rsocket-js and rsocket-py send a channel of one large element."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestChannel(
                stream_id=1, demand=5, metadata=route("twice/5"), data=b"a" * 99, follows=True
            ),
            *rest,
        )
        assert await raw.next() == Payload(stream_id=1, data=(b"a" * 99 + b"b") * 2)
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


async def test_an_end_before_the_first_demand_takes_no_element(autojump_clock: Clock) -> None:
    """The service has subscribed and asks later: the element comes before the end."""
    service, ended = penstock.Service(), trio.Event()

    @service.publisher("late")
    async def late(sent: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(sent, demand=0) as stream:
            yield b"subscribed"
            await ended.wait()
            stream.request(5)
            async for element in stream:
                yield element

    async with raw_client(service) as raw:
        await open_channel(raw, "late")
        assert await raw.next() == Payload(stream_id=1, data=b"subscribed")
        await raw.send(Payload(stream_id=1, complete=True, next=False))
        await trio.testing.wait_all_tasks_blocked()
        ended.set()
        assert await raw.next() == Payload(stream_id=1, data=b"0")
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


@pytest.mark.parametrize("name", ["first", "deaf"])
async def test_a_service_that_wants_no_more_cancels(name: str, autojump_clock: Clock) -> None:
    """CANCEL ends the direction towards it, whether it has read or not."""
    async with raw_client(service_of()) as raw:
        await open_channel(raw, name)
        frames = [await raw.next() for _ in range(3)]
        assert Cancel(stream_id=1) in frames
        assert Payload(stream_id=1, complete=True, next=False) in frames


async def test_an_error_ends_both_directions(autojump_clock: Clock) -> None:
    """The error may be of the service or of the peer."""
    async with raw_client(service_of()) as raw:
        await open_channel(raw, "fails")
        assert await raw.next() == Payload(stream_id=1, data=b"0")
        found = [await raw.next()]
        while not isinstance(found[-1], Error):
            found.append(await raw.next())
        assert found[-1] == Error(stream_id=1, code=0x201, data=b"enough")
        await raw.send(
            RequestChannel(stream_id=3, demand=9, metadata=route("twice/1"), data=b"0"),
        )
        assert await raw.next() == Payload(stream_id=3, data=b"00")
        await raw.send(
            Error(stream_id=3, code=0x201, data=b"mine"),
            Payload(stream_id=3, data=b"late"),
            RequestChannel(stream_id=5, demand=9, metadata=route("plain"), data=b"0"),
        )
        refused = await raw.next()
        while not isinstance(refused, Error):
            assert refused == RequestN(stream_id=3, demand=1)
            refused = await raw.next()
        assert refused == Error(
            stream_id=5,
            code=ErrorCode.APPLICATION_ERROR,
            data=b"plain takes no elements, and a channel was asked for: it would drop them",
        )


async def test_a_stream_of_a_publisher_with_elements_has_none(autojump_clock: Clock) -> None:
    """REQUEST_STREAM brings no elements."""
    async with raw_client(service_of()) as raw:
        await raw.send(rsocket.RequestStream(stream_id=1, demand=9, metadata=route("twice/1")))
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


async def test_the_first_element_opens_a_channel(autojump_clock: Clock) -> None:
    """It is in the request; the others follow the demand of the server."""
    async with raw_server() as (peer, raw):
        async with peer.request_channel(numbers(4), name="a", demand=3) as stream:
            first = await raw.next()
            assert isinstance(first, RequestChannel)
            assert (first.stream_id, first.metadata, first.data) == (1, route("a"), b"0")
            await raw.send(RequestN(stream_id=1, demand=2), Payload(stream_id=1, data=b"x"))
            assert await anext(stream) == b"x"
            frames = [await raw.next() for _ in range(2)]
            assert frames == [Payload(stream_id=1, data=b"1"), Payload(stream_id=1, data=b"2")]
            await raw.send(RequestN(stream_id=1, demand=100))
            frames = [await raw.next() for _ in range(2)]
            assert Payload(stream_id=1, data=b"3") in frames
            await raw.send(Payload(stream_id=1, data=b"y", complete=True))
            assert [element async for element in stream] == [b"y"]


async def test_a_server_may_cancel_what_it_gets(autojump_clock: Clock) -> None:
    """Its own elements go on."""
    async with raw_server() as (peer, raw):
        async with peer.request_channel(numbers(1000)) as stream:
            assert isinstance(await raw.next(), RequestChannel)
            await raw.send(Cancel(stream_id=1), Payload(stream_id=1, data=b"x"))
            assert await anext(stream) == b"x"
            await raw.send(Payload(stream_id=1, complete=True, next=False))
            assert [element async for element in stream] == []


@pytest.mark.parametrize(
    ("demand", "who"), [(0, "the peer has broken the contract"), (1, "the elements of this side")]
)
async def test_the_error_of_a_channel_says_which_side_has_failed(
    demand: int, who: str, autojump_clock: Clock
) -> None:
    """An illegal demand of the server, or the publisher of this side."""

    async def failing() -> AsyncIterator[bytes]:
        yield b"0"
        raise penstock.PublicError("boom")

    async with raw_server() as (peer, raw):
        async with peer.request_channel(failing()) as stream:
            assert isinstance(await raw.next(), RequestChannel)
            await raw.send_bytes(bytes.fromhex("00000a 00000001 2000") + demand.to_bytes(4))
            with pytest.raises(PublisherFailed, match=who):
                await anext(stream)


async def test_leaving_the_block_cancels_both_directions(autojump_clock: Clock) -> None:
    """One CANCEL, and nothing after it."""
    async with raw_server() as (peer, raw):
        async with peer.request_channel(numbers(1000)):
            assert isinstance(await raw.next(), RequestChannel)
        assert await raw.next() == Cancel(stream_id=1)
        await raw.send(RequestN(stream_id=1, demand=5), rsocket.Keepalive(respond=True, data=b"!"))
        assert await raw.next(keepalives=True) == rsocket.Keepalive(data=b"!")


async def test_elements_that_fail_or_do_not_exist(autojump_clock: Clock) -> None:
    """Before the first one nothing is sent; after it an ERROR."""

    async def failing(good: int) -> AsyncIterator[bytes]:
        for _ in range(good):
            yield b"good"
        raise penstock.PublicError("no more")

    async with raw_server() as (peer, raw):
        async with peer.request_channel(numbers(0)) as stream:
            assert [element async for element in stream] == []
        async with peer.request_channel(failing(0)) as stream:
            with pytest.raises(PublisherFailed, match="no more"):
                await anext(stream)
        async with peer.request_channel(failing(1)) as stream:
            assert isinstance(await raw.next(), RequestChannel)
            await raw.send(RequestN(stream_id=5, demand=5))
            assert await raw.next() == Error(stream_id=5, code=0x201, data=b"no more")
            with pytest.raises(PublisherFailed, match="no more"):
                await anext(stream)


async def test_a_client_that_reconnects_has_channels(autojump_clock: Clock) -> None:
    """And messages with names."""
    async with (
        penstock.serve(service_of(), URL),
        penstock.connect(URL, reconnect=penstock.Reconnect()) as peer,
    ):
        await peer.fire_and_forget(b"dropped", name="nobody")
        async with peer.request_channel(numbers(3), name="twice/1") as stream:
            assert [element async for element in stream] == [b"00", b"11", b"22"]


async def test_both_sides_are_penstock(autojump_clock: Clock) -> None:
    """Elements of many lengths, with small and unequal demand; nothing is left over."""
    sizes = [0, 1, 70_000, 3, 200_000, 5] * 5

    async def blocks() -> AsyncIterator[bytes]:
        for size in sizes:
            yield bytes(size)

    service = service_of()
    async with penstock.serve(service, URL), penstock.connect(URL) as peer:
        for name, factor in (("twice/1", 2), ("twice/7", 2), (None, 1)):
            async with peer.request_channel(blocks(), name=name, demand=3) as stream:
                got = [len(element) async for element in stream]
            assert got == [size * factor for size in sizes]
        assert peer.statistics().sending.streams == peer.statistics().receiving.streams == 0
        with pytest.raises(penstock.UsageError, match="has no request for a channel"):
            async with penstock.connect("memory://tests") as other:
                other.request_channel(numbers(1))
