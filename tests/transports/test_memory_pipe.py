"""Pipes inside the process: they are bounded, and keep the promises of trio's streams."""

import pytest
import trio
from trio.testing import assert_checkpoints, check_half_closeable_stream, wait_all_tasks_blocked

from penstock.transports import memory_stream_pair
from penstock.transports._memory_pipe import MemoryStream, MessagePipe


async def test_a_stream_keeps_the_promises_of_trio_s_streams() -> None:
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


async def test_sending_waits_while_the_pipe_is_full(nursery: trio.Nursery) -> None:
    """The pipe accepts the part that fits, and never holds more than its capacity."""
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


async def test_receive_some_returns_at_most_max_bytes() -> None:
    """The rest stays in the pipe."""
    here, there = memory_stream_pair()
    await here.send_all(b"abcdef")
    assert await there.receive_some(4) == b"abcd"
    assert await there.receive_some(4) == b"ef"


async def test_any_buffer_can_be_sent() -> None:
    """The items of a memoryview may have several bytes."""
    here, there = memory_stream_pair()
    await here.send_all(memoryview(b"abcdefgh").cast("I"))
    assert await there.receive_some() == b"abcdefgh"


async def test_closing_the_reading_end_wakes_a_waiting_sender() -> None:
    """`send_all` raises BrokenResourceError."""
    here, there = memory_stream_pair(10)

    async def send() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await here.send_all(bytes(11))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        await there.aclose()


async def test_closing_a_stream_wakes_its_own_sender() -> None:
    """`send_all` raises ClosedResourceError."""
    here, _ = memory_stream_pair(10)

    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await here.send_all(bytes(11))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        await here.aclose()


async def test_waiting_for_room_ends_if_the_reading_end_is_closed() -> None:
    """Sending would raise, so the wait is over."""
    here, there = memory_stream_pair(10)
    await here.send_all(bytes(10))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.wait_send_all_might_not_block)
        await wait_all_tasks_blocked()
        await there.aclose()


async def _receive(pipe: MessagePipe, *messages: bytes) -> None:
    for message in messages:
        assert await pipe.receive() == message


async def test_messages_arrive_whole_and_in_order() -> None:
    """Empty messages as well. After the last one, each `receive` returns None."""
    pipe = MessagePipe(100)
    for message in (b"one", bytearray(b"two"), memoryview(b"three"), b""):
        with assert_checkpoints():
            await pipe.send(message)
    pipe.close_sender()
    with assert_checkpoints():
        await _receive(pipe, b"one", b"two", b"three", b"")
    assert await pipe.receive() is None
    assert await pipe.receive() is None


@pytest.mark.parametrize(
    ("held", "next_one"),
    [([b"x" * 60], b"x" * 41), ([b"x" * 200], b""), ([b""] * 64, b"")],
    ids=["bytes", "one above the bound", "number"],
)
async def test_a_message_that_does_not_fit_waits(
    nursery: trio.Nursery, held: list[bytes], next_one: bytes
) -> None:
    """Both the bytes and the number are bounded.
    A message above the capacity is accepted by an empty pipe.
    """
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
    await _receive(pipe, held[0])
    await wait_all_tasks_blocked()
    assert sent == [True]
    await _receive(pipe, *held[1:], next_one)


async def test_a_cancelled_send_sends_no_part_of_the_message() -> None:
    """The reader does not receive it."""
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.send, b"never")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    pipe.close_sender()
    await _receive(pipe, b"x" * 10)
    assert await pipe.receive() is None


async def test_a_message_cannot_be_sent_after_the_reading_end_is_closed() -> None:
    """`send` raises BrokenResourceError before and during a wait,
    and the pipe drops its messages.
    """
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)

    async def send() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await pipe.send(b"y")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        pipe.close_reader()
    await send()
    assert not pipe._messages
    with pytest.raises(trio.ClosedResourceError, match="was closed, so it cannot receive"):
        await pipe.receive()


@pytest.mark.parametrize("how", ["close_sender", "close_reader"])
async def test_closing_an_end_wakes_the_task_that_waits_at_it(how: str) -> None:
    """The sender or the reader raises ClosedResourceError."""
    pipe = MessagePipe(10)
    await pipe.send(b"x" * 10)
    if how == "close_reader":
        await _receive(pipe, b"x" * 10)

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await (pipe.send(b"y") if how == "close_sender" else pipe.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        getattr(pipe, how)()
        getattr(pipe, how)()  # a second call does nothing


async def test_an_end_can_be_used_by_one_task_at_a_time() -> None:
    """A second task gets BusyResourceError."""
    pipe = MessagePipe(10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="using this pipe to receive"):
            await pipe.receive()
        nursery.cancel_scope.cancel()
