"""Reading on while nobody acts on what is read."""

import trio
import trio.testing

from penstock.runtime.connection._read_ahead import ReadAheadBuffer


class Source:
    """Gives what it is told to, and counts who waits."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[bytes | None](100)
        self.waiting = 0

    async def receive(self) -> bytes | None:
        self.waiting += 1
        try:
            return await self._receive.receive()
        finally:
            self.waiting -= 1


async def test_no_more_is_read_than_may_wait(autojump_clock: trio.testing.MockClock) -> None:
    """The last piece may go beyond; what is left comes from the source."""
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


async def test_the_end_is_noticed_and_told_again_in_its_turn(autojump_clock: trio.testing.MockClock) -> None:
    """Behind what came before it."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    source.send.send_nowait(b"x")
    source.send.send_nowait(None)
    assert await ahead.read()
    assert not ahead.is_over
    assert [await ahead.take(), await ahead.take()] == [b"x", None]
    assert ahead.is_over


async def test_who_takes_waits_for_what_is_being_read_and_never_reads_beside_it(autojump_clock: trio.testing.MockClock) -> None:
    """There is one reader at a time; the one ahead stops with what it has under way."""
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


async def test_what_waits_is_given_out_before_the_reader_is_done(autojump_clock: trio.testing.MockClock) -> None:
    """Nobody waits for the next piece to get this one."""
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


async def test_a_reader_that_is_cancelled_leaves_reading_to_who_takes(autojump_clock: trio.testing.MockClock) -> None:
    """Nobody waits for what nobody reads."""
    source = Source()
    ahead = ReadAheadBuffer(source.receive, 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ahead.read)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    source.send.send_nowait(b"one")
    assert await ahead.take() == b"one"
