"""A session from its hello to its end, and after it."""

import gc
import weakref
from typing import Any

import pytest

from penstock.api import ConnectionLost, PluginError, Rejected, Role
from penstock.protocols import reactivesocket, rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.session import STREAM_BYTES, ConnectionState, DialectSettings, Session
from penstock.session._channel import StreamOwner
from penstock.session._session import RELEASED, release_dialect
from penstock.session._stream_tables import SessionDelegate
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingDelegate,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    open_stream,
    subscribe_to,
)

# --- from the hello to the end


def test_both_sides_are_open_after_the_hellos() -> None:
    """The handshake takes one message of each side, six bytes in all."""
    pair = Pair()
    assert pair.settle() == 6
    assert pair.client.is_open
    assert pair.server.is_open


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1 << 20])
def test_elements_arrive_in_order_however_the_wire_cuts_them(cut: int) -> None:
    """The same stream arrives in chunks of each size."""
    pair = Pair()
    source, subscriber = open_stream(pair, 100)
    sent = [bytes([number]) * number for number in range(40)]
    source.emit(*sent)
    source.complete()
    pair.settle(cut=cut)
    assert subscriber.elements == sent
    assert subscriber.ends == ["complete"]


def test_an_unknown_publisher_is_a_rejection() -> None:
    """An error before onSubscribe is a Rejected, not a failure of a publisher."""
    pair = Pair()
    subscriber = pair.subscribe("unknown", 1)
    pair.settle()
    assert isinstance(subscriber.ends[0], Rejected)


