"""Options of a socket, and the identity of its peer, for clients and servers of any kind:
plain calls without trio.
"""

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import PeerIdentity, UnixCredentials

_UCRED: Final = struct.Struct("3i")  # pid, uid, gid: Linux's struct ucred


class AnySocket(Protocol):
    """A socket of Python, of trio, or of asyncio."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option."""

    def getsockopt(self, level: int, option: int, length: int, /) -> bytes:
        """Return an option."""


def set_tcp_options(sock: AnySocket, options: TransportOptions) -> None:
    """Send small messages at once, and let the system detect a dead peer."""
    wanted: list[tuple[int, str, int]] = [(socket.IPPROTO_TCP, "TCP_NODELAY", 1)]
    if options.tcp_user_timeout is not None:
        wanted.append(
            (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", round(options.tcp_user_timeout * 1000))
        )
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


def _set(sock: AnySocket, level: int, name: str, value: int) -> None:
    # TCP_USER_TIMEOUT is Linux's; macOS calls TCP_KEEPIDLE otherwise.
    option = getattr(socket, name, None)
    if option is None:
        return
    with suppress(OSError):
        sock.setsockopt(level, option, value)


def tcp_identity(address: Iterable[Any]) -> PeerIdentity:
    """Return the identity of the peer at the address of a TCP socket."""
    host, port, *_ = address
    return PeerIdentity(
        address=f"[{host}]:{port}" if ":" in host else f"{host}:{port}", host=host, port=port
    )


def unix_identity(sock: AnySocket) -> PeerIdentity:
    """Return the identity of the peer of a Unix socket."""
    if not hasattr(
        socket, "SO_PEERCRED"
    ):  # pragma: no cover (Linux only; elsewhere the file's mode is the only protection)
        return PeerIdentity(address="unix")
    pid, uid, gid = _UCRED.unpack(
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return PeerIdentity(
        address=f"unix:pid {pid}", credentials=UnixCredentials(pid=pid, uid=uid, gid=gid)
    )
