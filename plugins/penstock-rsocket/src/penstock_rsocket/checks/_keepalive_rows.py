"""KEEPALIVE: answered with its data; a client that sends them in time is kept."""

from typing import Final

import trio
from penstock_tck.wire import CheckContext, Level, Table, verify

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._peer import RSOCKET, RsocketPeer, connect

KEEPALIVES = Table(RSOCKET)

KEEPALIVE: Final = "KEEPALIVE Frame"
ANSWERED: Final = (
    "A KEEPALIVE with the respond flag MUST be answered with a KEEPALIVE without it, with the same "
    "data."
)
POSITION: Final = "A KEEPALIVE has the position up to which its sender has received, or 0."
TIMES: Final = "A client tells how often it sends KEEPALIVE, and how long it waits for answers."


def _answers(peer: RsocketPeer) -> list[rs.Frame]:
    return [frame for frame in peer.of_type(rs.KEEPALIVE) if not frame.flags & rs.R]


async def _ask(peer: RsocketPeer, data: bytes = b"", *, position: int = 0) -> rs.Frame:
    """Send a KEEPALIVE, and return the answer."""
    due = len(_answers(peer)) + 1
    await peer.send_frame(rs.KEEPALIVE, 0, position.to_bytes(8) + data, flags=rs.R)
    await peer.wait_until(lambda: len(_answers(peer)) >= due, "the answer to a KEEPALIVE")
    return _answers(peer)[due - 1]


@KEEPALIVES.row("keepalive-answered", KEEPALIVE, ANSWERED, level=Level.MUST)
async def keepalive_answered(context: CheckContext) -> str:
    """One KEEPALIVE is answered once, on stream 0, without the respond flag."""
    peer = await connect(context)
    answer = await _ask(peer)
    await peer.settle()
    verify(
        answer.stream == 0 and len(_answers(peer)) == 1 and peer.ending is None,
        f"one answer on stream 0 was due; {peer.describe_received()}",
    )
    return str(answer)


@KEEPALIVES.row("keepalive-data", KEEPALIVE, ANSWERED, level=Level.MUST)
async def keepalive_data(context: CheckContext) -> str:
    """The data comes back unchanged: none, bytes that are no text, and 1,000 bytes."""
    peer = await connect(context)
    for data in (b"", b"\xff\x00\xfe", bytes(range(250)) * 4):
        answer = await _ask(peer, data)
        verify(
            answer.body[8:] == data,
            f"{len(data)} bytes were sent; {answer.body[8:48]!r} came back",
        )
    return "3 answers"


@KEEPALIVES.row("keepalive-in-turn", KEEPALIVE, ANSWERED, level=Level.MUST)
async def keepalive_in_turn(context: CheckContext) -> str:
    """Three KEEPALIVE frames that come at once are answered one by one, in their order."""
    peer = await connect(context)
    due = [b"first", b"second", b"third"]
    await peer.send(*(peer.frame(rs.KEEPALIVE, 0, bytes(8) + data, flags=rs.R) for data in due))
    await peer.wait_until(lambda: len(_answers(peer)) >= 3, "three answers")
    found = [frame.body[8:] for frame in _answers(peer)]
    verify(found == due, f"{due} were sent, {found} came back")
    return "3 answers"


@KEEPALIVES.row("keepalive-silent", KEEPALIVE, ANSWERED, needs=["publisher"])
async def keepalive_silent(context: CheckContext) -> str:
    """A KEEPALIVE without the respond flag is not answered, and the connection continues."""
    peer = await connect(context)
    await peer.send_frame(rs.KEEPALIVE, 0, bytes(8) + b"no answer")
    await peer.settle()
    verify(not _answers(peer), f"it was answered; {peer.describe_received()}")
    await peer.expect_working()
    return "no answer"


@KEEPALIVES.row("keepalive-position", KEEPALIVE, POSITION, level=Level.READING, needs=["publisher"])
async def keepalive_position(context: CheckContext) -> str:
    """The position of an answer is 0, or the sum of the lengths of the client's requests so far,
    with their header and without the length before it. A KEEPALIVE does not count.
    """
    peer = await connect(context)
    first = await _ask(peer)
    stream = peer.next_id()
    request = peer.request_frame(rs.REQUEST_STREAM, stream, context.target.publisher, demand=1)
    await peer.send(request)
    await peer.wait_elements(stream, 1)
    second = await _ask(peer, position=0)
    due = len(request) - (0 if peer.connection.framed else 3)
    found = [int.from_bytes(frame.body[:8]) for frame in (first, second)]
    verify(
        found[0] == 0 and found[1] in (0, due),
        f"the positions 0 and then 0 or {due} were due; {found} came",
    )
    return f"{found[1]}"


async def _connect_with(context: CheckContext, interval: int, lifetime: int) -> RsocketPeer:
    peer = await connect(context, setup=False)
    body = rs.setup_body(context.target.setup.encode(), interval=interval, lifetime=lifetime)
    await peer.send_frame(rs.SETUP, 0, body)
    return peer


@KEEPALIVES.row("keepalive-kept", KEEPALIVE, TIMES, needs=["publisher"])
async def keepalive_kept(context: CheckContext) -> str:
    """A client with an interval of 300 ms and a lifetime of 900 ms, which sends KEEPALIVE every
    300 ms and nothing else, still works after 1.8 s.
    """
    peer = await _connect_with(context, 300, 900)
    for _ in range(6):
        await trio.sleep(0.3)
        await _ask(peer)
    await peer.expect_working()
    return "kept for 1.8 s"


@KEEPALIVES.row("keepalive-not-early", KEEPALIVE, TIMES, level=Level.READING, needs=["publisher"])
async def keepalive_not_early(context: CheckContext) -> str:
    """Whether a server closes for silence is its choice, but not before the interval and the
    lifetime have passed: a client with 500 ms and 2,500 ms still works after 1 s of silence.
    """
    peer = await _connect_with(context, 500, 2500)
    await peer.settle_after(1.0)
    verify(peer.ending is None, f"closed within 1 s; {peer.describe_received()}")
    await peer.expect_working()
    return "kept for 1 s of silence"
