"""The timer of a link ticks when something is due, and once in 50 ms while messages arrive."""

from typing import Any

import trio
import trio.testing

from penstock.runtime.connection._timer import TIMER_GRANULARITY, SessionTimer
from penstock.session import ConnectionState
from tests.runtime.connection._fakes import FakeSession


async def test_it_ticks_at_the_deadline_and_sets_the_next_one(autojump_clock: trio.testing.MockClock) -> None:
    """A deadline that moves away costs one tick too early."""
    session: Any = FakeSession()
    session.due = 5.0
    timer = SessionTimer(session, trio.Event())
    timer.reschedule()
    session.due = None
    with trio.move_on_after(100):
        await timer.run()
    assert session.ticks == [0.0, 5.0]


async def test_messages_cost_one_tick_in_fifty_milliseconds(autojump_clock: trio.testing.MockClock) -> None:
    """All other messages are covered by it, and need no call."""
    session: Any = FakeSession()
    timer = SessionTimer(session, trio.Event())
    timer.reschedule()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timer.run)
        calls = 0
        for _ in range(100):
            now = trio.current_time()
            if now >= timer.covered_until:
                timer.reschedule_soon(now)
                calls += 1
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    assert calls <= 4
    assert session.ticks == [0.0, TIMER_GRANULARITY, 2 * TIMER_GRANULARITY]


async def test_before_the_session_is_open_each_batch_ticks() -> None:
    """The deadlines of a handshake move with it."""
    session: Any = FakeSession()
    session.channel.state = ConnectionState.GREETING
    timer = SessionTimer(session, trio.Event())
    for _ in range(3):
        assert trio.current_time() >= timer.covered_until
        timer.reschedule_soon(trio.current_time())
    assert len(session.ticks) == 3


async def test_a_goodbye_without_an_answer_lets_the_connection_leave() -> None:
    """If the peer answers goodbyes, the answer is waited for."""
    session, leaving = FakeSession(), trio.Event()
    plain: Any = session
    timer = SessionTimer(plain, leaving)
    session.channel.state = ConnectionState.CLOSING
    timer.reschedule()
    assert not leaving.is_set()
    session.channel.dialect.answers_goodbye = False
    timer.reschedule()
    assert leaving.is_set()