def test_goodbye_ends_everything_on_both_sides() -> None:
    """Publishers are cancelled, subscribers get ConnectionLost, and both sessions are over."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    pair.client.session.close("shutdown")
    pair.settle()
    assert isinstance(subscriber.ends[0], ConnectionLost)
    assert source.cancels == 1
    assert pair.client.session.state.is_over
    assert pair.server.session.state.is_over
    assert len(pair.client.ended) == len(pair.server.ended) == 1


def test_crossing_goodbyes_answer_each_other() -> None:
    """Each side sends one goodbye, and no second one as an answer."""
    pair = Pair()
    pair.settle()
    pair.client.session.close("a")
    pair.server.session.close("b")
    assert pair.settle() == 6
    assert pair.client.session.state.is_over
    assert pair.server.session.state.is_over


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_bytes_after_a_goodbye_are_discarded(cut: int) -> None:
    """A second goodbye, a hello, streams and junk, in one chunk with the goodbye or after it:
    the goodbye is answered once.
    """
    for sent in (
        b"\x03\x00",
        b"\x01\x00\x00",
        b"\x10\x01s\x00\x01",
        b"\x20\x00\x00",
        b"\x11\x00\x00",
        b"\xff",
    ):
        raw = RawPeer().handshake()
        data = b"\x03\x00" + sent
        for start in range(0, len(data), cut):
            raw.send(data[start : start + cut])
        assert raw.receive() == [rsio.Goodbye()]
        assert len(raw.delegate.ended) == 1


def test_an_unanswered_goodbye_ends_by_its_deadline() -> None:
    """tick() returns the deadline, which counts from the first tick after the goodbye."""
    pair = Pair()
    pair.settle()
    session = pair.client.session
    session.close("a")
    assert session.tick(100.0) == 102.0
    assert session.tick(101.0) == 102.0
    assert session.tick(102.0) is None
    assert session.state.is_over


FATAL: list[tuple[str, list[rsio.Message | bytes], str]] = [
    ("an unknown type", [b"\x7f"], "protocol:type 0x7f"),
    ("a reserved type", [b"\x00"], "protocol:type 0x00"),
    (
        "an extension's message without it",
        [rsio.ExtensionMessage(type=0x40, body=b"")],
        "protocol:type 0x40",
    ),
    ("a second hello", [rsio.ClientHello()], "protocol:hello"),
    ("the other side's hello", [rsio.ServerHello()], "protocol:hello"),
    ("an endless varint", [b"\x12" + b"\xff" * 9], "protocol:varint"),
    ("a varint longer than it must be", [b"\x12\x80\x00"], "protocol:varint"),
    (
        "an element of an unknown stream",
        [rsio.OnNext(subscriber=7, element=b"")],
        "protocol:stream 7",
    ),
    ("the end of an unknown stream", [rsio.OnComplete(subscriber=7)], "protocol:stream 7"),
    (
        "an id that is in use",
        [rsio.Subscribe(publisher="s", subscriber=1), rsio.Subscribe(publisher="s", subscriber=1)],
        "protocol:subscribe 1",
    ),
    ("an endless name", [b"\x10" + rsio.encode_varint(2**62)], f"limit:name {2**62} > 1024"),
    ("an endless error", [b"\x26\x00" + rsio.encode_varint(2**62)], f"limit:text {2**62} > 4096"),
    ("a switch of the encoding", [rsio.SwitchEncoding(extension=16)], "protocol:switch 16"),
]


@pytest.mark.parametrize(
    ("sent", "reason"), [case[1:] for case in FATAL], ids=[case[0] for case in FATAL]
)
def test_a_fatal_mistake_ends_the_connection_with_its_reason(sent: list[Any], reason: str) -> None:
    """Publishers are cancelled, and nothing that the peer sends afterwards is acted on."""
    raw = RawPeer().handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=100, demand=1))
    raw.receive()
    raw.send(*sent)
    assert raw.goodbye_reason() == reason
    assert source.cancels >= 1
    raw.send(rsio.Subscribe(publisher="s", subscriber=101, demand=1))
    assert raw.receive() == []


def test_too_much_before_the_hello_ends_the_connection() -> None:
    """A hello that never ends cannot be waited for."""
    raw = RawPeer(limits=limits_with(preauth_bytes=8))
    raw.send(b"\x01\x00\x40" + b"\x01" * 7)
    assert raw.goodbye_reason() == "limit:hello"


def test_silence_before_the_hello_ends_by_its_deadline() -> None:
    """A silent connection keeps its place for Limits.handshake_timeout."""
    raw = RawPeer()
    assert raw.session.tick(0.0) == 10.0
    raw.session.tick(10.0)
    assert raw.goodbye_reason() == "limit:handshake"


def test_races_are_tolerated_until_the_budget_is_spent() -> None:
    """A cancel for a stream that has just ended may be honest. A thousand of them are not."""
    raw = RawPeer(limits=limits_with(glitches=3, per_second=1)).handshake()
    for _ in range(3):
        raw.send(rsio.Cancel(subscriber=9))
    assert raw.receive() == []
    raw.send(rsio.Cancel(subscriber=9))
    assert raw.goodbye_reason() == "limit:glitches"


def test_the_budget_fills_again_with_time() -> None:
    """One oddity a second is always tolerated."""
    raw = RawPeer(limits=limits_with(glitches=2, per_second=1)).handshake()
    for second in range(20):
        raw.now = float(second)
        raw.send(rsio.Cancel(subscriber=9))
    assert raw.receive() == []


@pytest.mark.parametrize("demand", [0])
def test_an_illegal_demand_ends_that_stream_only(demand: int) -> None:
    """Rule 3.9, over the wire."""
    raw = RawPeer().handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(
        rsio.Subscribe(publisher="s", subscriber=1, demand=1),
        rsio.Request(subscriber=1, demand=demand),
    )
    assert raw.receive()[-1] == rsio.OnError(subscriber=1, error="illegal demand")
    assert source.cancels == 1
    assert raw.session.state is ConnectionState.OPEN


def test_streams_are_bounded_in_number_with_those_that_are_stopping() -> None:
    """A cancelled publisher that still runs keeps its place."""
    raw = RawPeer(limits=limits_with(max_subscriptions=2)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(*[rsio.Subscribe(publisher="s", subscriber=each) for each in (1, 2, 3)])
    assert raw.receive()[-1] == rsio.OnError(subscriber=3, error="refused")
    raw.session.streams.stopping_publishers += 1
    raw.send(rsio.Cancel(subscriber=1), rsio.Subscribe(publisher="s", subscriber=4))
    assert raw.receive()[-1] == rsio.OnError(subscriber=4, error="refused")
    raw.session.streams.stopping_publishers -= 1
    raw.send(rsio.Subscribe(publisher="s", subscriber=5))
    assert raw.receive()[-1] == rsio.OnSubscribe(subscriber=5)


def test_an_idle_connection_ends() -> None:
    """After five minutes without a stream."""
    pair = Pair()
    pair.settle()
    assert pair.server.session.tick(1.0) == 301.0
    pair.server.session.tick(301.0)
    pair.settle()
    assert pair.client.session.state.is_over


def test_a_draining_side_refuses_new_streams() -> None:
    """Open streams go on."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    pair.server.session.streams.drain.begin(1.0, 26.0)
    late = pair.subscribe("s", 1)
    source.emit(b"x")
    pair.settle()
    assert "draining" in str(late.ends[0])
    assert subscriber.elements == [b"x"]


