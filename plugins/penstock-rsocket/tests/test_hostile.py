"""Floods: what one client can make a server hold and send, with default limits."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import penstock_rsocket as rsocket
import pytest
from penstock_rsocket import RsocketDialect, encode

from penstock.api import Limits, Role
from penstock.session import Session

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


@pytest.mark.parametrize(
    "attack",
    [
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
    delegate = Delegate()
    session = delegate.session = Session(
        delegate, RsocketDialect, role=Role.SERVER, limits=Limits(), random=lambda: 0.5
    )
    session.start(0.0)
    session.receive(encode(SETUP), 0.0)
    received = sent = held = 0
    for chunk in attack():
        session.receive(chunk, 0.0)
        received += len(chunk)
        held = max(held, session.held())
        if reads:
            sent += len(session.take())
        if session.state.is_closing or received > BYTES:
            break
    sent += len(session.take())
    # A bomb is one refused request, and an echo for each KEEPALIVE is what the protocol wants.
    assert session.state.is_closing or attack is metadata_bombs or (reads and attack is keepalives)
    assert held < HELD
    assert sent < SENT_FOR_EACH * received


def test_a_frame_that_never_ends_holds_what_a_frame_may() -> None:
    """And one above the limit holds nothing."""
    delegate = Delegate()
    session = delegate.session = Session(
        delegate, RsocketDialect, role=Role.SERVER, limits=Limits(), random=lambda: 0.5
    )
    session.start(0.0)
    session.receive(encode(SETUP), 0.0)
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
