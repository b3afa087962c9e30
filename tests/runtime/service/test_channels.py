"""What a service makes of the requests of protocols that carry names beside the data: channels,
payloads, and the requests that lead nowhere.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.api import (
    ContentTypes,
    Model,
    Request,
    UsageError,
    encode_named_request,
)
from penstock.runtime import Service
from penstock.runtime.service import Handler
from penstock.runtime.service._cannot_open import NoSuchPublisher, UnfitPayload, UnreadablePayload
from penstock.runtime.service._description import LONGEST_NAME
from penstock.runtime.service._service import Publication
from penstock.spi import PeerIdentity, Registry, build_registry
from penstock.streams import Source, collect, from_iterable, subscribe

PEER = PeerIdentity(address="memory://test")
JSON = ContentTypes("application/json", "text/plain")


@dataclass
class Order:
    number: int


@pytest.fixture
def service() -> Service:
    """Publishers with elements, with a payload, and with neither."""
    service = Service()

    @service.publisher("twice/{demand}")
    async def twice(demand: int, elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with subscribe(elements, demand=1) as stream:
            async for element in stream:
                yield element * demand

    @service.publisher("numbers", serializer="json")
    async def numbers(orders: Source[Order]) -> AsyncIterator[int]:
        async with subscribe(orders, demand=1) as stream:
            async for order in stream:
                yield order.number

    @service.publisher("with-payload", serializer="json")
    async def with_payload(payload: Order) -> AsyncIterator[int]:
        yield payload.number

    @service.publisher("plain")
    async def plain() -> AsyncIterator[bytes]:
        yield b"plain"

    return service


@pytest.fixture(scope="module")
def registry() -> Registry:
    """The serializers that are installed."""
    return build_registry()


def channel(name: str | None, *elements: bytes, types: ContentTypes | None = None) -> Request:
    """A channel as a peer asks for it: its data is the first element."""
    return Request(
        Model.CHANNEL, b"".join(elements[:1]), None, name, from_iterable([*elements]), types
    )


async def answered(
    service: Service, request: Request, registry: Registry | None = None
) -> list[Any]:
    """Return the elements of the stream that a request leads to."""
    found = service.answer(request, PEER, registry)
    assert isinstance(found, Publication)
    return await collect(found.source)


async def test_a_channel_gives_its_elements_to_the_publisher_of_its_name(service: Service) -> None:
    """Beside the parameters of the name. Without a channel none come."""
    assert await answered(service, channel("twice/2", b"a", b"b")) == [b"aa", b"bb"]
    assert await answered(service, Request(Model.STREAM, b"", name="twice/2")) == []
    assert await answered(service, Request(Model.STREAM, b"twice/2")) == []


async def test_elements_of_a_type_are_read_by_its_serializer(
    service: Service, registry: Registry
) -> None:
    """One that is not of the type ends the stream, and the error names the publisher."""
    sent = channel("numbers", b'{"number":1}', b'{"number":2}', types=JSON)
    assert await answered(service, sent, registry) == [1, 2]
    with pytest.raises(UnreadablePayload, match="an element for numbers, 3 bytes"):
        await answered(service, channel("numbers", b"[1]", types=JSON), registry)


def test_a_channel_to_a_publisher_without_elements_is_refused(service: Service) -> None:
    """It would drop them."""
    with pytest.raises(UnfitPayload, match="plain takes no elements"):
        service.answer(channel("plain", b"a"), PEER)


async def test_a_channel_without_a_name_goes_to_its_handler(service: Service) -> None:
    """Without one there is no such publisher."""
    with pytest.raises(NoSuchPublisher):
        service.answer(channel(None, b"\xff"), PEER)

    @service.request_channel
    async def echo(elements: Source[bytes], peer: PeerIdentity) -> AsyncIterator[bytes]:
        async with subscribe(elements, demand=1) as stream:
            async for element in stream:
                yield element + peer.address.encode()

    assert await answered(service, channel(None, b"a")) == [b"amemory://test"]
    with pytest.raises(UsageError, match="a service has one of each kind"):
        service.request_channel(echo)


@pytest.mark.parametrize("streaming", [Model.STREAM, Model.CHANNEL, Model.SUBSCRIPTION])
def test_a_handler_of_streams_is_no_coroutine_function(service: Service, streaming: Model) -> None:
    """It returns one value. The text says what to write."""
    add = {
        Model.STREAM: service.request_stream,
        Model.CHANNEL: service.request_channel,
        Model.SUBSCRIPTION: service.request_subscription,
    }[streaming]

    async def one(_: bytes) -> bytes:
        raise AssertionError

    with pytest.raises(UsageError, match="returns one value; to stream, `yield`"):
        add(one)


async def test_a_payload_beside_a_name_is_read_by_the_serializer(
    service: Service, registry: Registry
) -> None:
    """An empty one counts as one: such a protocol cannot tell it from none."""
    given = Request(Model.STREAM, b'{"number":7}', name="with-payload", types=JSON)
    assert await answered(service, given, registry) == [7]
    for wrong in (b"", b"{}", b"\xff"):
        with pytest.raises(UnfitPayload, match="the payload of with-payload"):
            service.answer(Request(Model.STREAM, wrong, name="with-payload"), PEER, registry)
    with pytest.raises(UnfitPayload, match="plain"):
        service.answer(Request(Model.STREAM, b"x", name="plain"), PEER, registry)


def test_names_that_lead_nowhere_are_told(service: Service) -> None:
    """Also one that is too long to be looked for, and data that is no text."""
    long = "n" * (LONGEST_NAME + 1)
    with pytest.raises(NoSuchPublisher, match="more than"):
        service.answer(Request(Model.STREAM, b"", name=long), PEER)
    for data in (long.encode(), b"\xff"):
        with pytest.raises(NoSuchPublisher, match="bytes are no name, and no handler takes a"):
            service.answer(Request(Model.STREAM, data), PEER)

    @service.request("named")
    async def named(payload: bytes) -> bytes:
        return payload

    with pytest.raises(NoSuchPublisher, match="more than"):
        service.answer(Request(Model.RESPONSE, encode_named_request(long, b"")), PEER)


def test_observers_learn_the_pattern_of_any_request(service: Service) -> None:
    """And an empty text for one that leads nowhere."""

    @service.request("double/{n}")
    async def double(n: int, payload: bytes) -> bytes:
        return payload * n

    assert service.pattern_of("twice/3") == "twice/{demand}"
    assert service.pattern_of(Request(Model.STREAM, b"", name="twice/3")) == "twice/{demand}"
    assert service.pattern_of(Request(Model.STREAM, b"plain")) == "plain"
    sent = Request(Model.RESPONSE, encode_named_request("double/3", b"?"))
    assert service.pattern_of(sent) == "double/{n}"
    assert service.pattern_of(Request(Model.STREAM, b"\xff")) == ""
    assert service.name_of(sent) == "double/3"
    assert service.name_of(Request(Model.STREAM, b"", name="twice/03")) == "twice/03"


def test_metadata_about_a_connection_is_received_by_an_async_function(service: Service) -> None:
    """There is one receiver."""
    with pytest.raises(UsageError, match="receives metadata: make it an `async def`"):
        service.metadata_push(lambda _: None)

    @service.metadata_push
    async def receive(metadata: bytes) -> None:
        raise AssertionError

    assert service.listener(Model.METADATA_PUSH) is not None
    assert service.listener() is None
    with pytest.raises(UsageError, match="a service has one of each kind"):
        service.metadata_push(receive)


def test_a_handler_of_one_value_is_given_as_it_is(service: Service) -> None:
    """Its caller runs it."""

    @service.request_response
    async def respond(data: bytes) -> bytes:
        return data

    assert isinstance(service.answer(Request(Model.RESPONSE, b"?"), PEER), Handler)
