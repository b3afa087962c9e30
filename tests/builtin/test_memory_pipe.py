"""Pipes inside the process: bounded, and with every promise of trio's streams."""

import pytest
import trio
from trio.testing import assert_checkpoints, check_half_closeable_stream, wait_all_tasks_blocked

from penstock.builtin import memory_stream_pair
from penstock.builtin._memory_pipe import MemoryStream, MessagePipe


async def test_a_stream_keeps_every_promise_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation, and waiting for room: trio's own check."""

    async def maker() -> tuple[MemoryStream, MemoryStream]:
        await trio.lowlevel.checkpoint()
        return memory_stream_pair(100)

    async def clogged_maker() -> tuple[MemoryStream, MemoryStream]:
        here, there = memory_stream_pair(100)
        await here.send_all(bytes(100))
        await there.send_all(bytes(100))
        return here, there

    await check_half_closeable_stream(maker, clogged_maker)


async def test_sending_waits_when_the_pipe_is_full(nursery: trio.Nursery) -> None:
    """What fits is taken, the rest waits until it has been read: nothing is held beyond the bound."""
    here, there = memory_stream_pair(10)
    sent = []

    async def send() -> None:
        await here.send_all(bytes(range(25)))
        sent.append(True)

    nursery.start_soon(send)
    arrived = b""
    for held in (10, 10, 5):
        await wait_all_tasks_blocked()
        assert bool(sent) is (held == 5)
        chunk = await there.receive_some()
        assert len(chunk) == held
        arrived += chunk
    assert arrived == bytes(range(25))


async def test_a_reader_takes_no_more_than_it_asks_for() -> None:
    """The rest stays for the next time."""
    here, there = memory_stream_pair()
    await here.send_all(b"abcdef")
    assert await there.receive_some(4) == b"abcd"
    assert await there.receive_some(4) == b"ef"


async def test_any_buffer_can_be_sent() -> None:
    """Of items of any size: it is the bytes that go."""
    here, there = memory_stream_pair()
    await here.send_all(memoryview(b"abcdefgh").cast("I"))
    assert await there.receive_some() == b"abcdefgh"


async def test_a_reader_that_leaves_breaks_a_waiting_sender() -> None:
    """It does not wait for ever."""
    here, there = memory_stream_pair(10)

    async def send() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await here.send_all(bytes(11))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        await there.aclose()


async def test_a_stream_closed_by_its_own_side_wakes_who_sends() -> None:
    """With ClosedResourceError: it was ours to close."""
    here, _ = memory_stream_pair(10)

    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await here.send_all(bytes(11))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        await here.aclose()


async def test_waiting_for_room_ends_when_the_reader_leaves() -> None:
    """Then sending would fail, which is no reason to wait."""
    here, there = memory_stream_pair(10)
    await here.send_all(bytes(10))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.wait_send_all_might_not_block)
        await wait_all_tasks_blocked()
        await there.aclose()


async def _took(pipe: MessagePipe, *messages: bytes) -> None:
    for message in messages:
        assert await pipe.receive() == message


async def test_messages_arrive_whole_and_in_order() -> None:
    """Empty ones, too; and after the last one comes the end, again and again."""
    pipe = MessagePipe(100)
    for message in (b"one", bytearray(b"two"), memoryview(b"three"), b""):
        with assert_checkpoints():
            await pipe.send(message)
    pipe.end()
    with assert_checkpoints():
        await _took(pipe, b"one", b"two", b"three", b"")
    assert await pipe.receive() is None
    assert await pipe.receive() is None


@pytest.mark.parametrize(
    ("held", "next_one"), [([b"x" * 60], b"x" * 41), ([b"x" * 200], b""), ([b""] * 64, b"")], ids=["bytes", "one above the bound", "number"]
)
async def test_a_message_that_does_not_fit_waits(nursery: trio.Nursery, held: list[bytes], next_one: bytes) -> None:
    """The bound is on bytes and on their number; one that is larger than all goes alone."""
    pipe = MessagePipe(100)
    for message in held:
        await pipe.send(message)
    sent = []

    async def send() -> None:
        await pipe.send(next_one)
        sent.append(True)

    nursery.start_soon(send)
    await wait_all_tasks_blocked()
    assert sent == []
    await _took(pipe, held[0])
    await wait_all_tasks_blocked()
    assert sent == [True]
    await _took(pipe, *held[1:], next_one)


async def test_a_cancelled_message_has_not_been_sent() -> None:
    """Not even in part."""
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.send, b"never")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    pipe.end()
    await _took(pipe, b"x" * 10)
    assert await pipe.receive() is None


async def test_a_message_nobody_will_read_is_refused() -> None:
    """Whether the reader left before or while it waited; and it is held no longer."""
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)

    async def send() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await pipe.send(b"y")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        pipe.abandon()
    await send()
    assert not pipe._messages
    with pytest.raises(trio.ClosedResourceError, match="was closed, so it cannot receive"):
        await pipe.receive()


@pytest.mark.parametrize("how", ["end", "abandon"])
async def test_closing_an_end_wakes_who_waits_at_it(how: str) -> None:
    """The sender at its own end, the receiver at its own."""
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)
    if how == "abandon":
        await _took(pipe, b"x" * 10)

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await (pipe.send(b"y") if how == "end" else pipe.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        getattr(pipe, how)()
        getattr(pipe, how)()  # twice is once


async def test_an_end_has_one_user_at_a_time() -> None:
    """A second one is told."""
    pipe = MessagePipe(10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="using this pipe to receive"):
            await pipe.receive()
        nursery.cancel_scope.cancel()
