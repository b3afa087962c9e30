"""A peer cannot tell a name that it may not have from one that does not exist: the bytes are the
same, and the passes of the run loop.
"""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import trio
import trio.testing

from penstock.api import NotAvailable, Request, UsageError
from penstock.protocols import reactivesocket, rsio
from penstock.runtime import Service, connect, serve
from penstock.spi import PeerIdentity
from penstock.testing import run_virtual
from tests.runtime._services import raw_connection

MISSING = "none/7"


def guarded_service() -> Service:
    """Names that are denied in each way, each as long as `MISSING`."""
    service = Service(may_open=lambda name, peer: str(name) not in {"hook/7", "sent/7"})

    @service.publisher("hook/{number}")
    async def denied_by_hook(number: int) -> AsyncIterator[bytes]:
        yield b"secret"

    @service.publisher("make/{number}")
    def denied_by_function(number: int) -> list[bytes]:
        raise NotAvailable("order 7 belongs to alice")

    @service.publisher("flow/{number}")
    async def denied_by_generator(number: int) -> AsyncIterator[bytes]:
        if number:
            raise NotAvailable("order 7 belongs to alice")
        yield b"secret"

    @service.publisher("wait/{number}")
    async def denied_after_a_wait(number: int) -> AsyncIterator[bytes]:
        await trio.sleep(1)
        if number:
            raise NotAvailable
        yield b"secret"

    @service.request("asks/{number}")
    async def denied_by_handler(number: int) -> bytes:
        raise NotAvailable("order 7 belongs to alice")

    @service.request("sent/{number}")
    async def denied_request(number: int) -> bytes:
        return b"secret"

    return service


class Passes(trio.abc.Instrument):
    """Counts the passes of the run loop."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def answer_to(opening: list[bytes], asking: bytes) -> tuple[bytes, int]:
    """Return the bytes that answer `asking`, and the passes of the run loop until the first of
    them came.
    """
    async with serve(guarded_service(), "memory://probe"), trio.open_nursery() as nursery:
        connection = await raw_connection(nursery, "memory://probe")
        for message in opening:
            await connection.send(message)
        await trio.sleep(10)  # every answer to the opening has come
        while True:
            with trio.move_on_after(0.001) as idle:
                await connection.receive()
            if idle.cancelled_caught:
                break
        passes = Passes()
        await connection.send(asking)
        trio.lowlevel.add_instrument(passes)
        answer = bytes(await connection.receive())
        trio.lowlevel.remove_instrument(passes)
        with trio.move_on_after(10):
            while True:
                answer += await connection.receive()
        nursery.cancel_scope.cancel()
    return answer, passes.count


def fewest_passes(opening: list[bytes], asking: bytes) -> int:
    """Return the fewest passes of eight runs: a reader that polls before it sleeps adds some,
    and how many depends on the real time.
    """
    return min(run_virtual(answer_to, opening, asking)[1] for _ in range(8))


def rsio_stream(name: str) -> tuple[list[bytes], bytes]:
    return [rsio.encode(rsio.ClientHello(version=0, extensions=(7,)))], rsio.encode(
        rsio.Subscribe(publisher=name, subscriber=3, demand=5)
    )


def rsio_request(name: str) -> tuple[list[bytes], bytes]:
    data = name.encode()
    body = bytes([3, len(data)]) + data
    return [rsio.encode(rsio.ClientHello(version=0, extensions=(7,)))], bytes(
        [0x4C, len(body)]
    ) + body


def reactivesocket_stream(name: str) -> tuple[list[bytes], bytes]:
    request = reactivesocket.RequestStream(stream_id=3, demand=5, data=name.encode())
    return [reactivesocket.encode(reactivesocket.Setup())], reactivesocket.encode(request)


def reactivesocket_request(name: str) -> tuple[list[bytes], bytes]:
    request = reactivesocket.RequestResponse(stream_id=3, data=name.encode())
    return [reactivesocket.encode(reactivesocket.Setup())], reactivesocket.encode(request)


WAYS_TO_ASK = [rsio_stream, rsio_request, reactivesocket_stream, reactivesocket_request]

AT_ONCE = ["hook/7", "make/7", "sent/7"]
"""Denied before a stream is accepted: the answer comes in the same pass of the run loop."""

IN_ITS_OWN_CODE = ["flow/7", "wait/7", "asks/7"]
"""Denied by code that has to run first."""


@pytest.fixture(params=WAYS_TO_ASK, ids=lambda ask: ask.__name__)
def ask(request: pytest.FixtureRequest) -> Iterator[Callable[[str], tuple[list[bytes], bytes]]]:
    """A protocol, and a stream or a request."""
    return request.param  # type: ignore[no-any-return]  # one of WAYS_TO_ASK


@pytest.mark.parametrize("name", AT_ONCE + IN_ITS_OWN_CODE)
async def test_a_denied_name_is_answered_with_the_bytes_of_a_missing_one(
    name: str,
    ask: Callable[[str], tuple[list[bytes], bytes]],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By the hook, by a function, by a generator and by a handler; in both protocols;
    as a stream and as a request.
    """
    missing, _ = await answer_to(*ask(MISSING))
    denied, _ = await answer_to(*ask(name))
    assert b"no such publisher" in missing
    assert denied == missing


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_name_that_is_denied_at_once_takes_the_passes_of_a_missing_one(
    name: str, ask: Callable[[str], tuple[list[bytes], bytes]]
) -> None:
    """The time of the answer tells nothing either.
    The order of tasks follows from a seed, so the count can be repeated.
    """
    assert fewest_passes(*ask(name)) == fewest_passes(*ask(MISSING))


