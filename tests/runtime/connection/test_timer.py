"""The timer of a connection ticks when something is due, and at no other time."""

from typing import Any

import trio
import trio.testing

from penstock.session import ConnectionState
from tests.runtime.connection._fakes import FakeSession, make_parts


async def test_it_ticks_at_the_deadline_and_sets_the_next_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A deadline that moves away costs one tick too early."""
    session: Any = FakeSession()
    session.due = 5.0
    timer = make_parts(session).timer
    timer.reschedule()
    session.due = None
    with trio.move_on_after(100):
        await timer.wait_until(lambda: False)
    assert session.ticks == [0.0, 5.0]


async def test_an_earlier_deadline_moves_the_tick(autojump_clock: trio.testing.MockClock) -> None:
    """That of a watcher, while the task waits. Messages that move none cost nothing."""
    session: Any = FakeSession()
    session.due = 50.0
    timer = make_parts(session).timer
    timer.reschedule()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timer.wait_until, lambda: False)
        await trio.sleep(1)
        deadlines = session.channel.deadlines
        deadlines.on_earlier(60.0)
        deadlines.on_earlier(5.0)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert session.ticks == [0.0, 5.0]


async def test_a_change_of_the_phase_ticks_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The handshake, the open connection and the goodbye have deadlines of their own."""
    session: Any = FakeSession()
    timer = make_parts(session).timer
    timer.reschedule()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timer.wait_until, lambda: False)
        await trio.sleep(1)
        session.channel.deadlines.change_phase()
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert session.ticks == [0.0, 1.0]


async def test_a_goodbye_without_an_answer_lets_the_connection_leave() -> None:
    """If the peer answers goodbyes, the answer is waited for."""
    session = FakeSession()
    parts = make_parts(session)
    timer, leaving = parts.timer, parts.leaving
    session.channel.state = ConnectionState.CLOSING
    timer.reschedule()
    assert not leaving.is_set()
    session.channel.dialect.answers_goodbye = False
    timer.reschedule()
    assert leaving.is_set()


async def test_what_a_tick_queues_is_sent_from_there() -> None:
    """A ping costs no task of the writer.
    Something that was queued before is sent by the call that has queued it.
    """
    session: Any = FakeSession()
    parts = make_parts(session)
    writer: Any = parts.requests.batcher.writer
    parts.timer.reschedule()
    assert writer.flushed == 1
    assert not parts.requests.batcher.is_requesting
    session.outbox.buffer += b"answer"
    parts.timer.reschedule()
    assert writer.flushed == 1


async def test_the_wait_ends_when_it_is_woken_and_not_before(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A deadline that was set in one wait is kept in the next one."""
    session: Any = FakeSession()
    session.due = 5.0
    timer, flags = make_parts(session).timer, [False]
    timer.reschedule()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(timer.wait_until, lambda: flags[0])
            await trio.sleep(1)
            timer.wake()
            await trio.sleep(1)
            assert len(nursery.child_tasks) == 1
            flags[0] = True
            timer.wake()
        flags[0] = False
    session.due = None
    with trio.move_on_after(10):
        await timer.wait_until(lambda: False)
    assert session.ticks == [0.0, 5.0]
