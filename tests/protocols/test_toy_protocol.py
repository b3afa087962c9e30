"""The toy on an unchanged session: a shared space of ids, demand of 31 bits, channels, error codes,
and its own timer.
"""

import inspect
from itertools import pairwise
from pathlib import Path

import pytest

import penstock
from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    ProtocolError,
    PublicError,
    PublisherFailed,
    Rejected,
    Role,
)
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import (
    ConnectionState,
    Dialect,
    DialectFactory,
    DialectSettings,
    Session,
    protocol_detector,
)
from tests.protocols._toy_protocol import (
    CANCEL,
    CHANNEL,
    DONE,
    FAILED,
    HELLO,
    KEEPALIVE,
    LARGEST_GRANT,
    NEXT,
    REQUEST,
    STREAM,
    VERSION,
    ToyDialect,
    frame,
)
from tests.protocols._toy_session_pair import RawToy, ToyPair, frames
from tests.session._pair import RecordingDelegate, limits_with

HELLO_FRAME = frame(HELLO, 0, VERSION)


class SmallGrants(ToyDialect):
    """A frame grants four at most."""

    largest_grant = 4


def granted(said: list[tuple[str, int, bytes]]) -> list[int]:
    return [int.from_bytes(body[:4]) for kind, _, body in said if kind in "SCR"]


# --- the class


