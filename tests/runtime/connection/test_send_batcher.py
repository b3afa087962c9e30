"""Those who were answered together ask again together."""

from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost
from penstock.builtin._socket_connection import SocketConnection
from penstock.plugins import Bytes
from penstock.runtime import connect, serve
from penstock.runtime.connection import _send_batcher
from penstock.runtime.connection._send_batcher import MAX_BATCH, MAX_DELAY, MAX_UNBATCHED, SendBatcher
from tests.runtime._requests import Handlers


class Sent:
    """Counts."""

    def __init__(self) -> None:
        self.times = 0
        self.woken_writer = 0
        self.batcher = SendBatcher()
        self.batcher.writer = self

    def flush(self) -> None:
        self.times += 1

    def wake(self) -> None:
        self.woken_writer += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the tests want it."""
    now = [100.0]
    monkeypatch.setattr(_send_batcher, "monotonic", lambda: now[0])
    return now


def test_who_speaks_alone_is_heard_at_once() -> None:
    """Nobody is due; and one that is due and goes on before it speaks is no longer."""
    sent = Sent()
    sent.batcher.message_queued()
    sent.batcher.woken += 1
    sent.batcher.task_resumed()
    assert sent.times == 1
    sent.batcher.message_queued()
    assert sent.times == 2


def test_the_last_to_go_on_sends_what_the_others_have_said(clock: list[float]) -> None:
    """Whether it says something itself or not; and once."""
    sent = Sent()
    sent.batcher.woken = 3
    for _ in range(2):
        sent.batcher.task_resumed()
        sent.batcher.message_queued()
    assert sent.times == 0
    sent.batcher.task_resumed()
    assert sent.times == 1
    sent.batcher.woken = 1
    sent.batcher.task_resumed()
    assert sent.times == 1


def test_what_some_have_said_does_not_wait_for_all(clock: list[float]) -> None:
    """The peer shall have something to do."""
    sent = Sent()
    sent.batcher.woken = 1000
    for _ in range(3 * MAX_BATCH):
        sent.batcher.message_queued()
    assert sent.times == 3
    sent.batcher.message_queued()
    sent.batcher.woken = 1
    sent.batcher.task_resumed()
    assert sent.times == 4


def test_who_has_much_to_do_delays_the_others_by_no_more_than_that(clock: list[float]) -> None:
    """What was said a moment ago goes out with the next that is."""
    sent = Sent()
    sent.batcher.woken = 1000
    sent.batcher.message_queued()
    clock[0] += MAX_DELAY / 2
    sent.batcher.message_queued()
    assert sent.times == 0
    clock[0] += MAX_DELAY / 2
    sent.batcher.message_queued()
    assert sent.times == 1
    sent.batcher.message_queued()
    assert sent.times == 1


def test_many_who_begin_at_a_time_are_the_writer_s(clock: list[float]) -> None:
    """All but the first few, until something comes from the peer; and each of them rouses it, for it may have been there between."""
    sent = Sent()
    for _ in range(MAX_UNBATCHED + 3):
        sent.batcher.message_queued()
    assert (sent.times, sent.woken_writer) == (MAX_UNBATCHED, 3)
    for _ in range(MAX_BATCH - 3):
        sent.batcher.message_queued()
    assert (sent.times, sent.woken_writer) == (MAX_UNBATCHED + 1, MAX_BATCH)
    sent.batcher.unbatched = 0
    sent.batcher.message_queued()
    assert (sent.times, sent.woken_writer) == (MAX_UNBATCHED + 2, MAX_BATCH)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what goes to sockets at once."""
    sizes: list[int] = []
    now = SocketConnection.send_now

    def counted(connection: SocketConnection, data: Bytes, /) -> int:
        sizes.append(len(data))
        return now(connection, data)

    monkeypatch.setattr(SocketConnection, "send_now", counted)
    return sizes