def test_the_end_of_the_transport_is_a_lost_connection() -> None:
    """No goodbye came before it."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    pair.client.session.end_of_input()
    pair.server.session.end_of_input()
    assert isinstance(subscriber.ends[0], ConnectionLost)
    assert source.cancels == 1


@pytest.mark.parametrize(
    ("sent", "crossing"),
    [(rsio.Request(subscriber=1, demand=1), 7), (rsio.Cancel(subscriber=1), 2)],
    ids=["requests", "cancels"],
)
def test_control_messages_have_a_rate(sent: rsio.Message, crossing: int) -> None:
    """Beyond those that may have crossed the end of the stream, each costs a token.
    Without a token the connection ends.
    """
    raw = RawPeer(limits=limits_with(controls=3, per_second=1)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=1), rsio.Cancel(subscriber=1))
    raw.send(*[sent] * (crossing + 3))
    assert raw.session.state is ConnectionState.OPEN
    raw.send(sent)
    assert raw.goodbye_reason() == "limit:control"


def test_streams_that_end_as_soon_as_they_begin_have_a_rate() -> None:
    """A flood of subscribes and cancels ends the connection."""
    raw = RawPeer(limits=limits_with(churn=2, per_second=1)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    for each in range(3):
        raw.send(rsio.Subscribe(publisher="s", subscriber=each), rsio.Cancel(subscriber=each))
    assert raw.goodbye_reason() == "limit:churn"


def test_what_is_left_of_a_flood_is_decoded_before_more_is_read() -> None:
    """A session that closes drops messages, and its reader is told of those that are left: it
    would hold a second chunk beside them.
    """
    raw = RawPeer(limits=limits_with(churn=2, per_second=1)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    flood = 9 * (
        rsio.encode(rsio.Subscribe(publisher="s", subscriber=1))
        + rsio.encode(rsio.Cancel(subscriber=1))
    )
    turns = 1
    more = raw.session.receive(flood, 0.0, most=6)
    while more:
        more = raw.session.receive(b"", 0.0, most=6)
        turns += 1
    assert (raw.goodbye_reason(), turns, raw.session.channel.dialect.held()) == (
        "limit:churn",
        3,
        0,
    )


def test_answers_that_pile_up_end_the_connection() -> None:
    """A peer that subscribes and never reads cannot make this side hold errors without bound."""
    raw = RawPeer(
        limits=limits_with(outbound_high=10, max_element=10, outbound_control=100)
    ).handshake()
    for each in range(20):
        raw.send(rsio.Subscribe(publisher="unknown", subscriber=each))
    assert raw.goodbye_reason() == "slow-reader"


def test_cancelled_ids_without_an_end_are_bounded() -> None:
    """They cannot be forgotten, so a peer that never ends them loses the connection."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(retired_ids=2)).handshake()
    for _ in range(3):
        subscriber = RecordingSubscriber()
        raw.session.subscribe("s", subscriber)
        subscriber.cancel()
    assert raw.goodbye_reason() == "limit:ids"


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["live", "cancelled"])
def test_a_second_acceptance_ends_the_connection(is_cancelled: bool) -> None:
    """A second onSubscribe would change where messages end."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    if is_cancelled:
        subscriber.cancel()
        raw.receive()
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=4))
    assert raw.goodbye_reason() == "protocol:stream 0"


def test_a_stream_on_a_connection_that_closes_fails_at_once() -> None:
    """Nothing is sent for it."""
    raw = RawPeer(Role.CLIENT).handshake()
    raw.session.close("enough")
    raw.receive()
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    assert isinstance(subscriber.ends[0], ConnectionLost)
    assert raw.receive() == []


@pytest.mark.parametrize(
    "limits", [{"outbound_control_count": 5}, {"outbound_control": 100}], ids=["count", "bytes"]
)
def test_unread_answers_are_bounded_in_number_and_bytes(limits: dict[str, int]) -> None:
    """Five refusals of 20 bytes may wait, and the sixth ends the connection."""
    raw = RawPeer(limits=limits_with(**limits)).handshake()
    for each in range(5):
        raw.send(rsio.Subscribe(publisher="unknown", subscriber=each))
    assert raw.session.state is ConnectionState.OPEN
    raw.send(rsio.Subscribe(publisher="unknown", subscriber=6))
    assert raw.goodbye_reason() == "slow-reader"


def test_answers_that_are_read_are_not_counted_together() -> None:
    """An answer that the writer has taken no longer counts."""
    raw = RawPeer(limits=limits_with(outbound_control_count=1)).handshake()
    for each in range(50):
        raw.send(rsio.Subscribe(publisher="unknown", subscriber=each))
        assert len(raw.receive()) == 1


def test_messages_that_this_side_sends_on_its_own_are_no_answers() -> None:
    """A publisher that fails for many streams at once is not the peer's fault."""
    raw = RawPeer(limits=limits_with(outbound_control_count=1)).handshake()
    for each in range(50):
        raw.delegate.publishers[f"s{each}"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher=f"s{each}", subscriber=each))
    for script in raw.delegate.publishers.values():
        script.fail(ValueError())
    assert sum(isinstance(message, rsio.OnError) for message in raw.receive()) == 50


