"""`PublishedStreams.open` with no session and no connection:
a plain subscriber, and the scope of a nursery.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import (
    PRIVATE,
    TAKEN,
    Model,
    PublicError,
    PublisherFailed,
    Request,
    Subscriber,
    UsageError,
)
from penstock.core import Scope
from penstock.runtime.service import (
    FactoryFailed,
    Forbidden,
    NoSlot,
    NoSuchPublisher,
    PlaceLimit,
    PublishedStreams,
    Service,
)
from penstock.spi import Outcome, PeerIdentity, build_registry
from penstock.streams import Source
from tests.runtime._plain_subscriber import PlainSubscriber

PEER = PeerIdentity(address="http://somewhere")


class Fixture:
    """A service, a limit of two streams, and the reports."""

    def __init__(self) -> None:
        self.service = Service()
        self.told: list[Exception] = []
        self.ended: list[tuple[str, Outcome]] = []
        self.closed: list[str] = []
        self.streams = PublishedStreams(
            self.service,
            build_registry(),
            places=PlaceLimit(2),
            on_violation=self.told.append,
            may_open=lambda target, peer: str(target) != "secret",
            observe=lambda pattern: lambda outcome, _: self.ended.append((pattern, outcome)),
        )

        @self.service.publisher("numbers/{count}", serializer="json")
        async def numbers(count: int) -> AsyncIterator[dict[str, int]]:
            try:
                for number in range(count):
                    yield {"n": number}
            finally:
                await trio.lowlevel.checkpoint()
                self.closed.append("numbers")

        @self.service.publisher("broken")
        def broken() -> list[bytes]:
            raise PublicError("out of order")

        @self.service.publisher("secret")
        def secret() -> list[bytes]:
            return [b"secret"]

        @self.service.request_response
        async def reverse(data: bytes, peer: PeerIdentity) -> bytes:
            await trio.lowlevel.checkpoint()
            return data[::-1] + peer.address.encode()


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


async def test_elements_arrive_as_bytes_with_demand_and_in_order(fixture: Fixture) -> None:
    """The serializer stands between the publisher and the subscriber, and no element comes
    that was not requested.
    """
    async with trio.open_nursery() as nursery:
        subscriber = PlainSubscriber()
        fixture.streams.open("numbers/3", PEER, subscriber, Scope(nursery))
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.elements == []
        subscriber.request(2)
        await trio.testing.wait_all_tasks_blocked()
        assert subscriber.elements == [b'{"n":0}', b'{"n":1}']
        subscriber.request(2)
        await trio.testing.wait_all_tasks_blocked()
    assert subscriber.elements[2:] == [b'{"n":2}']
    assert subscriber.is_completed
    assert fixture.ended == [("numbers/{count}", Outcome.COMPLETED)]


async def test_each_way_not_to_open_is_an_exception_of_its_own(fixture: Fixture) -> None:
    """A caller decides what its peer is told; the user's full error is reported here."""
    async with trio.open_nursery() as nursery:
        scope = Scope(nursery)
        with pytest.raises(NoSuchPublisher):
            fixture.streams.open("numbers", PEER, PlainSubscriber(), scope)
        with pytest.raises(NoSuchPublisher):
            fixture.streams.open("numbers/x", PEER, PlainSubscriber(), scope)
        with pytest.raises(Forbidden):
            fixture.streams.open("secret", PEER, PlainSubscriber(), scope)
        with pytest.raises(FactoryFailed, match="out of order") as failed:
            fixture.streams.open("broken", PEER, PlainSubscriber(), scope)
        assert fixture.told == [failed.value.error]
        assert scope.running == 0
    assert fixture.ended == []


async def test_a_place_is_free_only_when_the_publisher_has_stopped(fixture: Fixture) -> None:
    """A cancelled stream keeps its place while its generator cleans up;
    a refused one takes none.
    """
    async with trio.open_nursery() as nursery:
        first, second = PlainSubscriber(), PlainSubscriber()
        for subscriber in (first, second):
            fixture.streams.open("numbers/9", PEER, subscriber, Scope(nursery))
            subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(NoSlot):
            fixture.streams.open("numbers/9", PEER, PlainSubscriber(), Scope(nursery))
        first.cancel()
        with pytest.raises(NoSlot):
            fixture.streams.open("numbers/9", PEER, PlainSubscriber(), Scope(nursery))
        await trio.testing.wait_all_tasks_blocked()
        assert fixture.closed == ["numbers"]
        fixture.streams.open("numbers/9", PEER, first := PlainSubscriber(), Scope(nursery))
        for subscriber in (first, second):
            subscriber.cancel()
    assert [outcome for _, outcome in fixture.ended] == [Outcome.CANCELLED] * 3


async def test_a_scope_that_is_cancelled_stops_the_publisher_in_its_own_way(
    fixture: Fixture,
) -> None:
    """A generator that rests at a `yield` is closed: its cleanup may wait."""
    async with trio.open_nursery() as nursery:
        subscriber, scope = PlainSubscriber(), Scope(nursery)
        fixture.streams.open("numbers/9", PEER, subscriber, scope)
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await scope.wait_stopped()
    assert fixture.closed == ["numbers"]