async def test_many_in_flight_take_fewer_messages_than_requests_and_one_takes_its_own(writes: list[int]) -> None:
    """What is asked behind answers that came together goes out together; a request alone goes out from its own task."""
    rounds, in_flight = 10, 32
    async with serve(Handlers().service, "tcp://127.0.0.1:0") as server:
        async with connect("reactivesocket+" + server.addresses[0]) as peer:

            async def ask(times: int) -> None:
                for _ in range(times):
                    assert await peer.request_response(b"ab") == b"ba"

            await ask(3)
            assert all(size < 60 for size in writes)
            writes.clear()
            await trio.testing.wait_all_tasks_blocked()
            async with trio.open_nursery() as nursery:
                for _ in range(in_flight):
                    nursery.start_soon(ask, rounds)
            assert max(writes) > 60
            assert len(writes) < 2 * rounds * in_flight * 0.9


@pytest.mark.parametrize("in_flight", [1, MAX_UNBATCHED, MAX_UNBATCHED + 1, 100])
async def test_many_requests_that_begin_at_a_time_take_few_messages(writes: list[int], in_flight: int) -> None:
    """The first ones their own, the others a message for several; and the last of them is not left behind."""
    async with serve(Handlers().service, "tcp://127.0.0.1:0") as server:
        async with connect("reactivesocket+" + server.addresses[0]) as peer:
            assert await peer.request_response(b"ab") == b"ba"
            await trio.testing.wait_all_tasks_blocked()
            writes.clear()
            answers: list[bytes] = []

            async def ask() -> None:
                answers.append(await peer.request_response(b"ab"))

            with trio.fail_after(5):
                async with trio.open_nursery() as nursery:
                    for _ in range(in_flight):
                        nursery.start_soon(ask)
            assert answers == [b"ba"] * in_flight
            assert sum(size == 18 for size in writes) <= 2 * (MAX_UNBATCHED + 1)


async def test_streams_are_opened_many_at_a_time_and_one_after_another(writes: list[int]) -> None:
    """What nobody else would send is the writer's."""
    async with serve(Handlers().service, "tcp://127.0.0.1:0") as server, connect(server.addresses[0]) as peer:
        with trio.fail_after(5):
            for count in (1, MAX_UNBATCHED, 3 * MAX_UNBATCHED):
                async with AsyncExitStack() as stack:
                    streams = [await stack.enter_async_context(peer.subscribe("numbers/2", serializer="json")) for _ in range(count)]
                    assert [[number async for number in stream] for stream in streams] == [[0, 1]] * count


async def test_what_was_said_is_sent_though_those_who_are_due_do_other_things() -> None:
    """One asks again; another is cancelled as it goes on, another leaves, and nobody of them speaks."""
    answers: list[bytes] = []
    async with serve(Handlers().service, "memory://r") as server, connect("reactivesocket+" + server.addresses[0]) as peer:

        async def ask(times: int) -> None:
            for _ in range(times):
                answers.append(await peer.request_response(b"ab"))  # noqa: PERF401  # each when it is there

        for _ in range(30):  # in whichever order the scheduler takes them
            with trio.fail_after(5):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(ask, 2)
                    for _ in range(3):
                        nursery.start_soon(ask, 1)
    assert answers == [b"ba"] * 30 * 5


async def test_a_connection_that_ends_waits_for_nobody_who_is_due(autojump_clock: trio.testing.MockClock) -> None:
    """What was said before goes out with its end, which takes no time."""
    handlers = Handlers()
    async with serve(handlers.service, "memory://r") as server, trio.open_nursery() as nursery:
        async with connect("reactivesocket+" + server.addresses[0]) as peer:

            async def ask() -> None:
                with pytest.raises(ConnectionLost):
                    await peer.request_response(b"ab")

            assert await peer.request_response(b"ab") == b"ba"
            peer._connection.requests.batcher.woken += 1  # somebody was woken, and does not come
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert len(handlers.askers) == 1
    assert len(handlers.askers) == 2
    assert trio.current_time() == 0
