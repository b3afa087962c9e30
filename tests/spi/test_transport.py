"""The behaviour that transports, connections and listeners inherit."""

import pytest
import trio
from trio.testing import memory_stream_one_way_pair, memory_stream_pair

from penstock.api import UsageError
from penstock.spi import (
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

PEER = PeerIdentity(address="peer")
OPTIONS = TransportOptions()


class Hanging(trio.abc.Stream):
    """A stream whose orderly close never ends, as if the peer did not read."""

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
        raise trio.BrokenResourceError("the peer has closed")


async def test_a_byte_connection_sends_receives_and_ends() -> None:
    """After the peer's `send_eof`, `receive` returns None."""
    stream, peer_stream = memory_stream_pair()
    connection = ByteConnection(stream, peer=PEER, options=OPTIONS)
    await connection.send(b"ab")
    assert await peer_stream.receive_some() == b"ab"
    await peer_stream.send_all(b"cd")
    assert await connection.receive() == b"cd"
    await peer_stream.send_eof()
    assert await connection.receive() is None
    await connection.send_eof()
    assert await peer_stream.receive_some() == b""
    assert connection.facts.half_close
    assert not connection.framed
    assert connection.farewell() is None
    assert repr(connection) == "<ByteConnection with peer>"


async def test_a_byte_connection_reads_receive_chunk_bytes_at_a_time() -> None:
    """The option sets the size of a read."""
    connection = ByteConnection(Hanging(), peer=PEER, options=TransportOptions(receive_chunk=7))
    assert await connection.receive() == b"x" * 7


async def test_send_eof_does_nothing_if_the_stream_cannot_half_close() -> None:
    """The facts say that it cannot."""
    connection = ByteConnection(Hanging(), peer=PEER, options=OPTIONS)
    with trio.testing.assert_checkpoints():
        await connection.send_eof()
    assert not connection.facts.half_close


async def test_aclose_has_a_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """A peer that does not read delays it by `close_timeout`;
    then the stream is closed forcefully.
    """
    stream = Hanging()
    began = trio.current_time()
    await ByteConnection(stream, peer=PEER, options=TransportOptions(close_timeout=3)).aclose()
    assert trio.current_time() - began == pytest.approx(3)
    assert stream.forced


async def test_abort_does_not_wait_for_the_peer(autojump_clock: trio.testing.MockClock) -> None:
    """It takes no time."""
    stream = Hanging()
    began = trio.current_time()
    await ByteConnection(stream, peer=PEER, options=OPTIONS).abort()
    assert trio.current_time() == pytest.approx(began)
    assert stream.forced


async def test_a_cancelled_aclose_closes_forcefully() -> None:
    """The stream does not stay open."""
    stream = Hanging()
    with trio.CancelScope() as scope:
        scope.cancel()
        await ByteConnection(stream, peer=PEER, options=OPTIONS).aclose()
    assert stream.forced


async def test_closing_never_raises_because_of_the_peer() -> None:
    """Neither `aclose` nor `abort`."""
    connection = ByteConnection(Broken(), peer=PEER, options=OPTIONS)
    await connection.aclose()
    await connection.abort()


async def test_a_connection_can_be_closed_again() -> None:
    """With `aclose` and `abort`, in any order."""
    stream, _ = memory_stream_pair()
    connection = ByteConnection(stream, peer=PEER, options=OPTIONS)
    await connection.aclose()
    await connection.abort()
    await connection.aclose()


async def test_the_default_handshake_only_checkpoints(nursery: trio.Nursery) -> None:
    """A byte connection needs none."""
    send, _ = memory_stream_one_way_pair()
    connection = ByteConnection(trio.StapledStream(send, _), peer=PEER, options=OPTIONS)
    with trio.testing.assert_checkpoints():
        await connection.handshake(nursery)


class EmptyMessages(MessageConnection):
    async def send(self, data: Bytes, /) -> None: ...

    async def receive(self) -> bytes | None:
        return b""

    async def aclose(self) -> None: ...

    async def abort(self) -> None: ...


async def test_a_message_connection_is_framed() -> None:
    """An empty message is a message, not the end."""
    connection = EmptyMessages(peer=PEER)
    assert connection.framed
    assert connection.facts == ConnectionFacts()
    assert EmptyMessages(peer=PEER, facts=ConnectionFacts(local=True)).facts.local
    assert await connection.receive() == b""
    await connection.send_eof()
    assert repr(connection) == "<EmptyMessages with peer>"


class Outgoing(Transport):
    schemes = ("outgoing",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        raise AssertionError("no test connects")


async def test_a_transport_without_listen_raises_usage_error(nursery: trio.Nursery) -> None:
    """A transport need not be able to listen."""
    with pytest.raises(UsageError, match="'outgoing' can be connected to, but not listened at"):
        await Outgoing().listen(parse_url("outgoing://x"), options=OPTIONS, nursery=nursery)


def test_the_repr_of_a_listener_shows_its_addresses() -> None:
    """As URLs that a client can connect to.
    A listener that does not define `accept_nowait` inherits one that returns None.
    """

    class Idle(Listener):
        def __init__(self) -> None:
            self.addresses = (parse_url("tcp://a:1"), parse_url("tcp://b:2"))

        async def accept(self) -> Connection:
            raise AssertionError("no test accepts")

        async def aclose(self) -> None: ...

    assert repr(Idle()) == "<Idle at tcp://a:1, tcp://b:2>"
    assert Idle().accept_nowait() is None