def test_the_toy_has_every_method_of_a_dialect() -> None:
    """With the same parameters, in the same order."""
    methods = [
        name
        for name, value in vars(Dialect).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    for name in methods:
        due = list(inspect.signature(getattr(Dialect, name)).parameters)
        assert list(inspect.signature(getattr(ToyDialect, name)).parameters) == due, name


def test_penstock_does_not_mention_the_toy() -> None:
    """Its name is in no file of the package."""
    files = list(Path(penstock.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    assert [path.name for path in files if "toy" in path.read_text(encoding="utf-8").lower()] == []


# --- streams


@pytest.mark.parametrize("cut", [1, 7, 1 << 30])
def test_streams_flow_in_both_directions_with_odd_and_even_ids(cut: int) -> None:
    """For chunks of any size."""
    pair = ToyPair()
    down, up = pair.server.publish("down"), pair.client.publish("up")
    below = pair.client.read("down", 3)
    pair.settle(cut=cut)
    above = pair.server.read("up", 2)
    pair.settle(cut=cut)
    down.emit(b"one", b"two", b"three")
    up.emit(b"uno", b"dos")
    down.complete()
    up.complete()
    pair.settle(cut=cut)
    assert (below.elements, below.ends) == ([b"one", b"two", b"three"], ["complete"])
    assert (above.elements, above.ends) == ([b"uno", b"dos"], ["complete"])
    assert ("S", 1, b"\0\0\0\3down") in pair.frames(Role.CLIENT)
    assert ("S", 2, b"\0\0\0\2up") in pair.frames(Role.SERVER)
    assert pair.is_idle
    assert not pair.client.dialect._grants


def test_a_long_element_is_sent_in_one_frame() -> None:
    """It is longer than `split_outbound_at`, and the protocol has no parts."""
    pair = ToyPair()
    source = pair.server.publish("s")
    reader = pair.client.read("s", 2)
    pair.settle()
    source.emit(bytes(100_000), b"small")
    pair.settle()
    assert reader.elements == [bytes(100_000), b"small"]
    assert [len(body) for kind, _, body in pair.frames(Role.SERVER) if kind == "N"] == [100_000, 5]


def test_packed_elements_are_separated() -> None:
    """Each is sent in its own frame."""
    pair = ToyPair()
    source = pair.server.publish("s", element_size=2)
    reader = pair.client.read("s", 9)
    pair.settle()
    source.emit(b"aabbcc")
    source.complete()
    pair.settle()
    assert (reader.elements, reader.ends) == ([b"aa", b"bb", b"cc"], ["complete"])


def test_a_cancel_stops_the_publisher_and_late_elements_are_dropped() -> None:
    """The connection stays open."""
    pair = ToyPair()
    source = pair.server.publish("s")
    reader = pair.client.read("s", 5)
    pair.settle()
    source.emit(b"1")
    late = bytes(pair.server.session.take())
    reader.cancel()
    pair.settle()
    assert source.cancels == 1
    for _ in range(5):
        pair.client.session.receive(late, 0.0)
    assert reader.elements == []
    assert pair.client.session.state is ConnectionState.OPEN


# --- demand


@pytest.mark.parametrize("demand", [0, 1, LARGEST_GRANT])
def test_demand_that_fits_into_a_frame_is_granted_at_once(demand: int) -> None:
    """The client sends one frame with all of the demand."""
    pair = ToyPair()
    pair.server.publish("s")
    pair.client.read("s", demand)
    pair.settle()
    assert granted(pair.frames(Role.CLIENT)) == [demand]


@pytest.mark.parametrize("demand", [2 * LARGEST_GRANT, 3 * LARGEST_GRANT, UNBOUNDED - 1, UNBOUNDED])
def test_demand_above_the_largest_grant_is_owed(demand: int) -> None:
    """The first grant is 2^31-1. The next one is sent when half of it is used up."""
    pair = ToyPair()
    source = pair.server.publish("s")
    pair.client.read("s", demand)
    pair.settle()
    source.emit(b"1")
    pair.settle()
    assert granted(pair.frames(Role.CLIENT)) == [LARGEST_GRANT]


@pytest.mark.parametrize("demand", [5, 10, 33])
def test_owed_demand_is_granted_as_elements_arrive(demand: int) -> None:
    """The grants add up to the demand, and none is above the largest grant."""
    pair = ToyPair(kind=SmallGrants)
    source = pair.server.publish("s")
    reader = pair.client.read("s", demand)
    pair.settle()
    while source.demand > len(reader.elements):
        source.emit(*[b"x"] * (source.demand - len(reader.elements)))
        pair.settle()
    grants = granted(pair.frames(Role.CLIENT))
    assert (len(reader.elements), sum(grants), max(grants)) == (demand, demand, 4)


def test_demand_without_bound_is_granted_again_and_again() -> None:
    """The open grant is always between half of the largest grant and all of it."""
    pair = ToyPair(kind=SmallGrants)
    source = pair.server.publish("s")
    reader = pair.client.read("s", UNBOUNDED)
    pair.settle()
    for _ in range(100):
        source.emit(*[b"x"] * (source.demand - len(reader.elements)))
        pair.settle()
    assert len(reader.elements) >= 100
    assert 0 <= sum(granted(pair.frames(Role.CLIENT))) - len(reader.elements) <= 4


def test_later_demand_is_added_to_the_owed_demand() -> None:
    """The part that fits is granted, and the rest is owed."""
    pair = ToyPair(kind=SmallGrants)
    pair.server.publish("s")
    reader = pair.client.read("s", 1)
    reader.request(2)
    reader.request(5)
    pair.settle()
    assert sum(granted(pair.frames(Role.CLIENT))) in (3, 4)
    assert pair.client.dialect._grants[1].owed + pair.client.dialect._grants[1].open == 8


def test_an_element_beyond_the_grant_ends_the_stream_even_if_demand_is_owed() -> None:
    """The peer knows only its grants. The connection stays open."""
    raw = RawToy(Role.CLIENT, kind=SmallGrants).handshake()
    reader = raw.delegate.read("s", 100)
    grants = raw.delegate.dialect._grants[1]
    raw.send(frame(NEXT, 1, b"x"))
    grants.open = 0
    raw.send(frame(NEXT, 1, b"y"))
    assert reader.elements == [b"x"]
    assert isinstance(reader.ends[0], ProtocolError)
    assert raw.receive()[-1] == ("X", 1, b"")
    assert raw.session.state is ConnectionState.OPEN


# --- channels


def channel() -> tuple[ToyPair, "Ends"]:
    """A channel that the client has opened, with both halves on id 1."""
    pair = ToyPair()
    ends = Ends(pair)
    assert (
        set(pair.client.session.streams.opened) == set(pair.client.session.streams.serving) == {1}
    )
    assert (
        set(pair.server.session.streams.opened) == set(pair.server.session.streams.serving) == {1}
    )
    return pair, ends


class Ends:
    def __init__(self, pair: ToyPair) -> None:
        self.down, self.up = pair.server.publish("channel/a"), pair.client.publish("channel/a")
        self.below = pair.client.read("channel/a", 5)
        pair.settle()
        assert self.up.subscriber is None  # not subscribed yet
        self.above = pair.server.read("channel/a", 5)
        pair.settle()


def test_a_channel_carries_elements_and_demand_both_ways_on_one_id() -> None:
    """The second half begins with its first grant, and each half has its own demand."""
    pair, ends = channel()
    ends.down.emit(b"down")
    ends.up.emit(b"up")
    pair.settle()
    assert (ends.below.elements, ends.above.elements) == ([b"down"], [b"up"])
    assert ("C", 1, b"\0\0\0\5channel/a") in pair.frames(Role.CLIENT)
    assert ("R", 1, b"\0\0\0\5") in pair.frames(Role.SERVER)
    assert {
        stream_id for _, stream_id, _ in pair.frames(Role.CLIENT) + pair.frames(Role.SERVER)
    } == {0, 1}


@pytest.mark.parametrize("first", ["down", "up"])
def test_each_half_of_a_channel_completes_by_itself(first: str) -> None:
    """The other half continues until it completes."""
    pair, ends = channel()
    second = "up" if first == "down" else "down"
    heard = {"down": ends.below, "up": ends.above}
    getattr(ends, first).complete()
    pair.settle()
    assert (heard[first].ends, heard[second].ends) == (["complete"], [])
    getattr(ends, second).emit(b"still")
    getattr(ends, second).complete()
    pair.settle()
    assert (heard[second].elements, heard[second].ends) == ([b"still"], ["complete"])
    assert pair.is_idle


def test_each_half_of_a_channel_is_cancelled_by_itself() -> None:
    """By its subscriber. The other half continues."""
    pair, ends = channel()
    ends.below.cancel()
    pair.settle()
    assert (ends.down.cancels, ends.up.cancels) == (1, 0)
    ends.up.emit(b"still")
    pair.settle()
    assert ends.above.elements == [b"still"]
    ends.above.cancel()
    pair.settle()
    assert ends.up.cancels == 1


def test_each_half_of_a_channel_fails_by_itself() -> None:
    """With the code of a failed publisher. The other half continues."""
    pair, ends = channel()
    ends.up.fail(PublicError("out of stock"))
    pair.settle()
    assert isinstance(ends.above.ends[0], PublisherFailed)
    assert "out of stock" in str(ends.above.ends[0])
    assert ends.below.ends == []


def test_a_channel_without_a_publisher_is_refused() -> None:
    """Neither half begins, and no state is kept."""
    pair = ToyPair()
    reader = pair.client.read("channel/none", 5)
    pair.settle()
    assert isinstance(reader.ends[0], Rejected)
    assert pair.client.dialect.channels == pair.server.dialect.halves == {}


def test_the_second_half_is_refused_if_the_opener_has_no_publisher() -> None:
    """The first half continues."""
    pair = ToyPair()
    down = pair.server.publish("channel/a")
    below = pair.client.read("channel/a", 5)
    pair.settle()
    above = pair.server.read("channel/a", 5)
    pair.settle()
    assert isinstance(above.ends[0], Rejected)
    down.emit(b"1")
    pair.settle()
    assert (below.elements, below.ends) == ([b"1"], [])


def test_a_second_subscribe_opens_a_channel_in_the_other_direction() -> None:
    """The second half of the first channel is taken already."""
    pair, _ = channel()
    pair.server.read("channel/a", 5)
    pair.settle()
    assert ("C", 2, b"\0\0\0\5channel/a") in pair.frames(Role.SERVER)


def test_second_halves_that_are_not_taken_are_bounded() -> None:
    """By `max_subscriptions`. Further channels are refused."""
    raw = RawToy(limits=limits_with(max_subscriptions=2)).handshake()
    raw.delegate.publish("channel/a")
    for stream_id in (1, 3, 5):
        raw.send(frame(CHANNEL, stream_id, b"\0\0\0\1channel/a"), frame(CANCEL, stream_id))
    assert list(raw.delegate.dialect.halves) == [1, 3]
    assert ("F", 5, b"\0\0\2\2refused") in raw.receive()


# --- errors


def test_an_error_has_the_code_of_its_cause() -> None:
    """Refused, failed, or a fault of the peer. The text of a failure does not change its code."""
    raw = RawToy().handshake()
    source = raw.delegate.publish("s")
    raw.send(frame(STREAM, 1, b"\0\0\0\1none"), frame(STREAM, 3, b"\0\0\0\1s"))
    source.fail(PublicError("no such publisher"))
    raw.send(frame(STREAM, 5, b"\0\0\0\1s"), frame(REQUEST, 5, bytes(4)))
    assert raw.receive() == [
        ("F", 1, b"\0\0\2\2no such publisher"),
        ("F", 3, b"\0\0\2\1no such publisher"),
        ("F", 5, b"\0\0\2\4illegal demand"),
    ]


@pytest.mark.parametrize(
    ("code", "kind"), [(0x202, Rejected), (0x201, PublisherFailed), (0x777, PublisherFailed)]
)
def test_a_code_decides_the_exception(code: int, kind: type[Exception]) -> None:
    """An unknown code is a failure."""
    raw = RawToy(Role.CLIENT).handshake()
    reader = raw.delegate.read("s", 1)
    raw.send(frame(FAILED, 1, code.to_bytes(4) + b"\x1b[31mred"))
    assert isinstance(reader.ends[0], kind)
    assert "\x1b" not in str(reader.ends[0])


ILLEGAL = [
    (frame(REQUEST, 1, b"\x80\0\0\0"), ("F", 1, b"\0\0\2\4illegal demand")),
    (frame(STREAM, 3, b"\xff\xff\xff\xffs"), ("F", 3, b"\0\0\2\2illegal demand")),
    (frame(STREAM, 3, b"\0\0\0\1" + b"s" * 2000), ("F", 3, b"\0\0\2\2no such publisher")),
]


@pytest.mark.parametrize(("said", "answer"), ILLEGAL, ids=["grant", "first grant", "long name"])
def test_a_fault_of_one_stream_ends_that_stream(
    said: bytes, answer: tuple[str, int, bytes]
) -> None:
    """For example a demand with its 32nd bit. The connection stays open."""
    raw = RawToy().handshake()
    raw.delegate.publish("s")
    raw.send(frame(STREAM, 1, b"\0\0\0\1s"), said)
    assert raw.receive() == [answer]
    assert raw.session.state is ConnectionState.OPEN


WRONG = {
    "no hello": ([frame(STREAM, 1, b"\0\0\0\1s")], "protocol:hello"),
    "another version": ([frame(HELLO, 0, b"\x02")], "protocol:hello"),
    "a second hello": ([HELLO_FRAME, HELLO_FRAME], "protocol:hello"),
    "a frame that there is not": ([HELLO_FRAME, frame(0x5A, 0)], "protocol:type"),
    "a length that is too short": ([HELLO_FRAME, bytes([0, 0, 0, 4])], "limit:frame"),
    "a length that is too long": ([HELLO_FRAME, b"\xff\xff\xff\xff"], "limit:frame"),
    "an id of ours": ([HELLO_FRAME, frame(STREAM, 2, b"\0\0\0\1s")], "protocol:id 2"),
    "an id again": (
        [HELLO_FRAME, frame(STREAM, 3, b"\0\0\0\1s"), frame(STREAM, 3, b"\0\0\0\1s")],
        "protocol:id 3",
    ),
    "an id that is lower": (
        [HELLO_FRAME, frame(STREAM, 3, b"\0\0\0\1s"), frame(STREAM, 1, b"\0\0\0\1s")],
        "protocol:id 1",
    ),
    "an id of 32 bits": (
        [HELLO_FRAME, frame(STREAM, 2**31 + 1, b"\0\0\0\1s")],
        f"protocol:id {2**31 + 1}",
    ),
    "no demand": ([HELLO_FRAME, frame(STREAM, 1, b"\0\0")], "protocol:frame"),
    "a grant for nothing": ([HELLO_FRAME, frame(REQUEST, 1, b"\0\0\0\1")], "protocol:id 1"),
    "a cancel of nothing": ([HELLO_FRAME, frame(CANCEL, 2)], "protocol:id 2"),
    "an element of nothing": ([HELLO_FRAME, frame(NEXT, 2, b"x")], "protocol:id 2"),
    "an end of nothing": ([HELLO_FRAME, frame(DONE, 4)], "protocol:id 4"),
    "an element on id 0": ([HELLO_FRAME, frame(NEXT, 0, b"x")], "protocol:id 0"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_bytes_end_the_connection_with_the_reason(wrong: str) -> None:
    """The goodbye has the code of a protocol error. Later frames are ignored."""
    said, reason = WRONG[wrong]
    raw = RawToy()
    raw.delegate.publish("s")
    raw.send(*said)
    assert raw.receive()[-1] == ("F", 0, b"\0\0\1\2" + reason.encode())
    assert raw.session.state is ConnectionState.CLOSING
    raw.send(frame(STREAM, 9, b"\0\0\0\1s"))
    assert raw.receive() == []
    raw.session.end_of_input()
    assert raw.session.state.is_over


# --- the end


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_goodbye_ends_every_stream_and_is_answered(who: str) -> None:
    """In both directions, both halves of channels included."""
    pair, ends = channel()
    getattr(pair, who).session.close("")
    pair.settle()
    assert pair.client.session.state.is_over
    assert pair.server.session.state.is_over
    assert [type(end) for end in ends.below.ends + ends.above.ends] == [ConnectionLost] * 2
    assert (ends.down.cancels, ends.up.cancels) == (1, 1)
    assert pair.frames(Role.CLIENT)[-1] == pair.frames(Role.SERVER)[-1] == ("F", 0, b"\0\0\1\1")


def test_the_connection_ends_when_its_ids_are_used_up() -> None:
    """No id is used twice. The error says "connect again"."""
    pair = ToyPair()
    pair.server.publish("s")
    pair.settle()
    pair.client.dialect._last_id = pair.server.dialect._last_peer_id = LARGEST_GRANT - 2
    last, beyond = pair.client.read("s", 1), pair.client.read("s", 1)
    assert "connect again" in str(beyond.ends[0])
    assert isinstance(last.ends[0], ConnectionLost)
    assert pair.client.session.state.is_closing


def every_kind_of_frame() -> ToyPair:
    """A connection with every kind of frame, up to the goodbye."""
    pair, ends = channel()
    ends.up.emit(b"up", b"up again")
    ends.down.emit(b"down")
    pair.settle()
    ends.up.complete()
    ends.below.request(1)
    pair.server.publish("s")
    pair.client.read("s", 1).cancel()
    pair.client.read("none", 1)
    pair.settle()
    ends.below.cancel()
    pair.settle()
    pair.client.session.close("")
    pair.settle()
    return pair


def replayed(pieces: list[bytes]) -> tuple[RawToy, list[object]]:
    """A server that receives these pieces, and subscribes when the channel is open.
    Return it and its outcome.
    """
    raw = RawToy()
    source = raw.delegate.publish("channel/a")
    raw.delegate.publish("s")
    above = None
    for piece in pieces:
        raw.send(piece)
        if raw.delegate.dialect.halves and above is None:
            above = raw.delegate.read("channel/a", 5)
    return raw, [raw.session.state, source.cancels, above and above.elements, above and above.ends]


def test_the_outcome_does_not_depend_on_where_the_bytes_are_cut() -> None:
    """In two pieces, cut at every byte, and in single bytes."""
    said = every_kind_of_frame().sent[Role.CLIENT]
    opened = said.index(b"channel/a") + len(b"channel/a")
    due = replayed([said[:opened], said[opened:]])[1]
    assert due == [ConnectionState.CLOSED_BY_PEER, 1, [b"up", b"up again"], ["complete"]]
    for at in range(len(said)):
        pieces = sorted({0, at, opened, len(said)})
        assert replayed([said[start:end] for start, end in pairwise(pieces)])[1] == due, at
    assert replayed([bytes([byte]) for byte in said])[1] == due


def test_a_connection_lost_at_any_byte_ends_each_stream_once() -> None:
    """Publishers are cancelled, subscribers get an error, and the tables are empty."""
    said = every_kind_of_frame().sent[Role.CLIENT]
    for at in range(len(said)):
        raw, _ = replayed([bytes([byte]) for byte in said[:at]])
        raw.session.end_of_input()
        assert raw.session.state.is_over
        assert len(raw.delegate.ended) == 1
        assert (raw.session.streams.opened, raw.session.streams.serving) == ({}, {})
        assert [stream for stream in raw.delegate.served if not stream.is_ended] == []


# --- time


def test_the_keepalive_pings_answers_and_ends_a_silent_connection() -> None:
    """The session asks the dialect at the times that it returns."""
    pair = ToyPair()
    pair.settle()
    due = pair.client.session.tick(0.0)
    assert due == ToyDialect.ping_interval
    pair.now = ToyDialect.ping_interval
    pair.client.session.tick(pair.now)
    pair.settle()
    assert pair.frames(Role.CLIENT)[-1] == ("K", 0, b"\1")
    assert pair.frames(Role.SERVER)[-1] == ("K", 0, b"\0")
    assert pair.client.session.tick(ToyDialect.ping_timeout + 1) is not None
    assert not pair.client.session.state.is_closing
    pair.client.session.tick(ToyDialect.ping_interval + ToyDialect.ping_timeout)
    assert frames(bytes(pair.client.session.take()))[-1] == ("F", 0, b"\0\0\1\2limit:keepalive")


def test_a_peer_without_a_hello_in_time_gets_a_goodbye() -> None:
    """The session keeps the time, and the dialect encodes the goodbye."""
    raw = RawToy()
    raw.session.tick(raw.session.channel.limits.handshake_timeout)
    assert raw.receive() == [("F", 0, b"\0\0\1\2limit:handshake")]


def test_keepalives_count_as_control_messages() -> None:
    """More of them than the limit end the connection."""
    raw = RawToy(limits=limits_with(controls=5)).handshake()
    for _ in range(6):
        raw.send(frame(KEEPALIVE, 0, b"\1"))
    assert raw.receive()[-1] == ("F", 0, b"\0\0\1\2limit:control")


# --- one port


KINDS: list[DialectFactory] = [RsioDialect, ReactiveSocketDialect, ToyDialect]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("turn", range(3))
def test_each_protocol_is_recognised_by_its_first_bytes(
    kind: DialectFactory, turn: int, size: int
) -> None:
    """For each order of the offered protocols, and chunks of any size."""
    client = Session(
        RecordingDelegate(Role.CLIENT),
        lambda s: kind(s, DialectSettings()),
        role=Role.CLIENT,
        limits=limits_with(),
        random=lambda: 0.5,
    )
    client.start(0.0)
    hello = bytes(client.take())
    offers = [(each, DialectSettings()) for each in KINDS[turn:] + KINDS[:turn]]
    first = offers[0][0]
    server = Session(
        RecordingDelegate(Role.SERVER),
        lambda s: first(s, DialectSettings()),
        role=Role.SERVER,
        limits=limits_with(),
        random=lambda: 0.5,
        choose=protocol_detector(offers, framed=False),
    )
    server.start(0.0)
    for start in range(0, len(hello), size):
        server.receive(hello[start : start + size], 0.0)
    assert server.channel.dialect.name == kind.name
    assert server.state is not ConnectionState.CLOSING
