"""A service: publishers by name, handlers, and the setup function."""

import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock.api import Limits, PublicError, Rejected, UsageError
from penstock.runtime import Service, connect, serve
from penstock.spi import PeerIdentity, Serializer

PEER = PeerIdentity(address="memory://test")


def test_a_generator_function_is_called_when_it_is_pulled_and_not_before() -> None:
    """A look-up runs no code of the user."""
    service = Service()
    called = []

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        called.append(True)
        yield 1

    found = service.find("numbers", PEER)
    assert found is not None
    assert (found.serializer, found.element_size, called) == ("json", 0, [])


async def test_a_plain_function_may_return_every_kind_of_stream() -> None:
    """A list, a pipe, a source."""
    service = Service()
    service.publisher("list")(lambda: [1, 2])
    service.publisher("pipe")(lambda: penstock.pipe([1, 2], penstock.ops.map(lambda n: n * 2)))
    for name, expected in (("list", [1, 2]), ("pipe", [2, 4])):
        found = service.find(name, PEER)
        assert found is not None
        assert await penstock.collect(found.source) == expected


async def test_a_source_can_be_offered_as_it_is() -> None:
    """Every subscriber gets the same one."""
    service = Service()
    service.publish("numbers", [1, 2], serializer="json")
    found = service.find("numbers", PEER)
    assert found is not None
    assert await penstock.collect(found.source) == [1, 2]


def test_a_missing_name_is_none() -> None:
    """No exception: it is a usual case."""
    assert Service().find("nobody", PEER) is None


def test_a_coroutine_function_is_refused_with_advice() -> None:
    """It returns one value; nothing is left unawaited."""
    service = Service()

    async def one() -> int:
        return 1

    class Called:
        async def __call__(self) -> int:
            return 1

    for function in (one, partial(one), Called()):
        with pytest.raises(
            UsageError, match=r"'one': its function is a coroutine function.*`yield` the elements"
        ):
            service.publisher("one")(function)
    service.publisher("one")(lambda value=0: one())  # only a call can tell
    with pytest.raises(UsageError, match="yield"):
        service.find("one", PEER)


def test_an_exception_of_the_function_is_raised() -> None:
    """The caller decides what the peer is told."""
    service = Service()

    @service.publisher("broken")
    def broken() -> list[int]:
        raise KeyError("secret")

    with pytest.raises(KeyError):
        service.find("broken", PEER)


@pytest.mark.parametrize("size", [-1, 1.5, True, "4"])
def test_an_impossible_element_size_is_refused(size: object) -> None:
    """When the publisher is declared."""
    with pytest.raises(UsageError, match="element_size"):
        Service().publisher("x", element_size=size)  # type: ignore[arg-type]  # the point: no size


def test_the_names_of_a_service_are_listed() -> None:
    """The names are sorted, and patterns are listed unchanged."""
    service = Service()
    assert repr(service) == "<service of no publishers>"
    service.publish("b", [])
    service.publisher("a/{x}")(lambda x: [x])
    assert service.names() == ["a/{x}", "b"]
    assert repr(service) == "<service of a/{x}, b>"


# --- who is let in, and handlers


async def refusal_by(setup: object) -> str:
    async with serve(
        Service(setup=setup), "reactivesocket+memory://s", on_violation=lambda _: None
    ) as server:  # type: ignore[arg-type]  # what is tried
        with pytest.raises(Rejected) as refused:
            async with connect(server.addresses[0], setup=b"me"):
                pass
    return str(refused.value)


async def async_false(data: bytes) -> bool:
    await trio.lowlevel.checkpoint()
    return data != b"me"


def raising(error: Exception) -> Callable[[bytes], None]:
    def setup(data: bytes) -> None:
        raise error

    return setup


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        (raising(PublicError("who are you")), "'who are you'"),
        (raising(Rejected("not you")), "'not you'"),
        (raising(ValueError("a secret")), "'refused'"),
        (lambda data: False, "'refused'"),
        (async_false, "'refused'"),
    ],
    ids=["public-error", "rejected", "any-other", "false", "async"],
)
async def test_a_refusal_by_the_setup_function_reaches_the_client(setup: object, says: str) -> None:
    """It is raised from the block of the connection,
    because the client may have made no request.
    """
    assert says in await refusal_by(setup)


