"""Requests of tasks that were woken together are sent together."""

from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost
from penstock.runtime import connect, serve
from penstock.runtime.connection import _requests
from penstock.runtime.connection._requests import (
    DUE_FOR_EACH,
    MAX_BATCH,
    MAX_DELAY,
    MAX_UNBATCHED,
    SendBatcher,
)
from penstock.spi import Bytes, SocketConnection
from tests._real_time import HANGS_AFTER
from tests.runtime._requests import Handlers


class Sent:
    """A writer that counts its calls."""

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
    """The time, as the test sets it."""
    now = [100.0]
    monkeypatch.setattr(_requests, "monotonic", lambda: now[0])
    return now


def test_a_request_of_a_single_task_is_sent_at_once() -> None:
    """No other task is due; a task that was woken and has resumed is not due any more."""
    sent = Sent()
    sent.batcher.message_queued()
    sent.batcher.woken += 1
    sent.batcher.task_resumed()
    assert sent.times == 1
    sent.batcher.message_queued()
    assert sent.times == 2


def test_the_last_woken_task_sends_for_the_others(clock: list[float]) -> None:
    """Once, whether it makes a request itself or not."""
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


def test_a_full_batch_does_not_wait_for_the_rest(clock: list[float]) -> None:
    """The peer has something to do meanwhile."""
    sent = Sent()
    sent.batcher.woken = MAX_BATCH * DUE_FOR_EACH
    for _ in range(3 * MAX_BATCH):
        sent.batcher.message_queued()
    assert sent.times == 3
    sent.batcher.message_queued()
    sent.batcher.woken = 1
    sent.batcher.task_resumed()
    assert sent.times == 4


def test_sends_are_larger_while_many_tasks_are_due(clock: list[float]) -> None:
    """Each has a share of them, so the last sends are small again."""
    sent = Sent()
    sent.batcher.woken = 200
    sizes, queued = [], 0
    while sent.batcher.woken:
        sent.batcher.task_resumed()
        before, queued = sent.times, queued + 1
        sent.batcher.message_queued()
        if sent.times > before:
            sizes.append(queued)
            queued = 0
    assert sum(sizes) == 200
    assert sizes[0] == 200 // (DUE_FOR_EACH + 1)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-3] == MAX_BATCH


async def test_the_last_woken_task_sends_its_own_request_along(clock: list[float]) -> None:
    """While the reader waits for the tasks:
    one send for all of them, in any order of the scheduler.
    """
    for _ in range(10):  # the scheduler shuffles them
        sent = Sent()

        async def ask(sent: Sent = sent) -> None:
            sent.batcher.task_resumed()
            sent.batcher.message_queued()

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask)
            sent.batcher.woken = 3
            await sent.batcher.gather()
            assert sent.times == 1


async def test_the_reader_sends_what_the_woken_tasks_leave(clock: list[float]) -> None:
    """The last task may make no request, and a task that was counted by mistake may never come."""
    for _ in range(10):
        for woken in (3, 4):
            sent = Sent()

            async def ask(times: int, sent: Sent = sent) -> None:
                sent.batcher.task_resumed()
                for _ in range(times):
                    sent.batcher.message_queued()

            async with trio.open_nursery() as nursery:
                for times in (1, 1, 0):
                    nursery.start_soon(ask, times)
                sent.batcher.woken = woken
                await sent.batcher.gather()
                assert 1 <= sent.times <= 2
                assert sent.batcher.woken == woken - 3
            seen = sent.times
            sent.batcher.woken = 0
            sent.batcher.message_queued()
            assert sent.times == seen + 1  # nothing was left of them


def test_a_message_waits_no_longer_than_the_delay(clock: list[float]) -> None:
    """After MAX_DELAY it goes out with the next message."""
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


def test_many_first_requests_are_left_to_the_writer(clock: list[float]) -> None:
    """All but the first MAX_UNBATCHED, until something arrives; each wakes the writer, which may
    have been there in between.
    """
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
    """The sizes of the sends to sockets that did not wait."""
    sizes: list[int] = []
    now = SocketConnection.send_now

    def counted(connection: SocketConnection, data: Bytes, /) -> int:
        sizes.append(len(data))
        return now(connection, data)

    monkeypatch.setattr(SocketConnection, "send_now", counted)
    return sizes


async def test_many_in_flight_take_fewer_sends_than_requests(writes: list[int]) -> None:
    """Requests behind answers that arrived together go out together;
    a single request goes out from its own task.
    """
    rounds, in_flight = 10, 32
    async with serve(Handlers().service, "tcp://127.0.0.1:0") as server:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:

            async def ask(times: int) -> None:
                for _ in range(times):
                    assert await peer.request_response(b"ab") == b"ba"

            await ask(1)
            writes.clear()  # the SETUP and what announces the extensions
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
async def test_many_requests_that_begin_together_take_few_sends(
    writes: list[int], in_flight: int
) -> None:
    """The first ones take one each, the others share; the last one is not left behind."""
    async with serve(Handlers().service, "tcp://127.0.0.1:0") as server:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:
            assert await peer.request_response(b"ab") == b"ba"
            await trio.testing.wait_all_tasks_blocked()
            writes.clear()
            answers: list[bytes] = []

            async def ask() -> None:
                answers.append(await peer.request_response(b"ab"))

            with trio.fail_after(HANGS_AFTER):
                async with trio.open_nursery() as nursery:
                    for _ in range(in_flight):
                        nursery.start_soon(ask)
            assert answers == [b"ba"] * in_flight
            assert sum(size == 18 for size in writes) <= 2 * (MAX_UNBATCHED + 1)


async def test_streams_can_be_opened_together_and_one_by_one(writes: list[int]) -> None:
    """The writer sends messages that no task is due for."""
    async with (
        serve(Handlers().service, "tcp://127.0.0.1:0") as server,
        connect(server.addresses[0]) as peer,
    ):
        with trio.fail_after(HANGS_AFTER):
            for count in (1, MAX_UNBATCHED, 3 * MAX_UNBATCHED):
                async with AsyncExitStack() as stack:
                    streams = [
                        await stack.enter_async_context(
                            peer.subscribe("numbers/2", serializer="json")
                        )
                        for _ in range(count)
                    ]
                    assert [[number async for number in stream] for stream in streams] == [
                        [0, 1]
                    ] * count


async def test_a_message_is_sent_although_the_due_tasks_make_no_request() -> None:
    """One task makes a request; another is cancelled as it resumes, and another returns."""
    answers: list[bytes] = []
    async with (
        serve(Handlers().service, "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):

        async def ask(times: int) -> None:
            for _ in range(times):
                answers.append(await peer.request_response(b"ab"))  # noqa: PERF401  # each when it is there

        for _ in range(30):  # the scheduler shuffles them
            with trio.fail_after(HANGS_AFTER):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(ask, 2)
                    for _ in range(3):
                        nursery.start_soon(ask, 1)
    assert answers == [b"ba"] * 30 * 5


async def test_the_end_of_a_connection_does_not_wait_for_due_tasks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Queued messages go out with its goodbye, in no time."""
    handlers = Handlers()
    async with serve(handlers.service, "memory://r") as server, trio.open_nursery() as nursery:
        async with connect(f"reactivesocket+{server.addresses[0]}") as peer:

            async def ask() -> None:
                with pytest.raises(ConnectionLost):
                    await peer.request_response(b"ab")

            assert await peer.request_response(b"ab") == b"ba"
            # A task that was woken, and does not resume.
            peer._connection.requests.batcher.woken += 1
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert len(handlers.askers) == 1
    assert len(handlers.askers) == 2
    assert trio.current_time() == 0