async def test_a_handler_answers_a_request_and_can_be_cancelled(fixture: Fixture) -> None:
    """One value and the end; the data that is a publisher's name leads to its first element."""
    async with trio.open_nursery() as nursery:
        scope = Scope(nursery)
        answered, named, cancelled = PlainSubscriber(), PlainSubscriber(), PlainSubscriber()
        fixture.streams.open(Request(Model.RESPONSE, b"abc"), PEER, answered, scope)
        answered.request(1)
        fixture.streams.open(Request(Model.RESPONSE, b"numbers/5"), PEER, named, scope)
        named.request(1)
        await trio.testing.wait_all_tasks_blocked()
        fixture.streams.open(Request(Model.RESPONSE, b"later"), PEER, cancelled, scope)
        cancelled.request(1)
        cancelled.cancel()
    assert (answered.elements, answered.is_completed) == ([b"cba" + PEER.address.encode()], True)
    assert (named.elements, named.is_completed) == ([b'{"n":0}'], True)
    assert (cancelled.elements, cancelled.is_completed) == ([], False)
    assert fixture.told == []


async def test_a_source_that_cannot_be_attached_fails_its_stream_and_frees_the_place(
    fixture: Fixture,
) -> None:
    """The subscriber gets on_subscribe first (rule 1.9), and then the error."""

    class Unattachable(Source[Any]):
        def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
            raise UsageError("cannot begin")

    fixture.service.publish("unattachable", Unattachable())
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            subscriber = PlainSubscriber()
            fixture.streams.open("unattachable", PEER, subscriber, Scope(nursery))
            assert isinstance(subscriber.error, PublisherFailed)
            assert isinstance(fixture.told.pop(), UsageError)
            subscriber.request(1)
            subscriber.cancel()
    assert [outcome for _, outcome in fixture.ended] == [Outcome.FAILED] * 5


def _raise_secret() -> Any:
    raise ValueError("the key is 1234")


class SecretSource(Source[Any]):
    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        raise ValueError("the key is 1234")


async def _secret_generator() -> AsyncIterator[bytes]:
    await trio.lowlevel.checkpoint()
    _raise_secret()
    yield b""


async def _secret_handler(data: bytes) -> bytes:
    await trio.lowlevel.checkpoint()
    raise ValueError("the key is 1234")


@pytest.mark.parametrize("name", ["generator", "source", "handler", "element"])
async def test_the_subscriber_gets_no_private_text_and_the_report_is_whole(
    name: str, fixture: Fixture
) -> None:
    """The subscriber sends its error to a peer.
    The exception itself, its notes and its cause stay on this side.
    """
    fixture.service.publisher("generator")(_secret_generator)
    fixture.service.publish("source", SecretSource())
    fixture.service.publish("element", [object()], type=int)
    service = Service()
    service.request_response(_secret_handler)
    streams = fixture.streams
    if name == "handler":
        streams = PublishedStreams(
            service, build_registry(), places=PlaceLimit(2), on_violation=fixture.told.append
        )
    target = Request(Model.RESPONSE, b"x") if name == "handler" else name
    async with trio.open_nursery() as nursery:
        subscriber = PlainSubscriber()
        streams.open(target, PEER, subscriber, Scope(nursery))
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(subscriber.error, PublisherFailed)
        assert (str(subscriber.error), subscriber.error.__cause__) == (PRIVATE, None)
        assert getattr(subscriber.error, "__notes__", []) == []
        assert subscriber.error.__context__ is None
    (told,) = fixture.told
    assert ("the element is of type object" if name == "element" else "the key is 1234") in str(
        told
    )
    assert told.__notes__ == [f"This was raised while '{target}' was served to a peer."]


async def test_an_observer_gets_the_error_itself(fixture: Fixture) -> None:
    """It is on this side."""
    errors: list[BaseException | None] = []
    fixture.service.publisher("generator")(_secret_generator)
    streams = PublishedStreams(
        fixture.service,
        build_registry(),
        places=PlaceLimit(2),
        on_violation=fixture.told.append,
        observe=lambda _: lambda outcome, error: errors.append(error),
    )
    async with trio.open_nursery() as nursery:
        subscriber = PlainSubscriber()
        streams.open("generator", PEER, subscriber, Scope(nursery))
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
    assert errors == fixture.told
    assert str(subscriber.error) == PRIVATE


async def test_the_text_of_a_public_error_reaches_the_subscriber(fixture: Fixture) -> None:
    """And the reason of a second subscriber of one iterator is a fixed token."""
    fixture.service.publish("once", iter([b"a"]))

    @fixture.service.publisher("public")
    async def public() -> AsyncIterator[bytes]:
        await trio.lowlevel.checkpoint()
        raise PublicError("out of stock")
        yield b""

    async with trio.open_nursery() as nursery:
        texts = []
        for name in ("public", "once", "once"):
            subscriber = PlainSubscriber()
            fixture.streams.open(name, PEER, subscriber, Scope(nursery))
            subscriber.request(2)
            await trio.testing.wait_all_tasks_blocked()
            texts.append(str(subscriber.error))
    assert texts == ["out of stock", "None", TAKEN]


def test_the_refusal_of_a_function_that_raises_has_no_private_text(fixture: Fixture) -> None:
    """A caller that sends `str(refusal)` sends no secret.
    The exception is in `error`, and was reported.
    """
    fixture.service.publisher("raising")(_raise_secret)
    with pytest.raises(FactoryFailed) as failed:
        fixture.streams.find("raising", PEER)
    assert str(failed.value) == PRIVATE
    assert fixture.told == [failed.value.error]
    assert str(failed.value.error) == "the key is 1234"
