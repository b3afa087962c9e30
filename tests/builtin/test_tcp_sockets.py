"""TCP sockets: where they listen, what is set on them, and what is said when it cannot be done."""

import errno
import re
import socket
from dataclasses import replace
from typing import Any

import pytest
import trio

from penstock.api import ConnectionLost, UsageError
from penstock.builtin import _tcp_sockets
from penstock.builtin._socket_listener import close_all
from penstock.builtin._tcp_sockets import bind_tcp, is_loopback, open_tcp, peer_at, peer_of, tune
from penstock.plugins import PeerIdentity, TransportOptions, parse_url

OPTIONS = TransportOptions()
V4, V6 = socket.AF_INET, socket.AF_INET6


async def _bound(url: str) -> tuple[list[str], list[Any]]:
    sockets, addresses = await bind_tcp(parse_url(url), OPTIONS)
    names = [each.getsockname() for each in sockets]
    close_all(sockets)
    return [str(address) for address in addresses], names


async def test_port_0_becomes_a_real_port() -> None:
    """The address that is reported is the one that was asked for, with the port that it really got; dialect and all."""
    [address], [name] = await _bound("reactivesocket+tcp://127.0.0.1:0/ignored")
    assert address == f"reactivesocket+tcp://127.0.0.1:{name[1]}"
    assert name[1] > 0


async def test_ipv6_is_listened_at() -> None:
    """In brackets, as URLs have it."""
    [address], [name] = await _bound("tcp://[::1]:0")
    assert name[0] == "::1"
    assert address == f"tcp://[::1]:{name[1]}"


async def test_all_addresses_of_a_name_share_one_port() -> None:
    """A name with an IPv4 and an IPv6 address: one URL reaches both."""
    addresses, names = await _bound("tcp://localhost:0")
    assert len(addresses) == 1
    assert len({name[1] for name in names}) == 1


async def test_without_a_host_every_address_of_the_machine_is_listened_at() -> None:
    """One port, reported for each family."""
    addresses, names = await _bound("tcp://:0")
    assert {name[0] for name in names} <= {"0.0.0.0", "::"}
    assert len({name[1] for name in names}) == 1
    assert addresses == [str(parse_url("tcp://:0").at(*name[:2])) for name in names]


async def test_a_port_that_is_free_on_one_address_only_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is asked for another one; nothing stays bound meanwhile."""
    real, refused = _tcp_sockets._bind, []

    def bind(family: socket.AddressFamily, address: Any, backlog: int) -> socket.socket:
        if family == V6 and not refused:
            refused.append(address)
            raise OSError(errno.EADDRINUSE, "taken")
        return real(family, address, backlog)

    monkeypatch.setattr(_tcp_sockets, "_bind", bind)
    sockets = _tcp_sockets._bind_to_one_port([(V4, ("127.0.0.1", 0)), (V6, ("::1", 0, 0, 0))], 0, 5)
    assert len({each.getsockname()[1] for each in sockets}) == 1
    assert refused
    close_all(sockets)


def test_a_machine_without_any_such_port_is_told_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an endless search."""
    attempts = []

    def bind(*_: Any) -> socket.socket:
        attempts.append(1)
        raise OSError(errno.EADDRINUSE, "taken")

    monkeypatch.setattr(_tcp_sockets, "_bind", bind)
    with pytest.raises(OSError, match="no port is free on all of 1 addresses, after 16 attempts"):
        _tcp_sockets._bind_to_one_port([(V4, ("127.0.0.1", 0))], 0, 5)
    assert len(attempts) == 16


def test_an_address_that_this_machine_lacks_is_left_out_unless_it_is_the_only_one() -> None:
    """A name may have an IPv6 address where there is no IPv6."""
    here, elsewhere = (V4, ("127.0.0.1", 0)), (V6, ("2001:db8::1", 0, 0, 0))
    for addresses in ([here, elsewhere], [elsewhere, here]):
        sockets = _tcp_sockets._bind_all(addresses, 0, 5)
        assert [each.getsockname()[0] for each in sockets] == ["127.0.0.1"]
        close_all(sockets)
    with pytest.raises(OSError, match="assign requested address"):
        _tcp_sockets._bind_all([elsewhere], 0, 5)


