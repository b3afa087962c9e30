"""Requests for one value and of every other kind, over every transport."""

import gc
import weakref
from pathlib import Path

import pytest
import trio
import trio.testing

from penstock.api import (
    ConnectionLost,
    Limits,
    NoElement,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Role,
    UsageError,
)
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.connection._requests import AnswerStream, AnswerSubscriber, SendBatcher
from penstock.session import ANSWERED, Channel, ReceivingState, ReceivingStream
from penstock.session._states import RECEIVING_MOVES, ReceivingEvent
from tests.runtime._requests import Handlers
from tests.runtime._services import named

PLACES = [
    "reactivesocket+memory://r",
    "reactivesocket+memory-framed://r",
    "reactivesocket+tcp://127.0.0.1:0",
    "unix",
]


def place(url: str, tmp_path: Path) -> str:
    return f"reactivesocket+unix://{tmp_path}/s" if url == "unix" else url


@pytest.mark.parametrize("url", PLACES)
async def test_every_kind_of_request_over_every_transport(url: str, tmp_path: Path) -> None:
    """In one connection; a publisher's name leads to that publisher,
    other data to the handler of its kind.
    """
    handlers = Handlers()
    async with (
        serve(handlers.service, place(url, tmp_path)) as server,
        connect(server.addresses[0]) as peer,
    ):
        assert await peer.request_response(b"hello") == b"olleh"
        assert await peer.request_response("numbers/3", serializer="json") == 0
        await peer.fire_and_forget(b"shot")
        async with peer.request_stream(b"data") as stream:
            assert [element async for element in stream] == [b"data"] * 3
        async with peer.request_stream("numbers/4", serializer="json", demand=2) as numbers:
            assert [number async for number in numbers] == [0, 1, 2, 3]
        async with peer.subscribe("numbers/2", serializer="json") as numbers:
            assert [number async for number in numbers] == [0, 1]
        seen = []
        with pytest.raises(PublisherFailed, match="subscription terminated"):
            async with peer.request_subscription(b"news") as news:
                async for element in news:
                    seen.append(element)  # noqa: PERF401  # what came before the failure counts
        assert seen == [b"news", b"news"]
    assert handlers.shots == [b"shot"]
    assert len(handlers.askers) == 1


@pytest.mark.parametrize("url", PLACES)
async def test_requests_go_in_both_directions_of_one_connection(url: str, tmp_path: Path) -> None:
    """The server makes requests to its client in the same way."""
    ours, theirs = Handlers(), Handlers()
    async with (
        serve(theirs.service, place(url, tmp_path)) as server,
        connect(server.addresses[0], service=ours.service) as peer,
    ):
        assert await peer.request_response(b"ab") == b"ba"
        (client,) = server.peers
        assert await client.request_response(b"cd") == b"dc"
        async with client.request_stream("numbers/2", serializer="json") as numbers:
            assert [number async for number in numbers] == [0, 1]


@pytest.mark.parametrize("url", ["reactivesocket+memory://r", "reactivesocket+memory-framed://r"])
async def test_a_url_names_protocol_and_publisher(url: str) -> None:
    """`subscribe` needs nothing else."""
    async with serve(Handlers().service, url) as server:
        async with subscribe(named(server.addresses[0], "numbers/3"), serializer="json") as numbers:
            assert [number async for number in numbers] == [0, 1, 2]


async def test_a_failed_request_tells_only_public_texts() -> None:
    """As the failure of a publisher does."""
    failures: list[Exception] = []
    handlers = Handlers()
    async with serve(handlers.service, "memory://r", on_violation=failures.append) as server:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
            with pytest.raises(PublisherFailed, match="out of stock"):
                await peer.request_response(b"out of stock")
            with pytest.raises(PublisherFailed) as failed:
                await peer.request_response(b"broken")
            await peer.fire_and_forget(b"broken")
            assert await peer.request_response(b"alive") == b"evila"
    assert "secret" not in str(failed.value)
    assert [str(each) for each in failures] == ["out of stock", "a secret", "a secret"]


