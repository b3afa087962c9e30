"""TCP for transports: the addresses and ports that are bound, the socket options,
and the error texts.
"""

import errno
import re
import socket
from dataclasses import replace
from typing import Any

import pytest
import trio

from penstock.api import ConnectionLost, UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    PeerIdentity,
    TransportOptions,
    _tcp_sockets,
    listen_tcp,
    open_tcp,
    parse_url,
    set_tcp_options,
    tcp_identity,
)
from penstock.spi._tcp_sockets import _bind, _peer_of

OPTIONS = TransportOptions()
V4, V6 = socket.AF_INET, socket.AF_INET6


async def _bound(url: str) -> tuple[list[str], list[Any]]:
    sockets, addresses = await _bind(parse_url(url), 5)
    names = [each.getsockname() for each in sockets]
    _close(sockets)
    return [str(address) for address in addresses], names


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


async def test_port_0_becomes_a_real_port() -> None:
    """The reported address is the requested one with the real port; the dialect stays."""
    [address], [name] = await _bound("reactivesocket+tcp://127.0.0.1:0/ignored")
    assert address == f"reactivesocket+tcp://127.0.0.1:{name[1]}"
    assert name[1] > 0


async def test_an_ipv6_address_is_reported_in_brackets() -> None:
    """Every URL has the brackets."""
    [address], [name] = await _bound("tcp://[::1]:0")
    assert name[0] == "::1"
    assert address == f"tcp://[::1]:{name[1]}"


async def test_all_addresses_of_a_name_share_one_port() -> None:
    """One URL reaches the IPv4 and the IPv6 address of a name."""
    addresses, names = await _bound("tcp://localhost:0")
    assert len(addresses) == 1
    assert len({name[1] for name in names}) == 1


async def test_without_a_host_every_address_of_the_machine_is_bound() -> None:
    """On one port, which is reported for each address family."""
    addresses, names = await _bound("tcp://:0")
    assert {name[0] for name in names} <= {"0.0.0.0", "::"}
    assert len({name[1] for name in names}) == 1
    assert addresses == [str(parse_url("tcp://:0").at(*name[:2])) for name in names]


async def test_a_port_that_is_free_on_one_address_only_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system is asked for another port, and the sockets of the first attempt are closed."""
    real, refused = _tcp_sockets._bind_one, []

    def bind(family: socket.AddressFamily, address: Any, backlog: int) -> socket.socket:
        if family == V6 and not refused:
            refused.append(address)
            raise OSError(errno.EADDRINUSE, "taken")
        return real(family, address, backlog)

    monkeypatch.setattr(_tcp_sockets, "_bind_one", bind)
    sockets = _tcp_sockets._bind_to_one_port([(V4, ("127.0.0.1", 0)), (V6, ("::1", 0, 0, 0))], 0, 5)
    assert len({each.getsockname()[1] for each in sockets}) == 1
    assert refused
    _close(sockets)


def test_the_search_for_a_common_port_ends_after_16_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says how many attempts were made."""
    attempts = []

    def bind(*_: Any) -> socket.socket:
        attempts.append(1)
        raise OSError(errno.EADDRINUSE, "taken")

    monkeypatch.setattr(_tcp_sockets, "_bind_one", bind)
    with pytest.raises(OSError, match="no port is free on all of 1 addresses, after 16 attempts"):
        _tcp_sockets._bind_to_one_port([(V4, ("127.0.0.1", 0))], 0, 5)
    assert len(attempts) == 16


def test_an_address_that_this_machine_lacks_is_skipped_unless_it_is_the_only_one() -> None:
    """A name may have an IPv6 address although the machine has no IPv6."""
    here, elsewhere = (V4, ("127.0.0.1", 0)), (V6, ("2001:db8::1", 0, 0, 0))
    for addresses in ([here, elsewhere], [elsewhere, here]):
        sockets = _tcp_sockets._bind_all(addresses, 0, 5)
        assert [each.getsockname()[0] for each in sockets] == ["127.0.0.1"]
        _close(sockets)
    with pytest.raises(OSError, match="assign requested address"):
        _tcp_sockets._bind_all([elsewhere], 0, 5)


async def test_a_port_in_use_is_a_usage_error() -> None:
    """With the system's reason and advice;
    sockets that were bound before the failure are closed.
    """
    other = socket.create_server(("127.0.0.1", 0))
    with (
        other,
        pytest.raises(
            UsageError, match=r"cannot listen at tcp://127.0.0.1:.*in use.*Choose another"
        ),
    ):
        await _bound(f"tcp://127.0.0.1:{other.getsockname()[1]}")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("tcp://127.0.0.1", "lacks the port to listen at; 0 lets the system choose"),
        ("tcp://192.0.2.1:0", "cannot listen at tcp://192.0.2.1:0"),
        ("tcp://no-such-name.invalid:0", "cannot listen at"),
        ("tcp:127.0.0.1:0", "is not of the form tcp://host:port/name"),
        ("tcp://127.0.0.1:0/path#name", "is not of the form"),
    ],
)
async def test_an_address_that_cannot_be_bound_is_a_usage_error(url: str, why: str) -> None:
    """The message says what is missing."""
    with pytest.raises(UsageError, match=why):
        await _bound(url)


