"""Requests with more than data, and the format of the data: metadata, MIME types, payloads of
publishers, typed elements of channels.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import penstock_rsocket as rsocket
import pytest
import trio
from _raw import raw_client, raw_server, route
from penstock_rsocket import (
    ACCEPTED_TYPES,
    COMPOSITE,
    DATA_TYPE,
    Error,
    ErrorCode,
    Payload,
    RequestChannel,
    RequestFnf,
    RequestResponse,
    RequestStream,
    SetupData,
    encode_composite,
    encode_type,
)
from trio.testing import MockClock as Clock

import penstock
from penstock import Rejected, Source, UsageError
from penstock.api import ContentTypes, ProtocolError, Request
from penstock.spi import Serializer, build_registry, hookimpl

OCTETS = ContentTypes("application/octet-stream", COMPOSITE)
JSON = rsocket.Setup(
    keepalive=20_000, lifetime=90_000, metadata_type=COMPOSITE, data_type="application/json"
)
ODD = rsocket.Setup(
    keepalive=20_000, lifetime=90_000, metadata_type=COMPOSITE, data_type="Application/Odd; v=1"
)


@dataclass
class Quote:
    """A value of a program."""

    symbol: str
    price: float


class OddSerializer(Serializer):
    """JSON after a word, in the place of a format that a plugin brings."""

    name = "odd"
    media_types = ("application/odd",)

    def __init__(self, kind: Any = Any) -> None:
        self._decode = msgspec.json.Decoder(kind).decode

    def dumps(self, element: object, /) -> bytes:
        return b"odd" + msgspec.json.encode(element)

    def loads(self, data: bytes, /) -> object:
        try:
            return self._decode(data.removeprefix(b"odd"))
        except msgspec.DecodeError:
            raise ProtocolError("not odd") from None

    def for_type(self, kind: Any, /) -> Serializer:
        return OddSerializer(kind)


def odd_registry() -> Any:
    @hookimpl
    def penstock_serializers() -> list[Serializer]:
        return [OddSerializer()]

    return build_registry(plugins=[SimpleNamespace(penstock_serializers=penstock_serializers)])


def service_of() -> tuple[penstock.Service, list[Request]]:
    seen: list[Request] = []
    service = penstock.Service()

    @service.publisher("above/{symbol}")
    async def above(symbol: str, request: Request, payload: Quote) -> AsyncIterator[Quote]:
        seen.append(request)
        yield payload
        yield Quote(symbol, payload.price + 1)

    @service.publisher("optional")
    async def optional(payload: bytes = b"none") -> AsyncIterator[bytes]:
        yield payload

    @service.request("double")
    async def double(payload: Quote, request: Request) -> Quote:
        seen.append(request)
        return Quote(payload.symbol, payload.price * 2)

    @service.publisher("sums")
    async def sums(elements: Source[Quote]) -> AsyncIterator[Quote]:
        total = 0.0
        async with penstock.subscribe(elements) as stream:
            async for quote in stream:
                total += quote.price
                yield Quote(quote.symbol, total)

    @service.request_response
    async def one(data: bytes, request: Request) -> bytes:
        seen.append(request)
        return data

    @service.request_stream
    async def many(data: bytes, request: Request) -> AsyncIterator[bytes]:
        seen.append(request)
        yield data

    @service.fire_and_forget
    async def fired(data: bytes, request: Request) -> None:
        seen.append(request)

    return service, seen


async def test_a_publisher_reads_what_was_sent_with_its_name(autojump_clock: Clock) -> None:
    """The data of the request is the payload, and its type says how it is read. The request has
    the metadata, all of it.
    """
    service, seen = service_of()
    content = route("above/EUR") + encode_composite([("a/b", b"c")])
    async with raw_client(service) as raw:
        await raw.send(
            RequestStream(
                stream_id=1, demand=9, metadata=content, data=b'{"symbol":"USD","price":1}'
            )
        )
        found = [await raw.next() for _ in range(3)]
    assert found == [
        Payload(stream_id=1, data=b'{"symbol":"USD","price":1.0}'),
        Payload(stream_id=1, data=b'{"symbol":"EUR","price":2.0}'),
        Payload(stream_id=1, complete=True, next=False),
    ]
    [request] = seen
    assert (request.name, request.metadata, request.types) == ("above/EUR", content, OCTETS)
    assert rsocket.find_entry(request.metadata or b"", "a/b") == b"c"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("above/EUR", b"", "cannot be read"),
        ("above/EUR", b"{", "the payload of above/{symbol}, 1 bytes, cannot be read"),
        ("sums", b"x", "sums is a publisher and takes no payload, and one of 1 bytes was sent"),
    ],
)
async def test_a_payload_that_does_not_fit_is_refused_with_the_reason(
    autojump_clock: Clock, name: str, data: bytes, text: str
) -> None:
    """No function of the program is called, and nothing is reported."""
    service, seen = service_of()
    reports: list[BaseException] = []
    async with raw_client(service, on_violation=reports.append) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=route(name), data=data))
        answer = await raw.next()
    assert isinstance(answer, Error)
    assert answer.code == ErrorCode.APPLICATION_ERROR
    assert text in answer.data.decode()
    assert not seen
    assert not reports


async def test_a_payload_with_a_default_may_be_left_out(autojump_clock: Clock) -> None:
    """A stream without data gets the default."""
    async with raw_client(service_of()[0]) as raw:
        for stream_id, data in ((1, b""), (3, b"x")):
            await raw.send(
                RequestStream(stream_id=stream_id, demand=9, metadata=route("optional"), data=data)
            )
            assert await raw.next() == Payload(stream_id=stream_id, data=data or b"none")
            assert await raw.next() == Payload(stream_id=stream_id, complete=True, next=False)


async def test_each_handler_gets_the_request_that_asks_for_it(autojump_clock: Clock) -> None:
    """Also those of requests without a name: by the type of a parameter."""
    service, seen = service_of()
    content = encode_composite([("a/b", b"c")])
    async with raw_client(service) as raw:
        await raw.send(RequestResponse(stream_id=1, metadata=content, data=b"1"))
        assert await raw.next() == Payload(stream_id=1, data=b"1", complete=True)
        await raw.send(RequestResponse(stream_id=3, data=b"3"))
        assert await raw.next() == Payload(stream_id=3, data=b"3", complete=True)
        await raw.send(RequestStream(stream_id=5, demand=9, metadata=content, data=b"5"))
        assert await raw.next() == Payload(stream_id=5, data=b"5")
        await raw.next()
        await raw.send(RequestFnf(stream_id=7, metadata=content, data=b"7"))
        await trio.testing.wait_all_tasks_blocked()
    assert [(each.data, each.metadata, each.types) for each in seen] == [
        (b"1", content, OCTETS),
        (b"3", None, OCTETS),
        (b"5", content, OCTETS),
        (b"7", content, OCTETS),
    ]


async def test_the_type_of_the_setup_is_the_format_of_the_service(autojump_clock: Clock) -> None:
    """Of payloads, answers, elements and the elements of a channel, if a serializer has it."""
    service, _ = service_of()
    sent, doubled = b'odd{"symbol":"USD","price":1.0}', b'odd{"symbol":"USD","price":2.0}'
    async with raw_client(service, ODD, registry=odd_registry()) as raw:
        await raw.send(RequestResponse(stream_id=1, metadata=route("double"), data=sent))
        assert await raw.next() == Payload(stream_id=1, data=doubled, complete=True)
        await raw.send(RequestStream(stream_id=3, demand=1, metadata=route("above/EUR"), data=sent))
        assert await raw.next() == Payload(stream_id=3, data=sent)
        await raw.send(
            RequestChannel(stream_id=5, demand=9, metadata=route("sums"), data=sent, complete=True)
        )
        assert await raw.next() == Payload(stream_id=5, data=sent)


async def test_a_request_may_name_other_types_than_the_setup(autojump_clock: Clock) -> None:
    """One for its data, and those that it takes as an answer; unknown ones are passed over."""
    service, seen = service_of()
    content = route("double") + encode_composite(
        [
            (DATA_TYPE, encode_type("application/json")),
            (ACCEPTED_TYPES, encode_type("a/unknown") + encode_type("application/odd")),
        ]
    )
    async with raw_client(service, ODD, registry=odd_registry()) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=content, data=b'{"symbol":"USD","price":1}')
        )
        assert await raw.next() == Payload(
            stream_id=1, data=b'odd{"symbol":"USD","price":2.0}', complete=True
        )
    assert seen[0].types == ContentTypes(
        "application/json", COMPOSITE, ("a/unknown", "application/odd")
    )


async def test_a_type_without_a_serializer_leaves_the_choice_to_the_service(
    autojump_clock: Clock,
) -> None:
    """Then a type is JSON, as in every other protocol."""
    async with raw_client(service_of()[0], ODD) as raw:
        await raw.send(
            RequestResponse(
                stream_id=1, metadata=route("double"), data=b'{"symbol":"USD","price":1}'
            )
        )
        assert await raw.next() == Payload(
            stream_id=1, data=b'{"symbol":"USD","price":2.0}', complete=True
        )


async def test_an_element_of_a_channel_that_cannot_be_read_fails_the_stream(
    autojump_clock: Clock,
) -> None:
    """Its sender gets the reason, and nothing is reported here."""
    reports: list[BaseException] = []
    async with raw_client(service_of()[0], JSON, on_violation=reports.append) as raw:
        await raw.send(RequestChannel(stream_id=1, demand=9, metadata=route("sums"), data=b"{"))
        while not isinstance(answer := await raw.next(), Error):
            pass
    assert b"an element for sums, 1 bytes, cannot be read" in answer.data
    assert not reports


async def test_the_setup_function_sees_types_and_metadata(autojump_clock: Clock) -> None:
    """The data of the SETUP is bytes, and says what stood beside it."""
    seen: list[Any] = []

    async def setup(data: bytes) -> None:
        seen.append(data)

    service = penstock.Service(setup=setup)
    content = encode_composite([("a/b", b"c")])
    first = rsocket.Setup(
        keepalive=20_000,
        lifetime=90_000,
        metadata_type=COMPOSITE,
        data_type="application/json",
        metadata=content,
        data=b"hello",
    )
    async with raw_client(service, first) as raw:
        await raw.send(RequestResponse(stream_id=1))
        await raw.next()
    [data] = seen
    assert data == b"hello"
    assert isinstance(data, SetupData)
    assert (data.data_type, data.metadata_type, data.metadata) == (
        "application/json",
        COMPOSITE,
        content,
    )


async def test_a_client_sends_metadata_with_each_request(autojump_clock: Clock) -> None:
    """After the route; alone without a name."""
    content = encode_composite([("a/b", b"c")])
    async with raw_server() as (peer, raw), trio.open_nursery() as nursery:

        async def ask() -> None:
            await peer.request("a", b"1", metadata=content)
            await peer.request_response(b"2", metadata=content)

        nursery.start_soon(ask)
        assert await raw.next() == RequestResponse(
            stream_id=1, metadata=route("a") + content, data=b"1"
        )
        await raw.send(Payload(stream_id=1, complete=True))
        assert await raw.next() == RequestResponse(stream_id=3, metadata=content, data=b"2")
        await raw.send(Payload(stream_id=3, complete=True))
        await peer.fire_and_forget(b"3", name="a", metadata=content)
        assert await raw.next() == RequestFnf(stream_id=5, metadata=route("a") + content, data=b"3")
        async with peer.request_stream(b"4", name="a", metadata=content, demand=2):
            assert await raw.next() == RequestStream(
                stream_id=7, demand=2, metadata=route("a") + content, data=b"4"
            )
        await raw.next()
        async with peer.request_channel([b"5"], metadata=content, demand=2):
            assert await raw.next() == RequestChannel(
                stream_id=9, demand=2, metadata=content, data=b"5"
            )


async def test_the_type_of_the_setup_is_the_format_of_the_client(autojump_clock: Clock) -> None:
    """Of payloads and answers, unless the program names a serializer."""
    setup = SetupData(data_type="application/odd")
    answers: list[Any] = []
    async with (
        raw_server(setup=setup, registry=odd_registry()) as (peer, raw),
        trio.open_nursery() as nursery,
    ):

        async def ask() -> None:
            answers.append(await peer.request("a", Quote("USD", 1.0), type=Quote))
            answers.append(await peer.request("a", {"b": 1}, type=Quote, serializer="json"))

        nursery.start_soon(ask)
        asked = await raw.next()
        assert isinstance(asked, RequestResponse)
        assert asked.data == b'odd{"symbol":"USD","price":1.0}'
        await raw.send(Payload(stream_id=1, data=asked.data, complete=True))
        asked = await raw.next()
        assert isinstance(asked, RequestResponse)
        assert asked.data == b'{"b":1}'
        await raw.send(Payload(stream_id=3, data=b'{"symbol":"EUR","price":2.0}', complete=True))
        async with peer.request_stream(Quote("USD", 1.0), name="a", type=Quote) as stream:
            asked = await raw.next()
            assert isinstance(asked, RequestStream)
            await raw.send(Payload(stream_id=5, data=asked.data, complete=True))
            answers += [each async for each in stream]
    assert answers == [Quote("USD", 1.0), Quote("EUR", 2.0), Quote("USD", 1.0)]


async def test_a_typed_channel_in_both_directions(autojump_clock: Clock) -> None:
    """Objects on both sides."""
    service, _ = service_of()
    setup = SetupData(data_type="application/odd")
    quotes = [Quote("USD", 1.0), Quote("USD", 2.0)]
    registry = odd_registry()
    async with (
        penstock.serve(service, "rsocket+memory://typed", registry=registry),
        penstock.connect("rsocket+memory://typed", setup=setup, registry=registry) as peer,
    ):
        async with peer.request_channel(quotes, name="sums", type=Quote) as stream:
            assert [each async for each in stream] == [Quote("USD", 1.0), Quote("USD", 3.0)]


async def test_other_protocols_take_no_metadata() -> None:
    """The program is told, and nothing is sent."""
    service, _ = service_of()
    async with (
        penstock.serve(service, "memory://plain"),
        penstock.connect("memory://plain") as peer,
    ):
        with pytest.raises(UsageError, match="where a request has data alone"):
            await peer.request("double", Quote("a", 1.0), metadata=b"m")
        with pytest.raises(Rejected, match="needs a payload, and none was sent"):
            async with peer.subscribe("above/EUR") as stream:
                await anext(stream)


def test_a_publisher_cannot_take_a_payload_and_elements() -> None:
    """No request has both."""
    service = penstock.Service()
    with pytest.raises(UsageError, match="no request has both"):

        @service.publisher("both")
        async def both(payload: bytes, elements: Source[bytes]) -> AsyncIterator[bytes]:
            yield payload
