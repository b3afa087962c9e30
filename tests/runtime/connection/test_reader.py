"""The reader of a link: receives, feeds the session in turns, and ends once."""

from dataclasses import replace
from itertools import pairwise

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits
from penstock.runtime.connection import _decoding_turns, _reader
from penstock.runtime.connection._decoding_turns import END_SECONDS, DecodingTurns
from penstock.runtime.connection._reader import LINGER_BYTES, ORDERLY_LINGER_BYTES, Reader
from penstock.runtime.connection._writer import Writer
from penstock.session import ConnectionState
from tests.runtime.connection._fakes import FakeConnection, FakeSession, make_parts


class ReaderHarness:
    """A reader over fakes."""

    def __init__(self, limits: Limits | None = None, turns: DecodingTurns | None = None) -> None:
        self.session = FakeSession()
        self.connection = FakeConnection(at_once=1000)
        self.parts = make_parts(self.session, limits)
        self.parts.turns = turns or self.parts.turns
        self.ends: list[Exception | None] = []
        self.writer = Writer(self.connection, self.parts, self.ends.append)
        self.reader = Reader(self.connection, self.parts, self.writer, self.ends.append)


async def test_what_arrives_is_fed_to_the_session_once_and_in_turns() -> None:
    """While the session has more to do, it is called again without new bytes."""
    harness = ReaderHarness()
    harness.session.more = [True, True, False]
    harness.connection.arrive.send_nowait(b"abc")
    harness.connection.arrive.send_nowait(b"def")
    for _ in range(4):
        assert await harness.reader.receive_and_dispatch()
    assert harness.session.received == [b"abc", b"", b"", b"def"]
    assert not harness.parts.runner.is_running_inline


@pytest.mark.parametrize("error", [None, trio.BrokenResourceError(), KeyError("a plugin")])
async def test_the_end_of_the_input_is_reported_with_its_cause(error: Exception | None) -> None:
    """An end in good order has no cause."""
    harness = ReaderHarness()
    harness.connection.error = error
    harness.connection.arrive.send_nowait(None)
    assert not await harness.reader.receive_and_dispatch()
    assert harness.reader.input_ended.is_set()
    assert harness.ends[0] is error


@pytest.mark.parametrize("error", [None, trio.BrokenResourceError()])
async def test_connections_that_are_reset_at_once_end_in_turns(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some 17 end in a pass of the loop, as with those that end in good order: the work after each
    end takes its time in later passes.
    """
    # Nothing takes time, so only the ends use up the budget.
    monkeypatch.setattr(_decoding_turns, "monotonic", lambda: 100.0)
    monkeypatch.setattr(_reader, "monotonic", lambda: 100.0)
    turns, seen = DecodingTurns(), [0]
    harnesses = [ReaderHarness(turns=turns) for _ in range(60)]

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            seen.append(sum(bool(harness.ends) for harness in harnesses))

    trio.lowlevel.add_instrument(passes := Passes())
    async with trio.open_nursery() as nursery:
        for harness in harnesses:
            harness.connection.error = error
            harness.connection.arrive.send_nowait(None)
            nursery.start_soon(harness.reader.receive_and_dispatch)
    trio.lowlevel.remove_instrument(passes)
    assert (
        max(after - before for before, after in pairwise(seen)) <= Limits().turn / END_SECONDS + 1
    )


async def test_after_the_end_of_the_session_no_more_than_the_linger_bytes_are_read() -> None:
    """Then a peer that goes on sending is not read any more."""
    harness = ReaderHarness()
    harness.parts.over.set()
    harness.session.channel.state = ConnectionState.CLOSED
    chunk = bytes(LINGER_BYTES // 2)
    for _ in range(3):
        harness.connection.arrive.send_nowait(chunk)
    assert [await harness.reader.receive_and_dispatch() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("error", "most"), [(ConnectionLost("a fault"), LINGER_BYTES), (None, ORDERLY_LINGER_BYTES)]
)
async def test_after_a_goodbye_of_this_side_the_bytes_that_are_read_are_bounded(
    error: Exception | None, most: int
) -> None:
    """From the goodbye on, not only after the end:
    a peer that does not answer it can send for `Limits.goodbye_timeout`.
    """
    harness = ReaderHarness()
    harness.session.channel.state = ConnectionState.CLOSING
    harness.session.close_reason = "protocol:hello", error
    for _ in range(3):
        harness.connection.arrive.send_nowait(bytes(most // 2))
    assert [await harness.reader.receive_and_dispatch() for _ in range(3)] == [True, True, False]
    assert harness.reader.input_ended.is_set()


async def test_while_the_client_is_checked_its_input_is_read_ahead() -> None:
    """It is kept, counted, and fed in order afterwards;
    the end of the transport is noticed meanwhile.
    """
    harness = ReaderHarness(replace(Limits(), preauth_bytes=1000))
    harness.session.channel.state = ConnectionState.EXAMINING
    harness.connection.arrive.send_nowait(b"setup")
    async with trio.open_nursery() as nursery:
        harness.parts.nursery = nursery
        assert await harness.reader.receive_and_dispatch()
        nursery.start_soon(harness.reader.receive_and_dispatch)
        await trio.testing.wait_all_tasks_blocked()
        harness.connection.arrive.send_nowait(b"later")
        harness.connection.arrive.send_nowait(None)
        await trio.testing.wait_all_tasks_blocked()
        assert harness.reader.held() == 5
        assert harness.ends == [None]
        harness.session.channel.state = ConnectionState.OPEN
        harness.parts.is_open.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await harness.reader.receive_and_dispatch()
        assert not await harness.reader.receive_and_dispatch()
    assert harness.session.received == [b"setup", b"", b"later"]
    assert harness.reader.held() == 0


async def test_after_a_batch_the_answers_are_flushed_and_between_two_turns_the_writer_sends() -> (
    None
):
    """A batch that is not finished has more answers to come."""
    harness = ReaderHarness()
    async with trio.open_nursery() as nursery:
        harness.parts.nursery = nursery
        harness.writer.start()
        await trio.testing.wait_all_tasks_blocked()
        harness.session.more = [True, False]
        harness.connection.arrive.send_nowait(b"abc")
        assert await harness.reader.receive_and_dispatch()
        harness.session.outbox.buffer += b"first"
        harness.reader.after_batch()
        assert harness.connection.sent_now == []
        await trio.testing.wait_all_tasks_blocked()
        assert harness.connection.sent_now == [b"first"]
        assert await harness.reader.receive_and_dispatch()
        harness.session.outbox.buffer += b"second"
        harness.reader.after_batch()
        assert harness.connection.sent_now == [b"first", b"second"]
        nursery.cancel_scope.cancel()
