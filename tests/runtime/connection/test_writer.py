"""The writer of a link: one task that waits, and one try without waiting by any task."""

import pytest
import trio
import trio.testing

from penstock.runtime.connection._timer import SessionTimer
from penstock.runtime.connection._writer import MAX_INLINE_SEND, Writer
from tests.runtime.connection._fakes import FakeConnection, FakeSession, make_parts


class Bench:
    """A writer over fakes."""

    def __init__(self, *, framed: bool = False, at_once: int = 0) -> None:
        self.session = FakeSession()
        self.connection = FakeConnection(framed=framed, at_once=at_once)
        self.parts = make_parts(self.session)
        self.failures: list[Exception] = []
        self.timer = SessionTimer(self.parts.session, self.parts.leaving)
        self.writer = Writer(self.connection, self.parts, self.timer, self.failures.append)

    def queue(self, data: bytes) -> None:
        self.session.outbox.buffer += data


async def run(bench: Bench, nursery: trio.Nursery) -> None:
    nursery.start_soon(bench.writer.run)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_flush_sends_what_the_transport_takes_and_the_task_the_rest() -> None:
    """In order, and nothing goes between the two."""
    bench = Bench(at_once=3)
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        bench.queue(b"abcde")
        bench.writer.flush()
        assert (bench.connection.sent_now, bench.writer.in_flight) == ([b"abc"], 2)
        bench.queue(b"fg")
        bench.writer.flush()
        assert bench.connection.sent_now == [b"abc"]
        await trio.testing.wait_all_tasks_blocked()
        assert b"".join(bench.connection.sent_now[:1] + bench.connection.sent[:1]) == b"abcde"
        assert bench.writer.in_flight == 0
        nursery.cancel_scope.cancel()
    assert b"".join(bench.connection.sent_now[1:] + bench.connection.sent[1:]) == b"fg"


async def test_before_the_task_runs_and_while_the_reader_works_nothing_is_flushed() -> None:
    """The transport may not be ready; and the reader flushes after its batch."""
    bench = Bench(at_once=100)
    bench.queue(b"ab")
    bench.writer.flush()
    assert bench.connection.sent_now == []
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        assert bench.connection.sent_now == [b"ab"]
        bench.parts.runner.is_running_inline = True
        bench.queue(b"cd")
        bench.writer.flush()
        bench.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert bench.connection.sent_now == [b"ab"]
        bench.parts.runner.is_running_inline = False
        bench.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert bench.connection.sent_now == [b"ab", b"cd"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("framed", [False, True])
async def test_much_at_a_time_and_messages_of_a_framed_transport_are_sent_by_the_task(framed: bool) -> None:
    """No try without waiting is made for them."""
    bench = Bench(framed=framed, at_once=1 << 20)
    data = b"abcd" if framed else bytes(MAX_INLINE_SEND + 1)
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        bench.queue(data)
        bench.writer.flush()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert bench.connection.sent_now == []
    assert b"".join(bench.connection.sent) == data
    if framed:
        assert bench.connection.sent == [b"ab", b"cd"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_failure_is_reported_and_ends_the_sending(at_once: bool) -> None:
    """The task ends, what waits for the flush goes on, and bytes count as lost."""
    bench = Bench(at_once=100)
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        bench.connection.error = trio.BrokenResourceError()
        bench.queue(b"ab" if at_once else bytes(MAX_INLINE_SEND + 1))
        bench.writer.flush()
        assert not await bench.writer.wait_flushed()
    assert [type(error) for error in bench.failures] == [trio.BrokenResourceError]
    assert (bench.writer.can_send, bench.writer.has_lost_bytes, bench.writer.in_flight) == (False, True, 0)


async def test_wait_flushed_returns_when_all_was_sent() -> None:
    """Not before, and at once if nothing is queued."""
    bench = Bench()
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        assert await bench.writer.wait_flushed()
        bench.queue(b"abc")
        assert await bench.writer.wait_flushed()
        assert bench.connection.sent == [b"abc"]
        nursery.cancel_scope.cancel()


async def test_a_writer_that_was_stopped_leaves_what_is_queued() -> None:
    """The next link sends it; no byte counts as lost."""
    bench = Bench(at_once=100)
    async with trio.open_nursery() as nursery:
        await run(bench, nursery)
        bench.writer.stop()
        bench.queue(b"ab")
        bench.writer.flush()
        bench.writer.on_queued()
    assert (bench.connection.sent, bench.connection.sent_now, bytes(bench.session.outbox.buffer)) == ([], [], b"ab")
    assert not bench.writer.has_lost_bytes
