"""Streams of one connection in memory:
turns, credit, slow readers, and ends within a bounded time. The time is virtual.
"""

from typing import Any

import pytest
import trio
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame
from penstock_http.multiplex._frame_filter import FRAMES_PER_SLICE
from penstock_http.multiplex._frame_writer import HIGH, MOST
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._protocol import (
    CONNECTION_WINDOW,
    FIRST_WINDOW,
    MAX_FRAME,
    STREAM_WINDOW,
)
from penstock_http.multiplex._requests import request_headers
from penstock_http.multiplex._states import Http2StreamState
from penstock_http.multiplex._stream import Http2Stream
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.spi import PeerIdentity

PEER = PeerIdentity(address="memory")
POST = request_headers(scheme="http", host="x", path="/", subprotocol="rsio.v0")


async def _read(side: Multiplexer, stream: Http2Stream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        await stream.wait_readable()
        data += side.streams.take(stream, 1 << 20)
    return data


async def test_streams_take_turns(ends: Any, autojump_clock: trio.testing.MockClock) -> None:
    """A short send does not wait for a long one of another stream: it waits only for bytes that are
    in frames, and for one more frame.
    """
    (long, _), (short, _) = [await ends.open() for _ in range(2)]
    ends.server.stop()
    await wait_all_tasks_blocked()
    sent = bytearray()

    async def read() -> None:
        while True:
            sent.extend(await ends.below[1].receive() or b"")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.client.outgoing.send, long, bytes(STREAM_WINDOW))
        await wait_all_tasks_blocked()
        nursery.start_soon(ends.client.outgoing.send, short, bytes(10))
        await wait_all_tasks_blocked()
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    frames = _data_frames(bytes(sent))
    assert frames.index((short.id, 10)) == 2
    assert sum(size for stream, size in frames if stream == long.id) == STREAM_WINDOW


def _data_frames(data: bytes) -> list[tuple[int, int]]:
    """Return the stream and the length of each DATA frame."""
    frames = []
    while data:
        size, kind, stream = int.from_bytes(data[:3]), data[3], int.from_bytes(data[5:9])
        frames += [(stream, size)] if kind == 0 else []
        data = data[9 + size :]
    return frames


