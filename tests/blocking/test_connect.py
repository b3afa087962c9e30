"""A function that examines the server of a program that blocks."""

import pytest

from penstock import blocking
from penstock.api import (
    AuthRefused,
    UsageError,
)
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


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