def test_all_waiting_bytes_have_a_hard_bound() -> None:
    """The bound is the high-water mark plus one element plus the answers.
    A message beyond it ends the connection.
    """
    raw = RawPeer(
        Role.CLIENT, limits=limits_with(outbound_high=10, max_element=10, outbound_control=10)
    ).handshake()
    subscriber = RecordingSubscriber()
    raw.session.subscribe("s", subscriber)
    raw.receive()
    for _ in range(10):
        subscriber.request(1)
    assert raw.session.state is ConnectionState.OPEN
    subscriber.request(1)
    assert raw.goodbye_reason() == "slow-reader"


def test_held_counts_all_buffers() -> None:
    """Elements that wait to be sent, parts without their last one, and an incomplete message. Each
    is freed when its stream ends.

    A stream has its price on both sides, and a name its bytes on the side that serves it.
    """
    pair = Pair(limits=limits_with(split_outbound_at=100))
    source, subscriber = open_stream(pair, 9)
    server, client = pair.server.session, pair.client.session
    named = STREAM_BYTES + len("s")
    assert (server.held(), client.held()) == (named, STREAM_BYTES)
    source.emit(bytes(250))
    assert server.held() == named + 250
    source.emit(b"x" * 90)
    assert server.held() == named + 340
    client.receive(bytes(server.take())[:150], 0.0)
    assert server.held() == named
    assert client.held() >= STREAM_BYTES + 140
    client.close("enough")
    assert client.channel.budgets.partials.bytes == 0
    del subscriber


def test_held_counts_a_block_that_waits_for_demand() -> None:
    """Gathered elements of fixed size count, and so does the rest of a block."""
    pair = Pair()
    source, subscriber = open_stream(pair, 1, element_size=4)
    source.emit(b"aaaabbbbcccc")
    assert pair.server.session.held() == STREAM_BYTES + 1 + 12
    pair.server.session.take()
    assert pair.server.session.held() == STREAM_BYTES + 1 + 8
    subscriber.cancel()
    pair.settle()
    assert pair.server.session.held() == 0
    assert pair.server.session.channel.buffering_streams == {}