async def test_an_address_that_is_taken_is_told() -> None:
    """As a mistake of the program, with the reason of the system and what to do; what was bound already is closed."""
    other = socket.create_server(("127.0.0.1", 0))
    with other, pytest.raises(UsageError, match=r"cannot listen at tcp://127.0.0.1:.*in use.*Choose another"):
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
async def test_where_nobody_can_listen_is_refused(url: str, why: str) -> None:
    """The message says what is missing."""
    with pytest.raises(UsageError, match=why):
        await _bound(url)


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "tcp://:7000", "tcp://127.0.0.1:0"])
async def test_connecting_needs_a_host_and_a_port(url: str) -> None:
    """The message shows both."""
    with pytest.raises(UsageError, match=r"lacks the host or the port to connect to; write for example tcp://127.0.0.1:7000"):
        await open_tcp(parse_url(url), OPTIONS)


async def test_nobody_there_is_a_lost_connection() -> None:
    """With the address and the reason of the system."""
    [address], _ = await _bound("tcp://127.0.0.1:0")  # closed again: the port is free
    with pytest.raises(ConnectionLost, match=rf"nobody answers at {re.escape(address)}: "):
        await open_tcp(parse_url(address), OPTIONS)


def _option(sock: trio.socket.SocketType, level: int, name: str) -> int:
    return sock.getsockopt(level, getattr(socket, name))


def _settings(sock: trio.socket.SocketType) -> list[int]:
    names = ("TCP_NODELAY", "TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    return [_option(sock, socket.SOL_SOCKET, "SO_KEEPALIVE"), *(_option(sock, socket.IPPROTO_TCP, name) for name in names)]


async def test_a_dead_peer_is_going_to_be_noticed() -> None:
    """Unacknowledged bytes for 30 s, probes after 60 s of silence, each 10 s, three of them; and small messages do not wait."""
    with trio.socket.socket() as sock:
        tune(sock, OPTIONS)
        assert _settings(sock) == [1, 1, 30_000, 60, 10, 3]


async def test_what_is_not_wanted_is_not_set() -> None:
    """None leaves the system's ways."""
    with trio.socket.socket() as sock:
        before = _settings(sock)
        tune(sock, replace(OPTIONS, tcp_user_timeout=None, tcp_keepalive=None))
        assert _settings(sock) == [before[0], 1, *before[2:]]


async def test_an_option_that_the_system_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are set."""
    with trio.socket.socket() as sock:
        before = _settings(sock)
        number = socket.TCP_USER_TIMEOUT
        monkeypatch.delattr(socket, "TCP_USER_TIMEOUT")
        tune(sock, OPTIONS)
        monkeypatch.setattr(socket, "TCP_USER_TIMEOUT", number, raising=False)
        assert _settings(sock) == [1, 1, before[2], 60, 10, 3]


async def test_a_socket_that_refuses_an_option_disturbs_nobody() -> None:
    """Its peer may be gone already; the first read will tell."""
    sock = trio.socket.socket()
    sock.close()
    tune(sock, OPTIONS)
    assert sock.fileno() == -1


def test_a_peer_is_named_by_its_address() -> None:
    """As a URL would have it."""
    assert peer_at(("127.0.0.1", 7)) == PeerIdentity(address="127.0.0.1:7", host="127.0.0.1", port=7)
    assert peer_at(("::1", 7, 0, 0)) == PeerIdentity(address="[::1]:7", host="::1", port=7)


async def test_a_peer_that_is_gone_at_once_is_a_lost_connection() -> None:
    """And its socket is closed."""
    stream = trio.SocketStream(trio.socket.socket())
    with pytest.raises(ConnectionLost, match="gone as soon as it was there"):
        peer_of(stream)
    assert stream.socket.fileno() == -1


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False), (None, False)],
)
def test_this_machine_is_known_by_its_addresses(host: str | None, here: bool) -> None:
    """Loopback is local, nothing else is taken for it."""
    assert is_loopback(PeerIdentity(address="x", host=host)) is here
