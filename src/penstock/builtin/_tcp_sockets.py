"""TCP sockets for the transports that run on TCP: opening, binding, and the options that find a dead peer.

Rules of this file:

* With port 0 and a name that has several addresses, all of them get one and the same port: one URL reaches them all.
* An option that this system does not know, or refuses for a peer that is gone, is left out: the first read will tell.
"""

import errno
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.builtin._socket_listener import close_all
from penstock.plugins import ConnectionFacts, PeerIdentity, TransportOptions, Url

Address = tuple[socket.AddressFamily, Any]
_PORT_ATTEMPTS: Final = 16
# A host may have a name for an address that it lacks: "localhost" means ::1 too where IPv6 is switched off.
_ABSENT: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


async def open_tcp(url: Url, options: TransportOptions) -> trio.SocketStream:
    """Connect, to whichever address of the host answers first. Raises UsageError or ConnectionLost."""
    port = _check(url)
    if not url.host or not port:
        raise UsageError(f"{url.address} lacks the host or the port to connect to; write for example {url.scheme}://127.0.0.1:7000")
    try:
        stream = await trio.open_tcp_stream(url.host, port)
    except (socket.gaierror, UnicodeError) as error:  # an empty or overlong label is refused before anybody is asked
        raise ConnectionLost(f"the name {url.host!r} of {url.address} leads nowhere: {error}. Check it, or write the address") from error
    except OSError as error:
        raise ConnectionLost(f"nobody answers at {url.address}: {_why(error)}. Is the server running, at this host and port?") from error
    tune(stream.socket, options)
    return stream


def _why(error: OSError) -> str:
    """What the system said of each address; trio says only that all of them failed."""
    cause = error.__cause__
    causes = cause.exceptions if isinstance(cause, BaseExceptionGroup) else (cause or error,)
    return ", ".join(dict.fromkeys(map(str, causes)))


async def bind_tcp(url: Url, options: TransportOptions) -> tuple[list[socket.socket], list[Url]]:
    """Bind and listen; return the sockets, and the URLs with the real port. Raises UsageError."""
    port = _check(url)
    if port is None:
        raise UsageError(f"{url.address} lacks the port to listen at; 0 lets the system choose one: {url.scheme}://127.0.0.1:0")
    try:
        found = await trio.socket.getaddrinfo(url.host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        sockets = _bind_to_one_port(list(dict.fromkeys((family, address) for family, _, _, _, address in found)), port, options.backlog)
    except OSError as error:
        raise UsageError(f"cannot listen at {url.address}: {error}. Choose another address or port") from error
    if url.host:
        return sockets, [url.address.at(url.host, sockets[0].getsockname()[1])]
    return sockets, [url.address.at(*each.getsockname()[:2]) for each in sockets]


def _check(url: Url) -> int | None:
    if url.host is None or url.path:
        raise UsageError(f"{url.address} is not of the form {url.scheme}://host:port/name; a '#' in a name is written %23")
    return url.port


def _bind_to_one_port(addresses: list[Address], port: int, backlog: int) -> list[socket.socket]:
    for _ in range(_PORT_ATTEMPTS):
        try:
            return _bind_all(addresses, port, backlog)
        except OSError as error:
            # The port that was free on the first address may be taken on the second: ask for another one.
            if port or error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"no port is free on all of {len(addresses)} addresses, after {_PORT_ATTEMPTS} attempts")


def _bind_all(addresses: list[Address], port: int, backlog: int) -> list[socket.socket]:
    """Bind each address that this machine has; at least one."""
    bound: list[socket.socket] = []
    for position, (family, (host, _, *rest)) in enumerate(addresses, 1):
        try:
            bound.append(_bind(family, (host, port, *rest), backlog))
        except OSError as error:
            if error.errno not in _ABSENT or (position == len(addresses) and not bound):
                close_all(bound)
                raise
        else:
            port = bound[0].getsockname()[1]
    return bound


def _bind(family: socket.AddressFamily, address: Any, backlog: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has a socket of its own
        listening.bind(address)
        listening.listen(backlog)
    except BaseException:
        listening.close()
        raise
    return listening


def tune(sock: trio.socket.SocketType, options: TransportOptions) -> None:
    """Set what finds a dead peer, and sends small messages at once."""
    wanted: list[tuple[int, str, int]] = [(socket.IPPROTO_TCP, "TCP_NODELAY", 1)]
    if options.tcp_user_timeout is not None:
        wanted.append((socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", round(options.tcp_user_timeout * 1000)))
    if options.tcp_keepalive is not None:
        idle, interval, count = options.tcp_keepalive
        wanted += [
            (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
            (socket.IPPROTO_TCP, "TCP_KEEPIDLE", idle),
            (socket.IPPROTO_TCP, "TCP_KEEPINTVL", interval),
            (socket.IPPROTO_TCP, "TCP_KEEPCNT", count),
        ]
    for level, name, value in wanted:
        _set(sock, level, name, value)


def _set(sock: trio.socket.SocketType, level: int, name: str, value: int) -> None:
    option = getattr(socket, name, None)
    if option is None:
        return
    with suppress(OSError):
        sock.setsockopt(level, option, value)


def peer_at(address: Iterable[Any]) -> PeerIdentity:
    """Name the peer at a socket's address."""
    host, port, *_ = address
    return PeerIdentity(address=f"[{host}]:{port}" if ":" in host else f"{host}:{port}", host=host, port=port)


def peer_of(stream: trio.SocketStream) -> PeerIdentity:
    """Name the peer that a stream was opened to. Raises ConnectionLost where it is gone again."""
    try:
        return peer_at(stream.socket.getpeername())
    except OSError as error:
        stream.socket.close()
        raise ConnectionLost(f"the peer was gone as soon as it was there: {error}") from error


def tcp_facts(peer: PeerIdentity) -> ConnectionFacts:
    """What is known about a plain TCP connection."""
    return ConnectionFacts(half_close=True, local=is_loopback(peer))


def is_loopback(peer: PeerIdentity) -> bool:
    """Whether the peer is on this machine."""
    host = peer.host or ""
    return host.startswith("127.") or host in {"::1", "::ffff:127.0.0.1"}