async def test_listen_tcp_accepts_clients_of_open_tcp() -> None:
    """Both sides get the identity of the other, and both sockets have the options."""
    seen: list[PeerIdentity] = []

    def make_connection(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
        seen.append(peer)
        assert _settings(stream.socket)[:2] == [1, 1]
        return ByteConnection(stream, peer=peer, options=OPTIONS)

    listener = await listen_tcp(parse_url("tcp://127.0.0.1:0/ignored"), OPTIONS, make_connection)
    stream, server = await open_tcp(listener.addresses[0], OPTIONS)
    assert _settings(stream.socket)[:2] == [1, 1]
    connection = await listener.accept()
    assert connection.peer is seen[0]
    assert seen == [tcp_identity(stream.socket.getsockname())]
    assert str(listener.addresses[0]) == f"tcp://{server.address}"
    await connection.send(b"hello")
    assert await stream.receive_some() == b"hello"
    await stream.aclose()
    await connection.aclose()
    await listener.aclose()


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "tcp://:7000", "tcp://127.0.0.1:0"])
async def test_connecting_needs_a_host_and_a_port(url: str) -> None:
    """The message shows both."""
    with pytest.raises(
        UsageError,
        match=r"lacks the host or the port to connect to; write for example tcp://127.0.0.1:7000",
    ):
        await open_tcp(parse_url(url), OPTIONS)


async def test_connecting_without_a_server_is_a_lost_connection() -> None:
    """With the address and the system's reason."""
    [address], _ = await _bound("tcp://127.0.0.1:0")  # closed again, so the port is free
    with pytest.raises(ConnectionLost, match=rf"no server answers at {re.escape(address)}: "):
        await open_tcp(parse_url(address), OPTIONS)


def _option(sock: trio.socket.SocketType, level: int, name: str) -> int:
    return sock.getsockopt(level, getattr(socket, name))


def _settings(sock: trio.socket.SocketType) -> list[int]:
    names = ("TCP_NODELAY", "TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    return [
        _option(sock, socket.SOL_SOCKET, "SO_KEEPALIVE"),
        *(_option(sock, socket.IPPROTO_TCP, name) for name in names),
    ]


async def test_the_options_that_detect_a_dead_peer_are_set() -> None:
    """30 s for unacknowledged bytes; probes after 20 s of silence, every 5 s, 4 of them;
    TCP_NODELAY for small messages.
    """
    with trio.socket.socket() as sock:
        set_tcp_options(sock, OPTIONS)
        assert _settings(sock) == [1, 1, 30_000, 20, 5, 4]


async def test_an_option_that_is_none_is_not_set() -> None:
    """The system's default stays."""
    with trio.socket.socket() as sock:
        before = _settings(sock)
        set_tcp_options(sock, replace(OPTIONS, tcp_user_timeout=None, tcp_keepalive=None))
        assert _settings(sock) == [before[0], 1, *before[2:]]


async def test_an_option_that_the_system_lacks_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are set."""
    with trio.socket.socket() as sock:
        before = _settings(sock)
        number = socket.TCP_USER_TIMEOUT
        monkeypatch.delattr(socket, "TCP_USER_TIMEOUT")
        set_tcp_options(sock, OPTIONS)
        monkeypatch.setattr(socket, "TCP_USER_TIMEOUT", number, raising=False)
        assert _settings(sock) == [1, 1, before[2], 20, 5, 4]


async def test_a_socket_that_refuses_an_option_raises_nothing() -> None:
    """Its peer may have disconnected; the first read reports that."""
    sock = trio.socket.socket()
    sock.close()
    set_tcp_options(sock, OPTIONS)
    assert sock.fileno() == -1


def test_a_peer_is_identified_by_its_socket_address() -> None:
    """Written as in a URL."""
    assert tcp_identity(("127.0.0.1", 7)) == PeerIdentity(
        address="127.0.0.1:7", host="127.0.0.1", port=7
    )
    assert tcp_identity(("::1", 7, 0, 0)) == PeerIdentity(address="[::1]:7", host="::1", port=7)


async def test_a_peer_that_disconnects_at_once_is_a_lost_connection() -> None:
    """The socket is closed."""
    stream = trio.SocketStream(trio.socket.socket())
    with pytest.raises(
        ConnectionLost, match="the peer disconnected immediately after the connection was opened"
    ):
        _peer_of(stream)
    assert stream.socket.fileno() == -1
