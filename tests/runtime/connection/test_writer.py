"""The writer of a link: one try without waiting by any task,
and a task while the transport is full.
"""

import pytest
import trio
import trio.testing

from penstock.runtime.connection._writer import MAX_INLINE_SEND, REST_SECONDS, Writer
from tests.runtime.connection._fakes import FakeConnection, FakeSession, make_parts


class WriterHarness:
    """A writer over fakes."""

    def __init__(self, *, framed: bool = False, at_once: int = 0) -> None:
        self.session = FakeSession()
        self.connection = FakeConnection(framed=framed, at_once=at_once)
        self.parts = make_parts(self.session)
        self.failures: list[Exception] = []
        self.writer = Writer(self.connection, self.parts, self.failures.append)

    def queue(self, data: bytes) -> None:
        self.session.outbox.buffer += data


async def run(harness: WriterHarness, nursery: trio.Nursery) -> None:
    harness.parts.nursery = nursery
    harness.writer.start()
    await trio.testing.wait_all_tasks_blocked()


async def test_a_flush_sends_what_the_transport_takes_and_the_task_the_rest() -> None:
    """In order, and nothing goes between the two."""
    harness = WriterHarness(at_once=3)
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.queue(b"abcde")
        harness.writer.flush()
        assert (harness.connection.sent_now, harness.writer.in_flight) == ([b"abc"], 2)
        harness.queue(b"fg")
        harness.writer.flush()
        assert harness.connection.sent_now == [b"abc"]
        await trio.testing.wait_all_tasks_blocked()
        assert b"".join(harness.connection.sent_now[:1] + harness.connection.sent[:1]) == b"abcde"
        assert harness.writer.in_flight == 0
        nursery.cancel_scope.cancel()
    assert b"".join(harness.connection.sent_now[1:] + harness.connection.sent[1:]) == b"fg"


async def test_before_the_task_runs_and_while_the_reader_works_nothing_is_flushed() -> None:
    """The transport may not be ready; and the reader flushes after its batch."""
    harness = WriterHarness(at_once=100)
    harness.queue(b"ab")
    harness.writer.flush()
    assert harness.connection.sent_now == []
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        assert harness.connection.sent_now == [b"ab"]
        harness.parts.runner.is_running_inline = True
        harness.queue(b"cd")
        harness.writer.flush()
        harness.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.connection.sent_now == [b"ab"]
        harness.parts.runner.is_running_inline = False
        harness.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.connection.sent_now == [b"ab", b"cd"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("framed", [False, True])
async def test_much_at_a_time_and_messages_of_a_framed_transport_are_sent_by_the_task(
    framed: bool,
) -> None:
    """No try without waiting is made for them."""
    harness = WriterHarness(framed=framed, at_once=1 << 20)
    data = b"abcd" if framed else bytes(MAX_INLINE_SEND + 1)
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.queue(data)
        harness.writer.flush()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert harness.connection.sent_now == []
    assert b"".join(harness.connection.sent) == data
    if framed:
        assert harness.connection.sent == [b"ab", b"cd"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_failure_is_reported_and_ends_the_sending(at_once: bool) -> None:
    """The task ends, what waits for the flush goes on, and bytes count as lost."""
    harness = WriterHarness(at_once=100)
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.connection.error = trio.BrokenResourceError()
        harness.queue(b"ab" if at_once else bytes(MAX_INLINE_SEND + 1))
        harness.writer.flush()
        assert not await harness.writer.wait_flushed()
    assert [type(error) for error in harness.failures] == [trio.BrokenResourceError]
    assert (harness.writer.can_send, harness.writer.has_lost_bytes, harness.writer.in_flight) == (
        False,
        True,
        0,
    )


async def test_wait_flushed_returns_when_all_was_sent() -> None:
    """Not before, and at once if nothing is queued."""
    harness = WriterHarness()
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        assert await harness.writer.wait_flushed()
        harness.queue(b"abc")
        assert await harness.writer.wait_flushed()
        assert harness.connection.sent == [b"abc"]
        nursery.cancel_scope.cancel()


async def test_a_writer_that_was_stopped_leaves_what_is_queued() -> None:
    """The next link sends it; no byte counts as lost."""
    harness = WriterHarness(at_once=100)
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.writer.stop()
        harness.queue(b"ab")
        harness.writer.flush()
        harness.writer.on_queued()
    assert (
        harness.connection.sent,
        harness.connection.sent_now,
        bytes(harness.session.outbox.buffer),
    ) == ([], [], b"ab")
    assert not harness.writer.has_lost_bytes


async def test_what_the_transport_takes_at_once_costs_no_task() -> None:
    """A task is started for the first bytes that it does not take."""
    harness = WriterHarness(at_once=100)
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        for _ in range(3):
            harness.queue(b"ab")
            harness.writer.flush()
        assert await harness.writer.wait_flushed()
        assert not nursery.child_tasks
        harness.queue(bytes(101))
        harness.writer.flush()
        assert [task.name for task in nursery.child_tasks] == ["penstock writer"]
        assert await harness.writer.wait_flushed()
        nursery.cancel_scope.cancel()


async def test_a_task_without_work_is_ended_and_another_one_follows(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It stays for a second at least, and as long as it gets work."""
    harness = WriterHarness()
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        nursery.start_soon(harness.parts.timer.wait_until, lambda: False)
        for _ in range(2):
            for _ in range(3):
                harness.queue(b"ab")
                harness.writer.on_queued()
                await trio.sleep(REST_SECONDS * 0.9)
                assert len(nursery.child_tasks) == 2
            await trio.sleep(REST_SECONDS * 2)
            assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()
    assert harness.connection.sent == [b"ab"] * 6


async def test_work_that_comes_while_the_task_is_ended_is_done() -> None:
    """The task sends it first."""
    harness = WriterHarness()
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.queue(b"ab")
        harness.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.writer.look(1.0) == 1.0 + REST_SECONDS
        assert harness.writer.look(2.0) is None
        harness.queue(b"cd")
        harness.writer.on_queued()
        await trio.testing.wait_all_tasks_blocked()
        assert not nursery.child_tasks
    assert harness.connection.sent == [b"ab", b"cd"]


async def test_cancel_gives_up_a_send_that_waits() -> None:
    """The transport can be closed under it, and a wait for the flush ends."""
    harness = WriterHarness()
    results: list[bool] = []

    async def wait() -> None:
        results.append(await harness.writer.wait_flushed())

    harness.connection.send = sleep_forever  # type: ignore[method-assign]  # a peer that reads nothing
    async with trio.open_nursery() as nursery:
        await run(harness, nursery)
        harness.queue(b"ab")
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 2
        harness.writer.cancel()
    assert results == [False]
    assert harness.failures == []


async def sleep_forever(data: object) -> None:
    await trio.sleep_forever()
