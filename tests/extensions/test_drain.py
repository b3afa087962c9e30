"""The drain extension on one connection, message by message."""

import pytest

from penstock.api import PublisherFailed, Rejected, Role
from penstock.extensions import Drain
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.session import Fault
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, ScriptedPublisher

MESSAGE = rsio.ExtensionMessage(type=0x45, body=bytes.fromhex("a8c301"))
"""25,000 ms. The bytes of docs/reference/rsio.md."""


def server() -> RawPeer:
    raw = RawPeer(extensions=[Drain()])
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.ClientHello(extensions=(6,)))
    raw.receive()
    return raw


def client() -> tuple[RawPeer, RecordingSubscriber]:
    raw = RawPeer(Role.CLIENT, extensions=[Drain()])
    raw.send(rsio.ServerHello(extensions=(6,)))
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.receive()
    return raw, subscriber


def test_a_side_that_drains_tells_the_peer_and_refuses_its_streams() -> None:
    """The message comes first, and a stream that runs goes on."""
    raw = server()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0, demand=1))
    raw.receive()
    raw.session.streams.drain.begin(10.0, 35.0)
    assert raw.receive() == [MESSAGE]
    raw.send(rsio.Subscribe(publisher="s", subscriber=1, demand=1))
    assert raw.receive() == [rsio.OnError(subscriber=1, error="draining")]
    raw.delegate.publishers["s"].emit(b"x")
    assert raw.receive() == [rsio.OnNext(subscriber=0, element=b"x")]


def test_a_drain_is_repeated_with_an_earlier_end_only() -> None:
    """The peer is told the time that is left."""
    raw = server()
    raw.session.streams.drain.begin(10.0, 35.0)
    raw.session.streams.drain.begin(15.0, 100.0)
    raw.session.streams.drain.begin(20.0, 21.0)
    bodies = [each.body.hex() for each in raw.receive() if isinstance(each, rsio.ExtensionMessage)]
    assert bodies == ["a8c301", "a09c01", "e807"]  # 25 s, 20 s, 1 s


def test_a_peer_whose_hello_comes_during_the_drain_is_told() -> None:
    """With the time that is left."""
    raw = RawPeer(extensions=[Drain()])
    raw.session.streams.drain.begin(10.0, 35.0)
    raw.now = 10.0
    raw.send(rsio.ClientHello(extensions=(6,)))
    assert raw.receive() == [rsio.ServerHello(extensions=(6,)), MESSAGE]


def test_a_peer_without_the_extension_gets_the_refusals_only() -> None:
    """A message of an extension that it has not listed would end the connection."""
    raw = RawPeer(extensions=[Drain()]).handshake()
    raw.session.streams.drain.begin(10.0, 35.0)
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.receive() == [rsio.OnError(subscriber=0, error="draining")]


def test_a_refusal_behind_the_message_says_that_nothing_was_done() -> None:
    """The refusal is temporary, so `Reconnect` asks again."""
    raw, subscriber = client()
    raw.send(MESSAGE, rsio.OnError(subscriber=0, error="draining"))
    (error,) = subscriber.ends
    assert isinstance(error, Rejected)
    assert (error.processed, error.temporary) == (False, True)


@pytest.mark.parametrize("behind", ["no message", "onSubscribe", "another text"])
def test_the_same_word_without_its_place_promises_nothing(behind: str) -> None:
    """It may be the publisher's own."""
    raw, subscriber = client()
    if behind != "no message":
        raw.send(MESSAGE)
    if behind == "onSubscribe":
        raw.send(rsio.OnSubscribe(subscriber=0))
    raw.send(
        rsio.OnError(subscriber=0, error="draining" if behind != "another text" else "drained")
    )
    (error,) = subscriber.ends
    assert isinstance(error, Rejected) is (behind != "onSubscribe")
    assert not isinstance(error, Rejected) or (error.processed, error.temporary) == (True, False)


def test_the_owner_of_a_client_is_called_once() -> None:
    """The message may be repeated."""
    calls: list[None] = []
    raw, _ = client()
    raw.session.streams.drain.on_peer_draining = lambda: calls.append(None)
    raw.send(MESSAGE, MESSAGE)
    assert len(calls) == 1


@pytest.mark.parametrize("body", ["", "80", "8000", "0000", "ffffffffffffffff7f00"])
def test_a_message_that_cannot_be_read_breaks_the_protocol(body: str) -> None:
    """The body is empty, cut, not the shortest, followed by bytes, or too long."""
    raw, _ = client()
    raw.send(rsio.ExtensionMessage(type=0x45, body=bytes.fromhex(body)))
    assert raw.goodbye_reason() == "protocol:drain"


def test_a_message_that_is_too_long_is_refused_before_its_body() -> None:
    """A peer must not make this side hold what it never finishes."""
    raw, _ = client()
    raw.send(bytes.fromhex("450a"))
    assert raw.goodbye_reason() == "protocol:drain"


def test_every_cut_of_the_bytes_gives_the_same_outcome() -> None:
    """One byte at a time."""
    pair = Pair(extensions=[Drain()])
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.settle(cut=1)
    late = pair.subscribe("s", 1)
    pair.server.session.streams.drain.begin(0.0, 25.0)
    pair.settle(cut=1)
    assert pair.client.session.streams.drain.is_peer_draining
    assert late.ends[0].processed is False


# --- ReactiveSocket


def announced(role: Role) -> RawSocket:
    raw = RawSocket(role, extensions=[Drain()])
    raw.receive()
    if role is Role.SERVER:
        raw.send(rs.Setup())
    raw.send(rs.Ext(stream_id=0, ignore=True, ext_type=0x600, data=b""))
    raw.receive()
    return raw


def test_a_reactivesocket_peer_is_told_in_an_ext_frame() -> None:
    """The bytes of docs/reference/reactivesocket.md. The refusal is an ERROR on the stream."""
    raw = announced(Role.SERVER)
    raw.session.streams.drain.begin(10.0, 35.0)
    assert raw.receive() == [rs.Ext(stream_id=0, ignore=True, ext_type=0x645, data=MESSAGE.body)]
    raw.send(rs.RequestStream(stream_id=1, demand=1, data=b"s"))
    assert raw.receive() == [rs.Error(stream_id=1, data=b"draining")]


def test_a_publisher_cannot_use_the_word_of_a_refusal() -> None:
    """A client would take its failure for a stream that was not begun."""
    raw = announced(Role.SERVER)
    dialect = raw.session.channel.dialect

    for fault in (Fault.FAILED, Fault.REFUSED):
        assert dialect.error(1, "draining", fault) == rs.encode(
            rs.Error(stream_id=1, data=b"draining.")
        )
    assert dialect.error(1, "draining", Fault.UNTOUCHED) == rs.encode(
        rs.Error(stream_id=1, data=b"draining")
    )


@pytest.mark.parametrize("is_told", [True, False])
def test_a_reactivesocket_client_knows_by_the_message_that_nothing_was_done(is_told: bool) -> None:
    """Without the message each ERROR on a stream is a failure of its publisher."""
    raw = announced(Role.CLIENT)
    reader = raw.ask()
    stream = next(iter(raw.session.streams.opened))
    if is_told:
        raw.send(rs.Ext(stream_id=0, ignore=True, ext_type=0x645, data=MESSAGE.body))
    raw.send(rs.Error(stream_id=stream, data=b"draining"))
    (error,) = reader.ends
    assert isinstance(error, Rejected if is_told else PublisherFailed)
    assert not is_told or not error.processed
