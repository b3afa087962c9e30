"""Sockets of the client: TCP, TLS and Unix, and how opening one fails."""

import os
from pathlib import Path

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
)
from penstock.spi import Tls, TransportOptions
from tests._certificates import certify
from tests._free_port import free_port
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


def test_a_unix_socket(tmp_path: Path) -> None:
    """The server is known by its process."""
    with serving(f"unix://{tmp_path}/s") as served, blocking.connect(served.url) as peer:
        assert peer.request("echo", timeout=SECONDS) == b"nothing"
        credentials = peer.identity.credentials
        assert credentials is not None
        assert credentials.pid == os.getpid()


def test_tls_verifies_the_server(tmp_path: Path) -> None:
    """Elements of several records arrive; a client that trusts another authority is told so."""
    tls = certify(tmp_path)
    trusting = TransportOptions(tls=Tls(authorities=tls.authorities))
    with serving(
        "tls://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=tls.certificate))
    ) as served:
        with blocking.connect(served.url, options=trusting) as peer:
            with peer.subscribe("numbers?count=3000&size=100", timeout=SECONDS) as stream:
                assert len([*stream]) == 3000
            assert peer.identity.certificate is not None
        with (
            pytest.raises(ConnectionLost, match="certificate cannot be verified"),
            blocking.connect(served.url),
        ):
            pass


def test_tls_to_a_server_without_it_is_explained() -> None:
    """The error names the other scheme."""
    with (
        serving() as served,
        pytest.raises(ConnectionLost, match="without TLS"),
        blocking.connect(served.url.replace("tcp", "tls")),
    ):
        pass


def test_no_server_is_connection_lost() -> None:
    """For a port without a server, a name that does not exist, and a missing socket file."""
    for url in (f"tcp://127.0.0.1:{free_port()}", "unix:///nowhere/at/all"):
        with pytest.raises(ConnectionLost, match="no server answers"), blocking.connect(url):
            pass
