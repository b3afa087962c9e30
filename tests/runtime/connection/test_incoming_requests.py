"""The answers to a peer: refusals, places, messages without an answer, and the setup function."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from penstock.api import Limits, PublicError, PublisherFailed, Rejected
from penstock.protocols import reactivesocket
from penstock.runtime import Service, connect, serve
from penstock.spi import PeerIdentity
from tests.runtime._services import numbers_service, raw_connection


async def test_a_failure_is_raised_from_the_loop_without_its_secrets() -> None:
    """Only the text of a PublicError crosses; the publisher's side reports everything."""
    told: list[Exception] = []
    async with (
        serve(numbers_service(), "memory://test", on_violation=told.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(
            PublisherFailed, match=r"^the publisher failed .*look into the log of the other side"
        ):
            async with peer.subscribe("failing", serializer="text") as stream:
                assert [element async for element in stream]
        assert [str(each) for each in told] == ["a secret"]
        with pytest.raises(PublisherFailed, match=r"^out of stock$"):
            async with peer.subscribe("honest", serializer="text") as stream:
                assert [element async for element in stream]


@pytest.mark.parametrize(
    "name",
    ["nobody", "numbers", "numbers/x", "numbers/1?stop=3", "numbers/1/2", "numbers/1?count=2"],
)
async def test_missing_names_and_wrong_parameters_are_refused_in_the_same_words(name: str) -> None:
    """A peer cannot probe for names."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(Rejected, match=r"refused this stream: no such publisher \("):
            async with peer.subscribe(name, serializer="json") as stream:
                await anext(stream)


async def test_messages_without_an_answer_take_places_of_streams() -> None:
    """Those above the limit are dropped, and the places are free again
    when their handlers have ended.
    """
    heard: list[bytes] = []
    go = trio.Event()
    service = Service()

    @service.fire_and_forget
    async def note(data: bytes, peer: PeerIdentity) -> None:
        heard.append(data)
        await go.wait()

    limits = replace(Limits(), max_subscriptions=2)
    async with (
        serve(service, "memory://r", limits=limits) as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        for number in range(4):
            await peer.fire_and_forget(str(number))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(PublisherFailed, match="refused"):
            await peer.request_response("note")
        go.set()
        await trio.testing.wait_all_tasks_blocked()
        await peer.fire_and_forget("last")
        await trio.testing.wait_all_tasks_blocked()
    assert sorted(heard[:2]) == [b"0", b"1"]  # each is a separate task
    assert heard[2:] == [b"last"]


@pytest.mark.parametrize("place", ["memory://r", "memory-framed://r"])
@pytest.mark.parametrize("behind", [0, 1, 50], ids=["nothing", "a request", "many"])
async def test_a_setup_function_is_cancelled_when_its_client_is_gone(
    autojump_clock: trio.testing.MockClock, place: str, behind: int
) -> None:
    """At once; none of the client's requests is run."""
    seen: list[str] = []

    async def setup(data: bytes) -> bool:
        try:
            await trio.sleep_forever()
        finally:
            seen.append("cancelled")
        return True

    service = Service(setup=setup)

    @service.request_response
    async def asked(data: bytes) -> bytes:
        seen.append("asked")
        return data

    async with serve(service, f"reactivesocket+{place}") as server, trio.open_nursery() as nursery:
        connection = await raw_connection(nursery, place)
        frames = [
            reactivesocket.Setup(),
            *(reactivesocket.RequestResponse(stream_id=1 + 2 * each) for each in range(behind)),
        ]
        for frame in frames:
            await connection.send(reactivesocket.encode(frame, framed=connection.framed))
            await trio.testing.wait_all_tasks_blocked()
        await connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert seen == ["cancelled"]
        assert server.peers == ()
        await trio.sleep(0.1)
        assert not server._admission.open


@pytest.mark.parametrize("place", ["memory://r", "memory-framed://r"])
async def test_requests_behind_the_setup_are_run_in_order_afterwards(place: str) -> None:
    """In chunks of every kind; bytes above the limit stay in the transport until then."""
    let_in, heard_all, seen = trio.Event(), trio.Event(), []

    async def setup(data: bytes) -> None:
        await let_in.wait()

    service = Service(setup=setup)

    @service.fire_and_forget
    async def said(data: bytes) -> None:
        seen.append(int(data[:4]))
        if len(seen) == 200:
            heard_all.set()

    async with serve(service, f"reactivesocket+{place}") as server, trio.open_nursery() as nursery:
        connection = await raw_connection(nursery, place)

        async def say() -> None:
            await connection.send(
                reactivesocket.encode(reactivesocket.Setup(), framed=connection.framed)
            )
            for number in range(200):
                frame = reactivesocket.RequestFnf(
                    stream_id=1 + 2 * number, data=b"%04d" % number + bytes(1000)
                )
                await connection.send(reactivesocket.encode(frame, framed=connection.framed))

        nursery.start_soon(say)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == []
        (conversation,) = server._connections.running
        assert (
            Limits().preauth_bytes
            <= conversation.held()
            <= Limits().preauth_bytes + Limits().receive_chunk
        )
        let_in.set()
        await heard_all.wait()
        assert seen == list(range(200))
        await connection.abort()


@pytest.mark.parametrize(
    "error", [PublicError("not today"), Rejected("not today"), ValueError("a secret")]
)
async def test_an_async_setup_function_refuses_by_raising(error: Exception) -> None:
    """The text of a PublicError or Rejected crosses; every other exception is reported here."""
    told: list[BaseException] = []

    async def setup(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    async with serve(
        Service(setup=setup), "reactivesocket+memory://r", on_violation=told.append
    ) as server:
        with pytest.raises(
            Rejected, match="'refused'" if isinstance(error, ValueError) else "'not today'"
        ):
            async with connect(server.addresses[0]) as peer:
                await peer.request_response("x")
    assert told == [error] * isinstance(error, ValueError)


async def test_a_message_handler_outlives_its_connection_for_ten_seconds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client need not stay connected. One that takes longer is cancelled:
    it keeps the place of the connection.
    """
    service, done = Service(), list[tuple[bytes, float]]()

    @service.fire_and_forget
    async def heard(data: bytes) -> None:
        try:
            await trio.sleep(float(data))
        finally:
            done.append((data, round(trio.current_time() - began)))

    async with serve(service, "reactivesocket+memory://test") as server:
        async with connect(server.addresses[0]) as peer:
            began = trio.current_time()
            await peer.fire_and_forget(b"9")
            await peer.fire_and_forget(b"60")
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(30)
    assert done == [(b"9", 9), (b"60", 10)]
