"""What every transport, connection and listener has in common."""

import pytest
import trio
from trio.testing import memory_stream_one_way_pair, memory_stream_pair

from penstock.api import UsageError
from penstock.plugins import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    Listener,
    MessageConnection,
    PeerIdentity,
    Transport,
    TransportOptions,
    Url,
    parse_url,
)

PEER = PeerIdentity(address="over there")
OPTIONS = TransportOptions()


class Hanging(trio.abc.Stream):
    """Closing it in good order never ends, as with a peer that does not read."""

    def __init__(self) -> None:
        self.forced = False

    async def send_all(self, data: Bytes) -> None: ...

    async def wait_send_all_might_not_block(self) -> None: ...

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return b"x" * (max_bytes or 0)

    async def aclose(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.forced = True


class Broken(Hanging):
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError("the peer was faster")


async def test_a_byte_connection_sends_receives_and_ends() -> None:
    """Bytes arrive, and the end of the other half is None."""
    ours, theirs = memory_stream_pair()
    connection = ByteConnection(ours, peer=PEER, options=OPTIONS)
    await connection.send(b"ab")
    assert await theirs.receive_some() == b"ab"
    await theirs.send_all(b"cd")
    assert await connection.receive() == b"cd"
    await theirs.send_eof()
    assert await connection.receive() is None
    await connection.send_eof()
    assert await theirs.receive_some() == b""
    assert connection.facts.half_close
    assert not connection.framed
    assert connection.farewell() is None
    assert repr(connection) == "<ByteConnection with over there>"


async def test_a_byte_connection_takes_a_chunk_at_a_time() -> None:
    """How much is read at once is the option's to say."""
    connection = ByteConnection(Hanging(), peer=PEER, options=TransportOptions(receive_chunk=7))
    assert await connection.receive() == b"x" * 7


async def test_a_stream_that_cannot_half_close_says_nothing_of_it() -> None:
    """Then the end of our half is not sent, and the facts tell so."""
    connection = ByteConnection(Hanging(), peer=PEER, options=OPTIONS)
    with trio.testing.assert_checkpoints():
        await connection.send_eof()
    assert not connection.facts.half_close


async def test_closing_has_a_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """A peer that does not read delays a close by `close_timeout`, and then it is a forceful one."""
    stream = Hanging()
    began = trio.current_time()
    await ByteConnection(stream, peer=PEER, options=TransportOptions(close_timeout=3)).aclose()
    assert trio.current_time() - began == pytest.approx(3)
    assert stream.forced


async def test_aborting_waits_for_nobody(autojump_clock: trio.testing.MockClock) -> None:
    """It takes no time at all."""
    stream = Hanging()
    began = trio.current_time()
    await ByteConnection(stream, peer=PEER, options=OPTIONS).abort()
    assert trio.current_time() == pytest.approx(began)
    assert stream.forced


async def test_a_cancelled_close_is_a_forceful_one() -> None:
    """Whoever leaves in a hurry leaves nothing open."""
    stream = Hanging()
    with trio.CancelScope() as scope:
        scope.cancel()
        await ByteConnection(stream, peer=PEER, options=OPTIONS).aclose()
    assert stream.forced


async def test_a_peer_that_is_gone_does_not_disturb_closing() -> None:
    """Neither way of closing raises because of it."""
    connection = ByteConnection(Broken(), peer=PEER, options=OPTIONS)
    await connection.aclose()
    await connection.abort()


async def test_closing_twice_is_closing_once() -> None:
    """In either order."""
    ours, _ = memory_stream_pair()
    connection = ByteConnection(ours, peer=PEER, options=OPTIONS)
    await connection.aclose()
    await connection.abort()
    await connection.aclose()


async def test_a_connection_without_a_handshake_is_ready(nursery: trio.Nursery) -> None:
    """There is nothing to wait for, and waiting checkpoints all the same."""
    send, _ = memory_stream_one_way_pair()
    connection = ByteConnection(trio.StapledStream(send, _), peer=PEER, options=OPTIONS)
    with trio.testing.assert_checkpoints():
        await connection.handshake(nursery)


class Letters(MessageConnection):
    async def send(self, data: Bytes, /) -> None: ...

    async def receive(self) -> bytes | None:
        return b""

    async def aclose(self) -> None: ...

    async def abort(self) -> None: ...


async def test_a_message_connection_says_that_it_is_framed() -> None:
    """And an empty message is a message."""
    connection = Letters(peer=PEER)
    assert connection.framed
    assert connection.facts == ConnectionFacts()
    assert Letters(peer=PEER, facts=ConnectionFacts(local=True)).facts.local
    assert await connection.receive() == b""
    await connection.send_eof()
    assert repr(connection) == "<Letters with over there>"


class Outgoing(Transport):
    schemes = ("outgoing",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        raise AssertionError("nobody connects here")


async def test_a_transport_that_only_connects_says_so(nursery: trio.Nursery) -> None:
    """Listening with it is a mistake of the program."""
    with pytest.raises(UsageError, match="'outgoing' can be connected to, but not listened at"):
        await Outgoing().listen(parse_url("outgoing://x"), options=OPTIONS, nursery=nursery)


def test_a_listener_tells_where_it_is() -> None:
    """As URLs that somebody could connect to."""

    class Ears(Listener):
        def __init__(self) -> None:
            self.addresses = (parse_url("tcp://a:1"), parse_url("tcp://b:2"))

        async def accept(self) -> Connection:
            raise AssertionError("nobody comes here")

        async def aclose(self) -> None: ...

    assert repr(Ears()) == "<Ears at tcp://a:1, tcp://b:2>"
