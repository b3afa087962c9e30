"""The arguments of `connect` are checked at the call."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import blocking
from penstock.api import (
    AuthRefused,
    Credentials,
    Rejected,
    UsageError,
)
from penstock.spi import PeerIdentity
from tests._real_time import HANGS_AFTER
from tests.blocking._trio_server import Served, examining_service, serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[blocking.Peer]:
    with blocking.connect(served.url) as connected:
        yield connected


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe("numbers", demand=True),
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe("\ud800"),
        lambda peer: peer.subscribe("x" * 2000),
        lambda peer: peer.batches("numbers", window_bytes=0),
        lambda peer: peer.subscribe(b"numbers"),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.subscribe("numbers", serializer="nothing"),
        lambda peer: next(iter(peer.subscribe("numbers"))),
    ],
)
def test_a_mistake_is_an_error_of_the_call(peer: blocking.Peer, call: object) -> None:
    """Nothing was sent: the connection goes on."""
    with pytest.raises(UsageError):
        call(peer)  # type: ignore[operator]  # a function of the table
    assert peer.request("echo", timeout=SECONDS) == b"nothing"


@pytest.mark.parametrize("wrong", [iter([b"a"]), 3, {"": [b"a"]}])
def test_a_publisher_that_cannot_be_published_is_refused_at_the_call(wrong: object) -> None:
    """An iterator can be read once, a number is not iterable, and an empty name is refused."""
    publishers = wrong if isinstance(wrong, dict) else {"name": wrong}
    with pytest.raises(UsageError):
        blocking.connect("tcp://127.0.0.1:1", publishers=publishers)


def test_credentials_are_shown(tmp_path: Path) -> None:
    """A server that examines none does not get them, and the requests say so."""
    # The block raises as well.
    with serving() as served, pytest.raises(Rejected, match="does not examine"):
        with blocking.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            peer.request("echo", timeout=SECONDS)


@pytest.mark.parametrize(
    "url",
    ["tcp://127.0.0.1", "reactivesocket+tcp://h:1", "memory://x", "tcp://h:1/name", "nonsense"],
)
def test_a_url_that_this_client_cannot_use_is_refused_at_the_call(url: str) -> None:
    """The error says what to use."""
    with pytest.raises(UsageError):
        blocking.connect(url)


def test_a_server_is_examined_before_any_request() -> None:
    """One that the function refuses was never asked, and the request
    and the block raise AuthRefused.
    """
    swordfish = Credentials.bearer("swordfish")
    with serving(make=examining_service, credentials=Credentials.bearer("lighthouse")) as running:
        with pytest.raises(AuthRefused, match="refused the credentials"):
            with blocking.connect(
                running.url, credentials=swordfish, authenticate=lambda *_: None
            ) as peer:
                with pytest.raises(AuthRefused):
                    peer.request("count", timeout=SECONDS)
        seen: list[tuple[str, bytes]] = []

        def look(scheme: str, data: bytes, _peer: PeerIdentity) -> str:
            seen.append((scheme, data))
            return "the exchange"

        with blocking.connect(running.url, credentials=swordfish, authenticate=look) as peer:
            assert peer.request("count", type=str, timeout=SECONDS) == "1"
            assert peer.identity.principal == "the exchange"
        assert seen == [("bearer", b"lighthouse")]


def test_a_function_that_examines_cannot_use_its_connection() -> None:
    """It runs while the connection works. The server is refused, and the mistake is reported."""
    heard: list[Exception] = []
    peers: list[blocking.Peer] = []
    with serving() as running, pytest.raises(AuthRefused):
        with blocking.connect(
            running.url, authenticate=lambda *_: peers[0].run(0), on_violation=heard.append
        ) as peer:
            peers.append(peer)
            with pytest.raises(AuthRefused):
                peer.request("echo", timeout=SECONDS)
    assert [type(error) for error in heard] == [UsageError]
