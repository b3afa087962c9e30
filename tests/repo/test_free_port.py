"""The ports that tests give to programs."""

import socket

import pytest

from tests import _free_port
from tests._free_port import PORTS, free_port


def test_a_port_is_given_once() -> None:
    """It lies outside the system's own range, and a server can listen there."""
    given = {free_port() for _ in range(50)}
    assert len(given) == 50
    assert given <= set(PORTS)
    for port in given:
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_taken_port_is_not_given(
    kind: socket.SocketKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that another process has reserved, nor one at which a server listens."""
    other = free_port()
    with socket.socket(type=kind) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            taken.listen()
        monkeypatch.setattr(_free_port.random, "sample", lambda _ports, _count: [port, other])
        with pytest.raises(AssertionError, match="no free port"):
            free_port()
