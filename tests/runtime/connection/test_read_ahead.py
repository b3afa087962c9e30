"""Reading while the input is not acted on."""

import trio
import trio.testing

from penstock.runtime.connection._read_ahead import ReadAheadBuffer


class Source:
    """Gives the chunks that a test puts in, and counts the tasks that wait."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[bytes | None](100)
        self.waiting = 0

    async def receive(self) -> bytes | None:
        self.waiting += 1
        try:
            return await self._receive.receive()
        finally:
            self.waiting -= 1


async def test_reading_ahead_stops_at_the_limit(autojump_clock: trio.testing.MockClock) -> None:
    """The last chunk may go beyond; later ones come from the source."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    for piece in (b"12345678", b"90123", b"more", None):
        source.send.send_nowait(piece)
    assert not await ahead.read()
    assert ahead.held == 13
    assert [await ahead.take(), await ahead.take()] == [b"12345678", b"90123"]
    assert ahead.held == 0
    assert ahead.is_over
    assert [await ahead.take(), await ahead.take()] == [b"more", None]


async def test_the_end_is_noticed_early_and_returned_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Behind the chunks before it."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    source.send.send_nowait(b"x")
    source.send.send_nowait(None)
    assert await ahead.read()
    assert not ahead.is_over
    assert [await ahead.take(), await ahead.take()] == [b"x", None]
    assert ahead.is_over


async def test_take_waits_for_the_receive_that_is_in_progress(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One task reads at a time; reading ahead stops after this chunk."""
    source, taken = Source(), []
    ahead = ReadAheadBuffer(source.receive, 10)

    async def take() -> None:
        taken.append(await ahead.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ahead.read)
        await trio.testing.wait_all_tasks_blocked()
        assert not ahead.is_over
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        assert source.waiting == 1
        source.send.send_nowait(b"one")
        await trio.testing.wait_all_tasks_blocked()
        assert (taken, source.waiting, ahead.is_over) == ([b"one"], 0, True)


async def test_take_returns_a_chunk_while_reading_ahead_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without waiting for the next chunk."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ahead.read)
        source.send.send_nowait(b"one")
        await trio.testing.wait_all_tasks_blocked()
        assert await ahead.take() == b"one"
        assert not ahead.is_over
        source.send.send_nowait(b"two")
        assert await ahead.take() == b"two"
        assert ahead.is_over


async def test_after_a_cancelled_read_take_reads_itself(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It does not wait for a task that is gone."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ahead.read)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    source.send.send_nowait(b"one")
    assert await ahead.take() == b"one"