async def test_a_setup_function_gets_the_data_and_accepts() -> None:
    """It may be async and get the identity; requests wait meanwhile."""
    seen: list[object] = []

    async def setup(data: bytes, peer: PeerIdentity) -> None:
        await trio.lowlevel.checkpoint()
        seen.extend((data, peer.address))

    service = Service(setup=setup)
    service.publish("one", [b"1"])
    async with (
        serve(service, "reactivesocket+memory://s") as server,
        connect(server.addresses[0], setup=b"me") as peer,
    ):
        assert await peer.request_response("one") == b"1"
        await peer.wait_accepted()
    assert seen == [b"me", "reactivesocket+memory://s"]


async def test_a_setup_function_that_takes_too_long_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its deadline is that of the handshake."""
    ended = []

    async def setup(data: bytes) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(data)

    async with serve(
        Service(setup=setup),
        "reactivesocket+memory://s",
        limits=replace(Limits(), handshake_timeout=5),
    ) as server:
        with pytest.raises(Rejected, match="limit:handshake"):
            async with connect(server.addresses[0], setup=b"me") as peer:
                await peer.request_response(b"x")
    assert ended == [b"me"]


def test_a_second_handler_and_a_wrong_signature_are_refused() -> None:
    """Each text tells what to write."""
    service = Service()

    async def answer(data: bytes) -> bytes:
        return data

    service.request_response(answer)
    service.fire_and_forget(answer)
    with pytest.raises(UsageError, match="there is a handler for a request and response already"):
        service.request_response(answer)
    with pytest.raises(UsageError, match="make it an `async def`"):
        Service().request_response(lambda data: data)
    with pytest.raises(UsageError, match="make it an `async def`"):
        Service().fire_and_forget(lambda data: None)
    with pytest.raises(UsageError, match="give it one parameter for the data"):
        Service().request_stream(lambda: [b""])
    with pytest.raises(UsageError, match="give it one parameter for the data"):
        Service(setup=lambda: True)
    with pytest.raises(UsageError, match="the setup function: 5 is not callable"):
        Service(setup=5)  # type: ignore[arg-type]  # what is tried
    for decorate in (Service().request_stream, Service().request_subscription):
        with pytest.raises(
            UsageError,
            match="'name' is not callable; put the decorator directly above the function",
        ):
            decorate("name")  # type: ignore[type-var]  # what is tried
    for streaming in (service.request_stream, service.request_subscription):
        with pytest.raises(UsageError, match="to stream, `yield` the elements instead"):
            streaming(answer)


class Doorman:
    """A setup function that keeps its arguments."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, str]] = []

    def __call__(self, data: bytes, peer: PeerIdentity) -> None:
        self.seen.append((data, peer.address))

    def look(self, data: bytes, peer: PeerIdentity) -> None:
        self(data, peer)


async def test_every_callable_may_be_the_setup_function() -> None:
    """An object, a method, a partial of either: the annotations are found in each."""
    doorman = Doorman()
    for setup in (doorman, doorman.look, partial(doorman.look), partial(partial(doorman))):
        async with serve(Service(setup=setup), "reactivesocket+memory://s") as server:
            async with connect(server.addresses[0], setup=b"me"):
                pass
    assert doorman.seen == [(b"me", "reactivesocket+memory://s")] * 4


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:0", "memory://s"])
def test_a_service_with_a_setup_function_must_name_its_protocol(url: str) -> None:
    """RS.io has no setup data: a URL for all protocols would accept its clients unchecked."""
    guarded = Service(setup=lambda data: True)
    with pytest.raises(UsageError, match="it would be accepted"):
        serve(guarded, url)
    assert serve(guarded, "reactivesocket+" + url)
    assert serve(guarded, "rsio+" + url)


# --- serializers as objects


class Reversed(Serializer):
    """Texts, last character first."""

    name = "reversed"

    def dumps(self, element: object, /) -> bytes:
        return str(element)[::-1].encode()

    def loads(self, data: bytes, /) -> object:
        return data.decode()[::-1]


async def test_a_serializer_may_be_an_object_wherever_a_name_may_be() -> None:
    """On both sides, over both protocols; it need not be installed."""
    service = Service()
    service.publish("words", ["one", "two"], serializer=Reversed())

    @service.publisher("more")
    async def more() -> AsyncIterator[bytes]:
        yield b"eno"

    for protocol in ("rsio", "reactivesocket"):
        async with (
            serve(service, f"{protocol}+memory://s") as server,
            connect(server.addresses[0]) as peer,
        ):
            words, one = f"{server.addresses[0]}/words", Reversed()
            async with penstock.subscribe(words, serializer=one) as stream:
                assert [word async for word in stream] == ["one", "two"]
            async with peer.subscribe("words", serializer=one) as stream:
                assert [word async for word in stream] == ["one", "two"]
            assert await penstock.collect(penstock.remote(words, serializer=one)) == ["one", "two"]
            assert await penstock.collect(peer.source("more", serializer=one)) == ["one"]
            if protocol == "reactivesocket":
                assert await peer.request_response("words", serializer=one) == "one"
                async with peer.request_stream("words", serializer=one) as stream:
                    assert [word async for word in stream] == ["one", "two"]


