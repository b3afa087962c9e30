"""A service as its peer sees it: refusals in the same words, failures without secrets,
serializers.
"""

from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import (
    ProtocolError,
    PublicError,
    PublisherFailed,
    Rejected,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.core import Scope
from penstock.runtime import Service, connect, serve
from penstock.streams import Source
from penstock.testing import ManualPublisher
from tests.runtime._services import numbers_service


async def test_a_publisher_may_get_the_identity_of_the_peer() -> None:
    """In a parameter annotated PeerIdentity."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("who", serializer="text") as stream:
            assert "memory" in await anext(stream)


async def test_a_wrong_serializer_fails_that_stream_only() -> None:
    """The connection goes on."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(ProtocolError, match="not JSON"):
            async with peer.subscribe("endless", serializer="json") as stream:
                await anext(stream)
        async with peer.subscribe("numbers/2", serializer="json") as stream:
            assert [number async for number in stream] == [0, 1]


class Plain(Source[Any]):
    """Signals `element` on request, and reports what that raises to its subscriber."""

    def __init__(self, element: object) -> None:
        self.element = element

    def attach(self, subscriber: Subscriber[Any], scope: Scope | None = None) -> None:
        source = self

        class Asked(Subscription):
            def request(self, n: int, /) -> None:
                try:
                    subscriber.on_next(source.element)
                except ValueError as error:
                    subscriber.on_error(error)

            def cancel(self, /) -> None: ...

        subscriber.on_subscribe(Asked())


@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("element", [5, "text", None, [b"x"]])
async def test_an_element_that_is_not_bytes_fails_the_request(element: object, size: int) -> None:
    """The caller gets an error, and this side reports the type."""
    told: list[BaseException] = []
    service = Service()
    service.publish("plain", [element], element_size=size)

    @service.request_response
    async def answer(data: bytes) -> Any:
        return element

    async with (
        serve(service, "memory://r", on_violation=told.append) as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        for data in ("plain", "the handler"):
            with pytest.raises(PublisherFailed, match="the publisher failed"):
                await peer.request_response(data)
    assert [type(error) for error in told] == [UsageError] * 2


async def test_an_element_that_raises_when_cut_fails_the_request() -> None:
    """The publisher reports the exception with on_error."""

    class Thorny(bytes):
        def __getitem__(self, _: object) -> Any:
            raise ValueError("no part of me")

    told: list[BaseException] = []
    service = Service()
    service.publish("thorny", Plain(Thorny(b"1234")), element_size=4)
    async with (
        serve(service, "memory://r", on_violation=told.append) as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with pytest.raises(PublisherFailed):
            await peer.request_response("thorny")
    assert [str(error) for error in told] == ["no part of me"]


@pytest.mark.parametrize("serializer", ["bytes", "json"])
async def test_a_failure_and_an_empty_stream_end_a_request(serializer: str) -> None:
    """With a serializer and without; a cancelled request cancels its publisher."""
    service = Service()
    subscriber_side: list[ManualPublisher] = []
    for name in ("failing", "empty", "slow"):
        publisher: ManualPublisher = ManualPublisher()
        subscriber_side.append(publisher)
        service.publish(name, publisher, serializer=serializer)
    failing, empty, slow = subscriber_side
    async with serve(service, "memory://r", on_violation=lambda _: None) as server:
        async with (
            connect(f"reactivesocket+{server.addresses[0]}") as peer,
            trio.open_nursery() as nursery,
        ):

            async def ask(name: str, says: str) -> None:
                with pytest.raises(PublisherFailed, match=says):
                    await peer.request_response(name, serializer=serializer)

            nursery.start_soon(ask, "failing", "out of order")
            nursery.start_soon(ask, "empty", "nothing to answer with")
            await trio.testing.wait_all_tasks_blocked()
            failing.fail(PublicError("out of order"))
            empty.complete()
            nursery.start_soon(ask, "slow", "never")
            await trio.testing.wait_all_tasks_blocked()
            assert slow.requested == 1
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert slow.cancelled


class Unattachable(Source[Any]):
    """A source of a user that raises in `attach`."""

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        raise PublicError("the shop is closed")


async def test_a_source_that_raises_in_attach_fails_its_stream_only() -> None:
    """The connection goes on."""
    service = numbers_service()
    service.publish("closed", Unattachable())
    async with serve(service, "memory://test") as server, connect(server.addresses[0]) as peer:
        with pytest.raises(PublisherFailed, match=r"^the shop is closed$"):
            async with peer.subscribe("closed") as stream:
                await anext(stream)
        async with peer.subscribe("numbers/1", serializer="json") as stream:
            assert [number async for number in stream] == [0]


@pytest.mark.parametrize(
    ("raised", "heard"),
    [
        (PublicError("closed on Sundays"), "closed on Sundays"),
        (ValueError("a secret"), "the publisher failed"),
    ],
)
async def test_a_publisher_function_refuses_by_raising(raised: Exception, heard: str) -> None:
    """The peer gets the public text, this side reports everything, and the connection goes on."""
    service, told = numbers_service(), []

    @service.publisher("shop")
    def shop() -> list[bytes]:
        raise raised

    async with (
        serve(service, "memory://test", on_violation=told.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(Rejected, match=heard) as refused:
            async with peer.subscribe("shop") as stream:
                await anext(stream)
        async with peer.subscribe("numbers/1", serializer="json") as stream:
            assert [number async for number in stream] == [0]
    assert "secret" not in str(refused.value)
    assert told == [raised]