async def test_without_a_handler_a_request_is_refused() -> None:
    """And messages without an answer are dropped."""
    async with (
        serve(Service(), "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        for data in (b"nowhere", b"\xff\xfe", b"x" * 5000):
            with pytest.raises(PublisherFailed, match="no such publisher"):
                await peer.request_response(data)
        await peer.fire_and_forget(b"dropped")


async def test_a_publisher_without_elements_has_no_answer() -> None:
    """The request fails; an empty value would be an answer."""
    async with (
        serve(Handlers().service, "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with pytest.raises(PublisherFailed, match="nothing to answer with"):
            await peer.request_response("numbers/0", serializer="json")


async def test_a_cancelled_request_is_cancelled_at_the_peer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """As leaving the block of a stream does."""
    service, states = Service(), []

    @service.request_response
    async def slow(data: bytes) -> bytes:
        states.append("asked")
        try:
            await trio.sleep(3600)
        finally:
            states.append("ended")
        return data

    async with (
        serve(service, "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with trio.move_on_after(1):
            await peer.request_response(b"x")
        await trio.testing.wait_all_tasks_blocked()
        assert states == ["asked", "ended"]
        assert trio.current_time() < 10


async def test_a_request_ends_with_its_connection() -> None:
    """Requests that wait fail, and so do later ones."""
    service = Service()

    @service.request_response
    async def never(data: bytes) -> bytes:
        await trio.sleep_forever()
        return data

    async with trio.open_nursery() as nursery, serve(service, "memory://r") as server:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:

            async def ask() -> None:
                with pytest.raises(ConnectionLost):
                    await peer.request_response(b"x")

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ConnectionLost):
            await peer.request_response(b"x")
        with pytest.raises(ConnectionLost):
            await peer.fire_and_forget(b"x")


async def test_rs_io_has_one_kind_of_requests_and_data_has_a_bound() -> None:
    """All else is refused here, before anything is sent."""
    async with serve(Service(), "memory://r") as server:
        async with connect(server.addresses[0]) as peer:
            with pytest.raises(
                UsageError,
                match="this connection speaks rsio, which has no fire and forget: use subscribe",
            ):
                await peer.fire_and_forget(b"x")
            with pytest.raises(UsageError, match="rsio"):
                peer.request_stream(b"x")
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
            with pytest.raises(UsageError, match="1048576 is the most"):
                await peer.request_response(b"x" * 1_048_577)


async def test_many_requests_wait_for_room_and_none_is_lost() -> None:
    """The outbox is bounded, also for requests."""
    handlers = Handlers()
    async with (
        serve(handlers.service, "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        answers = []

        async def ask(number: int) -> None:
            answers.append(await peer.request_response(bytes([number]) * 200_000))

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(ask, number)
        assert sorted(answers) == [bytes([number]) * 200_000 for number in range(100)]
        for number in range(50):
            await peer.fire_and_forget(bytes([number]) * 200_000)
        assert await peer.request_response(b"done") == b"enod"
    assert len(handlers.shots) == 50


async def test_a_completion_without_a_value_is_an_error() -> None:
    """The peer may complete a request for one value without an element."""
    answer = AnswerSubscriber(SendBatcher())
    answer.on_complete()
    answer.on_error(ValueError("late"))
    with pytest.raises(NoElement):
        await answer.receive()


async def test_more_than_a_thousand_requests_are_not_taken_for_abuse() -> None:
    """Each ends soon after it began; after the end of the connection its reason is raised."""
    handlers = Handlers()
    async with serve(handlers.service, "memory://r") as server:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
            for _ in range(1200):
                assert await peer.request_response(b"ab") == b"ba"


async def test_a_request_after_the_end_raises_the_reason() -> None:
    """A message without an answer does too."""
    async with trio.open_nursery() as nursery:
        server = await nursery.start(_served, "memory://r")
        async with connect("reactivesocket+memory://r") as peer:
            assert await peer.request_response(b"ab") == b"ba"
            server.cancel()
            while peer.is_connected:
                await trio.testing.wait_all_tasks_blocked()
            for ask in (peer.request_response, peer.fire_and_forget):
                with pytest.raises(ConnectionLost, match="shutdown"):
                    await ask(b"late")


async def _served(url: str, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        async with serve(Handlers().service, url):
            task_status.started(scope)
            await trio.sleep_forever()


async def test_request_data_fits_into_the_frame_of_its_request() -> None:
    """The demand of a stream takes eight bytes of it; data that a peer with the same limits
    would refuse is refused here.
    """
    limits = Limits(max_frame=3000)
    async with serve(Handlers().service, "memory://r", limits=limits) as server:
        async with connect(f"reactivesocket+{server.addresses[0]}", limits=limits) as peer:
            assert len(await peer.request_response(bytes(3000))) == 3000
            async with peer.request_stream(bytes(2992)) as stream:
                assert len([element async for element in stream]) == 3
            with pytest.raises(UsageError, match="3000 is the most"):
                await peer.request_response(bytes(3001))
            with pytest.raises(UsageError, match="2992 is the most"):
                peer.request_stream(bytes(2993))


async def test_a_setup_that_a_peer_with_the_same_limits_refuses_is_refused_here() -> None:
    """The largest one is accepted."""
    with pytest.raises(UsageError, match="4,080 is the most"):
        connect("reactivesocket+memory://r", setup=bytes(4081))
    async with serve(Handlers().service, "memory://r") as server:
        async with connect(f"reactivesocket+{server.addresses[0]}", setup=bytes(4080)) as peer:
            assert await peer.request_response(b"ab") == b"ba"


@pytest.mark.parametrize("url", ["reactivesocket+memory://r", "reactivesocket+memory-framed://r"])
async def test_leaving_takes_no_time(url: str, autojump_clock: trio.testing.MockClock) -> None:
    """Neither side waits after a goodbye or a refusal that gets no answer."""
    service = Service(setup=lambda data: data != b"nobody")
    service.publish("numbers", [b"one", b"two"])
    async with serve(service, url) as server:
        async with connect(server.addresses[0]) as peer:
            assert await peer.request_response("numbers") == b"one"
        with pytest.raises(Rejected):
            async with connect(server.addresses[0], setup=b"nobody") as peer:
                await peer.request_response("numbers")
    assert trio.current_time() == 0


async def test_a_failed_request_keeps_nothing_alive() -> None:
    """Without the garbage collector:
    the frame of the caller does not refer to the error that refers to it.
    """

    class Held:
        """An object in the caller's frame."""

    async def ask(mine: Held) -> weakref.ref[Held]:
        answer = AnswerSubscriber(SendBatcher())
        answer.on_error(PublisherFailed("no"))
        try:
            await answer.receive()
        except PublisherFailed:
            return weakref.ref(mine)
        raise AssertionError("it did not fail")

    gc.disable()
    try:
        assert (await ask(Held()))() is None
    finally:
        gc.enable()


def test_the_stream_of_a_request_sets_all_that_a_stream_has() -> None:
    """Its constructor does not call the one of its base, which would cost each request a call."""
    channel = Channel(
        role=Role.CLIENT, limits=Limits(), random=lambda: 0.5, wake=lambda: None, fail=raise_error
    )
    stream = AnswerStream(SendBatcher(), channel, 7)
    plain = ReceivingStream(channel, 7, stream, 1)
    for name in ReceivingStream.__slots__:
        assert getattr(stream, name) == getattr(plain, name), name


def raise_error(error: ProtocolError) -> None:
    """Fail the test: nothing here breaks a protocol."""
    raise error


def test_an_answer_leads_to_one_state() -> None:
    """Whether the peer has accepted the request before or not."""
    for state in (ReceivingState.REQUESTED, ReceivingState.LIVE):
        assert RECEIVING_MOVES[state, ReceivingEvent.COMPLETED] is ANSWERED