def test_a_refusal_at_a_later_time_waits_for_it() -> None:
    """The refusal that is due first counts, or that was made first.
    The connection says nothing before.
    """
    raw = RawPeer(limits=limits_with(handshake_timeout=9.0))
    raw.session.close("auth", at=5.0)
    raw.session.close("at the same time", at=5.0)
    raw.session.close("later", at=6.0)
    assert raw.session.tick(1.0) == 5.0
    assert raw.receive() == []
    raw.session.tick(5.0)
    assert raw.goodbye_reason() == "auth"


def test_a_refusal_at_a_later_time_does_not_outlive_the_handshake() -> None:
    """Its reason is the one of the refusal, and not the one of the handshake."""
    raw = RawPeer(limits=limits_with(handshake_timeout=4.0))
    raw.session.close("auth", at=5.0)
    assert raw.session.tick(1.0) == 4.0
    raw.session.tick(4.0)
    assert raw.goodbye_reason() == "auth"


def test_a_fault_of_this_side_reaches_its_streams_and_not_the_peer() -> None:
    """The peer gets the reason `internal` and no details."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    raw.session.close_internal_error(PluginError("the plugin broke"))
    assert raw.goodbye_reason() == "internal"
    (error,) = subscriber.ends
    assert isinstance(error, PluginError)
    assert str(error) == "the plugin broke"
    assert str(raw.session.close_reason[1]) == "the plugin broke"


def reactivesocket_server() -> tuple[RecordingDelegate, Session]:
    """Return an open session of a protocol without a goodbye, and its delegate."""
    delegate = RecordingDelegate(Role.SERVER)
    session = delegate.session = Session(
        delegate,
        lambda session: ReactiveSocketDialect(session, DialectSettings()),
        role=Role.SERVER,
        limits=limits_with(),
        random=lambda: 0.5,
    )
    session.start(0.0)
    session.receive(reactivesocket.encode(reactivesocket.Setup()), 0.0)
    session.admit()
    return delegate, session


def test_a_clean_end_is_the_goodbye_of_a_protocol_without_one() -> None:
    """If the peer owes nothing. A reset, or half of a frame before the end,
    is a lost connection.
    """
    for is_clean, before, reason in (
        (True, b"", "closed"),
        (False, b"", "lost"),
        (True, b"\0\0", "lost"),
    ):
        delegate, session = reactivesocket_server()
        session.receive(before, 0.0)
        session.end_of_input(is_clean=is_clean)
        assert session.close_reason[0] == reason
        assert session.state.is_over
        (error,) = delegate.ended
        assert str(error).startswith("the peer closed the connection: ") is (reason == "closed")


# --- stand-ins after the end


def test_it_takes_every_call_of_a_delegate_and_of_an_owner() -> None:
    """A late call does nothing."""
    owner: Any = RELEASED
    for protocol in (SessionDelegate, StreamOwner):
        for name, function in vars(protocol).items():
            if not name.startswith("_"):
                assert getattr(owner, name)(*[None] * (function.__code__.co_argcount - 1)) is None


def test_a_dialect_of_a_plugin_may_lack_the_method() -> None:
    """Then the collector frees it."""

    class Plain:
        released = 0

    class Releasing(Plain):
        def release(self) -> None:
            Plain.released += 1

    for kind in (Plain, Releasing):
        dialect: Any = kind()
        release_dialect(dialect)
    assert Plain.released == 1


# --- a session that was released


@pytest.mark.parametrize("is_over", [True, False])
def test_a_released_session_is_freed_when_it_is_dropped(is_over: bool) -> None:
    """The peer may not have answered its goodbye."""
    raw = RawPeer()
    raw.session.close("done")
    if is_over:
        raw.session.end_of_input()
    session = raw.session
    gc.collect()
    gc.disable()
    try:
        session.release()
        assert session.state is ConnectionState.LOST
        parts = [weakref.ref(session), weakref.ref(session.channel.dialect)]
        del session, raw
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()


def test_a_released_session_refuses_streams_with_the_reason_of_its_end() -> None:
    """As it does before."""
    raw = RawPeer()
    raw.session.end_of_input(ConnectionLost("the cable"))
    raw.session.release()
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    assert "the cable" in str(subscriber.ends)
    raw.session.close("again")
    assert raw.session.tick(1000.0) is None
    assert not raw.session.receive(b"late", 1000.0)