def test_a_value_that_is_no_serializer_is_refused_by_the_decorator() -> None:
    """Before the service is served."""
    for add in (
        lambda: Service().publisher("x", serializer=Reversed),  # type: ignore[arg-type]  # the mistake that is tried
        lambda: Service().publish("x", [], serializer=Reversed),  # type: ignore[arg-type]  # the same
    ):
        with pytest.raises(
            UsageError,
            match=r"serializer=Reversed is a class; give an object: serializer=Reversed\(\)",
        ):
            add()


NEWEST_ONLY: dict[str, Callable[[], penstock.Source[int]]] = {
    "latest": lambda: penstock.pipe(penstock.Topic[int](), penstock.ops.latest()),
    "drop": lambda: penstock.Topic[int]().drop(),
    "topic": lambda: penstock.Topic[int](slow=penstock.SlowPolicy.LATEST),
    "behind": lambda: penstock.Topic[int]().latest().map(str).filter(bool).map(int),
}


@pytest.mark.parametrize("make", NEWEST_ONLY.values(), ids=NEWEST_ONLY)
def test_a_source_of_the_newest_element_is_published_with_a_warning(
    make: Callable[[], penstock.Source[int]],
) -> None:
    """It stands at the call, and says what a subscriber must do, because its own buffer would hold
    older elements. It also says how the author of the service switches it off.
    """
    service = Service()
    with pytest.warns(penstock.StaleElementsWarning) as warned:
        service.publish("newest", make(), serializer="json")
    assert str(warned[0].message) == (
        "the publisher 'newest' keeps the newest element only, and a subscriber over a connection "
        "requests 256 elements ahead, which its reader gets first. The program of the subscriber "
        "can change this, and the server cannot: pipe(remote(url), ops.latest()), or demand=1. If "
        "the subscribers do so, or the source only spares its publisher, write in the service: "
        'warnings.simplefilter("ignore", penstock.StaleElementsWarning)'
    )
    assert warned[0].filename == __file__


def test_the_advice_of_the_warning_switches_it_off() -> None:
    """A warning is an error in these tests, and this service is published."""
    service = Service()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", penstock.StaleElementsWarning)
        service.publish("newest", penstock.Topic[int]().latest(), serializer="json")
    assert service.find("newest", PEER) is not None


def test_a_function_that_returns_the_newest_element_warns_once() -> None:
    """When its source is known: it is called for each subscriber."""
    service = Service()
    service.publisher("newest/{symbol}", serializer="json")(
        lambda symbol: penstock.Topic[str]().latest()
    )
    with pytest.warns(
        penstock.StaleElementsWarning, match=r"the publisher 'newest/\{symbol\}'"
    ) as warned:
        found = [service.find(f"newest/{symbol}", PEER) for symbol in "ab"]
    assert None not in found
    assert len(warned) == 1


def test_other_sources_are_published_without_a_warning() -> None:
    """A warning is an error in these tests."""
    service = Service()
    service.publish("buffered", penstock.Topic[int]().latest().buffer(2), serializer="json")
    service.publish("topic", penstock.Topic[int](), serializer="json")
    service.publish("debounced", penstock.Topic[int]().debounce(1), serializer="json")


@pytest.mark.parametrize(
    ("option", "function", "given"),
    [
        ("authenticate", lambda scheme, data: "alice", "the scheme, the credentials as bytes"),
        ("authenticate", lambda: "alice", "3 arguments"),
        ("authorize", lambda principal, name, peer: True, "2 arguments, the principal, the name"),
        ("may_open", lambda name: True, "2 arguments, the name, a PeerIdentity"),
    ],
)
def test_a_guard_with_other_parameters_is_refused(option: str, function: Any, given: str) -> None:
    """It would refuse each client without a reason. A guard with defaults, or with some of its
    arguments set, is taken.
    """
    with pytest.raises(UsageError, match=rf"^{option}=.* would be called with .*{given}"):
        Service(**{option: function})

    def guard(first: Any, second: Any, third: Any = None, **more: Any) -> bool:
        return True

    Service(authenticate=guard, authorize=guard, may_open=guard)
    Service(authorize=partial(guard, third=1), may_open=partial(guard, third=1))
