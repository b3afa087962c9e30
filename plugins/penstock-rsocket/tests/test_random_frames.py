"""Any frames in any order: a connection ends for a documented reason or goes on, and at its end
nothing is left.
"""

from typing import Any

import penstock_rsocket as rsocket
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock_rsocket import RsocketDialect, encode

from penstock.api import Limits, Model, Role, Subscriber, Subscription
from penstock.session import ChannelElements, DialectSettings, SendingStream, Session

LIMITS = Limits(max_subscriptions=5, max_element=2_000, partial_bytes=4_000)
ids = st.integers(0, 8)
meta = st.none() | st.sampled_from(
    [b"", b"\xfe", rsocket.encode_composite([(rsocket.ROUTING, rsocket.encode_route("a"))])]
)
data = st.sampled_from([b"", b"x", b"y" * 70, b"z" * 1_500])
flag = st.booleans()
numbers = st.sampled_from([1, 2, 2**31 - 1])
fields = {"stream_id": ids, "metadata": meta, "data": data, "follows": flag}
FRAMES: st.SearchStrategy[rsocket.Frame] = st.one_of(
    st.builds(rsocket.RequestResponse, **fields),
    st.builds(rsocket.RequestFnf, **fields),
    st.builds(rsocket.RequestStream, demand=numbers, **fields),
    st.builds(rsocket.RequestChannel, demand=numbers, complete=flag, **fields),
    st.builds(rsocket.RequestN, stream_id=ids, demand=numbers),
    st.builds(rsocket.Cancel, stream_id=ids),
    st.builds(rsocket.Payload, complete=flag, next=flag, **fields),
    st.builds(rsocket.Payload, complete=flag, next=flag, **fields),
    st.builds(rsocket.Error, stream_id=st.integers(1, 8), code=st.just(0x201), data=data),
    st.builds(rsocket.Keepalive, respond=flag, data=data),
    st.builds(rsocket.Lease, ttl=numbers, requests=numbers),
    st.builds(rsocket.MetadataPush, metadata=data),
    st.builds(rsocket.ResumeOk, received=numbers),
    st.builds(rsocket.Ext, stream_id=ids, extended_type=numbers, ignore=st.just(True), data=data),
)


class Reader(Subscriber[bytes]):
    """Requests a few elements at a time, and leaves after some."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.ends = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: bytes, /) -> None:
        assert not self.ends
        self.most -= 1
        if self.most:
            self.subscription.request(1)
        else:
            self.subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        self.ends += 1
        assert self.ends == 1

    def on_complete(self, /) -> None:
        self.ends += 1
        assert self.ends == 1


class Publisher(Subscription):
    """Answers each demand, and completes after three elements, or fails."""

    def __init__(self, stream: SendingStream, *, fails: bool) -> None:
        self.stream, self.left, self.fails = stream, 3, fails

    def request(self, n: int, /) -> None:
        for _ in range(min(n, self.left)):
            self.left -= 1
            self.stream.on_next(b"element")
        if not self.left and self.fails:
            self.left = -1
            self.stream.on_error(ValueError("fails"))
        elif not self.left:
            self.left = -1
            self.stream.on_complete()

    def cancel(self, /) -> None:
        self.left = -1


class Delegate:
    """Serves each stream, by its id: refuses, completes, fails, or reads a channel."""

    session: Session

    def __init__(self) -> None:
        self.ended = 0

    def serve(self, stream: SendingStream) -> None:
        target: Any = stream.target
        if target.name is not None and stream.id % 3 == 0:
            stream.refuse("no such publisher")
            return
        stream.accept()
        if target.model is Model.CHANNEL and stream.id % 4 != 1:
            self.session.subscribe(ChannelElements(stream.id), Reader(stream.id))
            self.session.subscribe(ChannelElements(stream.id), Reader(1))  # the second gets an end

    def attach(self, stream: SendingStream) -> None:
        stream.on_subscribe(Publisher(stream, fails=stream.id % 5 == 0))

    def on_introduction(self, _data: bytes) -> None:
        self.session.admit()

    def on_end(self, _error: Exception) -> None:
        self.ended += 1

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def server(*, leases: bool = False) -> tuple[Session, Delegate]:
    delegate = Delegate()
    session = delegate.session = Session(
        delegate, RsocketDialect, role=Role.SERVER, limits=LIMITS, random=lambda: 0.5
    )
    session.start(0.0)
    setup = rsocket.Setup(
        keepalive=1000,
        lifetime=1000,
        leases=leases,
        metadata_type=rsocket.COMPOSITE,
        data_type="a/b",
    )
    session.receive(encode(setup), 0.0)
    return session, delegate


def client(*, leases: bool = False) -> tuple[Session, Delegate]:
    delegate = Delegate()
    given = DialectSettings(setup=rsocket.SetupData(leases=leases))
    session = delegate.session = Session(
        delegate,
        lambda session: RsocketDialect(session, given),
        role=Role.CLIENT,
        limits=LIMITS,
        random=lambda: 0.5,
    )
    session.start(0.0)
    session.receive(encode(rsocket.Keepalive()), 0.0)
    for demand in range(4):
        session.subscribe("a", Reader(demand + 1))
    return session, delegate


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([server, client]), flag, st.lists(FRAMES, max_size=40), st.integers(1, 60))
def test_any_frames_leave_nothing_behind(
    make: Any, leases: bool, frames: list[rsocket.Frame], cut: int
) -> None:
    """The held bytes stay within the limits, each frame that is sent is legal, and the tables are
    empty at the end.
    """
    session, delegate = make(leases=leases)
    session.tick(0.0)
    wire = b"".join(map(encode, frames))
    for start in range(0, len(wire), cut * 10):
        session.receive(wire[start : start + cut * 10], 0.0)
        for message in session.split(session.take()):
            sent = rsocket.decode(bytes(message))
            if isinstance(sent, rsocket.Error) and not sent.stream_id:
                assert sent.data.startswith((b"protocol:", b"limit:"))
        assert session.held() < 100_000
    dialect: Any = session.channel.dialect
    channels = dialect.channels
    assert len(channels.arriving) <= LIMITS.max_subscriptions + len(session.streams.opened)
    for stream_id in [*session.streams.serving]:
        session.receive(encode(rsocket.Cancel(stream_id=stream_id)), 0.0)
    for stream_id in [*session.streams.opened]:
        session.receive(encode(rsocket.Error(stream_id=stream_id, code=0x201)), 0.0)
    if not session.state.is_closing:
        session.take()
        assert not session.streams.serving
        assert not session.streams.opened
        assert not {**channels.arriving, **channels.opening}
        assert not channels.own
        assert not {**dialect.answering, **dialect._unsent}
        assert not dialect.single
        assert dialect.leases is None or not dialect.leases._waiting
        assert not dialect._received.requests.sizes
        assert session.channel.request_bytes == 0
        assert session.channel.budgets.partials.bytes == 0
    session.end_of_input()
    assert delegate.ended == 1
