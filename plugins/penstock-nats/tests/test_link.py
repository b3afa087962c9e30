"""One connection to a server of NATS: what another program, or a broken server, may send."""

from contextlib import suppress

import pytest
import trio
import trio.testing
from penstock_nats import _link as links
from penstock_nats._link import Link, Message

from penstock.api import ConnectionLost


async def _received(monkeypatch: pytest.MonkeyPatch, *pieces: bytes) -> list[Message]:
    """Return the replies to the first request of a connection that receives these pieces."""
    monkeypatch.setattr(links, "MOST_LINE", 100)
    ours, theirs = trio.testing.memory_stream_pair()
    link = Link(ours, "nats://h:1")
    _, _, replies = link.open_request("s")
    async with trio.open_nursery() as nursery:
        await nursery.start(link.run)
        with suppress(trio.BrokenResourceError):  # the connection has ended
            for piece in pieces:
                await theirs.send_all(piece)
                await trio.testing.wait_all_tasks_blocked()
            await theirs.send_eof()
    try:
        return await replies.take()
    except ConnectionLost:
        return []


async def test_a_reply_finds_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in pieces, with headers and a status."""
    head = b"NATS/1.0 404 No Messages\r\nA: b\r\n\r\n"
    whole = b"HMSG i.0 1 %d %d\r\n%sabc\r\n" % (len(head), len(head) + 3, head)
    [message] = await _received(monkeypatch, whole[:30], whole[30:])
    assert (message.status, message.header(b"A"), message.content) == ("404", b"b", b"abc")


@pytest.mark.parametrize(
    "line",
    [
        b"MSG i.0 1 -9",
        b"MSG i.0 1 x",
        b"MSG",
        b"MSG i.0 3",
        b"HMSG i.0 3 3",
        b"HMSG i.0 1 5 3",
        b"HMSG i.0 1 -1 3",
        b"MSG i.0 1 99999999999",
    ],
)
async def test_a_size_that_cannot_be_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """A size below 0 once let the reader look at the same bytes without end."""
    assert await _received(monkeypatch, line + b"\r\nabc\r\nMSG i.0 1 1\r\nx\r\n") == []


async def test_a_line_without_an_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory."""
    late = b"\r\nMSG i.0 1 1\r\nx\r\n"
    assert await _received(monkeypatch, b"x" * 101, late) == []
    assert len(await _received(monkeypatch, b"x" * 99, late)) == 1


@pytest.mark.parametrize("head", [b"NATS/1.0 \xff\xff\xff", b"NATS/1.0\r\nA:b", b"A:", b""])
def test_a_broken_head_has_a_status_and_headers(head: bytes) -> None:
    """Whatever bytes it has: the log judges them."""
    message = Message(head, b"")
    assert isinstance(message.status, str)
    assert message.header(b"A") in {b"", b"b"}


@pytest.mark.parametrize(
    "line",
    [b"HTTP/1.1 400 Bad Request", b"INFO {", b"INFO []", b"INFO {}", b"INFO " + b"[" * 10**5],
)
async def test_a_first_line_that_nats_does_not_send_is_told(line: bytes) -> None:
    """With what to do."""
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(line + b"\r\n")
    with pytest.raises(ConnectionLost, match="which NATS does not: give the address"):
        await Link(ours, "nats://h:1").log_in({}, None, "h")
