"""The arguments of `connect` are checked at the call."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import aio
from penstock.api import (
    UsageError,
)
from tests.aio._run import connected
from tests.blocking._trio_server import Served, serving

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe("numbers", window_bytes=0),
        lambda peer: anext(peer.subscribe("numbers")),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.request("\ud800"),
    ],
)
def test_a_mistake_is_an_error_of_the_call(served: Served, call: Callable[[aio.Peer], Any]) -> None:
    """Nothing was sent: the connection goes on."""

    async def mistake(peer: aio.Peer) -> None:
        with pytest.raises(UsageError):
            await call(peer)
        assert await peer.request("echo") == b"nothing"

    connected(served, mistake)


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "reactivesocket+tcp://h:1", "memory://x", "tcp://h:1/name"])
def test_a_url_that_this_client_cannot_use_is_refused_at_the_call(url: str) -> None:
    """No loop is needed for that."""
    with pytest.raises(UsageError):
        aio.connect(url)
