"""Floods: what one client can make a server hold and send, with default limits."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

import attrs
import penstock_rsocket as rsocket
import pytest
from penstock_rsocket import RsocketDialect, encode

from penstock.api import Limits, Role
from penstock.session import DialectSettings, Resume, RetainedBytes, Session, retain
from penstock.testing import ManualSubscriber

HELD: int = 128 << 10
SENT_FOR_EACH: int = 100
"""Bytes that this side may send for each byte of an attack."""
BYTES: int = 4 << 20
"""An attack ends when its connection does, or after this many bytes."""

ROUTE = rsocket.encode_composite([(rsocket.ROUTING, rsocket.encode_route("a"))])
SETUP = rsocket.Setup(
    keepalive=1000, lifetime=1000, metadata_type=rsocket.COMPOSITE, data_type="a/b"
)


class Delegate:
    """A service that never answers."""

    session: Session

    def on_introduction(self, _data: bytes) -> None:
        self.session.admit()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def served(setup: rsocket.Setup = SETUP) -> Session:
    """Return the session of a server that has received a SETUP."""
    delegate = Delegate()
    session = delegate.session = Session(
        delegate, RsocketDialect, role=Role.SERVER, limits=Limits(), random=lambda: 0.5
    )
    session.start(0.0)
    session.receive(encode(setup), 0.0)
    return session


class Cost(NamedTuple):
    """The bytes of an attack, the bytes that were sent for it, and the most that were held."""

    received: int
    sent: int
    held: int


def flood(
    session: Session, attack: Iterable[bytes], *, most: int = BYTES, reads: bool = True
) -> Cost:
    """Receive an attack until it ends the connection, or `most` bytes of it. The time stands still.

    If not `reads`, the client takes nothing before the end.
    """
    received = sent = held = 0
    for chunk in attack:
        session.receive(chunk, 0.0)
        received += len(chunk)
        held = max(held, session.held())
        if reads:
            sent += len(session.take())
        if session.state.is_closing or received > most:
            break
    return Cost(received, sent + len(session.take()), held)


def odd() -> Iterator[int]:
    return count(1, 2)


def fragments() -> Iterator[bytes]:
    yield encode(rsocket.RequestResponse(stream_id=1, metadata=ROUTE, follows=True))
    while True:
        yield encode(rsocket.Payload(stream_id=1, data=b"x", follows=True))


def empty_fragments() -> Iterator[bytes]:
    yield encode(rsocket.RequestResponse(stream_id=1, metadata=ROUTE, follows=True))
    while True:
        yield encode(rsocket.Payload(stream_id=1, metadata=b"", follows=True))


def metadata_bombs() -> Iterator[bytes]:
    bomb = rsocket.encode_composite([("a/b", b"")]) * 50_000
    for stream_id in odd():
        yield encode(rsocket.RequestResponse(stream_id=stream_id, metadata=bomb))


def bad_metadata() -> Iterator[bytes]:
    for stream_id in odd():
        yield encode(rsocket.RequestResponse(stream_id=stream_id, metadata=b"\xfe"))


def pushes() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.MetadataPush(metadata=b"m"))


def keepalives() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Keepalive(respond=True, data=b"k" * 1000))


def leases() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Lease(ttl=1, requests=1))


def resumes() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Resume(token=b"t" * 100, received=0, first_kept=0))


def channels() -> Iterator[bytes]:
    for stream_id in odd():
        yield encode(
            rsocket.RequestChannel(stream_id=stream_id, demand=1, metadata=ROUTE, data=b"x")
        )
        yield encode(rsocket.Cancel(stream_id=stream_id))


def unknown_streams() -> Iterator[bytes]:
    for stream_id in odd():
        yield encode(rsocket.Payload(stream_id=stream_id, data=b"x", complete=True))


def setups() -> Iterator[bytes]:
    while True:
        yield encode(SETUP)


def ignored_extensions() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Ext(extended_type=7, ignore=True, data=b"x" * 100))


def demands() -> Iterator[bytes]:
    for stream_id in odd():
        yield encode(rsocket.RequestN(stream_id=stream_id, demand=2**31 - 1))


def pushes_of_bombs() -> Iterator[bytes]:
    bomb = rsocket.encode_composite([("a/b", b"")]) * 10_000
    while True:
        yield encode(rsocket.MetadataPush(metadata=bomb))


def types_without_end() -> Iterator[bytes]:
    types = rsocket.encode_type("a/b") * 20_000
    bomb = rsocket.encode_composite([(rsocket.ACCEPTED_TYPES, types)])
    for stream_id in odd():
        yield encode(rsocket.RequestResponse(stream_id=stream_id, metadata=bomb))


def metadata_in_fragments() -> Iterator[bytes]:
    for stream_id in odd():
        yield encode(
            rsocket.RequestResponse(stream_id=stream_id, metadata=b"m" * 4096, follows=True)
        )


def unfinished_metadata() -> Iterator[bytes]:
    yield encode(rsocket.RequestResponse(stream_id=1, metadata=ROUTE, follows=True))
    while True:
        yield encode(rsocket.Payload(stream_id=1, metadata=b"m" * 4096, follows=True))


@pytest.mark.parametrize(
    "attack",
    [
        ignored_extensions,
        demands,
        fragments,
        empty_fragments,
        metadata_bombs,
        bad_metadata,
        pushes,
        keepalives,
        leases,
        resumes,
        channels,
        unknown_streams,
        setups,
    ],
)
@pytest.mark.parametrize("reads", [True, False])
def test_a_flood_ends_its_connection_and_costs_little(
    attack: Callable[[], Iterator[bytes]], reads: bool
) -> None:
    """Whether the client reads or not. Time stands still, so no budget is filled again."""
    session = served()
    cost = flood(session, attack(), reads=reads)
    # A bomb is one refused request, and an echo for each KEEPALIVE is what the protocol wants.
    assert session.state.is_closing or attack is metadata_bombs or (reads and attack is keepalives)
    assert cost.held < HELD
    assert cost.sent < SENT_FOR_EACH * cost.received


def grants() -> Iterator[bytes]:
    yield encode(rsocket.RequestStream(stream_id=1, demand=1, metadata=ROUTE))
    while True:
        yield encode(rsocket.RequestN(stream_id=1, demand=1))


@pytest.mark.parametrize(
    ("attack", "code", "reason"),
    [
        (unknown_streams, rsocket.ErrorCode.CONNECTION_CLOSE, b"limit:glitches"),
        (pushes, rsocket.ErrorCode.CONNECTION_CLOSE, b"limit:control"),
        (channels, rsocket.ErrorCode.CONNECTION_CLOSE, b"limit:churn"),
        (grants, rsocket.ErrorCode.CONNECTION_ERROR, b"limit:requests"),
    ],
)
def test_a_flood_ends_with_the_code_of_a_connection_that_cuts_streams_or_does_not(
    attack: Callable[[], Iterator[bytes]], code: int, reason: bytes
) -> None:
    """CONNECTION_ERROR if a stream is open, CONNECTION_CLOSE if none is."""
    session = served()
    for chunk in attack():
        session.receive(chunk, 0.0)
        if session.state.is_closing:
            break
    last = encode(rsocket.Error(stream_id=0, code=code, data=reason))
    assert bytes(session.take()).endswith(last)


@pytest.mark.parametrize(
    "attack", [pushes_of_bombs, types_without_end, metadata_in_fragments, unfinished_metadata]
)
def test_large_metadata_holds_what_unfinished_data_may(
    attack: Callable[[], Iterator[bytes]],
) -> None:
    """Each of these costs the client tens of kilobytes a frame. Metadata in fragments has a bound for
    each request, and all unfinished requests together have that of data in fragments. Metadata that
    is whole is not kept after its request.
    """
    session = served()
    cost = flood(session, attack(), most=3 * BYTES)
    assert session.state.is_closing or attack in (pushes_of_bombs, types_without_end)
    assert cost.held < HELD * (3 if attack is metadata_in_fragments else 1)
    assert cost.sent < cost.received / 50


class Owner:
    """What keeps a connection after a loss, without a server."""

    def __init__(self) -> None:
        self.tokens: list[bytes] = []

    def adopt(self, token: bytes) -> bool:
        self.tokens.append(token)
        return True

    def bind(self, _active: Any) -> None:
        """Note nothing."""


def questions() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Keepalive(respond=True))


def positions() -> Iterator[bytes]:
    while True:
        yield encode(rsocket.Keepalive(position=1))


def paid_questions() -> Iterator[bytes]:
    """A question for each 64 KiB of a stream that is not read."""
    while True:
        yield encode(rsocket.Payload(stream_id=1, data=bytes(60_000)))
        yield encode(rsocket.Keepalive(respond=True))


@pytest.mark.parametrize("attack", [questions, positions, paid_questions, resumes, fragments])
def test_a_connection_that_can_be_resumed_holds_as_little(
    attack: Callable[[], Iterator[bytes]],
) -> None:
    """Positions that were never sent end it; a question is free only for bytes that were sent."""
    delegate, owner = Delegate(), Owner()
    settings = DialectSettings(extensions=(Resume(owner),))  # type: ignore[arg-type]  # as much of it as the dialect uses
    session = delegate.session = Session(
        delegate,
        lambda host: RsocketDialect(host, settings),
        role=Role.SERVER,
        limits=Limits(),
        random=lambda: 0.5,
    )
    retain(session.outbox, RetainedBytes(1 << 20, 2 << 20))
    session.start(0.0)
    session.receive(encode(attrs.evolve(SETUP, token=b"t" * 16)), 0.0)
    assert owner.tokens == [b"t" * 16]
    cost = flood(session, attack())
    # `paid_questions` asks as often as the protocol wants.
    assert session.state.is_closing or attack is paid_questions
    assert cost.held < HELD
    assert cost.sent < SENT_FOR_EACH * cost.received


def test_requests_above_a_lease_end_the_connection_that_floods() -> None:
    """Each is refused, and refusals have a rate."""
    session = served(attrs.evolve(SETUP, leases=True))
    requests = (
        encode(rsocket.RequestResponse(stream_id=stream_id, metadata=ROUTE)) for stream_id in odd()
    )
    cost = flood(session, requests)
    assert session.state.is_closing
    assert cost.held < HELD
    assert cost.sent < SENT_FOR_EACH * cost.received


def test_a_server_cannot_flood_a_client_with_metadata_of_elements() -> None:
    """In fragments without end, on a stream that the client reads."""
    for frame in (
        rsocket.Payload(stream_id=1, metadata=b"", follows=True),
        rsocket.Payload(stream_id=1, metadata=b"m", follows=True),
        rsocket.Payload(stream_id=1, metadata=b"m" * 60_000, follows=True),
    ):
        delegate, subscriber = Delegate(), ManualSubscriber()
        session = delegate.session = Session(
            delegate, RsocketDialect, role=Role.CLIENT, limits=Limits(), random=lambda: 0.5
        )
        session.start(0.0)
        session.receive(encode(rsocket.Keepalive()), 0.0)
        stream = session.subscribe("a", subscriber)
        stream.request(5)
        session.take()
        received = held = 0
        for _ in range(BYTES):
            session.receive(encode(frame), 0.0)
            received += len(encode(frame))
            held = max(held, session.held())
            session.take()
            if session.state.is_closing or not stream.is_wanted:
                break
        assert session.state.is_closing or not stream.is_wanted
        assert held < HELD


def test_a_frame_that_never_ends_holds_what_a_frame_may() -> None:
    """And one above the limit holds nothing."""
    session = served()
    head = encode(rsocket.Payload(stream_id=1, data=bytes(8 << 20)))[:9]
    session.receive(head, 0.0)
    for _ in range(100):
        session.receive(bytes(64 << 10), 0.0)
        assert session.held() < HELD


def test_a_client_that_says_nothing_of_a_setup_is_bounded() -> None:
    """`Limits.preauth_bytes` before the SETUP is whole."""
    delegate = Delegate()
    session = delegate.session = Session(
        delegate, RsocketDialect, role=Role.SERVER, limits=Limits(), random=lambda: 0.5
    )
    session.start(0.0)
    session.receive(encode(rsocket.Payload(stream_id=0, data=bytes(1 << 20)))[:9], 0.0)
    session.receive(bytes(5_000), 0.0)
    assert session.state.is_closing