async def test_a_stream_that_is_not_read_holds_its_window_and_stops_no_other(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Its sender waits. Its bytes are there when it is read, and the sender goes on."""
    (slow, unread), (quick, read) = [await ends.open() for _ in range(2)]
    whole = bytes(range(256)) * 8192  # two windows
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.client.outgoing.send, slow, whole)
        await wait_all_tasks_blocked()
        assert unread.waiting == STREAM_WINDOW
        assert slow.is_blocked
        for _ in range(20):
            nursery.start_soon(ends.client.outgoing.send, quick, bytes(100_000))
            assert await _read(ends.server, read, 100_000) == bytes(100_000)
        assert unread.waiting == STREAM_WINDOW
        assert await _read(ends.server, unread, len(whole)) == whole


async def test_a_stranger_fills_the_first_window_with_all_of_its_streams(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever the number of its streams is."""
    pairs = [await ends.open(hello=False) for _ in range(10)]
    async with trio.open_nursery() as nursery:
        for own, _ in pairs:
            nursery.start_soon(ends.client.outgoing.send, own, bytes(FIRST_WINDOW))
        await wait_all_tasks_blocked()
        assert sum(theirs.waiting for _, theirs in pairs) == FIRST_WINDOW
        nursery.cancel_scope.cancel()


async def test_all_streams_of_a_peer_share_a_window(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """It bounds what one connection holds. When the streams are read, all bytes come."""
    pairs = [await ends.open() for _ in range(6)]
    async with trio.open_nursery() as nursery:
        for own, _ in pairs:
            nursery.start_soon(ends.client.outgoing.send, own, bytes(STREAM_WINDOW))
        await wait_all_tasks_blocked()
        assert sum(theirs.waiting for _, theirs in pairs) == CONNECTION_WINDOW
        for _, theirs in pairs:
            nursery.start_soon(_read, ends.server, theirs, STREAM_WINDOW)


async def test_credit_of_a_dropped_stream_goes_back(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Otherwise streams that were closed with unread bytes would use the window of the
    connection up.
    """
    for _ in range(6):
        own, theirs = await ends.open()
        await ends.client.outgoing.send(own, bytes(STREAM_WINDOW))
        await wait_all_tasks_blocked()
        ends.server.streams.drop(theirs)
        ends.server.streams.reset(theirs, ErrorCodes.CANCEL, "closed")
        await wait_all_tasks_blocked()
        assert own.state is Http2StreamState.BROKEN


async def test_a_peer_that_does_not_read_costs_a_bounded_number_of_bytes(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Of what is to be sent, `HIGH` and one frame are in frames. The rest stays with its sender."""
    pairs = [await ends.open() for _ in range(4)]
    # The reader of the other side stops.
    ends.server.stop()
    await wait_all_tasks_blocked()
    most = 0
    async with trio.open_nursery() as nursery:
        for own, _ in pairs:
            nursery.start_soon(ends.client.outgoing.send, own, bytes(STREAM_WINDOW))
        await wait_all_tasks_blocked()
        most = ends.client.outgoing.left
        nursery.cancel_scope.cancel()
    assert HIGH <= most <= HIGH + MAX_FRAME + 9


async def test_a_peer_that_sends_frames_and_reads_no_answers_is_given_up(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Answers are not held back as data is. They end the connection at `MOST` bytes."""
    await ends.open()
    ends.client.stop()
    await wait_all_tasks_blocked()
    sent = 0
    while not ends.server.words:
        ends.server.core.ping(sent)
        ends.server.outgoing.flush()
        sent += 1
    assert ends.server.words == "the peer sends frames and reads no answers"
    assert MOST // 17 - 2 <= sent <= MOST // 17 + 2
    await ends.server.over.wait()


async def test_small_frames_are_not_kept_one_by_one(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """A list of frames of one byte would hold 40 times their bytes."""
    own, theirs = await ends.open()
    for number in range(300):
        await ends.client.outgoing.send(own, bytes([number % 256]))
    await wait_all_tasks_blocked()
    assert theirs.waiting == 300
    assert await _read(ends.server, theirs, 300) == bytes(number % 256 for number in range(300))


async def test_other_tasks_run_between_many_small_frames(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """A peer may send 7,000 frames in one read, which take half a second."""
    own, theirs = await ends.open()
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await ends.server._receive(DataFrame(own.id, b"x").serialize() * (50 * FRAMES_PER_SLICE))
        nursery.cancel_scope.cancel()
    assert theirs.waiting == 50 * FRAMES_PER_SLICE
    assert passes >= 25


async def test_a_part_can_be_taken(ends: Any, autojump_clock: trio.testing.MockClock) -> None:
    """The bytes that are not taken stay for the next calls."""
    own, theirs = await ends.open()
    await ends.client.outgoing.send(own, b"abcdef")
    with assert_checkpoints():
        await theirs.wait_readable()
    assert [theirs.take(2), theirs.take(2), theirs.take(9), theirs.take(9)] == [
        b"ab",
        b"cd",
        b"ef",
        b"",
    ]


async def test_send_now_sends_one_frame_if_nothing_waits(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind it nothing goes until the writer is done."""
    own, theirs = await ends.open()
    assert ends.client.outgoing.send_now(own, bytes(MAX_FRAME + 1)) == MAX_FRAME
    assert ends.client.outgoing.has_unsent(own)
    assert ends.client.outgoing.send_now(own, b"x") == 0
    await wait_all_tasks_blocked()
    assert not ends.client.outgoing.has_unsent(own)
    assert ends.client.outgoing.send_now(own, b"") == 0
    assert len(await _read(ends.server, theirs, MAX_FRAME)) == MAX_FRAME


async def test_each_side_ends_its_half(ends: Any, autojump_clock: trio.testing.MockClock) -> None:
    """The other half goes on. A stream whose halves have both ended is forgotten,
    and nothing can be sent on it.
    """
    own, theirs = await ends.open()
    ends.client.streams.end(own)
    await theirs.wait_readable()
    assert theirs.take(1) == b""
    await ends.server.outgoing.send(theirs, b"more")
    ends.server.streams.end(theirs)
    assert await _read(ends.client, own, 4) == b"more"
    await own.wait_readable()
    assert own.take(1) == b""
    assert own.state is theirs.state is Http2StreamState.CLOSED
    assert not list(ends.client.streams)
    assert not list(ends.server.streams)
    with pytest.raises(trio.BrokenResourceError, match="the stream has ended"):
        await ends.client.outgoing.send(own, b"x")


async def test_a_reset_breaks_a_send_that_waits_and_keeps_what_has_arrived(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """A goodbye may be among it."""
    own, theirs = await ends.open()
    await ends.server.outgoing.send(theirs, b"goodbye")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_refused_send, ends, own)
        await wait_all_tasks_blocked()
        ends.server.streams.reset(theirs, ErrorCodes.CANCEL, "closed")
    assert await _read(ends.client, own, 7) == b"goodbye"
    with pytest.raises(trio.BrokenResourceError, match=r"the peer reset the stream \(CANCEL\)"):
        own.take(1)


async def _refused_send(ends: Any, stream: Http2Stream) -> None:
    with pytest.raises(trio.BrokenResourceError, match="the peer reset the stream"):
        await ends.client.outgoing.send(stream, bytes(2 * STREAM_WINDOW))


async def test_a_cancelled_send_leaves_the_others_alone(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """Bytes that are not in frames yet are dropped."""
    (one, _), (two, read) = [await ends.open() for _ in range(2)]
    with trio.move_on_after(1):
        await ends.client.outgoing.send(one, bytes(2 * STREAM_WINDOW))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.client.outgoing.send, two, bytes(1000))
        await _read(ends.server, read, 1000)


async def test_an_end_of_the_connection_breaks_every_stream(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """A reader, and a sender that waits for credit, get the reason."""
    (one, _), (two, _) = [await ends.open() for _ in range(2)]
    words: list[str] = []

    async def send() -> None:
        try:
            await ends.client.outgoing.send(one, bytes(2 * STREAM_WINDOW))
        except trio.BrokenResourceError as error:
            words.append(str(error))

    async def receive() -> None:
        await two.wait_readable()
        try:
            two.take(1)
        except trio.BrokenResourceError as error:
            words.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(receive)
        await wait_all_tasks_blocked()
        ends.client.give_up("no more")
    assert words == ["no more", "no more"]
    assert ends.client.streams.is_lost


async def test_a_goaway_lets_the_open_streams_end(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """No stream is opened after it.
    The side that goes away waits for the last stream, and then for the peer.
    """
    own, theirs = await ends.open()
    ends.server.go_away()
    await wait_all_tasks_blocked()
    assert ends.client.streams.is_closing
    await ends.client.outgoing.send(own, b"still here")
    assert await _read(ends.server, theirs, 10) == b"still here"
    with trio.move_on_after(1) as waiting:
        await ends.server.streams.wait_unused()
    assert waiting.cancelled_caught
    ends.client.streams.end(own)
    await wait_all_tasks_blocked()
    ends.server.streams.end(theirs)
    await ends.server.streams.wait_unused()


async def test_a_request_behind_a_goaway_is_refused_as_not_looked_at(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """It crosses the GOAWAY on its way, and can be sent again elsewhere."""
    await ends.open()
    ends.server.go_away()
    stream = ends.client.streams.open(POST)
    await stream.answered.wait()
    assert stream.answer is None
    assert "has not looked at the request" in stream.words or "REFUSED_STREAM" in stream.words


@pytest.mark.parametrize("seconds", [20.0])
async def test_a_silent_client_is_given_up(
    ends: Any, autojump_clock: trio.testing.MockClock, seconds: float
) -> None:
    """Behind a ping that it does not answer."""
    await ends.open()
    began = trio.current_time()
    ends.client.stop()
    await ends.client.over.wait()
    await ends.server.over.wait()
    assert 2 * seconds <= trio.current_time() - began <= 3 * seconds
    assert ends.server.words == "the peer did not answer a ping within 20 s"


async def test_a_client_that_answers_pings_stays(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """For as long as it has a stream."""
    own, theirs = await ends.open()
    await trio.sleep(1000)
    await ends.client.outgoing.send(own, b"x")
    assert await _read(ends.server, theirs, 1) == b"x"
    ends.client.streams.end(own)
    ends.server.streams.end(theirs)
    await trio.sleep(100)
    assert ends.server.words == "no stream for 60 s"


async def test_the_last_data_is_noted_as_sent_though_its_task_is_cancelled(
    ends: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """The client may end the connection as soon as it has the last frame, and
    that cancels the task that has written it.
    """
    _, served = await ends.open()
    written = bytearray()

    def take(data: bytes) -> int:
        written.extend(data)
        return len(data)

    ends.below[1].send_now = take
    noted: list[bool] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await ends.server.streams.send_last(served, lambda: noted.append(True), b"all")
    assert scope.cancelled_caught
    assert noted == [True]
    # One frame, which ends the half of the server.
    assert bytes(written) == DataFrame(served.id, b"all", flags=["END_STREAM"]).serialize()
    assert served.state is Http2StreamState.SENT_END


async def test_a_peer_may_leave_before_the_writer_goes_on(
    ends: Any, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The system has taken the last bytes, and the peer has read them: `on_sent` is called, also if
    the send of TLS returns some passes later.
    """
    stream, requested = await ends.open()
    below, is_sent = ends.below[1], trio.Event()
    send = below.send

    async def send_slowly(data: bytes) -> None:
        await send(data)
        for _ in range(5):
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(below, "send", send_slowly)
    monkeypatch.setattr(below, "send_now", lambda _: 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.server.streams.send_last, requested, is_sent.set, b"element")
        assert await _read(ends.client, stream, 7) == b"element"
        await ends.below[0].abort()
    assert is_sent.is_set()