def test_a_handler_that_denies_without_waiting_takes_the_passes_of_a_missing_name() -> None:
    """It runs in the pass in which its request is decoded."""
    assert fewest_passes(*reactivesocket_request("asks/7")) == fewest_passes(
        *reactivesocket_request(MISSING)
    )


async def test_a_subscribe_without_demand_is_accepted_before_its_generator_runs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """So a generator cannot hide its name from such a peer; `may_open` can."""
    hello, subscribe = (
        rsio_stream("flow/7")[0],
        rsio.encode(rsio.Subscribe(publisher="flow/7", subscriber=3, demand=0)),
    )
    accepted, _ = await answer_to(hello, subscribe)
    assert accepted == rsio.encode_on_subscribe(3, 0)
    denied, _ = await answer_to(hello, subscribe.replace(b"flow", b"hook"))
    missing, _ = await answer_to(hello, subscribe.replace(b"flow", b"none"))
    assert denied == missing


async def test_not_available_behind_an_element_ends_the_stream_with_the_same_text() -> None:
    """The name is known by then."""
    service, told = Service(), list[Exception]()

    @service.publisher("brief")
    async def brief() -> AsyncIterator[bytes]:
        yield b"one"
        raise NotAvailable("sold")

    async with (
        serve(service, "memory://brief", on_violation=told.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("brief") as stream:
            assert await anext(stream) == b"one"
            with pytest.raises(Exception, match="no such publisher") as ended:
                await anext(stream)
    assert "sold" not in str(ended.value)
    assert told == []


async def test_a_generator_that_fails_before_its_first_element_was_accepted() -> None:
    """Only NotAvailable is a refusal:
    every other failure is the failure of a publisher that exists.
    """
    service = Service()

    @service.publisher("broken")
    async def broken() -> AsyncIterator[bytes]:
        if service:
            raise ValueError("a secret")
        yield b""

    @service.publisher("empty")
    async def empty() -> AsyncIterator[bytes]:
        for nothing in ():
            yield nothing

    async with (
        serve(service, "memory://broken", on_violation=lambda _: None) as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(Exception, match=r"^the publisher failed"):
            async with peer.subscribe("broken") as stream:
                await anext(stream)
        async with peer.subscribe("empty") as stream:
            assert [element async for element in stream] == []


async def test_the_hook_gets_names_in_one_spelling_and_the_identity() -> None:
    """No escape and no kind of request passes it by;
    data that is not a name is given as the request.
    """
    asked = list[tuple[str | Request, str]]()

    def may_open(target: str | Request, peer: PeerIdentity) -> bool:
        asked.append((target, peer.address))
        return False

    service = Service(may_open=may_open)

    @service.request("price/{symbol}")
    async def price(symbol: str, payload: bytes | None = None) -> bytes:
        raise AssertionError

    @service.request_response
    async def other(data: bytes) -> bytes:
        raise AssertionError

    @service.fire_and_forget
    async def note(data: bytes) -> None:
        raise AssertionError

    async with (
        serve(service, "memory://hook") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with pytest.raises(Exception, match="no such publisher"):
            await peer.request("pr%69ce/%45UR", b"payload")
        for data in (b"price/EUR?x=%61+b", b"\xff\xfe"):
            with pytest.raises(Exception, match="no such publisher"):
                await peer.request_response(data)
        await peer.fire_and_forget(b"heard")
        with pytest.raises(Exception, match="no such publisher"):
            async with peer.request_stream("pr%69ce/%45UR") as stream:
                await anext(stream)
    targets = [
        target if isinstance(target, str) else (target.model.value, target.data)
        for target, _ in asked
    ]
    assert targets == [
        "price/EUR",
        "price/EUR?x=a+b",
        ("request and response", b"\xff\xfe"),
        ("fire and forget", b"heard"),
        ("request for a stream", b"pr%69ce/%45UR"),
    ]
    assert {address.removeprefix("reactivesocket+") for _, address in asked} == {"memory://hook"}


def test_an_async_function_cannot_be_the_hook() -> None:
    """Its coroutine would be true, and let every peer in."""

    async def may_open(name: str, peer: PeerIdentity) -> bool:
        return False

    with pytest.raises(UsageError, match="give a plain function"):
        Service(may_open=may_open)  # type: ignore[arg-type]  # the mistake
